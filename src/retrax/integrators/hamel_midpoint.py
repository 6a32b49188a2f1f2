"""The midpoint rule for Hamel's equations, and its discrete gradient: steps that keep energy."""

import abc
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from retrax.errors import BadInput
from retrax.groups.retractions import AbstractRetraction, Exp
from retrax.integrators.base import AbstractIntegrator, StepInfo, step_info
from retrax.integrators.lifted import as_momentum, midpoint_velocity
from retrax.mechanics.constraints import AbstractConstraint, AbstractDistribution, Rows
from retrax.mechanics.mechanical import AbstractMechanicalSystem
from retrax.mechanics.reactions import admissible
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates, Element
from retrax.numerics.newton import NewtonStatus, newton
from retrax.numerics.roundoff import UNSEEN, unseen_velocity
from retrax.numerics.small_matrices import determinant, solve

Scalar = Float[Array, ""]
# From the mean velocity: midpoint and end of the step.
Points = Callable[[Coordinates], tuple[Element, Element]]
# From midpoint and end, the mean velocity and its momentum: the impulse of the forces.
Impulse = Callable[[Element, Element, Coordinates, Coordinates], Coordinates]
# From the mean velocity and its momentum: what the momentum gains without a reaction.
Gain = Callable[[Coordinates, Coordinates], Coordinates]


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
    def full_step(self, system: AbstractMechanicalSystem, state: State, h: Scalar) -> HamelStep:
        """Return the step with all that is known about it."""

    def check(self, system: AbstractGroupSystem) -> None:
        self.retraction.check(system.group)
        require_one_inertia(self, system)

    def step(
        self, system: AbstractMechanicalSystem, state: State, h: Scalar
    ) -> tuple[State, StepInfo]:
        done = self.full_step(system, state, h)
        covered = self.retraction.covers(system.group, h / 2 * done.xi)
        return done.state, step_info(done.status, h * done.xi, covered)

    def impulse(
        self, system: AbstractMechanicalSystem, state: State, h: Scalar
    ) -> Float[Array, " k"]:
        r"""Return the impulse $\lambda$ of the reaction $A^T\lambda$ over one step."""
        return self.full_step(system, state, h).impulse


class HamelMidpoint(AbstractHamelMethod):
    r"""The midpoint rule for bodies of constant inertia, under a constraint or under none.

    With $E$ a basis of the admissible velocities, $\xi = E u$ and $x = h\xi$,

    $$
    \begin{aligned}
    E^T(\mu_{k+1} - \mu_k) &= h\,E^T\bigl(\mathrm{ad}^*_\xi p + f(g, \xi, t + \tfrac h2)\bigr),
        \qquad p = \mathbb I\xi = \tfrac12(\mu_k + \mu_{k+1})                      &&\text{(1)}\\
    g &= g_k\,\tau(x/2), \qquad g_{k+1} = g\,\tau(x/2)                             &&\text{(2)}
    \end{aligned}
    $$

    one equation of the size of the distribution. The energy is conserved to round-off without a
    force, because $\langle\mathrm{ad}^*_\xi p, \xi\rangle = 0$; the increment of the group is
    admissible; the step is symmetric and of order 2, and with `Exp` exact where the body turns
    steadily. Momenta of horizontal symmetries are not kept.

    Under a constraint $A(g, t)\,\xi = c(g, t)$ that is no `Distribution`, all of (1) holds with a
    reaction $\bar A^T\lambda$, $\bar A\,\xi = c$, and the velocity at the end of the step is
    admissible there. Then energy and constraint hold to round-off at every step ($c = 0$; otherwise
    the energy changes by the work $\lambda\cdot c$, exactly), and the increment of the group is
    admissible at the midpoint up to $O(h^2)$.

    **Arguments:** `retraction`: the map $\tau$.

    References: [BallZenkov2015] (Hamel's formalism, discretised).
    """

    def check(self, system: AbstractGroupSystem) -> None:
        super().check(system)
        if not require_one_inertia(self, system).free:
            raise BadInput(
                f"HamelMidpoint keeps the energy of systems without potential, but the "
                f"{system.name} has one; use DiscreteGradient."
            )

    def full_step(self, system: AbstractMechanicalSystem, state: State, h: Scalar) -> HamelStep:
        t = state.t + h / 2

        def impulse(g: Element, g1: Element, xi: Coordinates, p: Coordinates) -> Coordinates:
            return h * system.total_force(g, xi, p, t)  # (1)

        return hamel_step(system, self.retraction, state, h, impulse, _momentum_scale(state))


