"""A small system with a kick and a drift of its own, and a method that needs its memory."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.translation import Translation
from retrax.integrators.base import AbstractIntegrator, explicit_step
from retrax.mechanics.mechanical import AbstractMechanicalSystem
from retrax.mechanics.split import AbstractSplitSystem, Drift
from retrax.mechanics.state import State
from retrax.numerics.newton import NewtonStatus


class Springs(AbstractSplitSystem, AbstractMechanicalSystem):
    """Masses in a row, each on a spring of its own that hardens, shaken in time."""

    stiffness: Float[Array, " dim"]
    force: ClassVar[None] = None
    symmetry: ClassVar[None] = None
    name: ClassVar[str] = "row of springs"
    invariant_inertia: ClassVar[bool] = True
    free: ClassVar[bool] = False

    @property
    def group(self):
        return Translation(len(self.stiffness))

    def inertia_at(self, g):
        return jnp.ones_like(self.stiffness)

    def potential_energy(self, g):
        return jnp.sum(self.stiffness * (g**2 / 2 + g**4 / 4))

    def kick(self, g, t):
        return -self.stiffness * (g + g**3) + 0.1 * jnp.sin(3 * t)

    def drift(self, g, mu, h):
        went = NewtonStatus(jnp.asarray(True), jnp.zeros(()), jnp.asarray(0))
        return Drift(g + h * mu, jnp.zeros_like(mu), h * mu, went, jnp.asarray(True))


class AdamsBashforth(AbstractIntegrator):
    """Two steps look back at one force: without it the next step is another one."""

    order: ClassVar[int] = 2
    preserves: ClassVar[frozenset[str]] = frozenset()

    def memory(self, system, state):
        return {"force": self._force(system, state), "velocity": system.velocity_at(state)}

    def _force(self, system, state):
        xi = system.velocity_at(state)
        return system.total_force(state.g, xi, state.momentum, state.t)

    def step(self, system, state, h):
        new, info, _ = self.next_step(system, state, h, self.memory(system, state))
        return new, info

    def next_step(self, system, state, h, memory):
        now = self.memory(system, state)
        xi = 1.5 * now["velocity"] - 0.5 * memory["velocity"]
        mu = state.momentum + h * (1.5 * now["force"] - 0.5 * memory["force"])
        g = system.group.compose(state.g, system.group.exp(h * xi))
        return State(g, mu, state.t + h), explicit_step(h * xi), now
