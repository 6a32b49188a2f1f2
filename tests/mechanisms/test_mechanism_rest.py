"""Mechanisms that dampers bring to rest, in space and on springs, in small units and large ones."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.mechanisms import along
from retrax.mechanisms.reactions import Reactions
from retrax.mechanisms.sparse_rattle import _closing_impulses
from retrax.numerics.roundoff import ACCEPT


def hub_and_panels(d=3, panels=1, metre=1.0, kilogram=1.0, damping=2.0):
    """A free hub with panels one behind the other, each on a hinge with a spring and a damper."""
    mechanism = rx.Mechanism(gravity=(0.0,) * d)
    turn = kilogram * metre**2
    last = mechanism.body("hub", 10 * kilogram, _moments(turn, d, 2.0), at=_along(0.0, metre, d))
    for k in range(panels):
        at, hinge = _along(1.0 + k, metre, d), f"hinge {k}"
        panel = mechanism.body(f"panel {k}", kilogram, _moments(turn, d, 0.3), at=at)
        axis = (0.0, 1.0, 0.0) if d == 3 else None
        mechanism.join(rx.Revolute(last, panel, _along(0.5 + k, metre, d), axis, hinge))
        mechanism.add(rx.TorsionSpring(hinge, 20 * turn), rx.TorsionDamper(hinge, damping * turn))
        last = panel
    return mechanism


def _moments(turn, d, size):
    return [size * turn, 1.5 * size * turn, 2 * size * turn] if d == 3 else size * turn


def _along(x, metre, d):
    return (x * metre,) + (0.0,) * (d - 1)


ORDERS = {2: rx.LieVerlet(), 4: rx.Composition(rx.LieVerlet(), order=4)}


@pytest.mark.parametrize("d", [3, 2])
@pytest.mark.parametrize("order", [2, pytest.param(4, marks=pytest.mark.campaign)])
def test_a_panel_that_floats_freely_comes_to_rest(d, order):
    system = hub_and_panels(d).system()
    state = system.assemble(joints={"hinge 0": 0.3})
    run = rx.simulate(system, ORDERS[order], state, h=0.01, steps=10_000, save_every=5000)
    assert np.max(np.abs(run.momentum[-1])) < 5e-15  # measured: 4.5e-16
    assert abs(float(run.observables()["angle of hinge 0"][-1])) < 5e-15


@pytest.mark.parametrize(
    ("metre", "kilogram"), [(1e-6, 1e-9), pytest.param(1e3, 1e3, marks=pytest.mark.campaign)]
)
def test_units_do_not_decide_whether_a_panel_comes_to_rest(metre, kilogram):
    system = hub_and_panels(metre=metre, kilogram=kilogram).system()
    state = system.assemble(joints={"hinge 0": 0.3})
    run = rx.simulate(system, rx.LieVerlet(), state, h=0.01, steps=10_000, save_every=5000)
    assert abs(float(run.observables()["angle of hinge 0"][-1])) < 5e-15


@pytest.mark.campaign
def test_a_long_chain_with_drag_slows_down():
    """Dampers couple its bodies, which Newton's matrix leaves out: it converges slowly."""
    system = hub_and_panels(panels=12).system(force=lambda g, xi, t: -4.0 * xi)
    state = system.assemble(joints={"hinge 0": 0.3, "hinge 3": -0.2})
    run = rx.simulate(system, rx.LieVerlet(), state, h=0.01, steps=10_000, save_every=5000)
    assert np.max(np.abs(run.momentum[-1])) < 1e-5  # measured: 2.2e-6, and falling


@pytest.mark.campaign
@pytest.mark.filterwarnings("ignore:.*too large for the machine code")
@pytest.mark.parametrize("order", [2, 4])
def test_a_satellite_with_panels_and_wheels_comes_to_rest(order):
    mechanism = rx.Mechanism(gravity=(0.0, 0.0, 0.0))
    bus = mechanism.body("bus", 400.0, [120.0, 100.0, 140.0], at=(0.0, 0.0, 0.0))
    for side in (-1.0, 1.0):
        panel = mechanism.body(f"panel {side}", 12.0, [9.0, 2.0, 11.0], at=(0.0, 2.5 * side, 0.0))
        hinge = f"hinge {side}"
        mechanism.join(rx.Revolute(bus, panel, (0.0, side, 0.0), (1.0, 0.0, 0.0), hinge))
        mechanism.add(rx.TorsionSpring(hinge, 60.0), rx.TorsionDamper(hinge, 8.0))
    for k, axis in enumerate(np.eye(3)):
        wheel = mechanism.body(f"wheel {k}", 5.0, 0.02 + 0.02 * axis, at=0.3 * axis)
        mechanism.join(rx.Revolute(bus, wheel, 0.3 * axis, axis, f"axle {k}"))
        mechanism.add(rx.TorsionDamper(f"axle {k}", 0.01))
    system = mechanism.system()
    state = system.assemble(joints={"hinge -1.0": 0.2, "hinge 1.0": -0.1})
    run = rx.simulate(system, ORDERS[order], state, h=0.02, steps=20_000, save_every=10_000)
    assert np.max(np.abs(run.momentum[-1])) < 2e-13  # measured: 1.8e-14


