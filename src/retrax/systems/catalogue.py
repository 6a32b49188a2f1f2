"""The cases that `retrax run` runs: systems with a start, a step and a number of steps.

The functions make them; the table `CASES` at the end names and describes them.
"""

import math

import numpy as np
from jaxtyping import Array, Float

from retrax.groups.so3 import SO3
from retrax.numerics.evaluate import as_jax, evaluate_in_jax
from retrax.systems import driven_examples
from retrax.systems.case import Case, Example, driven_case
from retrax.systems.cubic_hamiltonian import henon_heiles
from retrax.systems.euler_top import BodyOnSphere, EulerTop
from retrax.systems.heavy_top_orbit import HeavyTopOrbit
from retrax.systems.kuramoto import Kuramoto
from retrax.systems.lie_poisson import clebsch, zhukovski_volterra
from retrax.systems.lotka_volterra import LotkaVolterra
from retrax.systems.matrix_flows import ContinuousQR, SubspaceFlow, Toda
from retrax.systems.mechanisms.examples import (
    pushed_bicycle,
    reaching_arm,
    swinging_bricard,
    swinging_double_pendulum,
    turning_four_bar,
    walking_leg,
)
from retrax.systems.orbiting_body import OrbitingBody
from retrax.systems.rigid_body import FreeRigidBody, HeavyTop, Pendulum3D
from retrax.systems.rods.crossing import crossed_rods
from retrax.systems.rods.rod import Rod
from retrax.systems.rolling_bodies import BallOnTurntable, ChaplyginBall, RollingDisk
from retrax.systems.sliding_bodies import Blade, ChaplyginSleigh
from retrax.systems.strings.string_pendulum import StringPendulum
from retrax.systems.strings.strings_in_contact import StringsInContact
from retrax.systems.suslov import Suslov, Veselova
from retrax.systems.touching_examples import bowling_ball, thrown_box


def _rotation(angle: float) -> Float[Array, "3 3"]:
    """Return the rotation by an angle about the first axis."""
    return evaluate_in_jax(SO3.exp, SO3(), np.array([angle, 0.0, 0.0]))


def free_rigid_body() -> Example:
    """Return Euler's top, moments 1, 2, 3, near the axis of the largest: a closed polhode."""
    body = FreeRigidBody(inertia=[1.0, 2.0, 3.0])
    return body, body.state(np.eye(3), velocity=[0.3, 0.0, 0.9]), 0.05, 20_000


def heavy_top() -> Example:
    """Return an asymmetric top that spins fast enough to stay up, precessing and nutating."""
    top = HeavyTop(
        inertia=[1.2, 1.6, 0.8],
        mass=1.0,
        arm=[0.0, 0.0, 0.6],
        gravity=9.81,
    )
    return top, top.state(_rotation(1.0), velocity=[0.6, 0.2, 8.0]), 0.005, 20_000


def suslov() -> Example:
    """Return Suslov's problem with a full inertia matrix: in the end the body turns steadily."""
    body = Suslov([[2.0, 0.3, -0.6], [0.3, 3.0, 0.8], [-0.6, 0.8, 4.0]], physical=False)
    return body, body.state(np.eye(3), velocity=[1.0, 0.5, 0.0]), 0.01, 2_000


def chaplygin_sleigh() -> Example:
    """Return a sleigh pushed backwards, which turns round and glides off."""
    body = ChaplyginSleigh(mass=1.5, inertia=0.8, arm=0.6)
    return body, body.state((np.eye(2), np.zeros(2)), velocity=[1.25, -0.6, 0.0]), 0.01, 1_000


def rolling_disk() -> Example:
    """Return an upright disk that rolls in circles."""
    disk = RollingDisk(mass=2.0, turning=0.25, rolling=0.5, radius=0.7)
    start = ((np.eye(2), np.zeros(2)), np.zeros(1))
    return disk, disk.state(start, velocity=[0.9, 0.91, 0.0, 1.3]), 0.01, 2_000


def veselova() -> Example:
    """Return a body that cannot turn about the vertical."""
    body = Veselova([1.0, 2.0, 2.5])
    return body, body.state(_rotation(0.4), velocity=[0.6, 0.83, -0.35], project=True), 0.02, 20_000


def chaplygin_ball() -> Example:
    """Return a balanced ball with three moments of inertia, rolling on a table."""
    ball = ChaplyginBall([1.0, 1.5, 2.0], 1.2, 0.8)
    start = (_rotation(0.4), as_jax(np.zeros(2)))
    return ball, ball.state(start, velocity=ball.velocity_of(start, [0.5, -0.7, 0.9])), 0.02, 5_000


def turntable() -> Example:
    """Return a homogeneous ball on a turntable: it circles, two turns for seven of the table."""
    ball = BallOnTurntable(mass=1.0, radius=0.5, rate=0.9)
    start = (as_jax(np.eye(3)), as_jax(np.array([0.7, -0.2])))
    return ball, ball.state(start, velocity=ball.velocity_of(start, [0.3, -0.4, 0.8])), 0.02, 3_000


