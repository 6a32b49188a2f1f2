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

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup, Element
from retrax.mechanics.constraints import AbstractConstraint, Rows, Time
from retrax.mechanics.functions import Function, arguments, as_pytree, takes_time
from retrax.numerics.checks import output, reason, require_function, require_instance


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

    def steepness(
        self, g: Element, moved: Element, t: Time
    ) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
        r"""Return how steep each equation is, the sum of $|\Phi|$ along its row, and how it turns.

        That is the largest change of its row along the tangent vector `moved`.
        """
        rows, turning = jax.jvp(lambda k: self.position_rows(k, t), (g,), (moved,))
        return jnp.sum(jnp.abs(rows), axis=-1), jnp.max(jnp.abs(turning), axis=-1)

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

    def equation(self, i: int) -> str:
        """Return what sentences call equation `i` of those of `rows`, counted from 0."""
        return f"equation {i + 1}"


class Holonomic(AbstractHolonomic):
    r"""$\varphi(g) = 0$ or $\varphi(g, t) = 0$: the system stays where your function vanishes.

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
    ):
        self.timed = takes_time("phi", require_function("phi", phi), ("g",))
        self.phi, self.group = as_pytree(phi), None
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
        group = self._where()
        slopes = jax.jacrev(self.positions)(g, t)
        return jax.vmap(lambda row: group.cotangent(g, row))(slopes)

    def position_rates(self, g: Element, t: Time) -> Float[Array, " k"]:
        if not self.timed:
            return jnp.zeros_like(self.positions(g, t))
        return jax.jvp(partial(self.positions, g), (t,), (jnp.ones_like(t),))[1]

    def on(self, group: AbstractLieGroup) -> "Holonomic":
        """Return the same constraint, which knows the group it lives on."""
        return self._with_fields(group=group)

    def alone(self) -> "Holonomic":
        """Return the constraint on positions without what rolls."""
        return self._with_fields(rolling=None)

    def _with_fields(self, **fields: object) -> "Holonomic":
        other = object.__new__(Holonomic)
        for name, value in (vars(self) | fields).items():
            object.__setattr__(other, name, value)
        return other

    def check(self, group: AbstractLieGroup) -> None:
        g, _, t = arguments(group)
        of = (g, t) if self.timed else (g,)
        out = output("phi", self.phi, of)
        if out.dtype != jnp.float64 or len(out.shape) > 1 or out.size == 0:
            raise BadInput(
                f"phi(g{', t' if self.timed else ''}) has shape {out.shape} of {out.dtype}, but it "
                "must be one number, or a vector with an entry for each equation."
            )
        try:
            jax.eval_shape(jax.jacrev(lambda g, *t: jnp.asarray(self.phi(g, *t))), *of)
        except Exception as cause:
            raise BadInput(
                f"phi has no derivative, and so there are no reactions: {reason(cause)}."
            ) from cause
        if self.rolling is not None:
            self.rolling.check(group)

    def equation(self, i: int) -> str:
        g, _, t = arguments(self._where())
        count = output("phi", self.phi, (g, t) if self.timed else (g,)).size
        return f"equation {i + 1} of phi" if i < count else f"equation {i + 1 - count} of rolling"

    def _where(self) -> AbstractLieGroup:
        if self.group is None:
            raise BadInput(
                "this Holonomic belongs to no system yet: ask system.constraint for its rows."
            )
        return self.group
