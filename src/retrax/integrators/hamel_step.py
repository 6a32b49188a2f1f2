r"""The midpoint step in a frame of admissible velocities, shared by the methods that keep energy.

With $\xi = E u$ the mean velocity, $p = \mathbb I\xi$, $x = h\xi$ and an impulse $\nu$,

$$
\begin{aligned}
E^T(\mu_{k+1} - \mu_k) &= E^T(h\,\mathrm{ad}^*_\xi p + \nu), \qquad
    p = \tfrac12(\mu_k + \mu_{k+1})                                                &&\text{(1)}\\
g &= g_k\,\tau^*(x/2), \qquad g_{k+1} = g\,\tau(x/2)                                &&\text{(2)}
\end{aligned}
$$

where $\tau^*(x) = \tau(-x)^{-1}$ is $\tau$ itself where $\tau$ is symmetric. The kinetic energy
changes by $\langle\mu_{k+1}-\mu_k, \xi\rangle = \langle\nu, \xi\rangle$, as
$\langle\mathrm{ad}^*_\xi p, \xi\rangle = 0$. Under a constraint that is not one frame of velocities
everywhere, `mean_reaction` takes the place of $E^T$.
"""

import abc
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.retractions import AbstractRetraction, Exp
from retrax.integrators.base import AbstractIntegrator, StepInfo, step_info
from retrax.integrators.mean_reaction import constrained_step
from retrax.integrators.predictor import midpoint_velocity
from retrax.mechanics.constraints import AbstractDistribution
from retrax.mechanics.mechanical import AbstractMechanicalSystem
from retrax.mechanics.reactions import admissible
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates, Element
from retrax.numerics.newton import NewtonStatus, newton
from retrax.numerics.small_matrices import solve

# The impulse of the forces from the points (2), the mean velocity and its momentum.
Impulse = Callable[[Element, Element, Coordinates, Coordinates], Coordinates]


class HamelStep(NamedTuple):
    """The end of a step, how its equation was solved, its mean velocity and reaction impulse."""

    state: State
    status: NewtonStatus
    xi: Coordinates
    impulse: Float[Array, " k"]


class AbstractHamelMethod(AbstractIntegrator):
    r"""A symmetric step of order 2 that keeps the energy, made with `hamel_step`.

    References: [BallZenkov2015].
    """

    retraction: AbstractRetraction = Exp()

    order: ClassVar[int] = 2
    preserves: ClassVar[frozenset[str]] = frozenset({"group", "constraint", "energy", "symmetric"})

    @abc.abstractmethod
    def full_step(
        self, system: AbstractMechanicalSystem, state: State, h: Float[Array, ""]
    ) -> HamelStep:
        """The step with all that is known about it."""

    def check(self, system: AbstractGroupSystem) -> None:
        self.retraction.check(system.group)
        require_one_inertia(self, system)

    def step(
        self, system: AbstractMechanicalSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        done = self.full_step(system, state, h)
        covered = self.retraction.covers(system.group, h / 2 * done.xi)
        return done.state, step_info(done.status, h * done.xi, covered)

    def impulse(
        self, system: AbstractMechanicalSystem, state: State, h: Float[Array, ""]
    ) -> Float[Array, " k"]:
        r"""The impulse $\lambda$ of the reaction $A^T\lambda$ over one step."""
        return self.full_step(system, state, h).impulse


def hamel_step(
    system: AbstractMechanicalSystem,
    tau: AbstractRetraction,
    state: State,
    h: Float[Array, ""],
    impulse: Impulse,
    scale: Float[Array, ""],
) -> HamelStep:
    """Solve (1) for the mean velocity and step; `scale` is the size of what cancels in (1)."""
    group, constraint = system.group, system.constraint

    def points(xi):
        there = tau.adjoint.minus_identity(group, h / 2 * xi)
        on = there if tau.symmetric else tau.minus_identity(group, h / 2 * xi)
        g = group.advance(state.g, there)
        return g, group.advance(g, on)  # (2)

    def gain(xi, p):
        return h * group.coad(xi, p) + impulse(*points(xi), xi, p)

    if not isinstance(constraint, AbstractDistribution | None):
        done = constrained_step(system, constraint, state, h, points, gain, scale)
        end = State(done.g, done.momentum, state.t + h)
        return HamelStep(end, done.status, done.xi, done.impulse)
    basis = None if constraint is None else constraint.basis

    def mismatch(u):
        xi = u if basis is None else u @ basis
        p = system.momentum(state.g, xi)
        equations = 2 * (p - state.momentum) - gain(xi, p)  # (1)
        return equations if basis is None else basis @ equations

    guess = midpoint_velocity(system, state, h)
    if basis is not None:
        guess = solve(basis @ basis.T, basis @ guess)
    u, status = newton(mismatch, guess, scale)
    xi = u if basis is None else u @ basis
    # By (1) and not from the mean: what the solver leaves of p then enters multiplied by h.
    mu1, lam = state.momentum + gain(xi, system.momentum(state.g, xi)), jnp.zeros(0)
    _, g1 = points(xi)
    if constraint is not None:
        mu1, lam = admissible(system, constraint, g1, mu1, state.t + h)
    return HamelStep(State(g1, mu1, state.t + h), status, xi, lam)


def require_one_inertia(
    integrator: AbstractIntegrator, system: AbstractGroupSystem
) -> AbstractMechanicalSystem:
    """Refuse a system whose inertia depends on where it is."""
    if not isinstance(system, AbstractMechanicalSystem) or not system.invariant_inertia:
        raise BadInput(
            f"{type(integrator).__name__} works in a frame of constant inertia, but the "
            f"{system.name} has none; use LagrangeDAlembert."
        )
    return system


def require_frame(
    integrator: AbstractIntegrator, system: AbstractGroupSystem
) -> AbstractMechanicalSystem:
    """Refuse a system whose inertia or admissible velocities are not the same everywhere."""
    system = require_one_inertia(integrator, system)
    constraint = system.constraint
    if isinstance(constraint, AbstractDistribution | None):
        return system
    same = constraint.distribution
    if same is not None:
        raise BadInput(
            f"{type(integrator).__name__} needs a basis of the admissible velocities; write the "
            f"constant rows of the {system.name} as constraint={same!r}."
        )
    on = "time" if constraint.moving else "its configuration, or are affine"
    raise BadInput(
        f"{type(integrator).__name__} needs admissible velocities that are the same everywhere (a "
        f"Distribution), but those of the {system.name} depend on {on}; use LagrangeDAlembert."
    )


def momentum_scale(state: State) -> Float[Array, ""]:
    return jnp.max(jnp.abs(state.momentum))
