"""The laws of a system, as one function: forces and velocities from its energy, Legendre, power."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Key

from retrax.mechanics.lagrangian import LagrangianSystem
from retrax.mechanics.legendre import require_regular
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Symmetries
from retrax.mechanics.system import AbstractGroupSystem, Coordinates
from retrax.numerics.checks import require_instance
from retrax.numerics.evaluate import evaluate
from retrax.run.checks import require_state
from retrax.testing.laws import gap, judge, on_batches, require_key

SAMPLES = 3
# Central differences of fourth order: with this step truncation and rounding are both near 1e-12.
STEP = 2e-3
STENCIL = {-2: 1 / 12, -1: -8 / 12, 1: 8 / 12, 2: -1 / 12}
# What is differenced holds to the first, what is differentiated or inverted to the second.
ALLOWED_DIFFERENCED, ALLOWED = 1e-9, 1e-11


class _Seen(NamedTuple):
    """One state with its velocity, forces and rates, as the system gives them."""

    mu: Coordinates
    xi: Coordinates
    rate: Coordinates
    differential: Coordinates
    force: Coordinates
    energy: Float[Array, ""]
    energy_rate: Float[Array, ""]
    momentum_rates: Float[Array, " momenta"]
    mu_again: Coordinates
    twice_xi_again: Coordinates


def check_system(
    system: AbstractGroupSystem, state: State | None = None, key: Key[Array, ""] | None = None
) -> dict[str, float]:
    r"""Check that a system is what its energy says, at `state` or at a few random states.

    With $H(g,\mu)$ the energy, $f$ the external force and $J$ the momentum of a symmetry,

    $$
    \begin{aligned}
    \langle dL, \eta\rangle &= -\tfrac{d}{d\epsilon} H(g\exp\epsilon\eta, \mu)   &&\text{(1)}\\
    \langle\nu, \xi\rangle &= \tfrac{d}{d\epsilon} H(g, \mu + \epsilon\nu)       &&\text{(2)}\\
    \mu(g, \xi(g, \mu)) &= \mu, \qquad \xi(g, \mu(g, \xi)) = \xi                 &&\text{(3)}\\
    \tfrac{d}{dt}H &= \langle f, \xi\rangle + \partial_tH                        &&\text{(4)}\\
    \tfrac{d}{dt}J &= 0                                                          &&\text{(5)}
    \end{aligned}
    $$

    (1) and (2) by finite differences, which know nothing of automatic differentiation; the rates in
    (4) and (5) by differentiating along the vector field. Without external force (4) says that the
    energy is conserved.

    **Returns:** the largest error of each law, relative to the size of the terms compared, or to 1
    if they are smaller.

    **Raises:** `CheckFailed`, naming the law that is broken, by how much, and what is allowed;
    `BadInput` if a declared symmetry does not hold, or a Lagrangian is degenerate.
    """
    require_instance("system", system, AbstractGroupSystem, "a retrax system")
    require_key(key)
    if state is not None:
        require_state(system, state)
    if isinstance(system, LagrangianSystem):
        now = system.at_time(jnp.zeros(()) if state is None else state.t)
        require_regular(system.group, now.lagrangian)
    states = _random_states(system, key) if state is None else jax.tree.map(_batch_of_one, state)
    seen = _look(system, system.symmetries(), states)
    in_g, in_mu = _slopes(system, states)
    power = np.sum(np.abs(seen.xi) * (np.abs(seen.rate) + np.abs(seen.force)), axis=1)
    terms = np.max(np.abs(seen.rate), axis=1) + np.max(np.abs(seen.mu), axis=1)
    work = np.sum(seen.force * seen.xi, axis=1)
    steady = np.zeros_like(seen.momentum_rates)
    energy = np.abs(seen.energy)
    differenced = {
        "dL = -dH/dg": gap(seen.differential, -in_g, energy),  # (1)
        "velocity = dH/dmu": gap(seen.xi, in_mu, energy),  # (2)
    }
    exact = {
        "momentum(velocity(mu)) = mu": gap(seen.mu_again, seen.mu),  # (3)
        "velocity(momentum(xi)) = xi": gap(seen.twice_xi_again, 2 * seen.xi),  # (3)
        "dH/dt = power of the force": gap(seen.energy_rate, work, np.maximum(power, 1)),  # (4)
        "dJ/dt = 0": gap(seen.momentum_rates, steady, np.maximum(terms, 1)),  # (5)
    }
    who = f"the {system.name}"
    return judge(who, differenced, ALLOWED_DIFFERENCED) | judge(who, exact, ALLOWED)


def _batch_of_one(leaf: ArrayLike) -> np.ndarray:
    return np.asarray(leaf)[None]


def _random_states(system: AbstractGroupSystem, key: Key[Array, ""] | None) -> State:
    def one(key):
        keys = jax.random.split(key, 3)
        g = system.group.random(keys[0])
        xi = jax.random.normal(keys[1], (system.group.dim,), jnp.float64)
        t = jax.random.uniform(keys[2], (), jnp.float64)
        return State(g, system.at_time(t).momentum(g, xi), t)

    def several(key):
        return jax.vmap(one)(jax.random.split(key, SAMPLES))

    if key is None:
        return evaluate(lambda seed: several(jax.random.key(seed)), 0)
    return evaluate(several, key)


def _look(system: AbstractGroupSystem, symmetries: Symmetries, states: State) -> _Seen:
    group = system.group

    def look(state: State) -> _Seen:
        g, mu, t = state.g, state.momentum, state.t
        xi, rate = system.vector_field(g, mu, t)
        now = system.at_time(t)
        differential = now.differential(g, xi, mu)

        def along(time):  # the vector field, followed to first order
            moved = State(group.compose(g, group.exp(time * xi)), mu + time * rate, t + time)
            momenta = symmetries.momenta(group, moved).values()
            return system.energy(moved), jnp.stack([jnp.zeros(()), *momenta])

        (energy, _), rates = jax.jvp(along, (jnp.zeros(()),), (jnp.ones(()),))
        return _Seen(
            mu,
            xi,
            rate,
            differential,
            now.total_force(g, xi, mu, t) - differential,
            energy,
            rates[0] - system.energy_rate(g, xi, mu, t),
            rates[1],
            mu_again=now.momentum(g, xi),
            twice_xi_again=now.velocity(g, now.momentum(g, 2 * xi)),
        )

    return on_batches(look)(states)


def _slopes(system: AbstractGroupSystem, states: State) -> tuple[np.ndarray, np.ndarray]:
    """Find the slopes of the energy in $g$ and in $mu$ along each axis, by central differences."""
    group, count = system.group, len(states.momentum)
    axes, shifts = np.eye(group.dim), np.array(list(STENCIL))
    # Every shift of every state along every axis, as one batch.
    which, axis, shift = (x.ravel() for x in np.indices((count, group.dim, len(shifts))))
    displacement = STEP * shifts[shift][:, None] * axes[axis]
    size = np.max(np.abs(states.momentum), axis=1)
    start = jax.tree.map(lambda leaf: leaf[which], states)

    @on_batches
    def energy(state, eta, nu):
        moved = group.compose(state.g, group.exp(eta))
        return system.at_time(state.t).hamiltonian_energy(moved, state.momentum + nu)

    def slope(values, step):
        values = values.reshape(count, group.dim, len(shifts))
        return values @ np.array(list(STENCIL.values())) / step[:, None]

    still = np.zeros_like(displacement)
    in_g = slope(energy(start, displacement, still), np.full(count, STEP))
    in_mu = slope(energy(start, still, size[which][:, None] * displacement), STEP * size)
    return in_g, in_mu
