r"""Many contacts between nodes with diagonal inertia: sweeps, and looks at the true speeds.

Speeds are linear in the impulses but for the motion within a step: sweeps with the rows at the
start of the step until they change little, then the true speeds again, until they are right to
round-off.

References: [Moreau1988], [AcaryBrogliato2008].
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PyTree

from retrax.contact.capsules import Numbers, Points
from retrax.contact.rows import Rows
from retrax.contact.steps.contact_law import Block, Law, Response, Seen, blocks, residual_speeds
from retrax.contact.steps.sweeps import sweep
from retrax.numerics.newton import NewtonStatus

Scalar = Float[Array, ""]

# From impulses and their rows to the speeds of contacts, and what else was found on the way.
Look = Callable[[Points, Rows], tuple[Seen, PyTree]]
# From what was found, impulses and rows to whether other points overlap, and their rows; the first
# few times all others are forgotten.
Renew = Callable[[PyTree, Points, Rows, Bool[Array, ""]], tuple[Bool[Array, ""], Rows]]

_ENOUGH = 1e-3  # a sweep that changes speeds by less, of what was left, is the last one
_MOST = 600  # looks
_LONG, _MUCH = 20, 100.0  # after so many looks friction may leave so many times as much
_LONGEST = 60  # looks after which it grows no more, whatever it leaves
_EARLY = 3  # rounds in which contacts go where points are closest


class Solved(NamedTuple):
    """Impulses, what was found with them, and how much is left of (1), as speeds."""

    z: Points
    rows: Rows
    found: PyTree
    left: Numbers
    status: NewtonStatus


class _Iterate(NamedTuple):
    z: Points
    rows: Rows
    block: Block
    found: PyTree
    left: Numbers
    best: Scalar
    waited: Int[Array, ""]
    looks: Int[Array, ""]
    rounds: Int[Array, ""]
    holds: Scalar
    most: Numbers
    done: Bool[Array, ""]


def solve(
    look: Look,
    guess: Points,
    rows: Rows,
    response: Response,
    law: Law,
    aim: Scalar,
    accept: tuple[Scalar, Scalar],
    over: float | None,
    locked: Scalar | None = None,
    renew: Renew | None = None,
) -> Solved:
    """Solve (1) from a guess until what is left is below `aim`, or stalls below `accept`.

    The second number of `accept` is that for what stalls for long: two points of a rod that are
    nearly one hand their impulse from one to the other without end.

    Where balls that stick lock each other in loops, friction would have to grow in many sweeps
    until one of them slips. What stalls below `locked`, or after many looks a hundred times that,
    keeps its friction as it is, and the rest is solved to `aim`. What stalls above that for very
    long lets friction grow no more: what asks for more slips against what it has, which adds no
    energy.

    `over` says how sweeps are hurried: see `sweep`. With `renew` the contacts that have been solved
    for are looked at again: where other points overlap, these come to touch instead.
    """

    def again(it: _Iterate) -> _Iterate:
        seen, found = look(it.z, it.rows)
        left = residual_speeds(it.z, seen.u, it.block, is_bounded(it))
        size = jnp.max(left)
        waited = jnp.where(size < 0.5 * it.best, 0, it.waited + 1)
        stalls = waited > 1
        enough, late = accept
        settled = (size <= aim) | ((size <= enough) & stalls)
        settled = settled | ((size <= late) & (waited > _LONG))
        holds, most, best = it.holds, it.most, jnp.minimum(size, it.best)
        if locked is not None:
            bound = jnp.where(it.looks < _LONG, locked, _MUCH * locked)
            stuck = ~settled & stalls & (it.holds == 0)
            locks, caps = stuck & (size <= bound), stuck & (size > bound) & (it.looks > _LONGEST)
            holds = jnp.where(locks, 1.0, holds)
            rubs = jnp.sqrt(jnp.sum(it.z[:, 1:] ** 2, axis=1))
            most = jnp.where(caps, jnp.minimum(most, rubs), most)
            other = locks | caps
            best, waited = jnp.where(other, jnp.inf, best), jnp.where(other, 0, waited)
        it = it._replace(
            found=found,
            left=left,
            best=best,
            waited=waited,
            looks=it.looks + 1,
            holds=holds,
            most=most,
        )
        return lax.cond(settled, check, sweep_again, it, seen)

    def check(it: _Iterate, seen: Seen) -> _Iterate:
        """Return an iterate that is done, or one with other points if they overlap."""
        if renew is None:
            return it._replace(done=jnp.asarray(True))
        deep, rows = renew(it.found, it.z, it.rows, it.rounds < _EARLY)

        def other(it: _Iterate) -> _Iterate:
            return it._replace(
                rows=rows,
                block=blocks(rows, response),
                best=jnp.full((), jnp.inf),
                waited=jnp.asarray(0),
                rounds=it.rounds + 1,
            )

        return lax.cond(deep, other, lambda it: it._replace(done=jnp.asarray(True)), it)

    def sweep_again(it: _Iterate, seen: Seen) -> _Iterate:
        enough = jnp.maximum(_ENOUGH * jnp.max(it.left), aim / 4)
        z = sweep(it.z, seen, it.rows, it.block, response, is_bounded(it), enough, over)
        return it._replace(z=z)

    def is_bounded(it: _Iterate) -> Law:
        return law._replace(held=jnp.broadcast_to(it.holds, law.held.shape), most=it.most)

    shape = jax.eval_shape(look, guess, rows)[1]
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shape)
    none, left = jnp.asarray(0), jnp.zeros(len(guess))
    pushes = jnp.broadcast_to(guess[:, :1] > 0, guess.shape)
    start = _Iterate(
        jnp.where(pushes, guess, 0.0),
        rows,
        blocks(rows, response),
        nothing,
        left,
        jnp.full((), jnp.inf),
        none,
        none,
        none,
        jnp.zeros(()),
        law.most,
        jnp.asarray(False),
    )
    it = lax.while_loop(lambda it: ~it.done & (it.looks < _MOST), again, start)
    status = NewtonStatus(it.done, jnp.max(it.left), it.looks)
    return Solved(it.z, it.rows, it.found, it.left, status)
