"""The laws of a Lie group, as one function: for the groups of retrax and for yours."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

from retrax.errors import CheckFailed
from retrax.groups.base import AbstractLieGroup, Coordinates, Element
from retrax.numerics.matrix_functions import phi1

SAMPLES = 4
SCALES = (2.0, 1e-5, 1e-9)  # of xi; two more mix a small half with a large one
SMALL_HALF = 5e-6


def check_group(group: AbstractLieGroup, key: Key[Array, ""] | None = None) -> dict[str, float]:
    r"""Check that `group` satisfies the laws of a Lie group, to round-off.

    Group axioms, exp and log, adjoint and coadjoint actions, the tangent maps against derivatives
    taken by JAX and against $\varphi(-\mathrm{ad})$, derivatives at 0, `project`: at random
    elements and at algebra vectors that are large, small, tiny, and small in one half only.

    **Returns:** the largest error found for each law, relative to the size of what is compared.

    **Raises:** `CheckFailed`, naming the law that is broken, by how much, and what is allowed.
    """
    key = jax.random.key(0) if key is None else key
    return judge(repr(group), jax.jit(jax.vmap(_laws, (None, 0, 0)))(group, *samples(group, key)))


def samples(
    group: AbstractLieGroup, key: Key[Array, ""]
) -> tuple[Key[Array, " m"], Float[Array, "m dim"]]:
    """Keys and algebra vectors at every scale, `SAMPLES` of each."""
    first = jnp.arange(group.dim) < max(1, group.dim // 2)
    patterns = [jnp.full(group.dim, scale) for scale in SCALES]
    patterns += [jnp.where(first, SMALL_HALF, 1.0), jnp.where(first, 1.0, SMALL_HALF)]
    scale = jnp.tile(jnp.stack(patterns), (SAMPLES, 1))
    keys = jax.random.split(key, len(scale))
    directions = jax.vmap(lambda k: jax.random.normal(k, (group.dim,)))(keys)
    lengths = jnp.sqrt(jnp.sum(directions**2, axis=1, keepdims=True))
    return keys, scale * (directions / jnp.broadcast_to(lengths, directions.shape))


def gap(a: PyTree, b: PyTree) -> Float[Array, ""]:
    """The largest difference of two pytrees, relative to 1 or to their size, if larger."""
    return _distance(a, b) / jnp.maximum(1.0, jnp.maximum(_size(a), _size(b)))


def relative_gap(a: PyTree, b: PyTree) -> Float[Array, ""]:
    """The largest difference of two pytrees, relative to their size, however small."""
    return _distance(a, b) / jnp.maximum(_size(a), _size(b))


def judge(who: str, errors: dict[str, Float[Array, " m"]], allowed: float = 1e-13) -> dict:
    """The largest error of each law; raise `CheckFailed` if one is more than `allowed`."""
    worst = {law: float(np.max(np.asarray(error))) for law, error in errors.items()}
    for law, error in worst.items():
        if not error <= allowed:
            raise CheckFailed(
                f"{who} breaks the law '{law}': error {error:.1e}, allowed {allowed:.0e}."
            )
    return worst


def _size(a: PyTree) -> Float[Array, ""]:
    return jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(a)]))


def _distance(a: PyTree, b: PyTree) -> Float[Array, ""]:
    return _size(jax.tree.map(jnp.subtract, a, b))


def _laws(G: AbstractLieGroup, key: Key[Array, ""], xi: Coordinates) -> dict:
    keys = jax.random.split(key, 5)
    g, k = G.random(keys[0]), G.random(keys[1])
    eta, mu = (jax.random.normal(each, (G.dim,)) for each in keys[2:4])
    return {
        **_axioms(G, g, k, xi),
        **_exponential(G, g, xi, eta),
        **_actions(G, g, k, xi, eta, mu),
        **_tangent_maps(G, xi, eta, mu),
        **_storage(G, keys[4], g, xi),
    }


def _axioms(G: AbstractLieGroup, g: Element, k: Element, xi: Coordinates) -> dict:
    e, f = G.identity(), G.exp(xi)
    return {
        "(g k) f = g (k f)": gap(G.compose(G.compose(g, k), f), G.compose(g, G.compose(k, f))),
        "g e = g": gap(G.compose(g, e), g),
        "e g = g": gap(G.compose(e, g), g),
        "g^-1 g = e": gap(G.compose(G.inverse(g), g), e),
        "g g^-1 = e": gap(G.compose(g, G.inverse(g)), e),
        "g k is in the group": G.defect(G.compose(g, k)),
    }


def _exponential(G: AbstractLieGroup, g: Element, xi: Coordinates, eta: Coordinates) -> dict:
    f, zero = G.exp(xi), jnp.zeros(G.dim)
    delta = G.expm1(xi)

    def log_along(e):
        return G.log(jax.tree.map(lambda a, b: a + e * b, f, G.tangent(f, eta)))

    times_delta = jax.jvp(lambda d: G.advance(f, d), (delta,), (delta,))[1]
    return {
        "vee(hat(xi)) = xi": gap(G.vee(G.hat(xi)), xi),
        "exp(xi) is in the group": G.defect(f),
        "exp(0) = e": gap(G.exp(zero), G.identity()),
        "exp(-xi) = exp(xi)^-1": gap(G.exp(-xi), G.inverse(f)),
        "exp(2 xi) = exp(xi) exp(xi)": gap(G.exp(2 * xi), G.compose(f, f)),
        "expm1(2 xi) = expm1(xi) + exp(xi) expm1(xi), relative": relative_gap(
            G.expm1(2 * xi), jax.tree.map(jnp.add, delta, times_delta)
        ),
        "log(exp(xi)) = xi": gap(G.log(f), xi),
        "log(e) = 0": gap(G.log(G.identity()), zero),
        "advance(g, expm1(xi)) = g exp(xi)": gap(G.advance(g, delta), G.compose(g, f)),
        "the derivative of log is dexp_inv": gap(
            jax.jvp(log_along, (0.0,), (1.0,))[1], G.dexp_inv(xi, eta)
        ),
    }


def _actions(G: AbstractLieGroup, g, k, xi: Coordinates, eta: Coordinates, mu: Coordinates) -> dict:
    f, gk = G.exp(xi), G.compose(g, k)
    A, a = G.Ad(g), G.ad(xi)
    conjugate = G.compose(G.compose(g, f), G.inverse(g))
    slope = jax.jvp(lambda s: G.Ad(G.exp(s * xi), eta), (0.0,), (1.0,))[1]
    return {
        "Ad(g k) = Ad(g) Ad(k)": gap(G.Ad(gk, eta), G.Ad(g, G.Ad(k, eta))),
        "Ad(g) applied = the matrix Ad(g)": gap(G.Ad(g, eta), A @ eta),
        "g exp(xi) g^-1 = exp(Ad(g) xi)": gap(conjugate, G.exp(G.Ad(g, xi))),
        "Ad(exp(xi)) = expm(ad(xi))": gap(G.Ad(f), jax.scipy.linalg.expm(a)),
        "ad is the derivative of Ad": gap(slope, G.ad(xi, eta)),
        "ad(xi) applied = the matrix ad(xi)": gap(G.ad(xi, eta), a @ eta),
        "ad(xi) eta = -ad(eta) xi": gap(G.ad(xi, eta), -G.ad(eta, xi)),
        "coAd is the transpose of Ad": jnp.maximum(gap(G.coAd(g, mu), A.T @ mu), gap(G.coAd(g), A.T)),
        "coad is the transpose of ad": jnp.maximum(
            gap(G.coad(xi, mu), a.T @ mu), gap(G.coad(xi), a.T)
        ),
    }


def _tangent_maps(G: AbstractLieGroup, xi: Coordinates, eta: Coordinates, mu: Coordinates) -> dict:
    f, zero = G.exp(xi), jnp.zeros(G.dim)
    velocity = jax.jvp(G.exp, (xi,), (eta,))[1]
    half = G.ad(xi, eta) / 2
    slope = jax.jvp(lambda s: G.dexp(s * xi, eta), (0.0,), (1.0,))[1]
    slope_inv = jax.jvp(lambda s: G.dexp_inv(s * xi, eta), (0.0,), (1.0,))[1]
    pull = jax.vjp(G.expm1, zero)[1](G.tangent(G.identity(), mu))[0]
    return {
        "dexp is the derivative of exp": gap(G.tangent(f, G.dexp(xi, eta)), velocity),
        "dexp = phi(-ad)": gap(G.dexp(xi, eta), phi1(-G.ad(xi)) @ eta),
        "dexp_inv undoes dexp": gap(G.dexp_inv(xi, G.dexp(xi, eta)), eta),
        "<dexp_dual mu, eta> = <mu, dexp eta>": gap(
            G.dexp_dual(xi, mu) @ eta, mu @ G.dexp(xi, eta)
        ),
        "<dexp_inv_dual mu, eta> = <mu, dexp_inv eta>": gap(
            G.dexp_inv_dual(xi, mu) @ eta, mu @ G.dexp_inv(xi, eta)
        ),
        "the slope of dexp at 0 is -ad/2": gap(slope, -half),
        "the slope of dexp_inv at 0 is ad/2": gap(slope_inv, half),
        "the gradient of exp at 0 is cotangent": gap(
            pull, G.cotangent(G.identity(), G.tangent(G.identity(), mu))
        ),
    }


def _storage(G: AbstractLieGroup, key: Key[Array, ""], g: Element, xi: Coordinates) -> dict:
    leaves, tree = jax.tree.flatten(g)
    noise = [jax.random.normal(each, leaf.shape) for each, leaf in
             zip(jax.random.split(key, len(leaves)), leaves, strict=True)]
    a = jax.tree.unflatten(tree, noise)
    off = jax.tree.map(lambda x, n: x + 1e-6 * n, g, a)
    velocity = G.tangent(g, xi)
    slope = jax.jvp(lambda s: G.compose(g, G.exp(s * xi)), (0.0,), (1.0,))[1]
    power = sum(jnp.sum(x * y) for x, y in zip(leaves_of(a), leaves_of(velocity), strict=True))
    return {
        "random(key) is in the group": G.defect(g),
        "tangent is the velocity of g exp(t xi)": gap(velocity, slope),
        "cotangent is the transpose of tangent": gap(G.cotangent(g, a) @ xi, power),
        "project returns to the group": G.defect(G.project(off)),
        "project keeps the group": gap(G.project(g), g),
    }


leaves_of = jax.tree.leaves
