"""Systems with many contacts: pairs in groups, steps in loops, and native code for all of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.contact.solver import coupled_blocks
from retrax.contact.solver.coupled_blocks import spread
from retrax.engine.step_program import signature, step_program
from retrax.numerics.evaluate import evaluate
from retrax.numerics.reuse import forget

G = 9.81
SIZE = np.array([0.3, 0.2, 0.1])


def bodies(count):
    return rx.Product(*[rx.SO3(), rx.Translation(3)] * count)


def mixed():
    """Shapes of all kinds, pairs of the same kind not one after the other, bodies that stand."""
    ball = [rx.Ball(0.1 + 0.02 * k, body=k, name=f"ball {k}") for k in range(3)]
    box = [rx.Box(SIZE, body=k, radius=0.01, name=f"box {k}") for k in (3, 4)]
    capsule = rx.Capsule(0.05, 0.3, body=5)
    post = rx.Cylinder(0.1, 0.4, body=0, name="post")
    floor, wall = rx.Plane(), rx.Plane([1.0, 0, 0], name="wall", body=4)
    pairs = [
        (ball[0], floor), (box[0], floor), (ball[1], ball[0]), (floor, ball[1]), (capsule, box[1]),
        (ball[2], ball[0]), (box[1], floor), (ball[2], floor), (post, floor), (ball[0], wall),
        (box[0], wall), (capsule, ball[0]), (rx.Ball(0.2, name="stone"), ball[1]),
    ]  # fmt: skip
    return rx.MechanicalSystem(bodies(6), np.ones(36), contact=rx.Contacts(pairs, friction=0.3))


def seen(contact, g, xi):
    """What contacts look like one by one and in groups, at first and going on from there."""
    first = contact.look(g)
    along = first.frame + 0.1
    pairs = [(first, contact.reach(g)), (contact.look(g, along), contact.reach(g, along))]
    return pairs, contact.speeds(g, xi, along)


def test_pairs_in_groups_are_where_they_are_one_by_one():
    """Measured: 1e-15."""
    contact = mixed().contact
    rng = np.random.default_rng(5)
    turns, places = np.linalg.qr(rng.normal(size=(6, 3, 3)))[0], rng.normal(size=(6, 3))
    turns = turns * np.linalg.det(turns)[:, None, None]
    g = tuple(jnp.asarray(x) for both in zip(turns, places, strict=True) for x in both)
    xi = jnp.asarray(rng.normal(size=36))
    pairs, (gap, speeds) = evaluate(seen, contact, g, xi)
    close = dict(rtol=0, atol=1e-14)
    for one, grouped in pairs:
        np.testing.assert_allclose(grouped.gap, one.gap, **close)
        np.testing.assert_allclose(grouped.frame, one.frame, **close)
        rows = spread(jnp.asarray(grouped.rows), contact.couples)
        np.testing.assert_allclose(rows, one.rows, **close)
    np.testing.assert_allclose(gap, one.gap, **close)
    np.testing.assert_allclose(speeds, np.asarray(one.rows) @ np.asarray(xi), **close)


def stacked(count, restitution=0.0):
    """Balls that fall on each other and on the ground."""
    balls = [rx.Ball(0.1, body=k, name=f"ball {k}") for k in range(count)]
    pairs = [(ball, rx.Plane()) for ball in balls]
    pairs += [(balls[i], balls[j]) for i in range(count) for j in range(i)]
    system = rx.MechanicalSystem(
        bodies(count),
        np.tile(np.r_[3 * [0.008], 3 * [2.0]], count),
        lambda g: 2.0 * G * sum(g[2 * k + 1][2] for k in range(count)),
        contact=rx.Contacts(pairs, friction=0.3, restitution=restitution),
    )
    g = []
    for k in range(count):
        g += [np.eye(3), np.array([0.05 * k, 0.02 * (k % 2), 0.1 + 0.25 * k])]
    return system, system.state(tuple(g), velocity=np.zeros(6 * count))


def fallen(system, start, steps=300):
    run = rx.simulate(system, rx.NonsmoothRattle(), start, h=1e-3, steps=steps, save_every=steps)
    return np.asarray(run.momentum[-1]), np.concatenate([np.ravel(x[-1]) for x in run.g])


@pytest.mark.campaign
def test_loops_step_as_code_that_is_written_out(monkeypatch):
    """Two balls bounce on the ground and on each other. Measured: 1.4e-15 after 300 steps."""
    assert stacked(2)[0].contact.couples is None
    written = fallen(*stacked(2, restitution=0.5))
    monkeypatch.setattr(coupled_blocks, "_MANY", 0)
    forget()
    assert stacked(2)[0].contact.couples is not None
    looped = fallen(*stacked(2, restitution=0.5))
    forget()
    for ours, theirs in zip(looped, written, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-14)


@pytest.mark.campaign
def test_many_contacts_have_native_programs():
    """Five balls with fifteen contacts, and six with twenty-one: code grows with bodies alone."""
    lengths = []
    for count in (5, 6):
        system, start = stacked(count)
        lengths.append(step_program(*signature(system, rx.NonsmoothRattle(), start))[0].count())
    assert lengths[0] < 26_000
    assert lengths[1] - lengths[0] < 4_000


@pytest.mark.campaign
def test_derivatives_of_many_contacts(monkeypatch):
    """A step in which a ball rolls and another falls, against differences, both ways, in loops.

    Measured: 6e-11 of differences, nothing but rounding between both ways.
    """
    monkeypatch.setattr(coupled_blocks, "_MANY", 0)
    system, start = stacked(2)
    assert system.contact.couples is not None
    moving = jnp.asarray([0.0, 0.0, 0.0, 0.3, -0.2, -1.0] * 2)

    @jax.jit
    def momentum(a):
        state = rx.State(start.g, system.momentum(start.g, moving * (1 + a)), start.t)
        return rx.NonsmoothRattle().step(system, state, jnp.asarray(1e-3))[0].momentum

    forward, e = jax.jacfwd(momentum)(0.0), 1e-6
    slope = (momentum(e) - momentum(-e)) / (2 * e)
    np.testing.assert_allclose(forward, slope, rtol=0, atol=5e-10)
    np.testing.assert_allclose(jax.jacrev(momentum)(0.0), forward, rtol=0, atol=1e-15)
