"""The step of many bodies is the one of few, on everything that can be joined."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.mechanisms import along, banded_rattle, reactions
from retrax.mechanisms.along import band_of
from retrax.mechanisms.banded_rattle import JointedLong
from retrax.mechanisms.sparse_rattle import Jointed

H = 0.01
CLAIMS = {"order": 2, "preserves": frozenset[str]()}


def tilted(k):
    """A rotation of no particular kind."""
    return np.asarray(rx.SO3().exp(jnp.array([0.3, -0.7, 0.2]) * (k + 1)))


def bodies(m, points):
    """Asymmetric bodies between points."""
    for k, (p, q) in enumerate(itertools.pairwise(points)):
        at = (np.array(p) + q) / 2 + [0.0, 0.02 * k, 0.01]
        m.body(f"b{k}", 1.0 + 0.3 * k, [0.1, 0.2 + 0.01 * k, 0.25], at=at, turned=tilted(k))


def mixed():
    """Hinges and balls in turn, with springs, a damper and a branch."""
    m = rx.Mechanism(gravity=[0.3, 1.0, -9.0])
    bodies(m, [[k, 0.1 * k * k, 0] for k in range(6)])
    m.body("branch", 0.4, [0.02, 0.03, 0.04], at=[2, 1, 0.5], turned=tilted(7))
    m.join(rx.Revolute("ground", "b0", at=[0, 0, 0], axis=[0, 1, 1], name="base"))
    m.join(rx.Spherical("b0", "b1", at=[1, 0.1, 0]))
    m.join(rx.Revolute("b1", "b2", at=[2, 0.4, 0], axis=[1, 1, 0]))
    m.join(rx.Spherical("b2", "branch", at=[2.2, 0.7, 0.1]))
    m.join(rx.Universal("b2", "b3", at=[3, 0.9, 0], axes=([0, 1, 0], [0, 0, 1])))
    m.join(rx.Revolute("b4", "b3", at=[4, 1.6, 0], axis=[0, 0, 1]))
    m.add(
        rx.Damper("b1", "b4", at=([1.4, 0, 0], [4.5, 2, 0.2]), damping=3.0),
        rx.Spring("ground", "branch", at=([2, 2, 1], [2, 1, 0.5]), stiffness=20.0, length=0.5),
    )
    return m


def ring():
    """Bodies that close, with rows that say the same twice."""
    m = rx.Mechanism(gravity=[0, -9.81, 0.0])
    points = [[0, 0, 0], [0, 1, 0], [1.5, 1.3, 0], [1.5, 0, 0]]
    bodies(m, points)
    names = ["ground", "b0", "b1", "b2", "ground"]
    for k, (a, b) in enumerate(itertools.pairwise(names)):
        m.join(rx.Revolute(a, b, at=points[k], axis=[0, 0, 1]))
    return m


def ladder():
    """Two four-bars side by side, in the plane."""
    m = rx.Mechanism(gravity=[0.4, -9.81])
    for k in range(3):
        m.body(f"up {k}", 1.0 + k, 0.1, at=[k, 0.5])
        m.join(rx.Revolute("ground", f"up {k}", at=[k, 0]))
    for k in range(2):
        m.body(f"across {k}", 0.6, 0.2, at=[k + 0.5, 1])
        m.join(rx.Revolute(f"up {k}", f"across {k}", at=[k, 1]))
        m.join(rx.Revolute(f"across {k}", f"up {k + 1}", at=[k + 1, 1]))
    return m


def free():
    m = rx.Mechanism(gravity=[0, 0, 0])
    bodies(m, [[k, 0.1 * k * k, 0] for k in range(5)])
    for k in range(3):
        m.join(rx.Spherical(f"b{k}", f"b{k + 1}", at=[k + 1, 0.1 * (k + 1) ** 2, 0]))
    return m


KINDS = {f.__name__: f for f in (mixed, ring, ladder, free)}


def start(mechanism):
    system = mechanism.system()
    asked = np.random.default_rng(3).normal(size=(len(system.names), system.group.group.dim))
    velocities = dict(zip(system.names, asked, strict=True))
    return system, system.assemble(velocities=velocities, project=True)


def largest(a, b):
    leaves = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return max(float(jnp.max(jnp.abs(x - y))) for x, y in leaves)


@pytest.fixture
def short(monkeypatch):
    """Treat few bodies as many."""
    monkeypatch.setattr(along, "_FEW", 1)


@pytest.mark.parametrize("kind", KINDS)
def test_long_is_short(kind, short):
    system, state = start(KINDS[kind]())
    assert band_of(system) is not None
    long = jax.jit(JointedLong(retraction=rx.Cayley(), **CLAIMS).step)
    few = jax.jit(Jointed(retraction=rx.Cayley(), **CLAIMS).step)
    ours = theirs = state
    for _ in range(4):
        ours, info = long(system, ours, jnp.asarray(H))
        theirs, _ = few(system, theirs, jnp.asarray(H))
        assert bool(info.converged)
    assert largest(ours, theirs) < 2e-13


@pytest.mark.parametrize("kind", KINDS)
def test_reactions_are_those_of_large_matrices(kind, monkeypatch):
    system, state = start(KINDS[kind]())
    before = system.multipliers(state), system.reaction(state)
    rate = system.vector_field(state.g, state.momentum, state.t).momentum_rate
    skew = state.momentum + 0.3
    put = system.project_momentum(state.g, skew, state.t)
    monkeypatch.setattr(along, "_FEW", 1)
    after = system.multipliers(state), system.reaction(state)
    size = float(jnp.max(jnp.abs(before[0])))
    if kind != "ring":  # of redundant rows only the reaction is known
        assert largest(before[0], after[0]) < 1e-9 * size
    assert largest(before[1], after[1]) < 1e-9 * size
    late = system.vector_field(state.g, state.momentum, state.t).momentum_rate
    assert largest(rate, late) < 1e-9 * size
    assert largest(put, system.project_momentum(state.g, skew, state.t)) < 1e-12


@pytest.mark.parametrize(
    ("part", "limits"),
    [(reactions, {"_ROUNDS": 1}), (banded_rattle, {"CHORDS": 1, "MATRICES": 1})],
)
def test_what_is_left_of_a_step_is_reported(part, limits, short, monkeypatch):
    """Neither velocities at the end nor the step itself are taken to hold: they are looked at."""
    for name, limit in limits.items():
        monkeypatch.setattr(part, name, limit)
    monkeypatch.setattr(along, "ADDED", 1e-3)
    system, state = start(ladder())
    method = JointedLong(retraction=rx.Cayley(), **CLAIMS)
    _, info = jax.jit(method.step)(system, state, jnp.asarray(H))
    assert not bool(info.converged)
    assert 1e-9 < float(info.residual) < 1e-2


def test_derivatives_of_a_step(short):
    system, state = start(mixed())
    weights = jnp.linspace(0.5, 1.5, system.group.dim)

    def end(mass, momentum):
        now = rx.State(state.g, momentum, state.t)
        method = JointedLong(retraction=rx.Cayley(), **CLAIMS)
        new, _ = method.step(system._with_fields(mass=mass), now, jnp.asarray(H))
        return weights @ new.momentum + jnp.sum(new.g[1] * 0.7)

    here = (system.mass, state.momentum)
    along = (jnp.linspace(0.2, 0.5, len(system.mass)), jnp.linspace(-1, 1, system.group.dim))
    _, forward = jax.jit(lambda: jax.jvp(end, here, along))()
    back = jax.jit(lambda: jax.grad(end, argnums=(0, 1))(*here))()
    backward = sum(jnp.vdot(x, y) for x, y in zip(back, along, strict=True))
    whole = jax.jit(lambda e: end(*(x + e * dx for x, dx in zip(here, along, strict=True))))
    e = 1e-5
    numeric = (8 * (whole(e) - whole(-e)) - (whole(2 * e) - whole(-2 * e))) / (12 * e)
    assert abs(float(forward - backward)) < 1e-11 * abs(float(forward))
    assert abs(float(forward - numeric)) < 1e-8 * abs(float(forward))
