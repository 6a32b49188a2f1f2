"""Bodies for sweeps: heavy tops whose potentials close over their parameters."""

import jax.numpy as jnp

import retrax as rx

INERTIA = (1.0, 1.7, 2.3)
ARM = (0.4, -0.3, 1.1)
SPIN = (1.2, -0.5, 1.0)
TILT = (0.7, -0.4, 0.2)


def start(system, spin=SPIN):
    return system.state(rx.SO3().exp(jnp.array(TILT)), velocity=jnp.asarray(spin))


def top(mass, gravity):
    """A heavy top as a student writes it: the parameters are in the closure of its potential."""
    arm = jnp.array(ARM)
    body = rx.MechanicalSystem(
        rx.SO3(), jnp.array(INERTIA), lambda R: mass * gravity * (R[2] @ arm), physical=False
    )
    return body, start(body)


def ready_top(mass, gravity):
    """The same body as a ready system, whose parameters are arrays."""
    body = rx.systems.HeavyTop(INERTIA, mass, ARM, gravity, physical=False)
    return body, start(body)


def slope(position):
    """A particle that an explicit method takes across the edge of its potential at x = 1."""
    wall = rx.MechanicalSystem(rx.Translation(1), [1.0], lambda x: -jnp.sqrt(1.0 - x[0]))
    return wall, wall.state(jnp.array([position]), velocity=jnp.array([1.0]))
