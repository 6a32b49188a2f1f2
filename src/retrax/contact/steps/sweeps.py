r"""Projected Gauss-Seidel sweeps over contacts, mixed so that fewer are needed.

In a sweep every contact finds the speeds that those before it have left, and answers with the
impulse that satisfies the law alone. An impulse changes the velocities of a few nodes only. Heaps
and rods around posts hand on their impulses from contact to contact, sweep after sweep: with
$\Phi(z)$ the impulses after a sweep from $z$, and differences of the last few sweeps,

$$ z_{k+1} = \Phi(z_k) - \sum_j\theta_j\,\Delta\Phi_j, \qquad
   \theta = \arg\min\Bigl|\Phi(z_k) - z_k - \sum_j\theta_j\,\Delta(\Phi - z)_j\Bigr|_D, \tag{1} $$

brought back to where friction may be; $D$ is what contacts answer to their own impulses. Where the
right side grows, the differences are forgotten.

References: [WalkerNi2011].
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from retrax.contact.capsules import Points
from retrax.contact.rows import Places, Rows, list_places
from retrax.contact.steps.contact_law import Block, Law, Response, Seen, answer, in_disk
from retrax.numerics.small_matrices import cross, solve

Scalar = Float[Array, ""]
Whole = Int[Array, ""]
Vector = Float[Array, "3"]

_MOST = 200  # sweeps
_SLOW = 10  # sweeps before others go farther
_KEPT = 5  # differences
_PLAIN = 1e-10  # added to the diagonal of the normal equations of (1), relative to its sum
_GROWN = 1.0  # times the least square seen: the differences are forgotten


class _Nodes(NamedTuple):
    """How the velocities of nodes have changed."""

    dv: Places
    dw: Places


class _Past(NamedTuple):
    """The last sweep, and differences of the last few; rows go contact by contact.

    **Attributes:** `step`, `end`: of the last sweep; `steps`, `ends`: differences; `products`: of
    `steps`; `alive`: which of them count.
    """

    step: Points
    end: Points
    steps: Float[Array, "rows 3"]
    ends: Float[Array, "rows 3"]
    products: Float[Array, "kept kept"]
    alive: Float[Array, " kept"]
    least: Scalar


class _Sweep(NamedTuple):
    """Impulses before and after a sweep, and the largest speed that it asked for."""

    z: Points
    end: Points
    nodes: _Nodes
    past: _Past
    most: Scalar
    sweeps: Whole


_Passed = tuple[Points, _Nodes, Scalar]


class _Plain(NamedTuple):
    """Impulses after a sweep, and the largest speed that it asked for."""

    z: Points
    nodes: _Nodes
    most: Scalar
    sweeps: Whole


class _Sums(NamedTuple):
    """Products of the newest difference and of the newest step with all differences."""

    newest: Float[Array, " kept"]
    step: Float[Array, " kept"]
    square: Scalar


def sweep(
    z: Points,
    seen: Seen,
    rows: Rows,
    block: Block,
    response: Response,
    law: Law,
    enough: Scalar,
    over: float | None,
) -> Points:
    """Return the impulses after sweeps over the contacts that touch.

    The last sweep is one in which no contact asks for a change of its speeds above `enough`. With
    `over` late sweeps go so many times as far as contacts ask for; without it they are mixed by
    (1).
    """
    u = seen.u
    touching = (z[:, 0] > 0) | (u[:, 0] < 0) | (law.pushed > 0)
    active, count = list_places(touching)
    zero = jnp.asarray(0, jnp.int32)

    def push(c: Whole, change: Vector, at: _Nodes) -> _Nodes:
        there, F = rows.nodes[c], rows.frame[c]
        P = change @ F
        turn = jnp.broadcast_to(cross(F[0], P), (len(there), 3))
        moves = rows.weights[c] * response.moves[there]
        turns = rows.arms[c][:, None] * response.turn(there, turn)
        return _Nodes(at.dv.at[there].add(moves[:, None] * P[None]), at.dw.at[there].add(turns))

    def one(k: Whole, at: _Passed, far: Scalar) -> _Passed:
        z, nodes, most = at
        c = active[k]
        there, F, old = rows.nodes[c], rows.frame[c], z[c]
        moved = rows.weights[c] @ nodes.dv[there]
        slip = F @ (moved + cross(rows.arms[c] @ nodes.dw[there], F[0]))
        opening = seen.normal[c] @ (seen.weights[c] @ nodes.dv[there])
        now = u[c] + jnp.concatenate([opening[None], (1 - law.slides[c]) * slip[1:]])
        new = answer(old, far * now, block.normal[c], block.across[c], block.highest[c], law.of(c))
        sizes = jnp.stack([block.normal[c], block.highest[c], block.highest[c]])
        asked = jnp.max(jnp.abs(new - old) * sizes)
        return z.at[c].set(new), push(c, new - old, nodes), jnp.maximum(most, asked)

    def pass_on(z: Points, nodes: _Nodes, far: Scalar) -> _Passed:
        begun = (z, nodes, jnp.zeros(()))
        return lax.fori_loop(zero, count, lambda k, at: one(k, at, far), begun)

    def plain(at: _Plain) -> _Plain:
        far = jnp.where(at.sweeps >= _SLOW, 1.0 if over is None else over, 1.0)
        return _Plain(*pass_on(at.z, at.nodes, far), at.sweeps + 1)

    def sweep(at: _Sweep) -> _Sweep:
        end, nodes, most = pass_on(at.z, at.nodes, jnp.ones(()))
        done = at._replace(end=end, nodes=nodes, most=most, sweeps=at.sweeps + 1)
        return lax.cond(most > enough, mix, lambda at: at._replace(z=at.end), done)

    def mix(at: _Sweep) -> _Sweep:
        """Return the impulses of (1) that the next sweep begins with."""
        past, theta = _remember(at, active, count, block)

        def next_(k: Whole, state: tuple[Points, _Nodes]) -> tuple[Points, _Nodes]:
            z, nodes = state
            c = active[k]
            end = at.end[c]
            new = end - sum(
                (theta[j] * past.ends[c * _KEPT + j] for j in range(_KEPT)), jnp.zeros(3)
            )
            p = jnp.maximum(new[0], 0.0)
            new = jnp.concatenate([p[None], in_disk(new[1:], law.of(c).friction_bound(p))])
            return z.at[c].set(new), push(c, new - end, nodes)

        z, nodes = lax.fori_loop(zero, count, next_, (at.end, at.nodes))
        return at._replace(z=z, nodes=nodes, past=past)

    rest = jnp.zeros((len(response.moves), 3))
    if over is not None:
        begun = _Plain(z, _Nodes(rest, rest), jnp.full((), jnp.inf), zero)
        return lax.while_loop(lambda at: (at.most > enough) & (at.sweeps < _MOST), plain, begun).z
    start = _Sweep(z, z, _Nodes(rest, rest), _nothing(z), jnp.full((), jnp.inf), zero)
    return lax.while_loop(lambda at: (at.most > enough) & (at.sweeps < _MOST), sweep, start).end


def _nothing(z: Points) -> _Past:
    rows = jnp.zeros((_KEPT * len(z), 3))
    products = jnp.zeros((_KEPT, _KEPT))
    return _Past(
        jnp.zeros_like(z),
        jnp.zeros_like(z),
        rows,
        rows,
        products,
        jnp.zeros(_KEPT),
        jnp.full((), jnp.inf),
    )


def _remember(
    at: _Sweep, active: Int[Array, " m"], count: Whole, block: Block
) -> tuple[_Past, Float[Array, " kept"]]:
    """Return differences with those of the last sweep among them, and the weights of (1)."""
    past = at.past
    slot = at.sweeps % jnp.asarray(_KEPT, jnp.int32)
    newest: Bool[Array, " kept"] = jnp.arange(_KEPT, dtype=jnp.int32) == slot

    def one(k: Whole, state: tuple[_Past, _Sums]) -> tuple[_Past, _Sums]:
        past, sums = state
        c = active[k]
        size, step = block.normal[c], at.end[c] - at.z[c]
        more, away = step - past.step[c], at.end[c] - past.end[c]
        row = c * _KEPT + slot
        past = past._replace(
            step=past.step.at[c].set(step),
            end=past.end.at[c].set(at.end[c]),
            steps=past.steps.at[row].set(more),
            ends=past.ends.at[row].set(away),
        )
        kept = [past.steps[c * _KEPT + j] for j in range(_KEPT)]
        return past, _Sums(
            sums.newest + size * jnp.stack([more @ x for x in kept]),
            sums.step + size * jnp.stack([step @ x for x in kept]),
            sums.square + size * (step @ step),
        )

    none = jnp.zeros(_KEPT)
    zero = jnp.asarray(0, jnp.int32)
    past, sums = lax.fori_loop(zero, count, one, (past, _Sums(none, none, jnp.zeros(()))))
    row = jnp.broadcast_to(newest[:, None], (_KEPT, _KEPT))
    products = jnp.where(row, sums.newest[None, :], past.products)
    products = jnp.where(row.T, sums.newest[:, None], products)
    grown = sums.square > _GROWN * past.least
    first = jnp.isinf(past.least)  # there is no sweep before it
    alive = jnp.where(newest, jnp.where(first, 0.0, 1.0), past.alive)
    alive = jnp.where(grown, 0.0, alive)
    least = jnp.where(grown, sums.square, jnp.minimum(past.least, sums.square))
    both = alive[:, None] * alive[None, :] * products
    shift = _PLAIN * jnp.trace(both)
    shift = jnp.where(shift > 0, shift, 1.0)
    theta = solve(both + shift * jnp.eye(_KEPT), alive * sums.step)
    return past._replace(products=products, alive=alive, least=least), theta
