"""The laws of a Lie group, as one function: for the groups of retrax and for yours."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from retrax.groups.base import AbstractLieGroup
from retrax.numerics.matrix_functions import phi1
from retrax.testing.laws import Batched, gap, judge, relative_gap

SAMPLES = 4
SCALES = (2.0, 1e-5, 1e-9)  # of xi; two more mix a small half with a large one
SMALL_HALF = 5e-6
ALLOWED = 1e-13


def check_group(group: AbstractLieGroup, key: Key[Array, ""] | None = None) -> dict[str, float]:
    r"""Check that `group` satisfies the laws of a Lie group, to round-off.

    Group axioms, exp and log, adjoint and coadjoint actions, the tangent maps against derivatives
    taken by JAX and against $\varphi(-\mathrm{ad})$, derivatives at 0, `project`: at random
    elements, and at algebra vectors that are large, small, tiny, and small in one half only.
    Everything runs under `jax.jit` and `jax.vmap`.

    **Returns:** the largest error of each law, relative to 1 or to the size of what is compared.

    **Raises:** `CheckFailed`, naming the law that is broken, by how much, and what is allowed.
    """
    key = jax.random.key(0) if key is None else key
    xi = algebra_samples(group, key)
    G, m = Batched(group, len(xi)), len(xi)
    keys = jax.random.split(key, (3, m))
    g, k = G.random(keys[0]), G.random(keys[1])
    eta, mu = jax.random.normal(key, (2, m, group.dim))
    errors = {
        **_axioms(G, g, k, xi),
        **_exponential(G, g, xi, eta),
        **_adjoint(G, g, k, xi, eta),
        **_coadjoint(G, g, xi, mu),
        **_tangent_maps(G, xi, eta, mu),
        **_storage(G, keys[2], g, xi),
    }
    return judge(repr(group), errors, ALLOWED)


def algebra_samples(group: AbstractLieGroup, key: Key[Array, ""]) -> Float[Array, "m dim"]:
    """Algebra vectors in random directions at every scale, `SAMPLES` of each."""
    first = jnp.arange(group.dim) < max(1, group.dim // 2)
    patterns = [jnp.full(group.dim, scale) for scale in SCALES]
    patterns += [jnp.where(first, SMALL_HALF, 1.0), jnp.where(first, 1.0, SMALL_HALF)]
    scale = jnp.tile(jnp.stack(patterns), (SAMPLES, 1))
    directions = jax.random.normal(key, scale.shape)
    return scale * directions / jnp.linalg.norm(directions, axis=1, keepdims=True)


def _axioms(G: Batched, g, k, xi) -> dict[str, float]:
    e, f = G.identity(), G.exp(xi)
    return {
        "(g k) f = g (k f)": gap(G.compose(G.compose(g, k), f), G.compose(g, G.compose(k, f))),
        "g e = g": gap(G.compose(g, e), g),
        "e g = g": gap(G.compose(e, g), g),
        "g^-1 g = e": gap(G.compose(G.inverse(g), g), e),
        "g g^-1 = e": gap(G.compose(g, G.inverse(g)), e),
        "g exp(xi) is in the group": gap(G.defect(G.compose(g, f)), jnp.zeros(len(xi))),
    }


def _exponential(G: Batched, g, xi, eta) -> dict[str, float]:
    e, f, delta, zero = G.identity(), G.exp(xi), G.expm1(xi), jnp.zeros_like(xi)
    times_delta = jax.jvp(lambda d: G.advance(f, d), (delta,), (delta,))[1]
    doubled = jax.tree.map(jnp.add, delta, times_delta)
    log, log_slope = jax.jvp(G.log, (f,), (G.tangent(f, eta),))
    return {
        "vee(hat(xi)) = xi": gap(G.vee(G.hat(xi)), xi),
        "exp(xi) is in the group": gap(G.defect(f), jnp.zeros(len(xi))),
        "exp(0) = e": gap(G.exp(zero), e),
        "exp(-xi) = exp(xi)^-1": gap(G.exp(-xi), G.inverse(f)),
        "exp(2 xi) = exp(xi) exp(xi)": gap(G.exp(2 * xi), G.compose(f, f)),
        "expm1(2 xi) = expm1(xi) + exp(xi) expm1(xi)": relative_gap(G.expm1(2 * xi), doubled),
        "exp(xi) = e + expm1(xi)": gap(f, jax.tree.map(jnp.add, e, delta)),
        "log(exp(xi)) = xi": gap(log, xi),
        "log(e) = 0": gap(G.log(e), zero),
        "advance(g, expm1(xi)) = g exp(xi)": gap(G.advance(g, delta), G.compose(g, f)),
        "the derivative of log is dexp_inv": gap(log_slope, G.dexp_inv(xi, eta)),
    }


def _adjoint(G: Batched, g, k, xi, eta) -> dict[str, float]:
    f, zero = G.exp(xi), jnp.zeros_like(xi)
    conjugate = G.compose(G.compose(g, f), G.inverse(g))
    bracket = jax.jvp(lambda x: G.Ad(G.exp(x), eta), (zero,), (xi,))[1]
    expm = jax.jit(jax.vmap(jax.scipy.linalg.expm))
    return {
        "Ad(g k) = Ad(g) Ad(k)": gap(G.Ad(G.compose(g, k), eta), G.Ad(g, G.Ad(k, eta))),
        "Ad(g, eta) = Ad(g) eta": gap(G.Ad(g, eta), _times(G.Ad(g), eta)),
        "g exp(xi) g^-1 = exp(Ad(g) xi)": gap(conjugate, G.exp(G.Ad(g, xi))),
        "Ad(exp(xi)) = expm(ad(xi))": gap(G.Ad(f), expm(G.ad(xi))),
        "ad is the derivative of Ad": gap(bracket, G.ad(xi, eta)),
        "ad(xi, eta) = ad(xi) eta": gap(G.ad(xi, eta), _times(G.ad(xi), eta)),
        "ad(xi, eta) = -ad(eta, xi)": gap(G.ad(xi, eta), -G.ad(eta, xi)),
    }


def _coadjoint(G: Batched, g, xi, mu) -> dict[str, float]:
    A, a = G.Ad(g).transpose(0, 2, 1), G.ad(xi).transpose(0, 2, 1)
    return {
        "coAd(g) = Ad(g)^T": gap(G.coAd(g), A),
        "coAd(g, mu) = Ad(g)^T mu": gap(G.coAd(g, mu), _times(A, mu)),
        "coad(xi) = ad(xi)^T": gap(G.coad(xi), a),
        "coad(xi, mu) = ad(xi)^T mu": gap(G.coad(xi, mu), _times(a, mu)),
    }


def _tangent_maps(G: Batched, xi, eta, mu) -> dict[str, float]:
    e, f, zero = G.identity(), G.exp(xi), jnp.zeros_like(xi)
    velocity = jax.jvp(G.exp, (xi,), (eta,))[1]
    slope = jax.jvp(lambda x: G.dexp(x, eta), (zero,), (xi,))[1]
    slope_inv = jax.jvp(lambda x: G.dexp_inv(x, eta), (zero,), (xi,))[1]
    a = G.tangent(e, mu)
    gradient = jax.vjp(G.expm1, zero)[1](a)[0]
    phi = jax.jit(jax.vmap(phi1))(-G.ad(xi))
    return {
        "dexp is the derivative of exp": gap(G.tangent(f, G.dexp(xi, eta)), velocity),
        "dexp(xi, eta) = phi(-ad(xi)) eta": gap(G.dexp(xi, eta), _times(phi, eta)),
        "dexp_inv undoes dexp": gap(G.dexp_inv(xi, G.dexp(xi, eta)), eta),
        "dexp_dual is the transpose of dexp": gap(
            _pair(G.dexp_dual(xi, mu), eta), _pair(mu, G.dexp(xi, eta))
        ),
        "dexp_inv_dual is the transpose of dexp_inv": gap(
            _pair(G.dexp_inv_dual(xi, mu), eta), _pair(mu, G.dexp_inv(xi, eta))
        ),
        "the slope of dexp at 0 is -ad/2": gap(slope, -G.ad(xi, eta) / 2),
        "the slope of dexp_inv at 0 is ad/2": gap(slope_inv, G.ad(xi, eta) / 2),
        "the gradient at 0 through exp is cotangent": gap(gradient, G.cotangent(e, a)),
    }


def _storage(G: Batched, keys, g, xi) -> dict[str, float]:
    leaves, tree = jax.tree.flatten(g)
    noise = [jax.random.normal(keys[i], leaf.shape) for i, leaf in enumerate(leaves)]
    a = jax.tree.unflatten(tree, noise)
    off = jax.tree.map(lambda x, n: x + 1e-6 * n, g, a)
    velocity = G.tangent(g, xi)
    slope = jax.jvp(lambda x: G.compose(g, G.exp(x)), (jnp.zeros_like(xi),), (xi,))[1]
    power = sum(
        _pair(n.reshape(len(n), -1), v.reshape(len(v), -1))
        for n, v in zip(noise, jax.tree.leaves(velocity), strict=True)
    )
    return {
        "random(key) is in the group": gap(G.defect(g), jnp.zeros(len(xi))),
        "tangent is the velocity of g exp(t xi)": gap(velocity, slope),
        "cotangent is the transpose of tangent": gap(_pair(G.cotangent(g, a), xi), power),
        "project returns to the group": gap(G.defect(G.project(off)), jnp.zeros(len(xi))),
        "project does not move an element": gap(G.project(g), g),
    }


def _times(matrices: Float[Array, "m n n"], vectors: Float[Array, "m n"]) -> Float[Array, "m n"]:
    return jnp.einsum("mij,mj->mi", matrices, vectors)


def _pair(mu: Float[Array, "m n"], eta: Float[Array, "m n"]) -> Float[Array, " m"]:
    return jnp.einsum("mi,mi->m", mu, eta)
