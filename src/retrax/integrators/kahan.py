"""Kahan's method: quadratic fields, one linear equation a step."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.integrators.base import AbstractIntegrator, Refusal, StepInfo, explicit_step
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
        rate, slope = system.scaled(x, h)
        move, pole = solve_and_determinant(jnp.eye(system.dim) - slope, rate)
        end = x + move  # (2)
        trusted = (pole > 0) & system.inside(end)
        return State(end, state.momentum, state.t + h), explicit_step(move, trusted)

    def refusal(self, system: Any, state: State, h: float, moved: float) -> Refusal:
        state = jax.tree.map(jnp.asarray, state)
        pole = float(determinant(step_matrix(system, state.g, jnp.asarray(h))))
        return pole_refusal(self, system, state, h, pole)

    def integrals_kept(self, system: Any) -> tuple:
        return system.kahan_integrals()

    def exact_integrals(
        self, system: Any, state: State, h: Float[Array, ""], kept: tuple = ()
    ) -> dict[str, Float[Array, ""]]:
        return system.exact_integrals(state.g, jnp.asarray(h), kept)


def pole_refusal(
    integrator: AbstractIntegrator, system: Any, state: State, h: float, pole: float
) -> Refusal:
    """What to say of a step whose determinant is `pole`, or that leaves the domain."""
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


def require_field(integrator: AbstractIntegrator, system: Any) -> None:
    """Refuse what is not a quadratic field."""
    if not isinstance(system, AbstractQuadraticField):
        raise BadInput(
            f"{integrator!r} steps quadratic fields, QuadraticField(f), but the {system.name} is "
            "not one; for the attitude of a free rigid body use KahanAttitude."
        )


def step_matrix(system: AbstractQuadraticField, x: Point, h: Float[Array, ""]) -> Matrix:
    r"""The matrix $1 - \tfrac h2f'(x)$ of a step from `x`."""
    return jnp.eye(system.dim) - h / 2 * system.jacobian(x)


def kahan_map(system: AbstractQuadraticField, x: Point, h: Float[Array, ""]) -> Point:
    r"""The point $\Phi_h(x)$ one step later."""
    return x + h * solve(step_matrix(system, x, h), system.field(x))


def step_jacobian(system: AbstractQuadraticField, x: Point, h: Float[Array, ""]) -> Matrix:
    r"""The derivative $D\Phi_h(x)$, by (3) of `Kahan`."""
    after = kahan_map(system, x, h)
    right = jnp.eye(system.dim) + h / 2 * system.jacobian(after)
    return solve(step_matrix(system, x, h), right)  # (3)
