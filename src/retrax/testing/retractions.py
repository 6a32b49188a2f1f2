"""The laws of a retraction on a group, as one function."""

from collections.abc import Iterator

import jax
import numpy as np
from jaxtyping import Array, Key

from retrax.groups.base import AbstractLieGroup, require_group
from retrax.groups.retractions import AbstractRetraction
from retrax.numerics.checks import require_instance
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
)

ALLOWED = 1e-14
_HALVINGS = 8


def check_retraction(
    retraction: AbstractRetraction, group: AbstractLieGroup, key: Key[Array, ""] | None = None
) -> dict[str, float]:
    r"""Check that `retraction` is a retraction on `group`, to round-off.

    $\tau(0) = 1$ with derivative 1, $\tau^*(-\xi) = \tau(\xi)^{-1}$ with $\tau^*$ the adjoint,
    which is $\tau$ for a symmetric one, membership of the group, the inverse, and the left and
    right tangent maps, their inverses and duals against derivatives taken by JAX: at algebra
    vectors in the chart that are large, small, tiny, and small in one half only.

    **Returns:** the largest error of each law, relative to the size of the terms compared, or to
    1 if they are smaller.

    **Raises:** `CheckFailed`, naming the law that is broken and the vector at which it is broken
    most; `BadInput` from `retraction.check` if
    the retraction does not fit the group.
    """
    require_group(group)
    require_instance("retraction", retraction, AbstractRetraction, "a retraction, such as Exp()")
    retraction.check(group)
    rng = generator(key)
    xi = _in_chart(retraction, group, algebra_samples(group, rng))
    eta, mu = rng.standard_normal((2, *xi.shape))
    who, errors = f"{retraction!r} on {group!r}", _errors(retraction, group, xi, eta, mu)
    broken = next((law for law, error in errors.items() if not error <= ALLOWED), None)
    if broken is None:
        return errors
    alone = [_errors(retraction, group, *one)[broken] for one in _one_by_one(xi, eta, mu)]
    worst = xi[int(np.argmax(np.nan_to_num(alone, nan=np.inf)))]
    return judge(f"{who}, at xi = {np.array2string(worst, precision=4)},", errors, ALLOWED)


def _errors(
    retraction: AbstractRetraction, group: AbstractLieGroup, xi, eta, mu
) -> dict[str, float]:
    """Return the largest error of each law at the vectors `xi`."""
    G, tau = Batched(group, len(xi)), _OnGroup(retraction, group)
    return {
        **_values(G, tau, xi),
        **_tangent_maps(G, tau, xi, eta),
        **_duals(tau, xi, eta, mu),
        **_claims(retraction, group, xi),
    }


def _one_by_one(*batches: np.ndarray) -> Iterator[list[np.ndarray]]:
    for k in range(len(batches[0])):
        yield [batch[k : k + 1] for batch in batches]


class _OnGroup:
    """A retraction with its group filled in, on batches."""

    def __init__(self, tau: AbstractRetraction, group: AbstractLieGroup):
        def fill(method):
            return on_batches(lambda *arguments: method(group, *arguments))

        self.value, self.minus_identity = fill(tau), fill(tau.minus_identity)
        self.adjoint, self.adjoint_minus_identity = (
            fill(tau.adjoint),
            fill(tau.adjoint.minus_identity),
        )
        self.inverse = fill(tau.inverse)
        self.dL, self.dL_inv = fill(tau.dL), fill(tau.dL_inv)
        self.dR, self.dR_inv = fill(tau.dR), fill(tau.dR_inv)
        self.dL_dual, self.dL_inv_dual = fill(tau.dL_dual), fill(tau.dL_inv_dual)
        self.dR_dual, self.dR_inv_dual = fill(tau.dR_dual), fill(tau.dR_inv_dual)


def _values(G: Batched, tau: _OnGroup, xi) -> dict[str, float]:
    e, f, delta, zero = G.identity(), tau.value(xi), tau.minus_identity(xi), np.zeros_like(xi)
    back = tau.adjoint_minus_identity(-xi)
    _, f_back = slope(lambda d: G.advance(f, d), back, back)
    spread = magnitude(f) * magnitude(G.inverse(f))
    _, at_rest = slope(tau.value, zero, xi)
    return {
        "tau(0) = e": gap(tau.value(zero), e),
        "the derivative of tau at 0 is the identity": gap(at_rest, G.tangent(e, xi)),
        "tau(xi) is in the group": float(np.max(G.defect(f) / spread)),
        "adjoint(-xi) = tau(xi)^-1": gap(tau.adjoint(-xi), G.inverse(f)),
        "tau(xi) = e + minus_identity(xi)": gap(f, jax.tree.map(np.add, e, delta)),
        "minus_identity(xi) = -tau(xi) adjoint.minus_identity(-xi)": relative_gap(
            delta, jax.tree.map(lambda x: -np.asarray(x), f_back)
        ),
        "inverse(tau(xi)) = xi": gap(tau.inverse(f), xi),
    }


def _tangent_maps(G: Batched, tau: _OnGroup, xi, eta) -> dict[str, float]:
    f, velocity = slope(tau.value, xi, eta)
    left, right = tau.dL(xi, eta), tau.dR(xi, eta)
    _, inverse = slope(tau.inverse, f, velocity)
    return {
        "dL is the derivative of tau": gap(G.tangent(f, left), velocity),
        "dR = Ad(tau) dL": gap(right, G.Ad(f, left)),
        "dL_inv undoes dL": gap(tau.dL_inv(xi, left), eta),
        "dR_inv undoes dR": gap(tau.dR_inv(xi, right), eta),
        "the derivative of the inverse is dL_inv": gap(inverse, tau.dL_inv(xi, left)),
    }


def _duals(tau: _OnGroup, xi, eta, mu) -> dict[str, float]:
    maps = {"dL": tau.dL, "dL_inv": tau.dL_inv, "dR": tau.dR, "dR_inv": tau.dR_inv}
    duals = {
        "dL": tau.dL_dual,
        "dL_inv": tau.dL_inv_dual,
        "dR": tau.dR_dual,
        "dR_inv": tau.dR_inv_dual,
    }
    return {
        f"{name}_dual is the transpose of {name}": gap(
            pair(duals[name](xi, mu), eta), pair(mu, maps[name](xi, eta))
        )
        for name in maps
    }


def _claims(
    retraction: AbstractRetraction, group: AbstractLieGroup, xi: np.ndarray
) -> dict[str, float]:
    """Return the claims of a retraction: that it is symmetric, commutes with its vector."""
    value = on_batches(lambda x: retraction(group, x))
    errors = {}
    if retraction.symmetric:
        other = on_batches(lambda x: retraction.adjoint(group, x))
        errors["a symmetric retraction is its own adjoint"] = gap(other(xi), value(xi))
    if retraction.commutes:
        turned = on_batches(lambda x: group.Ad(retraction(group, x), x))
        errors["a retraction that commutes leaves its vector alone"] = gap(turned(xi), xi)
    return errors


def _in_chart(
    retraction: AbstractRetraction, group: AbstractLieGroup, xi: np.ndarray
) -> np.ndarray:
    """Return the samples, halved until the chart covers them with room to spare."""
    covered = on_batches(lambda x: retraction.covers(group, x))
    for _ in range(_HALVINGS):
        outside = ~covered(1.25 * xi)
        if not outside.any():
            break
        xi = np.where(outside[:, None], xi / 2, xi)
    return xi
