"""The laws of a Lie group, as one function: for the groups of retrax and for yours."""

import jax
import numpy as np
from jaxtyping import Array, Key

from retrax.groups.base import AbstractLieGroup, require_group
from retrax.numerics.evaluate import evaluate
from retrax.numerics.matrix_functions import phi1
from retrax.testing.laws import (
    Batched,
    algebra_samples,
    gap,
    generator,
    judge,
    magnitude,
    on_batches,
    pair,
    relative_gap,
    slope,
    times,
)

ALLOWED = 1e-14


def check_group(group: AbstractLieGroup, key: Key[Array, ""] | None = None) -> dict[str, float]:
    r"""Check that `group` satisfies the laws of a Lie group, to round-off.

    Group axioms, exp and log, adjoint and coadjoint actions, the tangent maps against derivatives
    taken by JAX and against $\varphi(-\mathrm{ad})$, derivatives at 0, `project`: at random
    elements, and at algebra vectors that are large, small, tiny, and small in one half only.
    Everything is traced as by `jax.jit`, under `jax.vmap`.

    **Returns:** the largest error of each law, relative to the size of the terms compared, or to
    1 if they are smaller.

    **Raises:** `CheckFailed`, naming the law that is broken, by how much, and what is allowed.
    """
    require_group(group)
    rng = generator(key)
    xi = algebra_samples(group, rng)
    G = Batched(group, len(xi))

    def two(seed):
        seeds = jax.random.split(jax.random.key(seed), (2, len(xi)))
        return G.random(seeds[0]), G.random(seeds[1])

    g, k = evaluate(two, rng.integers(2**31))
    eta, mu = rng.standard_normal((2, *xi.shape))
    errors = {
        **_axioms(G, g, k, xi),
        **_exponential(G, g, xi, eta),
        **_adjoint(G, g, k, xi, eta),
        **_coadjoint(G, g, xi, mu),
        **_tangent_maps(G, xi, eta, mu),
        **_storage(G, g, xi, rng),
    }
    return judge(repr(group), errors, ALLOWED)


def _axioms(G: Batched, g, k, xi) -> dict[str, float]:
    e, f, k_f = G.identity(), G.exp(xi), G.compose(k, G.exp(xi))
    spread = magnitude(g) * magnitude(G.inverse(g))  # how far products of g and g^-1 reach
    return {
        "(g k) f = g (k f)": gap(G.compose(G.compose(g, k), f), G.compose(g, k_f)),
        "g e = g": gap(G.compose(g, e), g),
        "e g = g": gap(G.compose(e, g), g),
        "g^-1 g = e": gap(G.compose(G.inverse(g), g), e, spread),
        "g g^-1 = e": gap(G.compose(g, G.inverse(g)), e, spread),
        "k exp(xi) is in the group": _off(G, k_f),
    }


def _exponential(G: Batched, g, xi, eta) -> dict[str, float]:
    e, f, delta, zero = G.identity(), G.exp(xi), G.expm1(xi), np.zeros_like(xi)
    _, f_delta = slope(lambda d: G.advance(f, d), delta, delta)
    doubled = jax.tree.map(lambda a, b: a + np.asarray(b), delta, f_delta)
    log, log_slope = slope(G.log, f, G.tangent(f, eta))
    return {
        "vee(hat(xi)) = xi": gap(G.vee(G.hat(xi)), xi),
        "exp(xi) is in the group": _off(G, f),
        "exp(0) = e": gap(G.exp(zero), e),
        "exp(xi) = e + expm1(xi)": gap(f, jax.tree.map(np.add, e, delta)),
        "exp(-xi) = exp(xi)^-1": gap(G.exp(-xi), G.inverse(f)),
        "exp(2 xi) = exp(xi) exp(xi)": gap(G.exp(2 * xi), G.compose(f, f)),
        "expm1(2 xi) = expm1(xi) + exp(xi) expm1(xi)": relative_gap(G.expm1(2 * xi), doubled),
        "advance(g, expm1(xi)) = g exp(xi)": gap(G.advance(g, delta), G.compose(g, f)),
        "log(exp(xi)) = xi": gap(log, xi),
        "log(e) = 0": gap(G.log(e), zero),
        "the derivative of log is dexp_inv": gap(log_slope, G.dexp_inv(xi, eta)),
    }


