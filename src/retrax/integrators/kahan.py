"""Kahan's method for quadratic fields, and its projection that restores energy and momentum."""

from typing import ClassVar, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.integrators.base import (
    AbstractIntegrator,
    Refusal,
    StepInfo,
    as_integrator,
    explicit_step,
)
from retrax.integrators.composition import Composition
from retrax.integrators.diagnosis import longest_step
from retrax.mechanics.quadratic_field import AbstractQuadraticField, Matrix, Point
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.small_matrices import determinant, solve, solve_and_determinant


class Kahan(AbstractIntegrator):
    r"""Kahan's method for $\dot x = f(x) = Q(x,x) + Bx + c$: products are polarised in time.

    $$
    \begin{aligned}
    \tfrac1h(x_{k+1} - x_k) &= Q(x_k, x_{k+1}) + \tfrac12B(x_k + x_{k+1}) + c       &&\text{(1)}\\
    x_{k+1} &= x_k + h\,\bigl(1 - \tfrac h2f'(x_k)\bigr)^{-1}f(x_k)                 &&\text{(2)}\\
    D\Phi_h(x_k) &= \bigl(1 - \tfrac h2f'(x_k)\bigr)^{-1}
                    \bigl(1 + \tfrac h2f'(x_{k+1})\bigr)                            &&\text{(3)}
    \end{aligned}
    $$

    (1) is linear in $x_{k+1}$, and (2) is its solution: a rational map whose inverse is the step
    $-h$. Many integrable fields stay integrable, with integrals and a volume that depend on $h$.
    The map has poles where $\det(1 - \tfrac h2f') = 0$. Behind one its values are finite and
    meaningless, so a determinant that is not positive stops the run: a pole was crossed.

    References: [Kahan1993]; [HirotaKimura2000]; [PetreraPfadlerSuris2011];
    [CelledoniMcLachlanOwrenQuispel2013].
    """

    order: ClassVar[int] = 2
    preserves: ClassVar[frozenset[str]] = frozenset({"symmetric"})
    needs_momentum: ClassVar[bool] = False

    def check(self, system: AbstractGroupSystem) -> None:
        require_field(self, system)

    def step(
        self, system: AbstractQuadraticField, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        x = state.g
        rate, slope = system.scale(x, h)
        move, pole = solve_and_determinant(jnp.eye(system.dim) - slope, rate)
        end = x + move  # (2)
        trusted = (pole > 0) & system.inside(end)
        return State(end, state.momentum, state.t + h), explicit_step(move, trusted)

    def refusal(
        self, system: AbstractQuadraticField, state: State, h: float, moved: float
    ) -> Refusal:
        state = jax.tree.map(jnp.asarray, state)
        pole = float(determinant(step_matrix(system, state.g, jnp.asarray(h))))
        return pole_refusal(self, system, state, h, pole)

    def integrals_kept(self, system: AbstractQuadraticField) -> tuple:
        return system.kahan_integrals()

    def exact_integrals(
        self, system: AbstractQuadraticField, state: State, h: Float[Array, ""], kept: tuple = ()
    ) -> dict[str, Float[Array, ""]]:
        return system.exact_integrals(state.g, jnp.asarray(h), kept)


def pole_refusal(
    integrator: AbstractIntegrator, system: AbstractGroupSystem, state: State, h: float, pole: float
) -> Refusal:
    """Explain a step whose determinant is `pole`, or that leaves the domain."""
    longest = longest_step(system, integrator, state, h)
    if pole > 0:
        what = "left the domain of the system"
        why = f"The determinant of I - h/2 f' is {pole:.3g}: no pole was crossed."
    else:
        what = "failed: a pole was crossed"
        why = (
            f"The determinant of I - h/2 f' is {pole:.3g}, and must be positive: the point "
            "behind the pole is finite and meaningless."
        )
    return Refusal(what, f"{why} The longest step from there is h = {longest:.3g}.", h / 2)


def require_field(integrator: AbstractIntegrator, system: AbstractGroupSystem) -> None:
    """Reject everything but a quadratic field."""
    if not isinstance(system, AbstractQuadraticField):
        raise BadInput(
            f"{integrator!r} needs a quadratic field, QuadraticField(f), got the {system.name}; "
            "for the attitude of a free rigid body use KahanAttitude."
        )


def step_matrix(system: AbstractQuadraticField, x: Point, h: Float[Array, ""]) -> Matrix:
    r"""Return the matrix $1 - \tfrac h2f'(x)$ of a step from `x`."""
    return jnp.eye(system.dim) - h / 2 * system.jacobian(x)


def kahan_map(system: AbstractQuadraticField, x: Point, h: Float[Array, ""]) -> Point:
    r"""Return the point $\Phi_h(x)$ one step later."""
    return x + h * solve(step_matrix(system, x, h), system.field(x))


def step_jacobian(system: AbstractQuadraticField, x: Point, h: Float[Array, ""]) -> Matrix:
    r"""Return the derivative $D\Phi_h(x)$, by (3) of `Kahan`."""
    after = kahan_map(system, x, h)
    right = jnp.eye(system.dim) + h / 2 * system.jacobian(after)
    return solve(step_matrix(system, x, h), right)  # (3)


@runtime_checkable
class KeptOnSpheres(Protocol):
    """A field whose steps scale its energy and the square of the radius by one factor."""

    def radial_level(self, x: Point) -> Float[Array, ""]: ...


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

    def __init__(self, base: AbstractIntegrator | str):
        base = as_integrator(base, "base")
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
        if not isinstance(system, KeptOnSpheres):
            raise BadInput(
                f"RadialProjection needs a field whose energy is kept relative to a sphere, such "
                f"as EulerTop, got the {system.name}."
            )

    def refusal(self, system: AbstractGroupSystem, state: State, h: float, moved: float) -> Refusal:
        return self.base.refusal(system, state, h, moved)

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        assert isinstance(system, KeptOnSpheres)
        end, info = self.base.step(system, state, h)
        point = rescale(end.g, system.radial_level(end.g), system.radial_level(state.g))
        return State(point, end.momentum, end.t), info  # (1)


def rescale(
    x: Float[Array, " n"], now: Float[Array, ""], wanted: Float[Array, ""]
) -> Float[Array, " n"]:
    r"""Return $\sqrt{1 + \delta}\,x$ for a level, quadratic in `x`, `now` $= w/(1 + \delta)$.

    Written as `x` and a small correction: rounding a factor near 1 would be a bias, which a
    million steps add up. The origin stays where it is.
    """
    delta = (wanted - now) / jnp.where(now > 0, now, 1.0)
    return x + delta / (1 + jnp.sqrt(1 + delta)) * x
