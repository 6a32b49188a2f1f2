"""Steps to export: loops, choices, buffers, tables, memory."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import retrax as rx
from retrax.integrators.driven import Driven
from retrax.systems.catalogue import CASES


def _top():
    top = rx.systems.HeavyTop([1.2, 1.6, 0.8], 1.3, [0.1, -0.2, 0.6])
    state = top.state(rx.SO3().exp(jnp.array([1.0, 0.3, -0.2])), velocity=[0.6, 0.2, 4.0])
    return top, rx.LieVerlet(), state, 0.01


def _composed():
    """A loop of known length, over the substeps of a composition."""
    top, _, state, _ = _top()
    return top, rx.Composition(rx.LieVerlet(retraction=rx.Exp()), order=4), state, 0.02


def _string():
    """Buffers: the nodes of a string."""
    system, state, h, _ = rx.systems.StringPendulum.paper()
    return system, rx.INTEGRATORS["lie-verlet"], state, h


def _chain():
    """Buffers, sums along them, and no memory."""
    n = 20

    def potential(x):
        d = x.reshape(n, 3)[1:] - x.reshape(n, 3)[:-1]
        length = jnp.sqrt(jnp.sum(d * d, axis=1))
        stretched = 25.0 * jnp.sum((length - 0.1) ** 2)
        return stretched + 0.1 * jnp.sum(x[2::3]) + 50.0 * jnp.sum(x[:3] ** 2)

    chain = rx.MechanicalSystem(rx.Translation(3 * n), 0.01 * jnp.ones(3 * n), potential)
    g = jnp.stack(
        [jnp.linspace(0.0, 1.9, n), 0.1 * jnp.sqrt(jnp.arange(n, dtype=float)), jnp.zeros(n)],
        axis=1,
    )
    return chain, rx.RKMK("rk4"), chain.state(g.ravel(), velocity=jnp.zeros(3 * n)), 1e-3


def _driven_by_time():
    """Time, a table, whole numbers and choices."""
    times, pushes = jnp.linspace(0.0, 2.0, 40), jnp.sin(jnp.linspace(0.0, 9.0, 40))

    def force(g, xi, t):
        push = jnp.interp(t, times, pushes)
        k = jnp.clip(jnp.floor(t * 3.0).astype(int), 0, 2)
        return jnp.array([push, jnp.where(k > 1, jnp.tanh(xi[0]), 0.3), 0.1 * k.astype(float)])

    body = rx.MechanicalSystem(rx.SO3(), jnp.array([1.0, 2.0, 2.5]), force=force)
    return body, rx.RKMK("rk4"), body.state(jnp.eye(3), velocity=[0.3, 0.2, 1.0]), 0.01


def _touching():
    """Places found at run time: forces between neighbours, added up one pair after the other."""
    n = 20

    def force(g, xi, t):
        x = g.reshape(n, 3)
        after = (jnp.arange(n) + 1 + jnp.floor(50.0 * t).astype(int)) % n
        d = x[after] - x
        pull = jnp.zeros((n, 3)).at[after].add(-d) + d

        def damped(k, pull):
            return pull.at[k % n].add(-0.1 * pull[(7 * k) % n])

        return lax.fori_loop(0, jnp.floor(900.0 * t).astype(int), damped, pull).reshape(-1)

    chain = rx.MechanicalSystem(rx.Translation(3 * n), jnp.ones(3 * n), force=force)
    g = jnp.sin(jnp.arange(3.0 * n))
    return chain, rx.RKMK("rk4"), chain.state(g, velocity=jnp.zeros(3 * n)), 1e-2


def _held():
    """A constraint on positions: a point on a sphere."""
    point = rx.MechanicalSystem(
        rx.Translation(3),
        jnp.ones(3),
        lambda x: 9.81 * x[2],
        constraint=rx.Holonomic(lambda x: jnp.sum(x**2) - 1.0),
    )
    return point, rx.LieVerlet(), point.state(jnp.array([1.0, 0, 0]), velocity=[0, 1.0, 0]), 0.01


def _linkage():
    """A mechanism that closes a loop."""
    system, state, h, _ = CASES["four-bar"].make()
    return system, rx.LieVerlet(), state, h


def _bowling():
    """Contact: a ball that slides, and then rolls."""
    mass, r = 7.0, 0.108
    lane = rx.Contacts([(rx.Ball(r, body=0), rx.Plane())], friction=0.3)
    ball = rx.MechanicalSystem(
        rx.Product(rx.SO3(), rx.Translation(3)),
        jnp.array([*3 * [0.4 * mass * r * r], *3 * [mass]]),
        lambda g: 9.81 * mass * g[1][2],
        contact=lane,
    )
    start = (jnp.eye(3), jnp.array([0.0, 0.0, r]))
    return ball, rx.NonsmoothRattle(), ball.state(start, velocity=[0, 0, 0, 4.0, 0, 0]), 0.005


def _noisy():
    """A digital controller that draws noise: words of 32 and 64 bits, and the bits of floats."""

    def law(R, xi, t, state):
        key, draw = jax.random.split(state["key"])
        old = jax.random.fold_in(state["old"], 5)
        u = 0.3 * jax.random.normal(draw, (2,)) + jax.random.uniform(old)
        return u, {"key": key, "old": old}

    body = rx.MechanicalSystem(rx.SO3(), jnp.array([1.0, 2.0, 2.5]))
    plant = rx.Actuated(body, jnp.eye(3)[:, :2])
    keys = {"key": jax.random.key(3), "old": jax.random.PRNGKey(4)}
    by = Driven(rx.LieVerlet(), plant.actuators, rx.Sampled(law, 0.02, state=keys))
    return body, by, by.begin(body, plant.state(jnp.eye(3), velocity=[0.3, 0.2, 1.0])), 0.01


MAKERS = {
    "top": _top,
    "composed": _composed,
    "chain": _chain,
    "string": _string,
    "driven_by_time": _driven_by_time,
    "touching": _touching,
    "held": _held,
    "linkage": _linkage,
    "bowling": _bowling,
    "noisy": _noisy,
}


@pytest.fixture(scope="session")
def steps():
    """(system, integrator, state, h) by name, made when first asked for."""
    made = {}

    def get(name: str):
        if name not in made:
            made[name] = MAKERS[name]()
        return made[name]

    return get
