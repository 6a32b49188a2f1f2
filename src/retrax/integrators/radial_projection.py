"""Kahan's method with energy and momentum restored."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.integrators.base import AbstractIntegrator, Refusal, StepInfo
from retrax.integrators.composition import Composition
from retrax.integrators.kahan import Kahan
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem


class RadialProjection(AbstractIntegrator):
    r"""A step of Kahan's method, or of its composition, scaled back to the sphere it started on.

    $$ x_{k+1} = \sqrt{C(x_k)/C(y)}\;y, \qquad y = \Phi_h(x_k). \tag{1} $$

    On Euler's top $\Phi_h$ keeps $H/C$ to round-off, and so does every composition. Both functions
    are quadratic: a scaling that restores $C$ restores $H$. What comes out is an explicit method of
    the order of its base with exact energy and exact Casimir function; it is no longer symmetric.

    **Arguments:** `base`: `Kahan()` or a `Composition` of it.

    References: [HirotaKimura2000]; [HairerLubichWanner2006] IV.4.
    """

    base: AbstractIntegrator
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)
    needs_momentum: ClassVar[bool] = False

    def __init__(self, base: AbstractIntegrator):
        inner = base.base if isinstance(base, Composition) else base
        if not isinstance(inner, Kahan):
            raise BadInput(
                f"base = {base!r} must be Kahan() or a Composition of it: only there does a "
                "scaling restore the energy."
            )
        self.base = base
        self.order = base.order
        self.preserves = frozenset({"energy"})

    def __repr__(self) -> str:
        return f"RadialProjection({self.base!r})"

    def check(self, system: AbstractGroupSystem) -> None:
        self.base.check(system)
        if not hasattr(system, "radial_level"):
            raise BadInput(
                f"RadialProjection needs a field whose energy is kept relative to a sphere, such "
                f"as EulerTop, but nothing of the kind is known of the {system.name}."
            )

    def refusal(self, system: Any, state: State, h: float, moved: float) -> Refusal:
        return self.base.refusal(system, state, h, moved)

    def step(self, system: Any, state: State, h: Float[Array, ""]) -> tuple[State, StepInfo]:
        end, info = self.base.step(system, state, h)
        point = rescaled(end.g, system.radial_level(end.g), system.radial_level(state.g))
        return State(point, end.momentum, end.t), info  # (1)


def rescaled(
    x: Float[Array, " n"], now: Float[Array, ""], wanted: Float[Array, ""]
) -> Float[Array, " n"]:
    r"""$\sqrt{1 + \delta}\,x$ for a level, quadratic in `x`, that is `now` $= w/(1 + \delta)$.

    Written as `x` and a small correction: rounding a factor near 1 would be a bias, which a
    million steps add up. The origin stays where it is.
    """
    delta = (wanted - now) / jnp.where(now > 0, now, 1.0)
    return x + delta / (1 + jnp.sqrt(1 + delta)) * x
