"""Retraction maps from the algebra to the group: the coordinates integrators take steps in."""

import abc
import math
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool

from retrax.errors import BadInput
from retrax.groups.arguments import look_at_arguments
from retrax.groups.base import AbstractLieGroup, Coordinates, Element
from retrax.numerics.frozen import Frozen


class AbstractRetraction(Frozen):
    r"""A local diffeomorphism $\tau: \mathfrak g \to G$ with $\tau(0) = 1$, $d\tau(0) = 1$.

    Its left and right trivialised tangent maps, and its adjoint $\tau^*$, are
    $$
    \begin{aligned}
    dL_\xi\,\eta &= \tau(\xi)^{-1}\,\tfrac{d}{d\epsilon}\tau(\xi+\epsilon\eta)   &&\text{(1)}\\
    dR_\xi\,\eta &= \tfrac{d}{d\epsilon}\tau(\xi+\epsilon\eta)\,\tau(\xi)^{-1}
                  = dL^*_{-\xi}\,\eta                                            &&\text{(2)}\\
    \tau^*(\xi) &= \tau(-\xi)^{-1}                                               &&\text{(3)}
    \end{aligned}
    $$
    with $dL^*$ the map (1) of $\tau^*$. A symmetric retraction is its own adjoint, as this class
    takes for granted; another overrides `adjoint` and `symmetric`. Names ending in `_dual` are
    transposes.

    **Attributes:**

    - `name`: what it is called.
    - `commutes`: whether $\tau(\xi)$ commutes with $\hat\xi$, as functions of $\hat\xi$ do.
    """

    name: eqx.AbstractClassVar[str]
    commutes: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        if cls.__module__.startswith("retrax."):
            look_at_arguments(cls)

    @property
    def adjoint(self) -> "AbstractRetraction":
        r"""$\tau^*$ of (3)."""
        return self

    @property
    def symmetric(self) -> bool:
        r"""Whether $\tau^* = \tau$, that is $\tau(-\xi) = \tau(\xi)^{-1}$."""
        return True

    @abc.abstractmethod
    def minus_identity(self, group: AbstractLieGroup, xi: Coordinates) -> Element:
        r"""Return $\tau(\xi) - 1$, without cancellation; `group.advance` takes it."""

    @abc.abstractmethod
    def __call__(self, group: AbstractLieGroup, xi: Coordinates) -> Element:
        r"""Return $\tau(\xi)$."""

    @abc.abstractmethod
    def inverse(self, group: AbstractLieGroup, g: Element) -> Coordinates:
        r"""Return $\tau^{-1}(g)$."""

    @abc.abstractmethod
    def dL(self, group: AbstractLieGroup, xi: Coordinates, eta: Coordinates) -> Coordinates: ...

    @abc.abstractmethod
    def dL_inv(self, group: AbstractLieGroup, xi: Coordinates, eta: Coordinates) -> Coordinates: ...

    @abc.abstractmethod
    def dL_dual(self, group: AbstractLieGroup, xi: Coordinates, mu: Coordinates) -> Coordinates: ...

    @abc.abstractmethod
    def dL_inv_dual(
        self, group: AbstractLieGroup, xi: Coordinates, mu: Coordinates
    ) -> Coordinates: ...

    @abc.abstractmethod
    def covers(self, group: AbstractLieGroup, xi: Coordinates) -> Bool[Array, ""]:
        r"""Tell whether $\xi$ lies in the chart around 0, where the tangent maps exist."""

    @abc.abstractmethod
    def check(self, group: AbstractLieGroup) -> None:
        """Raise `BadInput` if the retraction does not map into `group`."""

    def dR(self, group: AbstractLieGroup, xi: Coordinates, eta: Coordinates) -> Coordinates:
        return self.adjoint.dL(group, -xi, eta)  # (2)

    def dR_inv(self, group: AbstractLieGroup, xi: Coordinates, eta: Coordinates) -> Coordinates:
        return self.adjoint.dL_inv(group, -xi, eta)

    def dR_dual(self, group: AbstractLieGroup, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return self.adjoint.dL_dual(group, -xi, mu)

    def dR_inv_dual(self, group: AbstractLieGroup, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return self.adjoint.dL_inv_dual(group, -xi, mu)


class Exp(AbstractRetraction):
    r"""The exponential map, on every group; exact on one-parameter subgroups.

    References: [IserlesMuntheKaasNorsettZanna2000].
    """

    name: ClassVar[str] = "Exp"
    commutes: ClassVar[bool] = True

    def __call__(self, group: AbstractLieGroup, xi: Coordinates) -> Element:
        return group.exp(xi)

    def minus_identity(self, group: AbstractLieGroup, xi: Coordinates) -> Element:
        return group.expm1(xi)

    def inverse(self, group: AbstractLieGroup, g: Element) -> Coordinates:
        return group.log(g)

    def dL(self, group: AbstractLieGroup, xi: Coordinates, eta: Coordinates) -> Coordinates:
        return group.dexp(xi, eta)

    def dL_inv(self, group: AbstractLieGroup, xi: Coordinates, eta: Coordinates) -> Coordinates:
        return group.dexp_inv(xi, eta)

    def dL_dual(self, group: AbstractLieGroup, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return group.dexp_dual(xi, mu)

    def dL_inv_dual(self, group: AbstractLieGroup, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return group.dexp_inv_dual(xi, mu)

    def covers(self, group: AbstractLieGroup, xi: Coordinates) -> Bool[Array, ""]:
        return group.angle_squared(xi) < (2 * math.pi) ** 2

    def check(self, group: AbstractLieGroup) -> None:
        pass


class Cayley(AbstractRetraction):
    r"""The Cayley map $\tau(\xi) = (1-\hat\xi/2)^{-1}(1+\hat\xi/2)$.

    It is rational, so it needs no trigonometric function and has no small-angle branch. It maps
    into the group exactly when $\hat\xi\hat\eta\hat\xi \in \mathfrak g$ for all $\xi, \eta$:
    rotations, rigid motions, translations and other quadratic groups, but not SL(3).

    References: [KobilarovMarsden2011], [HairerLubichWanner2006].
    """

    name: ClassVar[str] = "Cayley"
    commutes: ClassVar[bool] = True

    def __call__(self, group: AbstractLieGroup, xi: Coordinates) -> Element:
        return group.cay(xi)

    def minus_identity(self, group: AbstractLieGroup, xi: Coordinates) -> Element:
        return group.caym1(xi)

    def inverse(self, group: AbstractLieGroup, g: Element) -> Coordinates:
        return group.cay_inv(g)

    def dL(self, group: AbstractLieGroup, xi: Coordinates, eta: Coordinates) -> Coordinates:
        return group.dcay(xi, eta)

    def dL_inv(self, group: AbstractLieGroup, xi: Coordinates, eta: Coordinates) -> Coordinates:
        return group.dcay_inv(xi, eta)

    def dL_dual(self, group: AbstractLieGroup, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return group.dcay_dual(xi, mu)

    def dL_inv_dual(self, group: AbstractLieGroup, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return group.dcay_inv_dual(xi, mu)

    def covers(self, group: AbstractLieGroup, xi: Coordinates) -> Bool[Array, ""]:
        return jnp.asarray(True)

    def check(self, group: AbstractLieGroup) -> None:
        if not group.has_cayley:
            raise BadInput(
                f"Cayley() does not map into {group.name}: its algebra is not closed under "
                "x y x, so (1 - x/2)^-1 (1 + x/2) leaves the group; use Exp()."
            )
