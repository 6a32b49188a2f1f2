"""A small run of each kind of picture, written down from formulas: nothing is simulated."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import retrax as rx
from retrax.engine.progress import Interval
from retrax.mechanics.remembered import RememberedSystem
from retrax.mechanics.state import State
from retrax.trajectory.observe import Observations
from retrax.trajectory.trajectory import Trajectory

PLACED = rx.Product(rx.SO3(), rx.Translation(3))
GROUPS = [
    *(rx.SO3(), rx.SE2(), rx.Product(rx.SE2(), rx.Translation(1))),
    rx.Product(rx.SO3(), rx.Translation(2)),
    rx.Product(rx.Power(rx.Translation(3), 6), rx.SO3()),
    rx.Product(rx.Power(PLACED, 21), rx.Power(PLACED, 21), rx.Translation(2)),
    rx.Product(rx.Translation(31), rx.Translation(31), rx.Translation(2)),
    rx.Product(rx.Translation(3), rx.Translation(3)),
    *(rx.Power(PLACED, n) for n in (1, 2)),
    *(rx.Translation(n) for n in range(1, 7)),
]
# Spaces by their names.
SPACES = {
    space.name: space
    for space in [
        *map(rx.GroupItself, GROUPS),
        *(rx.Sphere(3), rx.Torus(3), rx.Stiefel(3, 2), rx.Grassmann(3, 2), rx.Isospectral(3)),
        rx.CoadjointOrbit(rx.SE3()),
    ]
}
COUNT = 41
T = np.linspace(0.0, 4.0, COUNT)


def turned(axis, angle):
    """Rotations about `axis` (of length 1), by Rodrigues' formula."""
    x, y, z = axis
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]], dtype=float)
    angle = np.asarray(angle)[:, None, None]
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


TURNING = turned((0.0, 0.6, 0.8), 1.3 * T) @ turned((1.0, 0.0, 0.0), 0.7 * T)
WAVE = np.stack([np.cos(T), np.sin(T), 0.3 * np.sin(2 * T)], axis=1)


def written(group, g, *, drawing=None, momentum=None, **more):
    """A trajectory that says what it is told to."""
    momentum = np.zeros((COUNT, 1)) if momentum is None else momentum
    zero = np.zeros(COUNT)
    observed = Observations(
        velocity=0.5 * momentum,
        invariants={"energy": 2.0 + 1e-6 * np.sin(3 * T)},
        defect=1e-16 * (1 + np.cos(T)),
        multipliers=more.get("multipliers", np.zeros((COUNT, 0))),
        reaction=0 * momentum,
        violation=zero,
        observables=more.get("observables", {}),
    )
    system = RememberedSystem(
        title=more.get("name", group),
        space=SPACES[group],
        numbers=more.get("numbers", {}),
        functions=(),
        drawing=drawing,
        measured=more.get("units", {}),
        e3_points_up=more.get("up", True),
    )
    named = {"system": more.get("name", group), "group": group, "integrator": "LieVerlet()"}
    versions = {"python": "3", "retrax": "0", "jax": "0"}
    return Trajectory(
        t=T,
        states=jax.tree.map(np.asarray, State(*jax.tree.map(jnp.asarray, (g, momentum, T)))),
        info=Interval(*(zero for _ in Interval._fields)),
        h=0.1,
        steps=more.get("steps", COUNT - 1),
        completed=COUNT - 1,
        save_every=1,
        seconds=0.01,
        compile_seconds=0.1,
        provenance={**named, **versions},
        system=system,
        observations=observed,
    )


def _body():
    momentum = np.stack([1 + 0 * T, 0.5 * np.sin(T), 2 + 0 * T], axis=1)
    return written("SO(3)", TURNING, momentum=momentum, name="free rigid body")


def million():
    """A body that turns about e3 for a million states, one of which is off in energy by 1e-6."""
    run, count = _body(), 1_000_000
    t = 0.01 * np.arange(count)
    moved = (turned((0.0, 0.0, 1.0), t), np.ones((count, 3)), t)
    run.t, run.states = t, eqx.tree_at(lambda s: (s.g, s.momentum, s.t), run.states, moved)
    energy = 2 + 1e-9 * np.cos(0.7 * t) + 1e-6 * (np.arange(count) == 777_777)
    run._observations = run.observations._replace(
        velocity=moved[1], invariants={"energy": energy}, defect=1e-16 * np.ones(count)
    )
    return run


