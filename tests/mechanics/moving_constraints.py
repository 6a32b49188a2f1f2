"""A body and a ball under constraints that depend on time, and what SciPy says of them."""

from functools import cache

import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

import retrax as rx
from retrax.testing.constrained import FULL

WEIGHT = np.array([0.6, -0.4, 1.4])
START, TIME = 0.3, 3.0


def turning_rows(R, t):
    return jnp.stack([jnp.sin(t) + 0.2, 0.5 + R[2, 0], 1 + 0.3 * jnp.cos(2 * t)])[None]


def driven(R, t):
    return jnp.stack([0.4 * jnp.sin(2 * t) + 0.2 * R[2, 1]])


def weight(R):
    return R[2] @ jnp.asarray(WEIGHT)


@cache
def driven_body():
    """A heavy body with a full inertia; a skew component of its velocity is prescribed in time."""
    constraint = rx.VelocityConstraint(turning_rows, driven)
    body = rx.MechanicalSystem(rx.SO3(), FULL, weight, constraint=constraint, physical=False)
    start = rx.SO3().exp(jnp.array([0.4, -0.3, 0.7]))
    return body, body.state(start, velocity=[0.8, 0.9, 0.1], t=START, project=True)


def driven_body_equations(t, y):
    """The rates of R and omega, and the multiplier, from d'Alembert's equations by hand."""
    inertia = np.array(FULL)
    R, w = y[:9].reshape(3, 3), y[9:]
    rate = R @ np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    a = np.array([np.sin(t) + 0.2, 0.5 + R[2, 0], 1 + 0.3 * np.cos(2 * t)])
    a_rate = np.array([np.cos(t), rate[2, 0], -0.6 * np.sin(2 * t)])
    c_rate = 0.8 * np.cos(2 * t) + 0.2 * rate[2, 1]
    free = np.cross(inertia @ w, w) - np.cross(WEIGHT, R[2])
    matrix = np.block([[inertia, -a[:, None]], [a[None], np.zeros((1, 1))]])
    found = np.linalg.solve(matrix, np.append(free, c_rate - a_rate @ w))
    return np.concatenate([rate.ravel(), found[:3]]), found[3]


@cache
def driven_body_end():
    """R and omega of the driven body after `TIME`, to thirteen digits."""
    _, state = driven_body()
    omega = np.linalg.solve(np.array(FULL), np.asarray(state.momentum))
    y0 = np.concatenate([np.asarray(state.g).ravel(), omega])
    span = (START, START + TIME)
    done = solve_ivp(
        lambda t, y: driven_body_equations(t, y)[0], span, y0, "DOP853", rtol=1e-13, atol=1e-14
    )
    return done.y[:, -1]


def table_rate(t):
    return 0.8 + 0.5 * jnp.sin(1.3 * t)


def ball_on_a_wobbling_table():
    """A homogeneous ball on a table whose rate of turning changes with time."""

    def rows(g):
        R, _ = g
        return jnp.concatenate([0.3 * jnp.stack([-R[1], R[0]]), jnp.eye(2)], axis=1)

    def table(g, t):
        return table_rate(t) * jnp.stack([-g[1][1], g[1][0]])

    spin = 2 / 5 * 1.2 * 0.3**2
    group = rx.Product(rx.SO3(), rx.Translation(2))
    ball = rx.MechanicalSystem(
        group, [spin, spin, spin, 1.2, 1.2], constraint=rx.VelocityConstraint(rows, table)
    )
    start = (rx.SO3().exp(jnp.array([0.4, -0.3, 0.7])), jnp.array([0.5, -0.2]))
    return ball, ball.state(start, velocity=[0.5, -0.7, 0.9, 0.1, 0.2], t=START, project=True)


def wobbling_table_place(place, v, time):
    r"""Where the ball is: $v - \tfrac27\Omega Jx$ stays what it is at the start."""
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])

    def rate(t):
        return 0.8 + 0.5 * np.sin(1.3 * t)

    kept = v - 2 / 7 * rate(START) * turn @ place

    def rhs(t, x):
        return kept + 2 / 7 * rate(t) * turn @ x

    span = (START, START + time)
    return solve_ivp(rhs, span, place, "DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
