"""Balls that push each other away: pairs found in the step, and sweeps over them, in memory."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax

import retrax as rx
from retrax.integrators.base import AbstractIntegrator, explicit_step
from retrax.mechanics.state import State


class Jostling(AbstractIntegrator):
    """Impulses along the lines between near balls, pair by pair, then a drift.

    A list of pairs goes from step to step; it is made anew once a ball has moved far enough.
    """

    room: int = eqx.field(static=True)
    sweeps: int = eqx.field(static=True)
    order: ClassVar[int] = 1
    preserves: ClassVar[frozenset[str]] = frozenset()

    def memory(self, system, state):
        x = state.g.reshape(-1, 3)
        pairs, count = self.near(x)
        return {"pairs": pairs, "count": count, "places": x, "made": jnp.zeros(())}

    def near(self, x):
        def outer(a, carry):
            def inner(b, carry):
                pairs, count = carry
                d = x[a] - x[b]
                hit = d @ d < 1.44
                pair = jnp.stack([a, b]).astype(float)
                pairs = lax.cond(hit, lambda p: p.at[count].set(pair), lambda p: p, pairs)
                return pairs, count + hit.astype(int)

            return lax.fori_loop(a + 1, len(x), inner, carry)

        first = (jnp.zeros((self.room, 2)), jnp.asarray(0))
        pairs, count = lax.fori_loop(0, len(x), outer, first)
        return pairs, jnp.minimum(count, self.room).astype(float)

    def step(self, system, state, h):
        new, info, _ = self.next_step(system, state, h, self.memory(system, state))
        return new, info

    def next_step(self, system, state, h, memory):
        x, v = state.g.reshape(-1, 3), state.momentum.reshape(-1, 3)
        far = jnp.max(jnp.sum((x - memory["places"]) ** 2, axis=1)) > 0.01
        pairs, count, places = lax.cond(
            far,
            lambda: (*self.near(x), x),
            lambda: (memory["pairs"], memory["count"], memory["places"]),
        )
        a, b = pairs[:, 0].astype(int), pairs[:, 1].astype(int)
        d = x[a] - x[b]
        length = jnp.sqrt(jnp.sum(d * d, axis=1))
        normal = d / jnp.where(length > 0, length, 1.0)[:, None]
        gap = jnp.maximum(length - 1.0, 0.0)

        def contact(k, carry):
            v, p = carry
            i, j = a[k], b[k]
            vi, vj, n = v[i], v[j], normal[k]
            new = jnp.maximum(p[k] - 0.5 * (n @ (vi - vj) + gap[k]), 0.0)
            push = (new - p[k]) * n
            return v.at[i].set(vi + push).at[j].set(vj - push), p.at[k].set(new)

        def sweep(_, carry):
            return lax.fori_loop(0, count.astype(int), contact, carry)

        v, p = lax.fori_loop(0, self.sweeps, sweep, (v, jnp.zeros(self.room)))
        # What was pushed is slowed down a little, each ball by its own pushes.
        pushed = jnp.zeros(len(x)).at[a].add(p).at[b].add(p)
        v = v / (1.0 + 0.01 * pushed)[:, None]
        new = State((x + h * v).reshape(-1), v.reshape(-1), state.t + h)
        made = memory["made"] + far.astype(float)
        kept = {"pairs": pairs, "count": count, "places": places, "made": made}
        return new, explicit_step(h * v.reshape(-1)), kept


def jostled(balls=30, room=64, seed=3):
    """A system, the method, and a state in which many balls are near."""
    rng = np.random.default_rng(seed)
    n = 3 * balls
    system = rx.MechanicalSystem(rx.Translation(n), jnp.ones(n), lambda g: 0.0 * jnp.sum(g))
    places = rng.uniform(0.0, 1.2 * balls ** (1 / 3), size=n)
    state = system.state(jnp.asarray(places), velocity=jnp.asarray(rng.normal(size=n)))
    return system, Jostling(room, 3), state


class Ticking(AbstractIntegrator):
    """A small body with a long memory: each step marks a place in a list, and reads another."""

    order: ClassVar[int] = 1
    preserves: ClassVar[frozenset[str]] = frozenset()

    def memory(self, system, state):
        return {"marks": jnp.zeros(40), "last": jnp.zeros(())}

    def step(self, system, state, h):
        new, info, _ = self.next_step(system, state, h, self.memory(system, state))
        return new, info

    def next_step(self, system, state, h, memory):
        marks, last = memory["marks"], memory["last"].astype(int)
        place = jnp.floor(20.0 * jnp.abs(state.momentum[0])).astype(int) % 40
        found = marks[(place + last) % 40]
        marks = lax.cond(
            found < 3.0, lambda m: m.at[place].add(1.0), lambda m: m.at[last].set(0.0), marks
        )

        def smoothed(k, m):
            return m.at[k].set(0.5 * (m[k] + m[k + 1]))

        marks = lax.fori_loop(0, place // 8, smoothed, marks)
        xi = system.velocity(state.g, state.momentum)
        mu = state.momentum + h * jnp.cross(state.momentum, xi) + h * found
        g = state.g @ system.group.exp(h * xi)
        new = State(g, mu, state.t + h)
        return new, explicit_step(h * xi), {"marks": marks, "last": place.astype(float)}


def ticking(members):
    """A system, the method, and states of so many members."""
    body = rx.systems.FreeRigidBody([1.0, 2.0, 3.0])
    spins = np.random.default_rng(5).normal(size=(members, 3))
    states = [body.state(jnp.eye(3), velocity=jnp.asarray(spin)) for spin in spins]
    return body, Ticking(), states
