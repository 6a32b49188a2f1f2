"""The laws of a system: force and velocity from the energy, Legendre, power, momenta."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import CheckFailed
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Symmetries
from retrax.mechanics.system import AbstractGroupSystem, Coordinates, Element

# Central differences of fourth order with this step: truncation and rounding both near 1e-12.
_STEP = 2e-3
_STENCIL = ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12))
# Relative bounds: finite differences; what differentiates or inverts to round-off.
_DIFFERENCED, _EXACT = 1e-8, 1e-10
_RANDOM_STATES = 3


class SystemLaws(NamedTuple):
    """By how much each law of a system is missed, relative to the size of its terms."""

    differential: float
    velocity: float
    legendre: float
    power: float
    momenta: float


def check_system(system: AbstractGroupSystem, state: State | None = None) -> SystemLaws:
    r"""Check that a system is what its energy says, at `state` or at a few random states.

    With $H(g,\mu)$ the energy, $F = dL + f$ and $J$ the momentum of a symmetry,

    $$
    \begin{aligned}
    \langle dL, \eta\rangle &= -\tfrac{d}{d\epsilon} H(g\exp\epsilon\eta, \mu)   &&\text{(1) differential}\\
    \langle\nu, \xi\rangle &= \tfrac{d}{d\epsilon} H(g, \mu + \epsilon\nu)       &&\text{(2) velocity}\\
    \mu(g, \xi(g, \mu)) &= \mu, \qquad \xi(g, \mu(g, \xi)) = \xi                 &&\text{(3) legendre}\\
    \tfrac{d}{dt}H &= \langle f, \xi\rangle                                      &&\text{(4) power}\\
    \tfrac{d}{dt}J &= 0                                                          &&\text{(5) momenta}
    \end{aligned}
    $$

    (1) and (2) by finite differences, which know nothing of automatic differentiation; the rates in
    (4) and (5) by differentiating along the vector field.

    **Returns:** the largest relative error found in each law.

    **Raises:** `CheckFailed` at the first law that does not hold; `BadInput` where a declared
    symmetry is none.
    """
    states = [state] if state is not None else _random_states(system)
    symmetries = system.symmetries()
    found = [jax.tree.map(float, _measure(system, symmetries, s)) for s in states]
    worst = SystemLaws(*(max(values) for values in zip(*found, strict=True)))
    _require(system, "the force dL is not minus the slope of the energy in g", worst.differential)
    _require(system, "the velocity is not the slope of the energy in the momentum", worst.velocity)
    _require(
        system, "velocity(g, .) and momentum(g, .) do not undo each other", worst.legendre, _EXACT
    )
    _require(system, "the energy does not change at the power of the force", worst.power, _EXACT)
    _require(system, "the momentum of a symmetry is not constant", worst.momenta, _EXACT)
    return worst


def _require(
    system: AbstractGroupSystem, what: str, error: float, bound: float = _DIFFERENCED
) -> None:
    if not error <= bound:
        raise CheckFailed(
            f"{system.name}: {what}: relative error {error:.1e}, allowed {bound:.0e}."
        )


def _random_states(system: AbstractGroupSystem) -> list[State]:
    def one(key):
        keys = jax.random.split(key, 3)
        g = system.group.random(keys[0])
        xi = jax.random.normal(keys[1], (system.group.dim,), jnp.float64)
        return State(g, system.momentum(g, xi), jax.random.uniform(keys[2], (), jnp.float64))

    return [one(key) for key in jax.random.split(jax.random.key(0), _RANDOM_STATES)]


def _measure(system: AbstractGroupSystem, symmetries: Symmetries, state: State) -> SystemLaws:
    @jax.jit
    def measure(system, state):
        g, mu, t = state.g, state.momentum, state.t
        xi, rate = system.vector_field(g, mu, t)
        force = system.total_force(g, xi, mu, t) - system.differential(g, xi, mu)

        def along(time, quantity):  # along the vector field, to first order
            moved = system.group.compose(g, system.group.exp(time * xi))
            return quantity(State(moved, mu + time * rate, t + time))

        def rates(quantity):
            return jax.jacfwd(lambda time: along(time, quantity))(jnp.zeros(()))

        momenta = rates(lambda s: symmetries.momenta(system.group, s))
        turning = jnp.max(jnp.abs(rate)) + jnp.max(jnp.abs(xi)) * jnp.max(jnp.abs(mu))
        powers = jnp.abs(xi) @ jnp.abs(rate) + jnp.abs(xi) @ jnp.abs(force)
        power = jnp.abs(rates(system.energy) - force @ xi)  # (4)
        drift = jnp.max(jnp.abs(jnp.stack([jnp.zeros(()), *momenta.values()])))  # (5)
        return SystemLaws(
            *_slopes(system, g, mu, xi),
            _round_trips(system, g, mu, xi),
            power / _nonzero(powers),
            drift / _nonzero(turning),
        )

    return measure(system, state)


def _slopes(
    system: AbstractGroupSystem, g: Element, mu: Coordinates, xi: Coordinates
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    def turned(eta):
        return system.hamiltonian_energy(system.group.compose(g, system.group.exp(eta)), mu)

    def boosted(nu):
        return system.hamiltonian_energy(g, mu + nu)

    in_g = _slope(turned, _STEP, mu)
    in_mu = _slope(boosted, _STEP * jnp.max(jnp.abs(mu)), mu)
    size = jnp.abs(system.hamiltonian_energy(g, mu))
    dl = system.differential(g, xi, mu)
    return (
        _relative(dl, -in_g, jnp.maximum(size, jnp.max(jnp.abs(dl)))),  # (1)
        _relative(xi, in_mu, jnp.maximum(size, jnp.max(jnp.abs(xi)))),  # (2)
    )


def _slope(
    energy: Callable[[Coordinates], Float[Array, ""]],
    step: float | Float[Array, ""],
    like: Coordinates,
) -> Coordinates:
    """The slopes at zero of a function of coordinates, by central differences."""

    def along(axis):
        return sum(weight * energy(k * step * axis) for k, weight in _STENCIL) / step

    return jax.vmap(along)(jnp.eye(len(like)))


def _round_trips(
    system: AbstractGroupSystem, g: Element, mu: Coordinates, xi: Coordinates
) -> Float[Array, ""]:
    forth = _relative(system.momentum(g, xi), mu, jnp.max(jnp.abs(mu)))
    back = system.velocity(g, system.momentum(g, 2 * xi))
    return jnp.maximum(forth, _relative(back, 2 * xi, jnp.max(jnp.abs(xi))))  # (3)


def _relative(a: Coordinates, b: Coordinates, size: Float[Array, ""]) -> Float[Array, ""]:
    return jnp.max(jnp.abs(a - b)) / _nonzero(size)


def _nonzero(size: Float[Array, ""]) -> Float[Array, ""]:
    return jnp.maximum(size, float(np.finfo(np.float64).tiny))