def _failed():
    run = _body()
    run.steps = 100
    run.provenance["failure"] = "LieVerlet(): step 41 of 100 did not converge. Try h = 0.05."
    return run


def _top():
    top = rx.systems.HeavyTop([1.2, 1.6, 0.8], 1.0, [0.0, 0.0, 0.6])
    return written("SO(3)", TURNING, drawing=top.drawing, momentum=WAVE)


def _disk():
    """A disk of radius 0.7 on the circle of radius 1, heading along it."""
    disk = rx.systems.RollingDisk(2.0, 0.25, 0.5, 0.7)
    heading = turned((0.0, 0.0, 1.0), T)[:, :2, :2]
    place = np.stack([np.sin(T), 1 - np.cos(T)], axis=1)
    g = ((heading, place), T[:, None] / 0.7)
    return written("SE(2) x R", g, drawing=disk.drawing, momentum=np.ones((COUNT, 4)))


def _sleigh():
    sleigh = rx.systems.ChaplyginSleigh(1.5, 0.8, 0.6)
    g = (turned((0.0, 0.0, 1.0), np.sin(T))[:, :2, :2], WAVE[:, :2])
    return written("SE(2)", g, drawing=sleigh.drawing, momentum=np.ones((COUNT, 3)))


def _ball():
    ball = rx.systems.BallOnTurntable(1.0, 0.5, 0.9)
    g = (TURNING, WAVE[:, :2])
    return written("SO(3) x R^2", g, drawing=ball.drawing, momentum=np.ones((COUNT, 5)))


def _string():
    string = {"string": [6], "masses": [0.5], "arms": [[0.0, 0.0, 0.1]]}
    string["inertia"] = [[[0.01, 0, 0], [0, 0.012, 0], [0, 0, 0.008]]]
    down = np.arange(1, 7) / 6
    swing = 0.3 * np.sin(2 * T)[:, None] * down**2
    r = np.stack([swing, 0 * swing, np.tile(down, (COUNT, 1))], axis=2)
    tension = 4 + np.sin(3 * T)[:, None] + down
    momentum = np.concatenate([np.zeros((COUNT, 18)), WAVE], axis=1)
    return written(
        "(R^3)^6 x SO(3)",
        (r, TURNING),
        drawing=string,
        momentum=momentum,
        observables={"tension": tension, "stretched length": np.sum(tension, axis=1)},
        up=False,
        units={"stretched length": "m"},
    )


def _rods():
    """Two straight rods that cross at right angles one diameter apart, the upper one swaying."""
    s = np.linspace(-1.0, 1.0, 21)
    eye = np.tile(np.eye(3), (COUNT, 21, 1, 1))
    low = np.stack([s, 0 * s, -0.05 + 0 * s], axis=1)
    high = np.stack([0 * s, s, 0.05 + 0 * s], axis=1)
    sway = 0.1 * np.sin(T)[:, None, None] * (1 - s[:, None] ** 2) * np.array([1.0, 0.0, 0.0])
    g = ((eye, np.tile(low, (COUNT, 1, 1))), (eye, high + sway), np.ones((COUNT, 2)))
    rod = {"spacing": 0.1, "radius": 0.05}
    name = "(SO(3) x R^3)^21 x (SO(3) x R^3)^21 x R^2"
    force = np.stack([0.1 * np.sin(T), 0 * T, -1 + 0.2 * np.cos(T)], axis=1)
    return written(
        name,
        g,
        drawing={"rods": [rod, rod], "width": 0.1},
        momentum=np.ones((COUNT, 254)),
        multipliers=force,
    )


def _strings():
    strings = rx.systems.StringsInContact(n=32)
    x = np.arange(1, 32) * 2 * np.pi / 32
    u = np.cos(T)[:, None] * np.sin(x)
    s = np.stack([2 + 0.3 * np.sin(T), 2.6 + 0.3 * np.sin(T)], axis=1)
    return written(
        "R^31 x R^31 x R^2",
        (u, 0.5 * u, s),
        drawing=strings.drawing,
        momentum=np.ones((COUNT, 64)),
        multipliers=np.sin(T)[:, None],
    )