class DiscreteGradient(AbstractHamelMethod):
    r"""`HamelMidpoint` for systems with a potential, whose force is a discrete gradient.

    With $x = h\xi$, $p = \mathbb I\xi$ and $g$ the midpoint,

    $$ \overline{dV} = dV(g) + \bigl(V(g_{k+1}) - V(g_k) - \langle dV(g), x\rangle\bigr)
       \frac{p}{\langle p, x\rangle}, \qquad \langle\overline{dV}, x\rangle = V(g_{k+1}) - V(g_k),
       \tag{1} $$

    takes the place of $dV$, so that what the potential energy gains the kinetic energy loses: the
    energy is conserved to round-off. Symmetric, of order 2, with the step in the distribution;
    under any other constraint as `HamelMidpoint`.
    A potential that depends on time is taken at the middle of the step.
    Where the numerator of (1) is lost in rounding errors, as of a body that comes to rest, it is 0.

    **Arguments:** `retraction`: the map $\tau$.

    References: [Gonzalez1996] (the discrete gradient); [BallZenkov2015] (Hamel's formalism).
    """

    def full_step(self, system: AbstractMechanicalSystem, state: State, h: Scalar) -> HamelStep:
        t = state.t + h / 2
        system = system.at_time(t)
        before, slope = jax.value_and_grad(system.potential_energy)(state.g)
        # What cancels in V(g1) - V(g0), and in V(g0) itself.
        parts = jax.tree.map(lambda k, x: jnp.sum(jnp.abs(k * x)), slope, state.g)
        terms = jnp.maximum(jnp.abs(before), sum(jax.tree.leaves(parts)))

        def impulse(g: Element, g1: Element, xi: Coordinates, p: Coordinates) -> Coordinates:
            middle = h * system.differential(g, xi, p)  # - h dV(g)
            missed = system.potential_energy(g1) - before + middle @ xi
            twice_kinetic = p @ xi
            seen = (twice_kinetic > 0) & (jnp.abs(missed) > UNSEEN * terms)
            share = jnp.where(seen, missed / jnp.where(seen, twice_kinetic, 1.0), 0.0)
            outside = system.total_force(g, xi, p, t) - system.differential(g, xi, p)
            return middle - share * p + h * outside  # (1)

        speed = system.velocity(state.g, state.momentum)
        twice_kinetic = state.momentum @ speed
        size = _momentum_scale(state)
        moves = twice_kinetic > 0
        # These terms enter (1) multiplied by p / <p, xi>.
        cancelling = terms * size / jnp.where(moves, twice_kinetic, 1.0)
        scale = jnp.maximum(size, jnp.where(moves, cancelling, 0.0))
        return hamel_step(system, self.retraction, state, h, impulse, scale)


def hamel_step(
    system: AbstractMechanicalSystem,
    tau: AbstractRetraction,
    state: State,
    h: Scalar,
    impulse: Impulse,
    scale: Scalar,
) -> HamelStep:
    r"""Take one midpoint step in a frame $E$ of admissible velocities.

    With $\xi = E u$ the mean velocity, $p = \mathbb I\xi$, $x = h\xi$ and an impulse $\nu$,

    $$
    \begin{aligned}
    E^T(\mu_{k+1} - \mu_k) &= E^T(h\,\mathrm{ad}^*_\xi p + \nu), \qquad
        p = \tfrac12(\mu_k + \mu_{k+1})                                            &&\text{(1)}\\
    g &= g_k\,\tau^*(x/2), \qquad g_{k+1} = g\,\tau(x/2)                          &&\text{(2)}
    \end{aligned}
    $$

    where $\tau^*(x) = \tau(-x)^{-1}$ is $\tau$ itself where $\tau$ is symmetric. The kinetic
    energy changes by $\langle\mu_{k+1}-\mu_k, \xi\rangle = \langle\nu, \xi\rangle$, as
    $\langle\mathrm{ad}^*_\xi p, \xi\rangle = 0$. Under a constraint that is not one frame of
    velocities everywhere, `_constrained_step` takes the place of (1).

    **Arguments:** `impulse`: the map $\nu$; `scale`: the size of what cancels in (1).
    """
    group, constraint = system.group, system.constraint

    def points(xi: Coordinates) -> tuple[Element, Element]:
        there = tau.adjoint.minus_identity(group, h / 2 * xi)
        on = there if tau.symmetric else tau.minus_identity(group, h / 2 * xi)
        g = group.advance(state.g, there)
        return g, group.advance(g, on)  # (2)

    def gain(xi: Coordinates, p: Coordinates) -> Coordinates:
        return h * group.coad(xi, p) + impulse(*points(xi), xi, p)

    if not isinstance(constraint, AbstractDistribution | None):
        return _constrained_step(system, constraint, state, h, points, gain, scale)
    basis = None if constraint is None else constraint.basis

    def mismatch(u: Coordinates) -> Coordinates:
        xi = u if basis is None else u @ basis
        p = system.momentum(state.g, xi)
        equations = 2 * (p - state.momentum) - gain(xi, p)  # (1)
        return equations if basis is None else basis @ equations

    guess = midpoint_velocity(system, state, h)
    if basis is not None:
        guess = solve(basis @ basis.T, basis @ guess)
    u, status = newton(mismatch, guess, scale, unseen_velocity(h, state.g))
    xi = u if basis is None else u @ basis
    # By (1) and not from the mean: what the solver leaves of p then enters multiplied by h.
    mu1, lam = state.momentum + gain(xi, system.momentum(state.g, xi)), jnp.zeros(0)
    _, g1 = points(xi)
    if constraint is not None:
        mu1, lam = admissible(system, constraint, g1, mu1, state.t + h)
    return HamelStep(State(g1, mu1, state.t + h), status, xi, lam)