@pytest.mark.parametrize("metre", [1e-3, 1e-6])
def test_impulses_that_cancel_are_no_more_accurate_than_they_are(metre, monkeypatch):
    """A slider on a hinge, as joints find it where bodies travel and hardly turn."""
    mechanism, turn = rx.Mechanism(gravity=(0.0, 0.0, 0.0)), metre**2

    def at(*x):
        return metre * np.array(x)

    hub = mechanism.body("hub", 1.0, [0.13 * turn, 0.14 * turn, 0.18 * turn], at(0.0, 0.0, 0.0))
    body = mechanism.body("body", 1.4, [0.08 * turn, 0.12 * turn, 0.1 * turn], at(0.4, 0.3, -1.6))
    mechanism.join(
        rx.Revolute("ground", hub, at(-0.2, 0.2, 0.0), (1.4, -0.8, -0.3)),
        rx.Prismatic(hub, body, axis=(-0.1, 1.5, -0.5)),
    )
    system = mechanism.system()
    monkeypatch.setattr(along, "_FEW", 1)
    end, band = jax.tree.map(jnp.asarray, system.assemble()), along.band_of(system)
    assert band is not None
    bodies = along.Along(system, band)
    closing = partial(_closing_impulses, rx.Cayley(), system)

    @jax.jit
    def left(mu):
        few = closing(rx.State(end.g, mu, end.t), 0.01, jnp.abs(mu))[1]
        each = bodies.bodies(mu)
        nothing = jnp.zeros((len(band.order), band.rows))
        long = Reactions(bodies, bodies.places(end.g)).stopping(each, nothing, jnp.abs(each)).left
        return jnp.maximum(few, long)

    size = np.tile([1e-6 * metre] * 3 + [1.0] * 3, 2)
    found = [left(size * x) for x in np.random.default_rng(1).normal(size=(20, 12))]
    assert max(found) < ACCEPT / 20  # measured: 2e-16


JOINTS = {
    "spherical": lambda a, b, p: rx.Spherical(a, b, p),
    "revolute": lambda a, b, p: rx.Revolute(a, b, p, (0.6, 0.8, 0.0)),
    "fixed": lambda a, b, p: rx.Fixed(a, b),
    "prismatic": lambda a, b, p: rx.Prismatic(a, b, axis=(0.6, 0.8, 0.0)),
    "cylindrical": lambda a, b, p: rx.Cylindrical(a, b, p, (0.6, 0.8, 0.0)),
    "screw": lambda a, b, p: rx.Screw(a, b, p, (0.6, 0.8, 0.0), pitch=0.2 * p[0]),
    "universal": lambda a, b, p: rx.Universal(a, b, p, ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))),
    "planar": lambda a, b, p: rx.Planar(a, b, p, (0.0, 0.6, 0.8)),
    "distance": lambda a, b, p: rx.Distance(a, b, (0.4 * p, 1.4 * p)),
    "point on line": lambda a, b, p: rx.PointOnLine(a, b, p, (0.6, 0.8, 0.0)),
    "point on plane": lambda a, b, p: rx.PointOnPlane(a, b, p, (0.0, 0.6, 0.8)),
}
UNITS = [(1.0, 1.0), (1e-6, 1e-9), (1e3, 1e3)]


@pytest.mark.campaign
@pytest.mark.parametrize("held", [False, True], ids=["free", "held up"])
@pytest.mark.parametrize("drag", [False, True], ids=["dampers", "drag"])
@pytest.mark.parametrize(("metre", "kilogram"), UNITS)
@pytest.mark.parametrize("joint", JOINTS)
def test_two_bodies_with_any_joint_go_on_for_ever(joint, metre, kilogram, drag, held):
    """Moving at first, and at rest as they were drawn: 60,000 steps, no one fails."""
    mechanism = rx.Mechanism(gravity=(0.0, 0.0, -9.81 * metre if held else 0.0))
    turn = kilogram * metre**2

    def at(*x):
        return metre * np.array(x)

    hub = mechanism.body("hub", 10 * kilogram, [2 * turn, 3 * turn, 4 * turn], at(0.3, -0.2, 0.4))
    arm = mechanism.body("arm", kilogram, [0.4 * turn, 0.5 * turn, 0.6 * turn], at(1.3, 0.1, 0.2))
    mechanism.join(JOINTS[joint](hub, arm, at(0.5, 0.1, 0.2)))
    if held:
        for far, near in (
            ((2.0, 0.0, 1.0), (0.5, 0.0, 0.6)),
            ((-2.0, 1.0, 1.3), (-0.1, 0.0, 0.4)),
            ((0.0, -2.0, 1.0), (0.3, -0.5, 0.4)),
            ((0.1, 0.2, 4.0), (0.3, -0.2, 0.9)),
        ):
            ends = at(*far), at(*near)
            mechanism.add(rx.Spring("ground", hub, ends, 1000 * kilogram))
            mechanism.add(rx.Damper("ground", hub, ends, 50 * kilogram))
    for far, near in (((0.3, 0.5, 0.4), (1.4, 0.3, 0.1)), ((0.1, -0.5, 0.4), (1.2, -0.3, 0.1))):
        ends = at(*far), at(*near)
        mechanism.add(rx.Spring(hub, arm, ends, 20 * kilogram))
        mechanism.add(rx.Damper(hub, arm, ends, 20 * kilogram))
    each = np.tile([5.0 * turn] * 3 + [5.0 * kilogram] * 3, 2)
    force = (lambda g, xi, t: -jnp.asarray(each) * xi) if drag else None
    system = mechanism.system(force=force)
    velocity = np.array([0.3, 0.2, 0.1, *at(0.1, 0.2, -0.1)])
    moving = system.assemble(velocities={"arm": velocity}, project=True)
    rx.simulate(system, rx.LieVerlet(), moving, h=0.01, steps=60_000, save_every=30_000)
    rx.simulate(system, rx.LieVerlet(), system.assemble(), h=0.01, steps=2000, save_every=1000)
    jax.clear_caches()