def _field(system, y):
    return written(f"R^{y.shape[1]}", y, drawing=system.drawing)


def _plane():
    normal = TURNING[:, :, 2]
    return written("G_2(R^3)", np.eye(3) - normal[:, :, None] * normal[:, None, :])


def wheeled():
    """One wheel with a frame on it, z down, that rolls along e1; nothing is simulated."""
    bike = rx.Mechanism(gravity=[0.0, 0.0, 9.81])
    wheel = bike.body("wheel", 1.0, [0.1, 0.2, 0.1], at=[0.0, 0.0, -0.5])
    frame = bike.body("frame", 3.0, [0.3, 0.3, 0.1], at=[0.0, 0.0, -1.0])
    bike.join(rx.Revolute(wheel, frame, at=[0.0, 0.0, -0.5], axis=[0.0, 1.0, 0.0], name="axle"))
    bike.roll(rx.RollingWheel(wheel, radius=0.5, axis=[0.0, 1.0, 0.0], name="contact"))
    system = bike.system()
    ahead = np.outer(T, [4.0, 0.0, 0.0])
    rolls = turned((0.0, 1.0, 0.0), -4 * T / 0.5)
    still, up = np.tile(np.eye(3), (COUNT, 1, 1)), np.array([0.0, 0.0, -1.0])
    g = (
        np.stack([rolls, still], axis=1),
        np.stack([ahead + up / 2, ahead + up], axis=1),
    )
    told = {"drawing": system.drawing, "up": system.e3_points_up}
    return written("(SO(3) x R^3)^2", g, momentum=np.zeros((COUNT, 12)), **told)


def _shapes():
    """A body made of every shape there is."""
    draw = rx.draw
    corners = [[0.0, 0, 0], [0.5, 0, 0], [0, 0.5, 0], [0, 0, 0.5]]
    shapes = (
        draw.box([0.5, 0.3, 0.2], colour="green"),
        draw.rod([0, 0, 0], [0, 0, 1], colour="#884422"),
        draw.ellipsoid([0.2, 0.1, 0.1]).at([0, 0, 1]),
        draw.cylinder(0.1, [1, 0, 0], 0.4).at([0, 1, 0]),
        draw.wheel(0.3).at([0, -1, 0]),
        draw.cone([1, 0, 0], [1.5, 0, 0], 0.1),
        draw.mesh(corners, [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]]).at([-1, 0, 0]),
        draw.line([[0, 0, 0], [1, 1, 0], [1, 1, 1]]),
        draw.arrow([0, 0, 1], [0, 0, 0.5]),
        draw.trail([0, 0, 1.5]),
    )
    return written("SO(3)", TURNING, drawing={"shapes": shapes}, momentum=WAVE)


KINDS = {
    "body": _body,
    "failed": _failed,
    "top": _top,
    "disk": _disk,
    "sleigh": _sleigh,
    "ball": _ball,
    "string": _string,
    "rods": _rods,
    "strings": _strings,
    "momentum": lambda: _field(rx.systems.EulerTop([3.0, 2.0, 1.0]), WAVE),
    "orbit": lambda: _field(rx.systems.LotkaVolterra.predator_prey(), WAVE[:, :2]),
    "canonical": lambda: _field(rx.systems.henon_heiles(), np.tile(WAVE[:, :2], (1, 2))),
    "sphere": lambda: written("S^2", TURNING[:, :, 1]),
    "torus": lambda: written("T^3", np.stack([WAVE[:, :2], WAVE[::-1, :2], WAVE[:, :2]], axis=1)),
    "frame": lambda: written("V_2(R^3)", TURNING[:, :, :2]),
    "plane": _plane,
    "matrix": lambda: written("Sym(3)", TURNING + np.swapaxes(TURNING, 1, 2)),
    "mechanism": wheeled,
    "shapes": _shapes,
    "two vectors": lambda: written("coadjoint orbit of SE(3)", np.tile(WAVE, (1, 2))),
}
