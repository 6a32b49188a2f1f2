"""The sparse step of mechanisms is the dense one, on everything that can be joined."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.integrators.rattle import Rattle
from retrax.mechanisms.sparse_rattle import Jointed

H = 0.01
CLAIMS = {"order": 2, "preserves": frozenset[str]()}


def tilted(k):
    """A rotation of no particular kind."""
    return np.asarray(rx.SO3().exp(jnp.array([0.3, -0.7, 0.2]) * (k + 1)))


def arm():
    m = rx.Mechanism(gravity=[0.3, 1.0, -9.0])
    a = m.body("a", 1.3, [0.1, 0.2, 0.25], at=[0.5, 0, 0], turned=tilted(0))
    b = m.body("b", 0.7, [0.02, 0.05, 0.06], at=[1.2, 0.3, 0], turned=tilted(1))
    c = m.body("c", 0.4, [[0.02, 0.004, 0], [0.004, 0.03, 0.001], [0, 0.001, 0.04]], at=[1.5, 1, 0])
    m.join(
        rx.Revolute("ground", a, at=[0, 0, 0], axis=[0, 1, 1], name="base"),
        rx.Universal(a, b, at=[1, 0, 0], axes=([0, 1, 0], [0, 0, 1])),
        rx.Spherical(b, c, at=[1.4, 0.6, 0]),
    )
    return m


def damped_arm():
    m = arm()
    m.add(
        rx.Damper("a", "c", at=([0.4, 0, 0], [1.5, 1, 0.2]), damping=3.0),
        rx.Spring("ground", "c", at=([2, 2, 1], [1.5, 1, 0]), stiffness=20.0, length=0.5),
        rx.TorsionDamper("base", damping=0.8),
    )
    return m


def loop():
    """Four asymmetric bars that close, with rows that say the same twice."""
    m = rx.Mechanism(gravity=[0, -9.81, 0.0])
    points = np.array([[0, 0, 0], [0, 1, 0], [1.5, 1.3, 0], [1.5, 0, 0]], float)
    names = ["ground"]
    for k in range(3):
        p, q = points[k], points[k + 1]
        m.body(f"bar {k}", 1.0 + k, [0.1, 0.2 + 0.05 * k, 0.25], at=(p + q) / 2, turned=tilted(k))
        names.append(f"bar {k}")
    for k, (a, b) in enumerate(zip(names, [*names[1:], "ground"], strict=True)):
        m.join(rx.Revolute(a, b, at=points[k], axis=[0, 0, 1]))
    return m


def cart():
    m = rx.Mechanism(gravity=[0, 0, -9.81])
    wheel = m.body("wheel", 2.0, [0.1, 0.2, 0.1], at=[0, 0, 0.5])
    rider = m.body("rider", 5.0, [0.5, 0.7, 0.3], at=[0.3, 0.1, 1.1])
    m.join(rx.Revolute(wheel, rider, at=[0, 0, 0.5], axis=[0, 1, 0], name="axle"))
    m.roll(rx.RollingWheel(wheel, radius=0.5, axis=[0, 1, 0]))
    return m


def plane():
    m = rx.Mechanism(gravity=[0.4, -9.81])
    a = m.body("a", 1.0, 0.1, at=[0.5, 0])
    b = m.body("b", 0.6, 0.2, at=[1.5, 0.4])
    m.join(rx.Revolute("ground", a, at=[0, 0]), rx.Revolute(a, b, at=[1, 0]))
    m.add(rx.Damper("ground", b, at=([0, 1], [2, 0]), damping=0.7))
    return m


def free():
    m = rx.Mechanism(gravity=[0, 0, 0])
    a = m.body("a", 1.0, [0.1, 0.2, 0.25], at=[0, 0, 0])
    b = m.body("b", 2.0, [0.3, 0.2, 0.45], at=[1, 0, 0], turned=tilted(1))
    m.join(rx.Prismatic(a, b, at=[0.5, 0, 0], axis=[1, 2, 0]))
    return m


KINDS = {f.__name__: f for f in (arm, damped_arm, loop, cart, plane, free)}


def start(mechanism):
    system = mechanism.system()
    asked = np.random.default_rng(3).normal(size=(len(system.names), system.group.group.dim))
    velocities = dict(zip(system.names, asked, strict=True))
    return system, system.assemble(velocities=velocities, project=True)


def largest(a, b):
    leaves = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return max(float(jnp.max(jnp.abs(x - y))) for x, y in leaves)


@pytest.mark.parametrize(
    ("kind", "tau"), [*((kind, rx.Cayley()) for kind in KINDS), ("cart", rx.Exp())]
)
def test_sparse_is_dense(kind, tau):
    system, state = start(KINDS[kind]())
    sparse = jax.jit(Jointed(retraction=tau, **CLAIMS).step)
    dense = jax.jit(Rattle(retraction=tau, **CLAIMS).step)
    ours = theirs = state
    for _ in range(5):
        ours, info = sparse(system, ours, jnp.asarray(H))
        theirs, _ = dense(system, theirs, jnp.asarray(H))
        assert bool(info.converged)
    assert largest(ours, theirs) < 2e-13


@pytest.mark.parametrize("kind", ["damped_arm", "cart"])
def test_derivatives_of_a_step(kind):
    system, state = start(KINDS[kind]())
    h = jnp.asarray(H)
    weights = jnp.linspace(0.5, 1.5, system.group.dim)

    def end(mass, momentum):
        now = rx.State(state.g, momentum, state.t)
        new, _ = Jointed(retraction=rx.Cayley(), **CLAIMS).step(
            system._with_fields(mass=mass), now, h
        )
        return weights @ new.momentum + jnp.sum(new.g[1] * 0.7)

    here = (system.mass, state.momentum)
    along = (jnp.linspace(0.2, 0.5, len(system.mass)), jnp.linspace(-1, 1, system.group.dim))
    _, forward = jax.jvp(end, here, along)
    back = jax.grad(end, argnums=(0, 1))(*here)
    backward = sum(jnp.vdot(x, y) for x, y in zip(back, along, strict=True))

    def moved(e):
        return end(*(x + e * dx for x, dx in zip(here, along, strict=True)))

    e = 1e-5
    numeric = (8 * (moved(e) - moved(-e)) - (moved(2 * e) - moved(-2 * e))) / (12 * e)
    assert abs(float(forward - backward)) < 1e-11 * abs(float(forward))
    assert abs(float(forward - numeric)) < 1e-8 * abs(float(forward))


def test_the_guess_does_not_matter():
    system, state = start(arm())
    method = Jointed(retraction=rx.Cayley(), **CLAIMS)
    memory, now = method.memory(system, state), state
    for _ in range(10):
        now, _, memory = jax.jit(method.next_step)(system, now, jnp.asarray(H), memory)
    with_guess, info, _ = jax.jit(method.next_step)(system, now, jnp.asarray(H), memory)
    without, cold = jax.jit(method.step)(system, now, jnp.asarray(H))
    assert largest(with_guess, without) < 1e-14
    assert int(info.iterations) < int(cold.iterations)


def test_four_bar_through_its_singular_configuration():
    """All bars in one line, twice a turn: joints hold to round-off, or the run stops."""
    m = rx.Mechanism(gravity=[0, -9.81])
    for k in range(2):
        m.body(f"crank {k}", 1.0, 1 / 12, at=[k, 0.5], turned=[[0, -1], [1, 0]])
        m.join(rx.Revolute("ground", f"crank {k}", at=[k, 0]))
    m.body("coupler", 1.0, 1 / 12, at=[0.5, 1])
    m.join(*(rx.Revolute(f"crank {k}", "coupler", at=[k, 1]) for k in range(2)))
    system = m.system()
    cranks = {f"crank {k}": [-1, 0.5, 0] for k in range(2)}
    state = system.assemble(velocities={**cranks, "coupler": [0, 1, 0]})
    run = rx.simulate(system, rx.LieVerlet(), state, h=0.001, steps=100_000, save_every=50)
    assert np.max(run.constraint_violation()) < 1e-14
    energy = run.energy()
    assert np.max(np.abs(energy - energy[0])) < 3e-4
    R, _ = run.g
    assert np.max(np.abs(R[:, 0] - R[:, 1])) < 1e-9


def test_two_wheels_on_one_axle_are_told_apart():
    """Both keep the axle from sliding sideways, and a step that turns would hear it twice."""
    m = rx.Mechanism(gravity=[0, 0, -9.81])
    m.body("frame", 20.0, [1.0, 2.0, 2.5], at=[0, 0, 0.6])
    for k, y in enumerate((0.5, -0.5)):
        m.body(f"wheel {k}", 1.5, [0.05, 0.09, 0.05], at=[-1, y, 0.3])
        m.join(rx.Revolute("frame", f"wheel {k}", at=[-1, y, 0.3], axis=[0, 1, 0], name=f"hub {k}"))
        m.roll(rx.RollingWheel(f"wheel {k}", radius=0.3, name=f"tyre {k}"))
    system = m.system()
    state = system.assemble(joint_rates={"hub 0": 3.0}, project=True)
    with pytest.raises(rx.BadInput, match=r"'tyre 1' may not slip"):
        rx.simulate(system, rx.LieVerlet(), state, h=0.001, steps=5)


def test_a_system_offers_the_step_that_lie_verlet_takes_of_it():
    system, _ = start(arm())
    assert system.verlet_step() is Jointed
    assert rx.systems.HeavyTop([1.0, 1.0, 0.5], mass=1.0, arm=[0, 0, 1]).verlet_step() is None


def test_who_drives_a_mechanism_without_inputs_is_told_how_it_gets_some():
    system, state = start(arm())
    with pytest.raises(rx.BadInput, match=r"run mechanism\.plant\(\), after .*; or rx\.Actuated"):
        rx.simulate(system, "lie-verlet", state, h=H, steps=1, control=rx.Feedback(lambda s: s.t))
