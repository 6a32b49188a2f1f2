r"""The vector field of a system next to a state, with its derivative along the constraint.

In the chart $y = (\eta, \mu)$ of states $(g_0\exp\eta, \mu)$ the motion is

$$
\begin{aligned}
\dot\eta &= \mathrm{dexp}^{-1}_\eta\,\xi(g, \mu), \qquad
\dot\mu = \mathrm{ad}^*_\xi\mu + dL + f + A^T\lambda                             &&\text{(1)}\\
0 &= \tfrac{d}{dt}(A\,\xi - c) = h(y, \lambda)                                   &&\text{(2)}
\end{aligned}
$$

and a change $\delta y$ of the state changes the multipliers by what (2) asks for. States have
$C(y) = (\varphi, A\,\xi - c) = 0$; rows may be redundant, for only their span matters.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.groups.base import Coordinates, Element
from retrax.mechanics.holonomic import AbstractHolonomic
from retrax.mechanics.reactions import drift_of_constraint, rate_of_velocity
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.evaluate import Evaluated

Scalar = Float[Array, ""]
# Singular values of rows below this share of the largest belong to redundant rows.
REDUNDANT = 1e-9


class Linearised(NamedTuple):
    r"""The field $X$ at a state and its derivative, in $(\eta, \nu)$ with $\nu = \delta\xi$.

    **Attributes:** `field`: $X$; `derivative`: $DX$, right for changes along the constraint;
    `tangent`: orthonormal rows that span these; `across`: $DC$; `scale`: the matrix from
    $(\eta, \delta\mu)$ to $(\eta, \nu)$; `in_time`: the largest $|\partial X/\partial t|$.
    """

    field: Float[np.ndarray, " y"]
    derivative: Float[np.ndarray, "y y"]
    tangent: Float[np.ndarray, "m y"]
    across: Float[np.ndarray, "k y"]
    scale: Float[np.ndarray, "y y"]
    in_time: float


def linearise(system: AbstractGroupSystem, state: State) -> Linearised:
    """Linearise the motion of a system at a state that its constraint admits."""
    g, mu, t = state.g, state.momentum, state.t
    count = 0 if system.constraint is None else len(_rows(system, g, t))
    none = np.zeros(count)
    _, hidden, _ = _motion(system, g, mu, t, none)
    slopes = _slopes(system, g, mu, t, none)
    back = _inverse_mobility(np.asarray(slopes.rows), np.asarray(slopes.velocity_by_mu))
    lam = -back @ hidden  # (2), linear in the multipliers
    field, _, _ = _motion(system, g, mu, t, lam)
    slopes = _slopes(system, g, mu, t, lam)
    along = slopes.field_by_y - slopes.field_by_lam @ back @ slopes.hidden_by_y
    in_time = slopes.field_by_t - slopes.field_by_lam @ back @ slopes.hidden_by_t
    scale = np.eye(len(field))
    scale[len(mu) :, len(mu) :] = slopes.velocity_by_mu
    back_to_momenta = np.linalg.inv(scale)
    across = np.asarray(slopes.gap_by_y) @ back_to_momenta
    singular, right = np.linalg.svd(across)[1:]
    rank = int(np.sum(singular > REDUNDANT * max(singular, default=0.0)))
    return Linearised(
        scale @ field,
        scale @ along @ back_to_momenta,
        right[rank:],
        across,
        scale,
        float(np.max(np.abs(scale @ in_time), initial=0.0)),
    )


class _Slopes(NamedTuple):
    """The derivatives of (1), (2) and $C$ in a chart that is centred at the state."""

    field_by_y: Array
    field_by_lam: Array
    field_by_t: Array
    hidden_by_y: Array
    hidden_by_t: Array
    gap_by_y: Array
    velocity_by_mu: Array
    rows: Array


def _inverse_mobility(
    rows: Float[np.ndarray, "k dim"], mobility: Float[np.ndarray, "dim dim"]
) -> Float[np.ndarray, "k k"]:
    r"""Return $(A\,\partial_\mu\xi\,A^T)^+$, where what redundant rows leave open is zero.

    From the singular values of $A$ times a root: those of the product are their squares, and
    could not be told from round-off.
    """
    left, sizes, _ = np.linalg.svd(rows @ np.linalg.cholesky(mobility), full_matrices=False)
    kept = sizes > REDUNDANT * max(sizes, default=0.0)
    return (left[:, kept] / sizes[kept] ** 2) @ left[:, kept].T


@Evaluated
def _rows(system: AbstractGroupSystem, g: Element, t: Scalar) -> Array:
    return system.constraint.rows(g, t)


@Evaluated
def _motion(
    system: AbstractGroupSystem, g: Element, mu: Coordinates, t: Scalar, lam: Array
) -> tuple[Array, Array, Array]:
    return motion(system, g, jnp.concatenate([jnp.zeros_like(mu), mu]), lam, t)


def motion(
    system: AbstractGroupSystem, g0: Element, y: Array, lam: Array, t: Scalar
) -> tuple[Array, Array, Array]:
    """Return $X$ of (1), $h$ of (2) and $C$ at a point of the chart about `g0`."""
    group, n = system.group, system.group.dim
    eta, mu = y[:n], y[n:]
    g = group.compose(g0, group.exp(eta))
    xi = system.at_time(t).velocity(g, mu)
    rate = group.coad(xi, mu) + system.total_force(g, xi, mu, t)
    constraint = system.constraint
    if constraint is None:
        return jnp.concatenate([group.dexp_inv(eta, xi), rate]), jnp.zeros(0), jnp.zeros(0)
    rows = constraint.rows(g, t)
    rate = rate + lam @ rows
    acceleration = rate_of_velocity(system, g, mu, t, xi, rate)
    hidden = rows @ acceleration + drift_of_constraint(system, constraint, g, xi, t)
    gap = constraint.violation(g, xi, t)
    if isinstance(constraint, AbstractHolonomic):
        gap = jnp.concatenate([constraint.positions(g, t), gap])
    return jnp.concatenate([group.dexp_inv(eta, xi), rate]), hidden, gap


@Evaluated
def _slopes(
    system: AbstractGroupSystem, g: Element, mu: Coordinates, t: Scalar, lam: Array
) -> _Slopes:
    y = jnp.concatenate([jnp.zeros_like(mu), mu])
    parts = jax.jacfwd(lambda y, lam, t: motion(system, g, y, lam, t), argnums=(0, 1, 2))
    (field_by_y, field_by_lam, field_by_t), hidden, (gap_by_y, _, _) = parts(y, lam, t)
    velocity_by_mu = jax.jacfwd(system.at_time(t).velocity, argnums=1)(g, mu)
    rows = jnp.zeros((0, len(mu))) if system.constraint is None else system.constraint.rows(g, t)
    return _Slopes(
        field_by_y, field_by_lam, field_by_t, hidden[0], hidden[2], gap_by_y, velocity_by_mu, rows
    )
