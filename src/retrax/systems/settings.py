"""Systems with a start, a step and a length worth looking at: what the cases are made of."""

import jax.numpy as jnp

from retrax.groups.so3 import SO3
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.systems.blade import Blade
from retrax.systems.chaplygin_sleigh import ChaplyginSleigh
from retrax.systems.cubic_hamiltonian import henon_heiles
from retrax.systems.heavy_body import HeavyTop
from retrax.systems.lie_poisson_fields import clebsch, zhukovski_volterra
from retrax.systems.lotka_volterra import LotkaVolterra
from retrax.systems.rigid_body import FreeRigidBody
from retrax.systems.rods.crossing import crossed_rods
from retrax.systems.rods.rod import Rod
from retrax.systems.rolling_ball import BallOnTurntable, ChaplyginBall
from retrax.systems.rolling_disk import RollingDisk
from retrax.systems.suslov import Suslov
from retrax.systems.veselova import Veselova

Setting = tuple[AbstractGroupSystem, State, float, int]


def free_rigid_body() -> Setting:
    """Euler's top with moments 1, 2, 3 near its axis of largest moment; the polhode closes."""
    body = FreeRigidBody(inertia=[1.0, 2.0, 3.0])
    return body, body.state(jnp.eye(3), velocity=[0.3, 0.0, 0.9]), 0.05, 20_000


def heavy_top() -> Setting:
    """An asymmetric top that spins fast enough to stay up, and nutates while it precesses."""
    top = HeavyTop(
        inertia=jnp.array([1.2, 1.6, 0.8]),
        mass=jnp.array(1.0),
        arm=jnp.array([0.0, 0.0, 0.6]),
        gravity=jnp.array(9.81),
    )
    tilted = SO3().exp(jnp.array([1.0, 0.0, 0.0]))
    return top, top.state(tilted, velocity=[0.6, 0.2, 8.0]), 0.005, 20_000


def suslov() -> Setting:
    """Suslov's problem with a full inertia: the body comes to turn steadily."""
    body = Suslov([[2.0, 0.3, -0.6], [0.3, 3.0, 0.8], [-0.6, 0.8, 4.0]], physical=False)
    return body, body.state(jnp.eye(3), velocity=[1.0, 0.5, 0.0]), 0.01, 2_000


def chaplygin_sleigh() -> Setting:
    """A sleigh pushed backwards: it turns round and glides off."""
    body = ChaplyginSleigh(mass=1.5, inertia=0.8, arm=0.6)
    return body, body.state((jnp.eye(2), jnp.zeros(2)), velocity=[1.25, -0.6, 0.0]), 0.01, 1_000


def rolling_disk() -> Setting:
    """An upright disk running in circles."""
    disk = RollingDisk(mass=2.0, turning=0.25, rolling=0.5, radius=0.7)
    start = ((jnp.eye(2), jnp.zeros(2)), jnp.zeros(1))
    return disk, disk.state(start, velocity=[0.9, 0.91, 0.0, 1.3]), 0.01, 2_000


def veselova() -> Setting:
    """A body that does not turn about the vertical."""
    body = Veselova([1.0, 2.0, 2.5])
    tilted = SO3().exp(jnp.array([0.4, 0.0, 0.0]))
    return body, body.state(tilted, velocity=[0.6, 0.83, -0.35], project=True), 0.02, 20_000


def chaplygin_ball() -> Setting:
    """A balanced ball with three moments of inertia, rolling on a table."""
    ball = ChaplyginBall([1.0, 1.5, 2.0], 1.2, 0.8)
    start = (SO3().exp(jnp.array([0.4, 0.0, 0.0])), jnp.zeros(2))
    return ball, ball.state(start, velocity=ball.velocity_of(start, [0.5, -0.7, 0.9])), 0.02, 5_000


def turntable() -> Setting:
    """A homogeneous ball on a turning table: it circles, two turns for seven of the table."""
    ball = BallOnTurntable(mass=1.0, radius=0.5, rate=0.9)
    start = (jnp.eye(3), jnp.array([0.7, -0.2]))
    return ball, ball.state(start, velocity=ball.velocity_of(start, [0.3, -0.4, 0.8])), 0.02, 3_000


def blade() -> Setting:
    """A blade in space: it moves along its own axis only, and turns freely."""
    body = Blade([1.0, 1.3, 0.9], 1.4, [0.2, -0.1, 0.3])
    start = (jnp.eye(3), jnp.zeros(3))
    return body, body.state(start, velocity=[0.7, -0.4, 1.1, 0.9, 0.0, 0.0]), 0.01, 5_000


def predator_prey() -> Setting:
    """Two species whose numbers go round, for ever."""
    system = LotkaVolterra.predator_prey()
    return system, system.at([2.0, 1.0]), 0.1, 10_000


def gyrostat() -> Setting:
    """A body with a rotor about no principal axis: Kahan's map has no quadratic integral left."""
    system = zhukovski_volterra([3.0, 2.0, 1.0], [0.7, -0.3, 0.4])
    return system, system.at([1.0, 1.0, 1.0]), 0.05, 10_000


def clebsch_body() -> Setting:
    """A body in a fluid, integrable, and integrable for Kahan's map too."""
    system = clebsch([1.0, 2.0, 3.0], 0.5, 0.25)
    return system, system.at([0.3, -0.2, 0.5, 0.7, 0.1, -0.4]), 0.05, 10_000


def galaxy() -> Setting:
    """Henon and Heiles' system at an energy where most orbits are regular."""
    system = henon_heiles()
    return system, system.at([0.1, -0.2, 0.3, 0.15]), 0.1, 10_000


def rod() -> Setting:
    """A soft rod thrown so that it bends, twists and turns, in no gravity."""
    body = Rod.from_material(20, 1.0, young=2e4, poisson=0.3, density=1000.0, radius=0.03)
    s = jnp.linspace(0.0, 1.0, body.nodes)[:, None]
    omega = jnp.concatenate([3 * jnp.sin(3 * s), 2 * jnp.cos(2 * s), 4 * s], axis=1)
    v = jnp.concatenate([0.4 * s, 0.5 * (1 - s**2), 0.3 * jnp.sin(5 * s)], axis=1)
    return body, body.state(body.straight(), velocity=body.velocity_of(omega, v)), 0.004, 5_000


def rods_in_contact() -> Setting:
    """Two stretched rods pressed against each other, which roll and swing."""
    return *crossed_rods(), 0.02, 5_000
