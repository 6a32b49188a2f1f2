"""Native derivatives of runs, against those of the same steps by NumPy and against differences.

For every integrator on a top without symmetry, and for every ready system with its own integrator.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.cases.names import fits
from retrax.derivatives.kernels import has_pull
from retrax.derivatives.stretches import Schedule
from retrax.derivatives.traced_numbers import take_out
from retrax.engine.derivative_programs import Wanted
from retrax.engine.kinds import Unscalarisable
from retrax.mechanics.state import State
from retrax.numerics.evaluate import evaluate
from retrax.systems.catalogue import CASES
from retrax.systems.integrators import INTEGRATORS, TOUCHING
from retrax.testing.problems import asymmetric_top

pytestmark = pytest.mark.campaign

STEPS, EVERY = 2, 2
SAVED = Schedule(STEPS, EVERY).saved
TOP, START = asymmetric_top()
METHODS = [name for name, method in INTEGRATORS.items() if fits(TOP, method)]


def numbers(x):
    return jax.tree.map(jnp.asarray, x)


def cotangents(state, seed=3):
    """Random numbers for every saved configuration and momentum."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(
        lambda x: rng.normal(size=(len(SAVED), *np.shape(x))), (state.g, state.momentum)
    )


def dot(a, b):
    parts = jax.tree.map(lambda x, y: jnp.sum(x * y), a, b)
    return sum(jax.tree.leaves(parts))


def split(system):
    """Parameters that can be differentiated, and how a system is made of them."""
    leaves, tree = jax.tree.flatten(system)
    moving = [jnp.issubdtype(jnp.asarray(x).dtype, jnp.floating) for x in leaves]

    def build(params):
        left = iter(params)
        mixed = [next(left) if m else x for x, m in zip(leaves, moving, strict=True)]
        return jax.tree.unflatten(tree, mixed)

    return [jnp.asarray(x) for x, m in zip(leaves, moving, strict=True) if m], build


def natively(system, method, state, h, backend="native"):
    """The gradient by parameters, start and step of all saved states against cotangents."""
    params, build = split(system)
    given = numbers(cotangents(state))

    def loss(params, g, mu, t, h):
        start = State(g, mu, t)
        run = rx.simulate(
            build(params), method, start, h=h, steps=STEPS, save_every=EVERY, backend=backend
        )
        assert run.provenance["backend"] == backend
        return dot((run.states.g, run.states.momentum), given)

    at = (params, *numbers((state.g, state.momentum, jnp.asarray(state.t))), jnp.asarray(h))
    return jax.grad(loss, argnums=(0, 1, 2, 3, 4))(*at)


def by_numpy(system, method, state, h):
    """The same, of steps one after the other, evaluated by NumPy."""
    params, build = split(system)

    def gradient(params, g, mu, t, h, given):
        def loss(params, g, mu, t, h):
            own, now, saved = build(params), State(g, mu, t), []
            for k in range(STEPS + 1):
                if k in SAVED:
                    saved.append((now.g, now.momentum))
                now = State(now.g, now.momentum, t + k * h)
                now, _ = method.step(own, now, h)
            stacked = jax.tree.map(lambda *xs: jnp.stack(xs), *saved)
            return dot(stacked, given)

        return jax.grad(loss, argnums=(0, 1, 2, 3, 4))(params, g, mu, t, h)

    at = (params, *numbers((state.g, state.momentum, jnp.asarray(state.t))), jnp.asarray(h))
    return evaluate(gradient, *at, numbers(cotangents(state)))


def is_native(system, method, state):
    """Whether the step and its pullback have scalar programs, with all derivatives."""
    taken = take_out(system, method, jax.tree.map(np.asarray, state))
    moving = tuple(jnp.issubdtype(x.dtype, jnp.floating) for x in taken.params)
    try:
        return has_pull(*taken.made_for, Wanted(moving, True))
    except Unscalarisable:
        return False


def compare(found, expected, tolerance=1e-11):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        scale = max(1.0, float(np.max(np.abs(b), initial=0.0)))
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("name", METHODS)
def test_gradients_of_every_integrator_are_those_of_its_steps(name):
    """Measured: at most 2e-13 of the largest entry."""
    method = INTEGRATORS[name]
    found = natively(TOP, method, START, 0.05)
    compare(found, by_numpy(TOP, method, START, 0.05))


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_every_ready_system_are_those_of_its_steps(name):
    case = CASES[name]
    system, state, h, _ = case.make()
    method = (INTEGRATORS | TOUCHING)[case.integrator]
    if is_native(system, method, state):
        found = natively(system, method, state, h)
        compare(found, by_numpy(system, method, state, h))


@pytest.mark.parametrize("name", METHODS)
def test_gradients_are_slopes_of_difference_quotients(name):
    """By the first moment of inertia, the start (on the group) and the step at once."""
    method, e = INTEGRATORS[name], 1e-5
    params, build = split(TOP)
    given = cotangents(START)
    turn, push = jnp.array([0.3, -0.5, 0.4]), jnp.array([0.2, 0.7, -0.3])

    def loss(s):
        moved = [x * (1 + 0.1 * s) for x in params]
        g = TOP.group.compose(START.g, TOP.group.exp(s * turn))
        start = State(g, START.momentum + s * push, jnp.asarray(START.t))
        h = 0.05 * (1 + 0.2 * s)
        run = rx.simulate(build(moved), method, start, h=h, steps=STEPS, save_every=EVERY)
        return dot((run.states.g, run.states.momentum), given)

    reverse = jax.grad(loss)(0.0)
    forward = jax.jvp(loss, (0.0,), (1.0,))[1]
    around = [float(loss(s * e)) for s in (-2, -1, 1, 2)]
    slope = (around[0] - 8 * around[1] + 8 * around[2] - around[3]) / (12 * e)
    np.testing.assert_allclose(reverse, slope, rtol=1e-8)
    np.testing.assert_allclose(forward, reverse, rtol=1e-12)
