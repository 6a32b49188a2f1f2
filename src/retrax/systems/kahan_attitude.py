"""Kahan's method for a free rigid body, with its attitude."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.so3 import SO3
from retrax.integrators.base import AbstractIntegrator, Refusal, StepInfo, explicit_step
from retrax.integrators.kahan import pole_refusal, rescale
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import require_flag
from retrax.numerics.small_matrices import cross, determinant, inverse, solve_and_determinant
from retrax.systems.rigid_body import FreeRigidBody

Vector = Float[Array, "3"]
Rotation = Float[Array, "3 3"]


class KahanAttitude(AbstractIntegrator):
    r"""Kahan's momenta of a free rigid body, and the attitude $\dot R = R\,\hat\omega$ from them.

    With $\omega = \mathbb I^{-1}m$, $n = m/|m|$, $S$ the smallest rotation that takes $n^+$ to $n$,

    $$
    \begin{aligned}
    m^+ &= m + h\,(1 - \tfrac h2f'(m))^{-1}f(m), \qquad f(m) = m\times\omega    &&\text{(1)}\\
    R^+ &= R\,\exp(\theta\hat n)\,S, \qquad
           \theta = \tfrac h2(\omega\cdot n + \omega^+\cdot n^+)                  &&\text{(2)}\\
    R^+ &= R\,\exp\bigl(\tfrac h2\,\mathbb I^{-1}(m + m^+)\bigr)^\wedge           &&\text{(3)}
    \end{aligned}
    $$

    The aligned form (2) keeps the direction of the spatial momentum to round-off, for
    $R^+n^+ = Rn$; (3) does not. Explicit, of order 2, symmetric. With `project` the momenta are
    scaled back to their length in every step: then energy and spatial momentum are exact, and the
    step is no longer symmetric.

    **Arguments:**

    - `aligned`: (2), or else (3).
    - `project`: whether to restore $|m|$, and with it the energy.

    References: [HirotaKimura2000]; [PetreraPfadlerSuris2011].
    """

    aligned: bool = eqx.field(static=True)
    project: bool = eqx.field(static=True)
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)

    def __init__(self, aligned: bool = True, project: bool = False):
        self.aligned = aligned = require_flag("aligned", aligned)
        self.project = project = require_flag("project", project)
        self.order = 2
        exact = {"energy", "momentum"} if aligned else {"energy"}
        self.preserves = frozenset({"group"} | (exact if project else {"symmetric"}))

    def __repr__(self) -> str:
        given = {"aligned": (self.aligned, True), "project": (self.project, False)}
        shown = [f"{name}={value}" for name, (value, usual) in given.items() if value != usual]
        return f"KahanAttitude({', '.join(shown)})"

    def check(self, system: AbstractGroupSystem) -> None:
        if not isinstance(system, FreeRigidBody):
            raise BadInput(
                f"KahanAttitude needs a FreeRigidBody, whose momenta are a quadratic field, got "
                f"the {system.name}; use LieVerlet."
            )
        if system.force is not None:
            raise BadInput(
                f"KahanAttitude knows no forces, but one acts on the {system.name}; use LieVerlet."
            )

    def refusal(self, system: FreeRigidBody, state: State, h: float, moved: float) -> Refusal:
        state = jax.tree.map(jnp.asarray, state)
        omega = system.velocity(state.g, state.momentum)
        matrix = _step_matrix(system, state.momentum, omega, jnp.asarray(h))
        return pole_refusal(self, system, state, h, float(determinant(matrix)))

    def step(
        self, system: FreeRigidBody, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        m, omega = state.momentum, system.velocity(state.g, state.momentum)
        matrix = _step_matrix(system, m, omega, h)
        rate, pole = solve_and_determinant(matrix, cross(m, omega))
        end = m + h * rate  # (1)
        if self.project:
            end = rescale(end, end @ end, m @ m)
        omega_end = system.velocity(state.g, end)
        between = h / 2 * (omega + omega_end)
        turn = (
            aligned_turn(m, end, h / 2 * omega, h / 2 * omega_end)  # (2)
            if self.aligned
            else SO3().expm1(between)  # (3)
        )
        new = State(SO3().advance(state.g, turn), end, state.t + h)
        return new, explicit_step(between, pole > 0)


def aligned_turn(m: Vector, m_end: Vector, half: Vector, half_end: Vector) -> Rotation:
    r"""Return $\exp(\theta\hat n)\,S - 1$ of (2), from $m$ and $\tfrac h2\omega$ at both ends."""
    n, n_end = _direction(m), _direction(m_end)
    theta = half @ n + half_end @ n_end
    about = SO3().expm1(theta * n)
    v = SO3().hat(cross(n_end, n))
    small = v + v @ v / (1 + n @ n_end)
    return about + small + about @ small


def _step_matrix(system: FreeRigidBody, m: Vector, omega: Vector, h: Float[Array, ""]) -> Rotation:
    r"""Return $1 - \tfrac h2f'(m)$."""
    slope = SO3().hat(m) @ _inverse_inertia(system) - SO3().hat(omega)
    return jnp.eye(3) - h / 2 * slope


def _inverse_inertia(system: FreeRigidBody) -> Rotation:
    inertia = system.inertia
    return jnp.diag(1 / inertia) if inertia.ndim == 1 else inverse(inertia)


def _direction(m: Vector) -> Vector:
    """Return m/|m|; 0 where m is 0: a body at rest stays where it is."""
    square = m @ m
    return m / jnp.sqrt(jnp.where(square > 0, square, 1.0))