def _adjoint(G: Batched, g, k, xi, eta) -> dict[str, float]:
    f, inverse, zero = G.exp(xi), G.inverse(g), np.zeros_like(xi)
    spread = magnitude(g) * magnitude(inverse)
    g_k, Ad_Ad = G.compose(g, k), G.Ad(g, G.Ad(k, eta))
    reach = magnitude(Ad_Ad) * magnitude(g_k) * magnitude(G.inverse(g_k))
    _, bracket = slope(lambda x: G.Ad(G.exp(x), eta), zero, xi)
    expm = on_batches(jax.scipy.linalg.expm)
    return {
        "Ad(g k) = Ad(g) Ad(k)": gap(G.Ad(g_k, eta), Ad_Ad, reach),
        "Ad(g, eta) = Ad(g) eta": gap(G.Ad(g, eta), times(G.Ad(g), eta)),
        "g exp(xi) g^-1 = exp(Ad(g) xi)": gap(
            G.compose(G.compose(g, f), inverse), G.exp(G.Ad(g, xi)), spread
        ),
        "Ad(exp(xi)) = expm(ad(xi))": gap(
            G.Ad(f), expm(G.ad(xi)), magnitude(f) * magnitude(G.inverse(f))
        ),
        "ad is the derivative of Ad": gap(bracket, G.ad(xi, eta)),
        "ad(xi, eta) = ad(xi) eta": gap(G.ad(xi, eta), times(G.ad(xi), eta)),
        "ad(xi, eta) = -ad(eta, xi)": gap(G.ad(xi, eta), -G.ad(eta, xi)),
    }


def _coadjoint(G: Batched, g, xi, mu) -> dict[str, float]:
    A, a = G.Ad(g).transpose(0, 2, 1), G.ad(xi).transpose(0, 2, 1)
    return {
        "coAd(g) = Ad(g)^T": gap(G.coAd(g), A),
        "coAd(g, mu) = Ad(g)^T mu": gap(G.coAd(g, mu), times(A, mu)),
        "coad(xi) = ad(xi)^T": gap(G.coad(xi), a),
        "coad(xi, mu) = ad(xi)^T mu": gap(G.coad(xi, mu), times(a, mu)),
    }


def _tangent_maps(G: Batched, xi, eta, mu) -> dict[str, float]:
    e, f, zero = G.identity(), G.exp(xi), np.zeros_like(xi)
    _, velocity = slope(G.exp, xi, eta)
    _, turning = slope(lambda x: G.dexp(x, eta), zero, xi)
    _, turning_back = slope(lambda x: G.dexp_inv(x, eta), zero, xi)
    a = G.tangent(e, mu)
    gradient = evaluate(lambda zero, a: jax.vjp(G.expm1, zero)[1](a)[0], zero, a)
    phi = on_batches(phi1)(-G.ad(xi))
    return {
        "dexp is the derivative of exp": gap(G.tangent(f, G.dexp(xi, eta)), velocity),
        "dexp(xi, eta) = phi(-ad(xi)) eta": gap(G.dexp(xi, eta), times(phi, eta)),
        "dexp_inv undoes dexp": gap(G.dexp_inv(xi, G.dexp(xi, eta)), eta),
        "dexp_dual is the transpose of dexp": gap(
            pair(G.dexp_dual(xi, mu), eta), pair(mu, G.dexp(xi, eta))
        ),
        "dexp_inv_dual is the transpose of dexp_inv": gap(
            pair(G.dexp_inv_dual(xi, mu), eta), pair(mu, G.dexp_inv(xi, eta))
        ),
        "the slope of dexp at 0 is -ad/2": gap(turning, -G.ad(xi, eta) / 2),
        "the slope of dexp_inv at 0 is ad/2": gap(turning_back, G.ad(xi, eta) / 2),
        "the gradient at 0 through exp is cotangent": gap(gradient, G.cotangent(e, a)),
    }


def _storage(G: Batched, g, xi, rng: np.random.Generator) -> dict[str, float]:
    a = jax.tree.map(lambda leaf: rng.standard_normal(leaf.shape), g)
    off = jax.tree.map(lambda leaf, noise: leaf + 1e-6 * noise, g, a)
    velocity = G.tangent(g, xi)
    _, moving = slope(lambda x: G.compose(g, G.exp(x)), np.zeros_like(xi), xi)
    return {
        "random(key) is in the group": _off(G, g),
        "tangent is the velocity of g exp(t xi)": gap(velocity, moving),
        "cotangent is the transpose of tangent": gap(
            pair(G.cotangent(g, a), xi), pair(a, velocity), magnitude(velocity)
        ),
        "project returns to the group": _off(G, G.project(off)),
        "project does not move an element": gap(G.project(g), g),
    }


def _off(G: Batched, g) -> float:
    """Return the defect of `g`, relative to the products of g and g^-1 that it is computed from."""
    return float(np.max(G.defect(g) / (magnitude(g) * magnitude(G.inverse(g)))))