def blade() -> Example:
    """Return a blade in space, which slides along its own axis only and turns freely."""
    body = Blade([1.0, 1.3, 0.9], 1.4, [0.2, -0.1, 0.3])
    start = (np.eye(3), np.zeros(3))
    return body, body.state(start, velocity=[0.7, -0.4, 1.1, 0.9, 0.0, 0.0]), 0.01, 5_000


def predator_prey() -> Example:
    """Return two species whose populations oscillate for ever."""
    system = LotkaVolterra.predator_prey()
    return system, system.at([2.0, 1.0]), 0.1, 10_000


def gyrostat() -> Example:
    """Return a rotor along no principal axis, so that Kahan's map has no quadratic integral."""
    system = zhukovski_volterra([3.0, 2.0, 1.0], [0.7, -0.3, 0.4])
    return system, system.at([1.0, 1.0, 1.0]), 0.05, 10_000


def clebsch_body() -> Example:
    """Return a body in a fluid that is integrable, also under Kahan's map."""
    system = clebsch([1.0, 2.0, 3.0], 0.5, 0.25)
    return system, system.at([0.3, -0.2, 0.5, 0.7, 0.1, -0.4]), 0.05, 10_000


def galaxy() -> Example:
    """Return Henon and Heiles' system at an energy where most orbits are regular."""
    system = henon_heiles()
    return system, system.at([0.1, -0.2, 0.3, 0.15]), 0.1, 10_000


def rod() -> Example:
    """Return a soft rod without gravity, thrown so that it bends, twists and turns."""
    body = Rod.from_material(20, 1.0, young=2e4, poisson=0.3, density=1000.0, radius=0.03)
    s = np.linspace(0.0, 1.0, body.nodes)[:, None]
    omega = np.concatenate([3 * np.sin(3 * s), 2 * np.cos(2 * s), 4 * s], axis=1)
    v = np.concatenate([0.4 * s, 0.5 * (1 - s**2), 0.3 * np.sin(5 * s)], axis=1)
    return body, body.state(body.straight(), velocity=body.velocity_of(omega, v)), 0.004, 5_000


def rods_in_contact() -> Example:
    """Return two stretched rods, pressed against each other, that roll and swing."""
    return *crossed_rods(), 0.02, 5_000


def in_orbit() -> Example:
    """Return a long satellite that librates about the vertical, under the gradient of gravity."""
    body = OrbitingBody(FreeRigidBody([2.0, 9.0, 10.0]), rate=1.1e-3)
    return body, body.state(_rotation(0.3), velocity=[0.0, 2e-4, 4e-4]), 5.0, 10_000


_MECHANISMS = (
    ("four-bar", "a four-bar linkage that turns over", turning_four_bar, (0.005, 2_000)),
    ("bricard", "Bricard's linkage of six hinges in space", swinging_bricard, (0.005, 2_000)),
    ("bicycle", "a bicycle that rights itself after a push", pushed_bicycle, (0.005, 1_000)),
    ("double-pendulum", "two bars in the plane", swinging_double_pendulum, (0.005, 4_000)),
    ("strandbeest-leg", "a leg of a beach animal, walking", walking_leg, (0.005, 2_000)),
)
_CONSTRAINED = "lagrange-d-alembert"
_ON_SPACES = "rkmk-5"

