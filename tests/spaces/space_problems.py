"""One flow on every space, none of them commutative where the space is not, with exact ends."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import scipy.integrate
import scipy.linalg

import retrax as rx
from retrax.groups.base import AbstractLieGroup

TIME = 2.0
A3 = np.array([[0.3, -1.2, 0.4], [0.9, -0.2, 0.5], [-0.3, 0.2, -0.5]])
S3 = np.array([[0.9, 0.3, -0.2], [0.3, 0.4, 0.5], [-0.2, 0.5, -0.7]])


def sphere():
    flow = rx.systems.BodyOnSphere([2.3, 1.7, 1.0], 2.0)
    start = np.array([1.2, -0.8, 2.0]) / np.linalg.norm([1.2, -0.8, 2.0])
    return flow, start, flow.exact(start, TIME)


def torus():
    flow = rx.systems.Kuramoto([0.4, 2.1], 1.3)
    start = np.asarray(flow.space.at_angles(jnp.array([0.5, -1.2])))
    return flow, start, flow.exact(start, TIME)


def stiefel():
    flow = rx.systems.ContinuousQR(A3, 2)
    start = np.asarray(flow.space.project(jnp.array([[1.0, 0.2], [0.3, -0.7], [-0.4, 0.5]])))
    return flow, start, flow.exact(start, TIME)


def grassmann():
    flow = rx.systems.SubspaceFlow(S3, 1)
    start = np.asarray(flow.space.projector(jnp.array([[0.2], [-1.0], [0.7]])))
    return flow, start, flow.exact(start, TIME)


def isospectral():
    flow = rx.systems.Toda(3)
    start = np.array([[0.5, 0.8, -0.3], [0.8, -0.4, 0.6], [-0.3, 0.6, 0.2]])
    return flow, start, flow.exact(start, TIME)


def coadjoint():
    flow = rx.systems.HeavyTopOrbit([1.2, 1.6, 0.8], [0.3, -0.2, 0.9])
    start = np.array([0.6, -0.3, 0.9, 0.48, -0.36, 0.8])
    moments, chi = np.array([1.2, 1.6, 0.8]), np.array([0.3, -0.2, 0.9])

    def rate(_, z):
        omega = z[:3] / moments
        return np.concatenate(
            [np.cross(z[:3], omega) + np.cross(z[3:], chi), np.cross(z[3:], omega)]
        )

    end = scipy.integrate.solve_ivp(
        rate, (0, TIME), start, method="DOP853", rtol=1e-13, atol=1e-14
    ).y[:, -1]
    return flow, start, end


def product_of_exponentials(group: AbstractLieGroup, side: int, seed: int):
    r"""$g(t) = \exp(ta)\exp(tb)$, which tells the two sides apart."""
    a, b = 0.4 * np.random.default_rng(seed).standard_normal((2, group.dim))

    def generator(t, y):
        if side == -1:
            return group.Ad(group.exp(-t * b), jnp.asarray(a)) + b
        return a + group.Ad(group.exp(t * a), jnp.asarray(b))

    flow = rx.SpaceFlow(rx.GroupItself(group, side), generator)
    hats = [scipy.linalg.expm(TIME * np.asarray(group.hat(jnp.asarray(x)))) for x in (a, b)]
    return flow, group.identity(), hats[0] @ hats[1]


FLOWS = {
    "sphere": sphere,
    "torus": torus,
    "Stiefel": stiefel,
    "Grassmann": grassmann,
    "isospectral": isospectral,
    "coadjoint orbit": coadjoint,
    "SO(3), right": lambda: product_of_exponentials(rx.SO3(), -1, 1),
    "SO(3), left": lambda: product_of_exponentials(rx.SO3(), 1, 2),
    "SE(3), right": lambda: product_of_exponentials(rx.SE3(), -1, 3),
    "SE(3), left": lambda: product_of_exponentials(rx.SE3(), 1, 4),
}


@cache
def flow(name):
    return FLOWS[name]()


def error(name, integrator, steps):
    """The largest wrong entry at the end, and the run."""
    system, start, end = flow(name)
    run = rx.simulate(
        system, integrator, start, h=TIME / steps, steps=steps, save_every=steps, backend="native"
    )
    last = jax.tree.map(lambda x: np.asarray(x[-1]), run.y)
    if isinstance(last, tuple):
        last = np.block([[last[0], last[1][:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])
    return float(np.max(np.abs(last - end))), run


def slope(name, integrator, steps):
    """The order seen between `steps` and twice as many, and the two errors."""
    coarse, _ = error(name, integrator, steps)
    fine, _ = error(name, integrator, 2 * steps)
    return np.log2(coarse / fine), coarse, fine
