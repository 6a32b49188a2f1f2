r"""Impulses that push and rub: a semi-smooth Newton method in the velocities.

Velocities $\xi$, impulses $z_i = (p_i, q_i)$ of contacts with friction $f_i$, along and across
their normals, and $\lambda$ of joints satisfy

$$
\begin{aligned}
R(\xi) &= \sum_iW_i^Tz_i + B^T\lambda, \qquad c(\xi) = 0                     &&\text{(1)}\\
z_i &= \pi_i\bigl(z_i - \rho_iu_i(\xi)\bigr)                                 &&\text{(2)}
\end{aligned}
$$

with $R$ the momentum that a velocity needs beyond what there is, $u_i = (u_n, u_t)$ the speeds at
which a contact opens and slips, and

$$
\pi(y) = \begin{cases}
0 & y_n \le 0 \qquad\text{(open)}\\
y & |y_t| \le f y_n \qquad\text{(sticks)}\\
(y_n, f y_n\,y_t/|y_t|) & \text{otherwise (slips).}
\end{cases} \tag{3}
$$

(2) says $0 \le u_n \perp p \ge 0$ and that $|q| \le fp$ opposes the slip, for every
$\rho > 0$. Newton's method on (1) and (2) eliminates the impulses: each contact answers a change of
the velocities by $\Delta z_i = -a_i - E_iV_i\Delta\xi$, $V = u'$, with $E = \kappa\rho$ where it
must not give way at all, so that what is left is one matrix of the size of the velocities,

$$ \bigl(R' + \sum_iW_i^TE_iV_i + \kappa\rho B^Tc'\bigr)\Delta\xi
    = -R + \sum_iW_i^T(z_i - a_i) + B^T(\lambda - \kappa\rho c). \tag{4} $$

$\kappa$ is large but finite: contacts that say the same twice share their load, and what it leaves
the next iteration takes away. Where Newton's method cycles between cases of (3), sweeps of
Gauss-Seidel over (2), contact by contact, find the right ones.

References: [AlartCurnier1991], [AcaryBrogliato2008].
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from retrax.numerics.newton import SMALLEST, NewtonStatus
from retrax.numerics.small_matrices import partly_ordered_solve

Scalar = Float[Array, ""]
Velocity = Float[Array, " n"]
Impulses = Float[Array, "m 3"]
Tensions = Float[Array, " k"]

_EPS = float(jnp.finfo(jnp.float64).eps)
# Residuals end at `_AIM` of their terms; where they stall above, `_ACCEPT` will do.
_AIM, _ACCEPT = 4 * _EPS, 256 * _EPS
_STIFF = 1e6  # kappa
# After so many iterations that do not halve the residual come sweeps, each time twice as many.
_PATIENCE, _SWEEPS, _MOST_SWEEPS = 4, 16, 20_000

OPEN, STICKS, SLIPS = 0, 1, 2


class Contact(NamedTuple):
    """The equations of one solve.

    **Attributes:**

    - `need`: $R(\\xi)$ of (1), without impulses.
    - `speeds`: $u(\\xi)$, a row for each contact: opening, and slip in two directions.
    - `slopes`: $u'$ and $c'$, nearly: what they miss slows the iteration down.
    - `rows`: $W$, three for each contact.
    - `friction`: $f$ of each contact; `touching`: whether it can push at all.
    - `held`, `ties`: $c(\\xi)$ and $B$ of joints.
    - `answers`, `tied`: what impulses along `rows` and `ties` do to the velocities, nearly.
    - `settled`: the change of the velocities that takes a momentum, nearly.
    - `terms`: the size of the terms that cancel in `need`; `unseen`: that of the rounding errors
        of `speeds` and `held`.
    """

    need: Callable[[Velocity], Velocity]
    speeds: Callable[[Velocity], Impulses]
    slopes: Callable[[Velocity], tuple[Float[Array, "m 3 n"], Float[Array, "k n"]]]
    rows: Float[Array, "m 3 n"]
    friction: Float[Array, " m"]
    touching: Bool[Array, " m"]
    held: Callable[[Velocity], Tensions]
    ties: Float[Array, "k n"]
    answers: Float[Array, "m 3 n"]
    tied: Float[Array, "k n"]
    settled: Callable[[Velocity], Velocity]
    terms: Scalar
    unseen: Scalar


class Found(NamedTuple):
    """Velocities and impulses."""

    xi: Velocity
    z: Impulses
    lam: Tensions


class _Seen(NamedTuple):
    """A place of the iteration, both sides of (1) and (2) there, and the size of what is left."""

    at: Found
    need: Velocity
    u: Impulses
    c: Tensions
    size: Scalar


class _Slopes(NamedTuple):
    """The derivatives of both sides: of speeds, of what velocities need, and of joints."""

    V: Float[Array, "m 3 n"]
    D: Float[Array, "n n"]
    G: Float[Array, "k n"]


class _Round(NamedTuple):
    """Where the iteration stands, how many sweeps come next, and how many iterations there were."""

    seen: _Seen
    sweeps: Int[Array, ""]
    iterations: Int[Array, ""]


def projected(y: Impulses, friction: Float[Array, " m"]) -> Impulses:
    """Return (3)."""
    push = jnp.maximum(y[:, 0], 0.0)
    across = jnp.sqrt(jnp.sum(y[:, 1:] ** 2, axis=1))
    limit = friction * push
    share = jnp.where(across > limit, limit / jnp.where(across > 0, across, 1.0), 1.0)
    return jnp.concatenate([push[:, None], share[:, None] * y[:, 1:]], axis=1)


def modes(y: Impulses, friction: Float[Array, " m"]) -> Int[Array, " m"]:
    """Return which case of (3) holds for each contact."""
    across = jnp.sqrt(jnp.sum(y[:, 1:] ** 2, axis=1))
    closed = jnp.where(across > friction * y[:, 0], SLIPS, STICKS)
    return jnp.where(y[:, 0] > 0, closed, OPEN)


def weights(problem: Contact) -> tuple[Impulses, Tensions]:
    r"""Return $\rho$: the masses that contacts and joints feel, the same in all slip directions."""
    give = jnp.sum(problem.rows * problem.answers, axis=2)
    slip = jnp.maximum(give[:, 1], give[:, 2])
    give = jnp.stack([give[:, 0], slip, slip], axis=1)
    tied = jnp.sum(problem.ties * problem.tied, axis=1)
    return _reciprocal(give), _reciprocal(tied)


def solve_contact(problem: Contact, guess: Found) -> tuple[Found, NewtonStatus]:
    """Solve (1) and (2) to round-off from a guess.

    Derivatives are taken once, where a round of iterations begins. A round that fails ends with
    sweeps from where it began, twice as many as the one before.
    """
    rho, sigma = weights(problem)
    rows, ties, friction = problem.rows, problem.ties, problem.friction
    reach, tied = jnp.sum(jnp.abs(rows), axis=2), jnp.sum(jnp.abs(ties), axis=1)
    unseen = problem.terms + problem.unseen * (jnp.sum(reach * rho) + jnp.sum(tied * sigma))

    def looked(at: Found) -> _Seen:
        need = problem.need(at.xi) - jnp.einsum("iak,ia->k", rows, at.z) - at.lam @ ties
        u, c = problem.speeds(at.xi), problem.held(at.xi)
        missed = at.z - _allowed(problem, at.z - rho * u)
        left = jnp.sum(jnp.abs(need)) + jnp.sum(reach * jnp.abs(missed))
        left = left + jnp.sum(tied * jnp.abs(sigma * c))
        terms = unseen + jnp.sum(reach * jnp.abs(at.z)) + jnp.sum(tied * jnp.abs(at.lam))
        return _Seen(at, need, u, c, left / (terms + SMALLEST))

    def newton(slopes: _Slopes, seen: _Seen) -> _Seen:
        (xi, z, lam), (V, D, G) = seen.at, slopes
        stiff, y = _STIFF * sigma, z - rho * seen.u
        K, right = D + ties.T @ (stiff[:, None] * G), -seen.need - (stiff * seen.c) @ ties
        answers = []
        for i in range(len(friction)):
            closed = problem.touching[i] & (y[i, 0] > 0)
            given = (z[i], seen.u[i], rho[i], friction[i], rows[i], V[i])
            one = lax.cond(closed, partial(_answer, *given), partial(_let_go, z[i], rows[i]))
            answers.append(one)
            K, right = K + one.K, right - one.force
        move = partly_ordered_solve(K, right, len(K))  # (4)
        z = z - jnp.stack([one.a + one.across @ move for one in answers])
        return looked(Found(xi + move, z, lam - stiff * (seen.c + G @ move)))

    def swept(slopes: _Slopes, seen: _Seen, sweeps: Int[Array, ""]) -> _Seen:
        """Sweep over contacts and joints, each with the others as they are."""
        (xi, z, lam), (V, _, G) = seen.at, slopes

        def sweep(carried: tuple[Int[Array, ""], Found]) -> tuple[Int[Array, ""], Found]:
            count, (move, z, lam) = carried
            impulses, tensions = [], []
            for i in range(len(friction)):
                y = z[i] - rho[i] * (seen.u[i] + V[i] @ move)
                one = projected(y[None], friction[i : i + 1])[0]
                impulses.append(jnp.where(problem.touching[i], one, 0.0))
                move = move + (impulses[i] - z[i]) @ problem.answers[i]
            for j in range(len(ties)):
                tensions.append(lam[j] - sigma[j] * (seen.c[j] + G[j] @ move))
                move = move + (tensions[j] - lam[j]) * problem.tied[j]
            lam = jnp.stack(tensions) if tensions else lam
            return count + 1, Found(move, jnp.stack(impulses), lam)

        begun = Found(-problem.settled(seen.need), z, lam)
        _, (move, z, lam) = lax.while_loop(
            lambda carried: carried[0] < sweeps, sweep, (jnp.asarray(0), begun)
        )
        return looked(Found(xi + move, z, lam))

    def unfinished(it: _Round) -> Bool[Array, ""]:
        return ~(it.seen.size <= _ACCEPT) & (it.sweeps < _MOST_SWEEPS)

    def again(it: _Round) -> _Round:
        seen = it.seen
        xi = seen.at.xi
        V, G = problem.slopes(xi)
        slopes = _Slopes(V, jax.jacfwd(problem.need)(xi), G)

        def tries(carried: tuple[_Seen, Scalar, Int[Array, ""], Int[Array, ""]]) -> Array:
            seen, before, failed, _ = carried
            stalls = (seen.size <= _ACCEPT) & (seen.size > before / 2)
            return ~(seen.size <= _AIM) & ~stalls & (failed < _PATIENCE)

        def chord(
            carried: tuple[_Seen, Scalar, Int[Array, ""], Int[Array, ""]],
        ) -> tuple[_Seen, Scalar, Int[Array, ""], Int[Array, ""]]:
            seen, _, failed, count = carried
            new = newton(slopes, seen)
            failed = jnp.where(new.size < seen.size / 2, failed, failed + 1)
            return new, seen.size, failed, count + 1

        none = jnp.asarray(0)
        found, _, _, count = lax.while_loop(
            tries, chord, (seen, jnp.asarray(jnp.inf), none, it.iterations)
        )
        solved = found.size <= _ACCEPT
        last = lax.cond(solved, lambda: found, lambda: swept(slopes, seen, it.sweeps))
        return _Round(last, jnp.where(solved, it.sweeps, 2 * it.sweeps), count)

    start = _Round(looked(guess), jnp.asarray(_SWEEPS), jnp.asarray(0))
    it = lax.while_loop(unfinished, again, start._replace(seen=_unsolved(start.seen)))
    size = it.seen.size
    return it.seen.at, NewtonStatus(size <= _ACCEPT, size, it.iterations)


def _unsolved(seen: _Seen) -> _Seen:
    """Return a place that asks for at least one iteration, unless it solves everything."""
    return seen._replace(size=jnp.where(seen.size <= _AIM, seen.size, jnp.inf))


def _allowed(problem: Contact, y: Impulses) -> Impulses:
    z = projected(y, problem.friction)
    return jnp.where(problem.touching[:, None], z, jnp.zeros_like(z))


class _Answer(NamedTuple):
    """What a contact adds to (4): $a$, $EV$, $W^TEV$ and $W^Ta$."""

    a: Float[Array, "3"]
    across: Float[Array, "3 n"]
    K: Float[Array, "n n"]
    force: Velocity


def _let_go(z: Float[Array, "3"], W: Float[Array, "3 n"]) -> _Answer:
    """Return the answer of an open contact: its impulse goes."""
    n = W.shape[1]
    return _Answer(z, jnp.zeros((3, n)), jnp.zeros((n, n)), z @ W)


def _answer(
    z: Float[Array, "3"],
    u: Float[Array, "3"],
    rho: Float[Array, "3"],
    f: Scalar,
    W: Float[Array, "3 n"],
    V: Float[Array, "3 n"],
) -> _Answer:
    """Return the answer of a closed contact, in slip along `d` and across it."""
    y, stiff = z - rho * u, _STIFF * rho
    size = jnp.sqrt(y[1] * y[1] + y[2] * y[2])
    slips, safe = size > f * y[0], jnp.where(size > 0, size, 1.0)
    d = jnp.where(size > 0, y[1:] / safe, jnp.array([1.0, 0.0]))
    share = jnp.minimum(f * y[0] / safe, 1.0)
    loose = 1 / jnp.maximum(1 - share, 1 / _STIFF)
    turn = jnp.stack([jnp.stack([d[0], d[1]]), jnp.stack([-d[1], d[0]])])
    u_t, rest, V_t, W_t = turn @ u[1:], turn @ z[1:], turn @ V[1:], turn @ W[1:]
    # Along the slip q = f p, so that it answers as p does; across it the direction turns.
    along = jnp.where(slips, f * stiff[0] * u[0] - (f * z[0] - rest[0]), stiff[1] * u_t[0])
    beside = jnp.where(slips, loose * rest[1], stiff[1] * u_t[1])
    ways = jnp.where(slips, f * stiff[0] * V[0], stiff[1] * V_t[0])
    aside = jnp.where(slips, share * loose * rho[1], stiff[1]) * V_t[1]
    push = stiff[0] * V[0]
    K = W[0][:, None] * push[None] + W_t[0][:, None] * ways[None] + W_t[1][:, None] * aside[None]
    a_t = jnp.stack([along, beside])
    a = jnp.concatenate([(stiff[0] * u[0])[None], a_t @ turn])
    across = jnp.concatenate([push[None], turn.T @ jnp.stack([ways, aside])])
    return _Answer(a, across, K, a[0] * W[0] + a_t @ W_t)


def _reciprocal(x: Array) -> Array:
    return jnp.where(x > 0, 1 / jnp.where(x > 0, x, 1.0), 0.0)