def _constrained_step(
    system: AbstractMechanicalSystem,
    constraint: AbstractConstraint,
    state: State,
    h: Scalar,
    points: Points,
    gain: Gain,
    scale: Scalar,
) -> HamelStep:
    r"""Take a midpoint step under a constraint, with a reaction that does no work.

    Where the admissible velocities $A(g, t)\,\xi = c(g, t)$ differ from place to place, the mean
    velocity $\xi = \tfrac12(\xi_k + \xi_{k+1})$ of two admissible ones is admissible at the
    midpoint $(g, t_k + \tfrac h2)$ only up to $O(h^2)$, and a reaction $A^T\lambda$ would do that
    much work. So the rows are changed by as much, along $p = \mathbb I\xi$, and the unknowns are
    $\xi$ and $\lambda$:

    $$
    \begin{aligned}
    \bar A &= A(g) - \bigl(A(g)\,\xi - c(g)\bigr)\frac{p^T}{\langle p, \xi\rangle}, \qquad
        \bar A\,\xi = c(g)                                                         &&\text{(1)}\\
    \mu_{k+1} - \mu_k &= h\,\mathrm{ad}^*_\xi p + \nu + \bar A^T\lambda, \qquad
        p = \tfrac12(\mu_k + \mu_{k+1})                                            &&\text{(2)}\\
    A(g_{k+1})\,\xi_{k+1} &= c(g_{k+1}), \qquad \xi_{k+1} = 2\,\xi - \xi_k        &&\text{(3)}
    \end{aligned}
    $$

    The kinetic energy changes by $\langle\mu_{k+1} - \mu_k, \xi\rangle = \langle\nu, \xi\rangle
    + \lambda\cdot c(g)$: where $c = 0$ the reaction does no work, exactly. Reading the step
    backwards exchanges (3) for the same law at $g_k$, which the state before has kept: the step is
    symmetric.

    **Arguments:** `points`: $g$ and $g_{k+1}$ from $\xi$; `gain`: the right side of (2) without
    its reaction; `scale`: the size of what cancels in (2).
    """
    n, before = system.group.dim, system.velocity(state.g, state.momentum)
    middle, end = state.t + h / 2, state.t + h
    guess = midpoint_velocity(system, state, h)
    weight = as_momentum(state, guess)

    def forward(z: Array) -> tuple[Coordinates, Element, Coordinates]:
        xi, lam = z[:n], z[n:]
        p, (g, g1) = system.momentum(state.g, xi), points(xi)
        return p, g1, gain(xi, p) + lam @ _mean_rows(constraint, g, xi, p, middle)

    def mismatch(z: Array) -> Array:
        p, g1, gained = forward(z)
        broken = constraint.violation(g1, 2 * z[:n] - before, end)
        return jnp.concatenate([2 * (p - state.momentum) - gained, weight * broken])  # (2), (3)

    start = jnp.concatenate([guess, h * system.multipliers(state)])
    unseen = jnp.where(jnp.arange(len(start)) < n, unseen_velocity(h, state.g), 0.0)
    z, status = newton(mismatch, start, scale, unseen)
    _, g1, gained = forward(z)
    mu1, rest = admissible(system, constraint, g1, state.momentum + gained, end)
    upright = _keeps_its_side(constraint.rows(state.g, state.t), constraint.rows(g1, end))
    status = status._replace(converged=status.converged & upright)
    return HamelStep(State(g1, mu1, end), status, z[:n], z[n:] + rest)


def _mean_rows(
    constraint: AbstractConstraint,
    g: Element,
    xi: Coordinates,
    p: Coordinates,
    t: Scalar,
) -> Rows:
    r"""Return $\bar A$ of (1); at rest, where nothing can work, $A$ itself."""
    twice_kinetic = p @ xi
    moving = twice_kinetic > 0
    share = constraint.violation(g, xi, t) / jnp.where(moving, twice_kinetic, 1.0)
    return constraint.rows(g, t) - jnp.outer(jnp.where(moving, share, 0.0), p)  # (1)


def _keeps_its_side(before: Rows, after: Rows) -> Bool[Array, ""]:
    """Return whether no row has turned over: rows that do have lost rank on the way."""
    return determinant(before @ after.T) > 0


def require_one_inertia(
    integrator: AbstractIntegrator, system: AbstractGroupSystem
) -> AbstractMechanicalSystem:
    """Reject a system whose inertia depends on where it is."""
    if not isinstance(system, AbstractMechanicalSystem) or not system.invariant_inertia:
        raise BadInput(
            f"{type(integrator).__name__} needs an inertia that is the same everywhere, which "
            f"the {system.name} does not have; use LagrangeDAlembert."
        )
    return system


def require_frame(
    integrator: AbstractIntegrator, system: AbstractGroupSystem
) -> AbstractMechanicalSystem:
    """Reject a system whose inertia or admissible velocities are not the same everywhere."""
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


def _momentum_scale(state: State) -> Scalar:
    return jnp.max(jnp.abs(state.momentum))
