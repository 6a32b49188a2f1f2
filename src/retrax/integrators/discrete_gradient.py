"""The midpoint rule with a discrete gradient of the potential: energy kept exactly."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.integrators.hamel_step import AbstractHamelMethod, HamelStep, hamel_step, momentum_scale
from retrax.mechanics.mechanical import AbstractMechanicalSystem
from retrax.mechanics.state import State


class DiscreteGradient(AbstractHamelMethod):
    r"""`HamelMidpoint` for systems with a potential, whose force is a discrete gradient.

    With $x = h\xi$, $p = \mathbb I\xi$ and $g$ the midpoint,

    $$ \overline{dV} = dV(g) + \bigl(V(g_{k+1}) - V(g_k) - \langle dV(g), x\rangle\bigr)
       \frac{p}{\langle p, x\rangle}, \qquad \langle\overline{dV}, x\rangle = V(g_{k+1}) - V(g_k),
       \tag{1} $$

    takes the place of $dV$, so that what the potential energy gains the kinetic energy loses: the
    energy is conserved to round-off. Symmetric, of order 2, with the step in the distribution;
    under any other constraint as `HamelMidpoint`.
    Where a body comes to rest the last term of (1) is rounding error divided by the speed.

    **Arguments:** `retraction`: the map $\tau$.

    References: [Gonzalez1996] (the discrete gradient); [BallZenkov2015] (Hamel's formalism).
    """

    def full_step(
        self, system: AbstractMechanicalSystem, state: State, h: Float[Array, ""]
    ) -> HamelStep:
        t, before = state.t + h / 2, system.potential_energy(state.g)

        def forces(g, g1, xi, p):
            middle = h * system.differential(g, xi, p)  # - h dV(g)
            missed = system.potential_energy(g1) - before + middle @ xi
            twice_kinetic = p @ xi
            moving = twice_kinetic > 0
            share = jnp.where(moving, missed / jnp.where(moving, twice_kinetic, 1.0), 0.0)
            outside = system.total_force(g, xi, p, t) - system.differential(g, xi, p)
            return middle - share * p + h * outside  # (1)

        speed = system.velocity(state.g, state.momentum)
        twice_kinetic = state.momentum @ speed
        size = momentum_scale(state)
        moves = twice_kinetic > 0
        # V(g1) - V(g0) cancels: its terms enter (1) multiplied by p / <p, xi>.
        cancelling = jnp.abs(before) * size / jnp.where(moves, twice_kinetic, 1.0)
        scale = jnp.maximum(size, jnp.where(moves, cancelling, 0.0))
        return hamel_step(system, self.retraction, state, h, forces, scale)
