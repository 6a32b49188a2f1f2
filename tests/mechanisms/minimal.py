"""Mechanisms in minimal coordinates, written by hand: an oracle that knows no joints.

Where the bodies are is a function of coordinates q; the Lagrangian in q has its own equations of
motion, without multipliers. Rotations are products of turns about axes.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from retrax.numerics.evaluate import Evaluated, evaluate


def hat(w):
    zero = 0.0 * w[0]
    return jnp.array([[zero, -w[2], w[1]], [w[2], zero, -w[0]], [-w[1], w[0], zero]])


def turn(axis, angle):
    """The rotation about an axis by an angle."""
    K = hat(np.asarray(axis, float) / np.linalg.norm(axis))
    return jnp.eye(3) + jnp.sin(angle) * K + (1 - jnp.cos(angle)) * K @ K


def anyhow(angles):
    """A rotation of three angles."""
    return turn([1, 0, 0], angles[0]) @ turn([0, 1, 0], angles[1]) @ turn([0, 0, 1], angles[2])


def turn2(angle):
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.array([[c, -s], [s, c]])


def spin(R, R_dot):
    """The angular velocity in body axes, of R^T dR/dt."""
    W = R.T @ R_dot
    return jnp.stack([W[1, 0]]) if len(R) == 2 else jnp.stack([W[2, 1], W[0, 2], W[1, 0]])


class Minimal:
    """Bodies at `places(q) = (R, x)`, a row each, with masses and inertias of a system."""

    def __init__(self, system, places: Callable):
        self.system, self.places, self.seen = system, places, None

    def velocity(self, q, v):
        """The velocity xi of all bodies: of each the angular velocity, then that of its centre."""
        (R, _), (R_dot, x_dot) = jax.jvp(self.places, (q,), (v,))
        rows = [jnp.concatenate([spin(R[i], R_dot[i]), x_dot[i]]) for i in range(len(R))]
        return jnp.concatenate(rows)

    def lagrangian(self, q, v):
        s, xi = self.system, self.velocity(q, v).reshape(len(self.system.names), -1)
        _, x = self.places(q)
        turns = s.inertia.shape[1]
        energy = 0.0
        for i in range(len(s.names)):
            omega, u = xi[i, :turns], xi[i, turns:]
            energy += omega @ s.inertia[i] @ omega / 2 + s.mass[i] * (u @ u) / 2
            energy += s.mass[i] * (s.gravity @ x[i])
        return energy

    def push(self, q, v):
        """Generalised forces besides those of the Lagrangian."""
        return jnp.zeros_like(q)

    def slip(self, q, v):
        """Velocities that vanish: what rolls."""
        return jnp.zeros(0)

    def acceleration(self, q, v):
        M = jax.hessian(self.lagrangian, 1)(q, v)
        mixed = jax.jacfwd(jax.grad(self.lagrangian, 1), 0)(q, v)
        right = jax.grad(self.lagrangian, 0)(q, v) - mixed @ v + self.push(q, v)
        B = jax.jacfwd(self.slip, 1)(q, v)
        k = len(B)
        if k == 0:
            return jnp.linalg.solve(M, right)
        turning = jax.jvp(lambda q: self.slip(q, v), (q,), (v,))[1]
        both = jnp.block([[M, -B.T], [B, jnp.zeros((k, k))]])
        return jnp.linalg.solve(both, jnp.concatenate([right, -turning]))[: len(q)]

    def velocity_rate(self, q, v):
        """How the velocity of all bodies changes along the motion."""
        return jax.jvp(self.velocity, (q, v), (v, self.acceleration(q, v)))[1]


def _rate(system, g, xi):
    mu = system.momentum(g, xi)
    return system.velocity(g, system.vector_field(g, mu, jnp.zeros(())).momentum_rate)


def rate_of_velocity(system, g, xi):
    """How the velocity changes by the equations of the system, with its multipliers."""
    return evaluate(_rate, system, g, xi)


class Motion(NamedTuple):
    """Places and velocities of all bodies, and how these change."""

    g: tuple
    xi: np.ndarray
    rate: np.ndarray


def motion(oracle: Minimal, q, v) -> Motion:
    """What the oracle says in coordinates and their rates; evaluated by NumPy."""
    if oracle.seen is None:  # traced once
        oracle.seen = Evaluated(
            lambda q, v: Motion(oracle.places(q), oracle.velocity(q, v), oracle.velocity_rate(q, v))
        )
    return oracle.seen(q, v)


def moved(oracle: Minimal, q, v, times):
    """Coordinates at given times, by a method of order 8 with small steps."""
    from scipy.integrate import solve_ivp

    n = len(q)
    field = jax.jit(lambda y: jnp.concatenate([y[n:], oracle.acceleration(y[:n], y[n:])]))
    found = solve_ivp(
        lambda t, y: np.asarray(field(y)),
        (times[0], times[-1]),
        np.concatenate([q, v]),
        "DOP853",
        times,
        rtol=1e-12,
        atol=1e-12,
    )
    return found.y[:n].T, found.y[n:].T
