r"""Constraints on positions: where a system may be, and with it which velocities it may have.

$$
\begin{aligned}
\varphi(g, t) &= 0, & \Phi(g, t)\,\xi + \partial_t\varphi(g, t) &= 0          &&\text{(1)}\\
A(g, t)\,\xi &= c(g, t)                                                     &&&&\text{(2)}
\end{aligned}
$$

with $\Phi_{ij} = \frac{d}{d\epsilon}\varphi_i(g\exp(\epsilon e_j), t)$ the left-trivialised
derivative. Equations (2) are those of what rolls or slides on top of it. As a constraint on
velocities, both stand one above the other: the rows of $\Phi$ first.
"""

import abc
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup, Element
from retrax.mechanics.constraints import AbstractConstraint, Rows, Time
from retrax.mechanics.functions import Function, arguments, as_pytree, takes_time
from retrax.numerics.checks import output, require_function, require_instance

if TYPE_CHECKING:
    from retrax.mechanics.system import AbstractGroupSystem

# Positions may miss the constraint by this much where a run starts.
ALLOWED_GAP = 1e-10


class AbstractHolonomic(AbstractConstraint):
    r"""$\varphi(g, t) = 0$, alone or with velocity constraints $A\,\xi = c$ beside it.

    Rows may be redundant: their multipliers are then the smallest that do the work.

    **Attributes:** `rolling`: the velocity constraint (2), if there is one.
    """

    rolling: eqx.AbstractVar[AbstractConstraint | None]

    @abc.abstractmethod
    def positions(self, g: Element, t: Time) -> Float[Array, " k"]:
        r"""Return $\varphi(g, t)$."""

    @abc.abstractmethod
    def position_rows(self, g: Element, t: Time) -> Rows:
        r"""Return $\Phi(g, t)$ of (1)."""

    @abc.abstractmethod
    def position_rates(self, g: Element, t: Time) -> Float[Array, " k"]:
        r"""Return $\partial_t\varphi(g, t)$; zero where the constraint does not move."""

    def rows(self, g: Element, t: Time) -> Rows:
        above = self.position_rows(g, t)
        return above if self.rolling is None else jnp.concatenate([above, self.rolling.rows(g, t)])

    def offset(self, g: Element, t: Time) -> Float[Array, " k"]:
        above = -self.position_rates(g, t)
        if self.rolling is None:
            return above
        return jnp.concatenate([above, self.rolling.offset(g, t)])

    @property
    def driven(self) -> bool:
        return self.moving or (self.rolling is not None and self.rolling.driven)

    def gap(self, g: Element, t: Time) -> Float[Array, ""]:
        r"""Return $\max|\varphi(g, t)|$: by how much a place breaks the constraint."""
        return jnp.max(jnp.abs(self.positions(g, t)))


class Holonomic(AbstractHolonomic):
    r"""$\varphi(g) = 0$ or $\varphi(g, t) = 0$: the system stays where a function of yours vanishes.

    **Arguments:**

    - `phi`: `phi(g)` or `phi(g, t)`, a vector with an entry for each equation, or one number,
        written in JAX. Equations that say the same twice do no harm.
    - `rolling`: a `Distribution` or `VelocityConstraint` that holds as well.
    """

    phi: Function
    rolling: AbstractConstraint | None
    group: AbstractLieGroup | None
    timed: bool = eqx.field(static=True)

    def __init__(
        self,
        phi: Callable[[Element], Array] | Callable[[Element, Time], Array],
        rolling: AbstractConstraint | None = None,
        *,
        group: AbstractLieGroup | None = None,
    ):
        self.timed = takes_time("phi", require_function("phi", phi), ("g",))
        self.phi, self.group = as_pytree(phi), group
        if rolling is not None:
            what = "a Distribution or a VelocityConstraint"
            require_instance("rolling", rolling, AbstractConstraint, what)
        if isinstance(rolling, AbstractHolonomic):
            raise BadInput("rolling is a constraint on positions: write both in one phi.")
        self.rolling = rolling

    @property
    def moving(self) -> bool:
        return self.timed or (self.rolling is not None and self.rolling.moving)

    def positions(self, g: Element, t: Time) -> Float[Array, " k"]:
        return jnp.atleast_1d(jnp.asarray(self.phi(g, t) if self.timed else self.phi(g)))

    def position_rows(self, g: Element, t: Time) -> Rows:
        assert self.group is not None  # `on` has set it
        group = self.group
        slopes = jax.jacrev(self.positions)(g, t)
        return jax.vmap(lambda row: group.cotangent(g, row))(slopes)

    def position_rates(self, g: Element, t: Time) -> Float[Array, " k"]:
        if not self.timed:
            return jnp.zeros_like(self.positions(g, t))
        return jax.jvp(partial(self.positions, g), (t,), (jnp.ones_like(t),))[1]

    def on(self, group: AbstractLieGroup) -> "Holonomic":
        """Return the same constraint, which knows the group it lives on."""
        return Holonomic(self.phi, self.rolling, group=group)

    def check(self, group: AbstractLieGroup) -> None:
        g, _, t = arguments(group)
        of = (g, t) if self.timed else (g,)
        out = output("phi", self.phi, of)
        if out.dtype != jnp.float64 or len(out.shape) > 1 or out.size == 0:
            raise BadInput(
                f"phi(g{', t' if self.timed else ''}) has shape {out.shape} of {out.dtype}, but it "
                "is one number or a vector with an entry for each equation."
            )
        if self.rolling is not None:
            self.rolling.check(group)


def require_on(system: "AbstractGroupSystem", gap: np.ndarray) -> None:
    """Reject a place at which positions break the constraint."""
    if not gap <= ALLOWED_GAP:
        raise BadInput(
            f"g does not lie on the constraint of the {system.name}: max |phi(g)| = {float(gap):.3g}, "
            f"allowed {ALLOWED_GAP:.0e}."
        )
