"""What a Lie group is: the operations, the laws they satisfy, and what follows from them."""

import abc
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

from retrax.errors import BadInput
from retrax.groups.arguments import look_at_arguments, require_layout
from retrax.numerics.checks import (
    is_traced,
    require_instance,
)
from retrax.numerics.evaluate import Evaluated
from retrax.numerics.fingerprint import Fingerprint
from retrax.numerics.frozen import Frozen
from retrax.numerics.known import require_each
from retrax.numerics.reuse import Reused, signature_of

Element = PyTree[Float[Array, "..."]]
HostElement = PyTree[Float[np.ndarray, "..."]]
Coordinates = Float[Array, " dim"]
Matrix = Float[Array, "dim dim"]

ALLOWED_DEFECT = 1e-9


def transpose(
    linear: Callable[[Coordinates], PyTree], like: Coordinates, value: PyTree
) -> Coordinates:
    """Apply the exact transpose of a linear map of vectors shaped as `like` to `value`."""
    return jax.linear_transpose(linear, like)(value)[0]


class AbstractLieGroup(Frozen):
    r"""A Lie group $G$ with algebra $\mathfrak g \cong \mathbb R^{\dim}$.

    The group is an object, its elements are arrays or pytrees of arrays, and algebra vectors
    $\xi, \eta$ and covectors $\mu$ are coordinate vectors of length `dim`. Velocities are left
    trivialised, $\dot g = g\hat\xi$. The tangent maps are left trivialised as well:
    $$
    \begin{aligned}
    \exp(-\xi)\,\tfrac{d}{d\epsilon}\exp(\xi+\epsilon\eta) &= \mathrm{dexp}_\xi\,\eta
        = \phi(-\mathrm{ad}_\xi)\,\eta, \quad \phi(z) = (e^z-1)/z     &&\text{(1)}\\
    \mathrm{cay}(\xi) &= (1-\hat\xi/2)^{-1}(1+\hat\xi/2)              &&\text{(2)}\\
    \mathrm{dcay}_\xi\,\eta &= (1+\hat\xi/2)^{-1}\hat\eta(1-\hat\xi/2)^{-1}  &&\text{(3)}
    \end{aligned}
    $$
    `Ad`, `ad` and their plain transposes `coAd`, `coad` are matrices, or are applied without
    forming the matrix when a vector is given as the second argument.

    **Attributes:**

    - `dim`: the dimension of the group.
    - `name`: its short mathematical name.
    - `has_cayley`: whether (2) stays in the group.
    """

    dim: eqx.AbstractVar[int]
    name: eqx.AbstractVar[str]
    has_cayley: eqx.AbstractVar[bool]

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        if cls.__module__.startswith("retrax."):
            look_at_arguments(cls)

    @abc.abstractmethod
    def identity(self) -> Element: ...

    @abc.abstractmethod
    def compose(self, g: Element, k: Element) -> Element: ...

    @abc.abstractmethod
    def inverse(self, g: Element) -> Element: ...

    @abc.abstractmethod
    def hat(self, xi: Coordinates) -> PyTree:
        """Return the algebra element with coordinates `xi`, as a matrix."""

    @abc.abstractmethod
    def vee(self, x: PyTree) -> Coordinates:
        """Return the coordinates of an algebra element; `vee(hat(xi)) == xi`."""

    @abc.abstractmethod
    def expm1(self, xi: Coordinates) -> Element:
        """Return exp(xi) minus the identity, without cancellation at small `xi`."""

    def expm1_in_chart(self, xi: Coordinates) -> Element:
        """Return `expm1` for `xi` no longer than the steps of an integrator; may be cheaper."""
        return self.expm1(xi)

    @abc.abstractmethod
    def log(self, g: Element) -> Coordinates:
        """Return coordinates with `exp(log(g)) == g`, the smallest such."""

    @abc.abstractmethod
    def advance(self, g: Element, delta: Element) -> Element:
        """Return g (identity + delta), the update of a step.

        Products of rotations drift off the group by round-off, as the square root of their number.
        Groups of rotations therefore take away, before they turn `g`, the defect that earlier
        products left in it, so that it never exceeds that of one multiplication, however far a
        step turns.
        """

    @abc.abstractmethod
    def tangent(self, g: Element, xi: Coordinates) -> Element:
        """Return the velocity g hat(xi), stored as `g` is."""

    @overload
    def Ad(self, g: Element) -> Matrix: ...
    @overload
    def Ad(self, g: Element, xi: Coordinates) -> Coordinates: ...
    @abc.abstractmethod
    def Ad(self, g: Element, xi: Coordinates | None = None) -> Matrix | Coordinates: ...

    @overload
    def ad(self, xi: Coordinates) -> Matrix: ...
    @overload
    def ad(self, xi: Coordinates, eta: Coordinates) -> Coordinates: ...
    @abc.abstractmethod
    def ad(self, xi: Coordinates, eta: Coordinates | None = None) -> Matrix | Coordinates: ...

    @abc.abstractmethod
    def dexp(self, xi: Coordinates, eta: Coordinates) -> Coordinates: ...

    @abc.abstractmethod
    def dexp_inv(self, xi: Coordinates, eta: Coordinates) -> Coordinates: ...

    @abc.abstractmethod
    def caym1(self, xi: Coordinates) -> Element:
        """Return cay(xi) minus the identity, without cancellation at small `xi`."""

    @abc.abstractmethod
    def cay_inv(self, g: Element) -> Coordinates:
        """Return coordinates with `cay(cay_inv(g)) == g`."""

    @abc.abstractmethod
    def dcay(self, xi: Coordinates, eta: Coordinates) -> Coordinates: ...

    @abc.abstractmethod
    def dcay_inv(self, xi: Coordinates, eta: Coordinates) -> Coordinates: ...

    @abc.abstractmethod
    def defect(self, g: Element) -> Float[Array, ""]:
        """Return the distance of `g` from the group: zero, up to round-off, on it."""

    @abc.abstractmethod
    def project(self, g: Element) -> Element:
        """Return an element of the group next to `g`."""

    def fill_in(self, g: Element) -> Element:
        """Return `g` with the entries that follow from its others made from them.

        Callers that compute an element entry by entry may leave those out.
        """
        return g

    @abc.abstractmethod
    def random(self, key: Key[Array, ""]) -> Element:
        """Return a random element, spread over the group; vectors are standard normal."""

    def angle_squared(self, xi: Coordinates) -> Float[Array, ""]:
        """Return the square of the largest angle by which exp(xi) rotates; zero without rotation.

        At an angle of 2 pi the tangent map of the exponential map is singular.
        """
        return jnp.zeros(())

    def exp(self, xi: Coordinates) -> Element:
        return jax.tree.map(jnp.add, self.identity(), self.expm1(xi))

    def cay(self, xi: Coordinates) -> Element:
        return jax.tree.map(jnp.add, self.identity(), self.caym1(xi))

    def cotangent(self, g: Element, a: Element) -> Coordinates:
        """Return the transpose of `xi -> tangent(g, xi)` at `a`.

        The left-trivialised differential of f: G -> R is `cotangent(g, jax.grad(f)(g))`.
        """
        return transpose(lambda xi: self.tangent(g, xi), jnp.zeros(self.dim), a)

    @overload
    def coAd(self, g: Element) -> Matrix: ...
    @overload
    def coAd(self, g: Element, mu: Coordinates) -> Coordinates: ...
    def coAd(self, g: Element, mu: Coordinates | None = None) -> Matrix | Coordinates:
        if mu is None:
            return self.Ad(g).T
        return transpose(lambda xi: self.Ad(g, xi), mu, mu)

    def coAdm1(self, delta: Element, mu: Coordinates) -> Coordinates:
        """Return coAd(identity + delta) mu - mu: the change of a momentum, small as `delta` is."""
        return self.coAd(jax.tree.map(jnp.add, self.identity(), delta), mu) - mu

    @overload
    def coad(self, xi: Coordinates) -> Matrix: ...
    @overload
    def coad(self, xi: Coordinates, mu: Coordinates) -> Coordinates: ...
    def coad(self, xi: Coordinates, mu: Coordinates | None = None) -> Matrix | Coordinates:
        if mu is None:
            return self.ad(xi).T
        return transpose(lambda eta: self.ad(xi, eta), mu, mu)

    def dexp_dual(self, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return transpose(lambda eta: self.dexp(xi, eta), mu, mu)

    def dexp_inv_dual(self, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return transpose(lambda eta: self.dexp_inv(xi, eta), mu, mu)

    def dexp_gradient(self, xi: Coordinates, eta: Coordinates, mu: Coordinates) -> Coordinates:
        r"""Return the gradient of $\langle\mu, \mathrm{dexp}_\xi\,\eta\rangle$ in $\xi$."""
        return jax.vjp(lambda xi: self.dexp(xi, eta), xi)[1](mu)[0]

    def dcay_dual(self, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return transpose(lambda eta: self.dcay(xi, eta), mu, mu)

    def dcay_inv_dual(self, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return transpose(lambda eta: self.dcay_inv(xi, eta), mu, mu)

    def layout(self) -> PyTree[jax.ShapeDtypeStruct]:
        """Return an element without its numbers, as `jax.eval_shape(group.identity)` gives it."""
        return _layout_of(*signature_of(self))

    def algebra_layout(self) -> PyTree[jax.ShapeDtypeStruct]:
        """Return what `hat` makes, without its numbers."""
        return _algebra_of(*signature_of(self))

    def angles(self) -> np.ndarray:
        """Tell of each coordinate of the algebra whether it is an angle."""
        return np.zeros(self.dim, bool)

    def check(self, name: str, g: PyTree) -> None:
        """Raise `BadInput` unless `g`, called `name` in the sentence, is an element.

        Structure and shapes are always checked; values where JAX does not hide them.
        """
        self.check_layout(name, g)
        if not is_traced(self):
            require_each(partial(self.check_membership, name), g, fine=self._members)

    def check_layout(self, name: str, g: PyTree) -> None:
        """Raise `BadInput` unless `g` is stored as an element is, in finite numbers."""
        require_layout(name, g, self.layout(), f"an element of {self.name}")

    def _members(self, g: HostElement) -> np.ndarray:
        """Tell of each element along a first axis whether it plainly lies on the group."""
        return np.asarray(_defects_of(self, g)) <= ALLOWED_DEFECT

    def check_membership(self, name: str, g: HostElement) -> None:
        """Raise `BadInput` if a finite `g` is off the group: the last part of `check`."""
        defect = float(defect_of(self, g))
        if not defect <= ALLOWED_DEFECT:
            raise BadInput(
                f"{name} is not an element of {self.name}: its defect is {defect:.2g}, allowed "
                f"{ALLOWED_DEFECT:.0e}; make it one with {self!r}.project({name})."
            )


look_at_arguments(AbstractLieGroup)


def require_group(group: object) -> AbstractLieGroup:
    """Reject anything that is not a group object."""
    what = "a Lie group; pass an instance, such as SO3()"
    return require_instance("group", group, AbstractLieGroup, what)


@Evaluated
def _defects_of(group: AbstractLieGroup, g: Element) -> Float[Array, " member"]:
    return jax.vmap(group.defect)(g)


@Evaluated
def defect_of(group: AbstractLieGroup, g: Element) -> Float[Array, ""]:
    return group.defect(g)


@Reused
def _layout_of(
    tree: Hashable, arrays: tuple, identity: Fingerprint
) -> PyTree[jax.ShapeDtypeStruct]:
    """Return the layout of the elements of a group, from its structure and its arrays' shapes."""
    (group,) = jax.tree.unflatten(tree, [jax.ShapeDtypeStruct(*array) for array in arrays])
    return jax.eval_shape(lambda group: group.identity(), group)


@Reused
def _algebra_of(
    tree: Hashable, arrays: tuple, identity: Fingerprint
) -> PyTree[jax.ShapeDtypeStruct]:
    """Return the layout of the matrices of an algebra, from the same."""
    (group,) = jax.tree.unflatten(tree, [jax.ShapeDtypeStruct(*array) for array in arrays])
    return jax.eval_shape(lambda group: group.hat(jnp.zeros(group.dim)), group)