CASES: dict[str, Case] = {
    case.name: case
    for case in (
        Case(
            "free-rigid-body",
            "a free rigid body with the moments 1, 2, 3",
            free_rigid_body,
            length=(0.05, 20_000),
        ),
        Case(
            "heavy-top",
            "an asymmetric heavy top that precesses and nutates",
            heavy_top,
            length=(0.005, 20_000),
        ),
        Case(
            "pendulum3d",
            "the 3D pendulum of the pseudospectral paper",
            Pendulum3D.paper,
            length=(0.05, 600),
        ),
        Case(
            "string-pendulum",
            "a rigid body on an elastic string",
            StringPendulum.paper,
            length=(1e-4, 50_000),
        ),
        Case(
            "suslov",
            "Suslov's problem with a full inertia matrix",
            suslov,
            _CONSTRAINED,
            (0.01, 2_000),
        ),
        Case(
            "suslov-paper",
            "Suslov's problem of Fig. 1 in the nonholonomic paper",
            Suslov.paper,
            _CONSTRAINED,
            (0.01, 180_000),
        ),
        Case(
            "kharlamova",
            "Suslov's problem with a weight: Kharlamova's case",
            Suslov.kharlamova,
            _CONSTRAINED,
            (0.02, 20_000),
        ),
        Case(
            "chaplygin-sleigh",
            "Chaplygin's sleigh, pushed backwards",
            chaplygin_sleigh,
            _CONSTRAINED,
            (0.01, 1_000),
        ),
        Case(
            "rolling-disk",
            "an upright disk that rolls in circles",
            rolling_disk,
            _CONSTRAINED,
            (0.01, 2_000),
        ),
        Case(
            "veselova",
            "Veselova's body, which cannot turn about the vertical",
            veselova,
            _CONSTRAINED,
            (0.02, 20_000),
        ),
        Case(
            "chaplygin-ball",
            "Chaplygin's ball, rolling on a table",
            chaplygin_ball,
            _CONSTRAINED,
            (0.02, 5_000),
        ),
        Case(
            "turntable",
            "a homogeneous ball that rolls on a turntable",
            turntable,
            _CONSTRAINED,
            (0.02, 3_000),
        ),
        Case(
            "blade",
            "a body in space that slides along one axis only",
            blade,
            _CONSTRAINED,
            (0.01, 5_000),
        ),
        Case("euler-top", "the momenta of Euler's top", EulerTop.paper, "kahan", (0.1, 10_000)),
        Case(
            "predator-prey",
            "a predator and its prey, after Lotka and Volterra",
            predator_prey,
            "kahan",
            (0.1, 10_000),
        ),
        Case("gyrostat", "a rigid body with a rotor inside", gyrostat, "kahan", (0.05, 10_000)),
        Case(
            "clebsch",
            "a body in an ideal fluid: Clebsch's case",
            clebsch_body,
            "kahan",
            (0.05, 10_000),
        ),
        Case(
            "henon-heiles",
            "a star in a galaxy, after Henon and Heiles",
            galaxy,
            "kahan",
            (0.1, 10_000),
        ),
        Case(
            "body-on-sphere",
            "the momentum of a free body, on the sphere S^2",
            BodyOnSphere.example,
            _ON_SPACES,
            (0.05, 2_000),
        ),
        Case(
            "kuramoto",
            "Kuramoto's coupled oscillators, on a torus",
            Kuramoto.example,
            _ON_SPACES,
            (0.05, 2_000),
        ),
        Case(
            "continuous-qr",
            "the orthonormal frame that a linear flow carries",
            ContinuousQR.example,
            _ON_SPACES,
            (0.02, 2_000),
        ),
        Case(
            "subspace-flow",
            "the plane that a linear flow carries",
            SubspaceFlow.example,
            _ON_SPACES,
            (0.02, 1_000),
        ),
        Case("toda", "the Toda lattice in Lax form", Toda.example, _ON_SPACES, (0.02, 1_000)),
        Case(
            "heavy-top-orbit",
            "a heavy top on a coadjoint orbit of SE(3)",
            HeavyTopOrbit.example,
            _ON_SPACES,
            (0.005, 20_000),
        ),
        Case("rod", "an elastic rod, thrown and spinning", rod, length=(0.004, 5_000)),
        Case(
            "rods-in-contact",
            "two elastic rods that roll on each other",
            rods_in_contact,
            "rolling-verlet",
            (0.02, 5_000),
        ),
        Case(
            "strings-in-contact",
            "two strings that touch at moving points",
            StringsInContact.paper,
            "contact-dkd",
            (2 * math.pi / 256, 2_560),
        ),
        Case(
            "body-in-orbit",
            "a satellite under the gradient of gravity",
            in_orbit,
            length=(5.0, 10_000),
        ),
        driven_case(
            "spacecraft",
            "a spacecraft that turns by its reaction wheels",
            driven_examples.turn_by_wheels,
            (0.05, 4_000),
        ),
        driven_case(
            "quadrotor",
            "a quadrotor that flies to a place and holds it",
            driven_examples.fly_to,
            (0.005, 2_000),
        ),
        driven_case(
            "crane",
            "a crane that moves its load and calms it",
            driven_examples.move_load,
            (2e-3, 8_000),
        ),
        driven_case(
            "upright-pendulum",
            "a 3D pendulum held upright by torques",
            driven_examples.hold_upright,
            (0.01, 1_500),
        ),
        *(Case(name, told, make, length=length) for name, told, make, length in _MECHANISMS),
        Case(
            "bowling-ball",
            "a ball that slides down a lane until it rolls",
            bowling_ball,
            "nonsmooth-rattle",
            (0.005, 600),
        ),
        Case(
            "thrown-box",
            "a box that bounces, tumbles, slides and comes to rest",
            thrown_box,
            "nonsmooth-rattle",
            (0.002, 1_500),
        ),
        driven_case(
            "robot-arm",
            "an arm with six axes whose motors reach for a place",
            reaching_arm,
            (0.002, 1_500),
        ),
        driven_case(
            "sleigh",
            "a sleigh on a knife edge, steered",
            driven_examples.steer,
            (0.01, 2_000),
            _CONSTRAINED,
        ),
    )
}
