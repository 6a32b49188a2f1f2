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
\pi(y) = \bigl(p, \min(1, f(p + p_0)/|y_t|)\,y_t\bigr), \qquad p = \max(y_n, 0):   \tag{3}
$$

open where $p + p_0 = 0$; sticking where $|y_t| \le f(p + p_0)$, else slipping. $p_0$ is a push that
was there before and lets the contact rub.

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
_GUESSED = 16 * _EPS  # what rests goes on with the impulses of the step before
# kappa at first, how it grows where an iteration leaves more than `_SLOW`, and where that ends
_STIFF, _STIFFER, _SLOW, _STIFFEST = 1e4, 100.0, 0.1, 1e10
# Contacts that stick at more places than a body has freedoms may contradict each other by an error
# of the step. Where iterations change momenta by no more than `_CALM`, this much may be left.
_CALM, _AT_ODDS = 64 * _EPS, 1e-5
_TORN = 1e-8  # what sweeps may leave of the law of friction, relative to the impulses
# After so many iterations that do not halve the residual come sweeps, each time twice as many.
_PATIENCE, _SWEEPS, _MOST_SWEEPS = 16, 16, 3_000

OPEN, STICKS, SLIPS = 0, 1, 2


class Law(NamedTuple):
    """The arrays of one solve.

    **Attributes:**

    - `rows`: $W$, three for each contact.
    - `friction`, `pushed`: $f$ and $p_0$ of each contact; `touching`: whether it can push at all.
    - `ties`: $B$ of joints.
    - `weights`: $\\rho$ of contacts and of joints.
    - `terms`: the size of the terms that cancel in `need`; `unseen`: of those in the speeds of
        opening and in `held`; `rounding`: the same, where contacts are at odds.
    """

    rows: Float[Array, "m 3 n"]
    friction: Float[Array, " m"]
    pushed: Float[Array, " m"]
    touching: Bool[Array, " m"]
    ties: Float[Array, "k n"]
    weights: tuple[Impulses, Tensions]
    terms: Scalar
    unseen: Scalar
    rounding: Scalar


class Contact(NamedTuple):
    """The equations of one solve.

    **Attributes:**

    - `need`: $R(\\xi)$ of (1), without impulses.
    - `speeds`: $u(\\xi)$, a row for each contact: opening, and slip in two directions.
    - `slopes`: $u'$ and $c'$, nearly: what they miss slows the iteration down.
    - `held`: $c(\\xi)$ of joints.
    - `answers`: the changes of the velocities that impulses make, nearly.
    - `law`: the arrays.
    """

    need: Callable[[Velocity], Velocity]
    speeds: Callable[[Velocity], Impulses]
    slopes: Callable[[Velocity], tuple[Float[Array, "m 3 n"], Float[Array, "k n"]]]
    held: Callable[[Velocity], Tensions]
    answers: Callable[[Float[Array, "_ n"]], Float[Array, "_ n"]]
    law: Law


class Found(NamedTuple):
    """Velocities and impulses."""

    xi: Velocity
    z: Impulses
    lam: Tensions


class _Seen(NamedTuple):
    """A place of the iteration, both sides of (1) and (2) there, and the size of what is left.

    `size` is that of everything, `hard` without what contacts may be at odds in, both relative to
    `terms`.
    """

    at: Found
    need: Velocity
    u: Impulses
    c: Tensions
    size: Scalar
    hard: Scalar
    terms: Scalar


class _Slopes(NamedTuple):
    """The derivatives of both sides: of speeds, of what velocities need, and of joints."""

    V: Float[Array, "m 3 n"]
    D: Float[Array, "n n"]
    G: Float[Array, "k n"]


class _Chord(NamedTuple):
    """An iteration with derivatives that stay: how stiff, the best, and failures since."""

    seen: _Seen
    kappa: Scalar
    best: Scalar
    failed: Int[Array, ""]
    count: Int[Array, ""]


class _Round(NamedTuple):
    """Where the iteration stands, how many sweeps come next, and how many iterations there were."""

    seen: _Seen
    sweeps: Int[Array, ""]
    iterations: Int[Array, ""]


def projected(y: Impulses, friction: Float[Array, " m"], pushed: Float[Array, " m"]) -> Impulses:
    """Return (3)."""
    push = jnp.maximum(y[:, 0], 0.0)
    across = jnp.sqrt(jnp.sum(y[:, 1:] ** 2, axis=1))
    limit = friction * (push + pushed)
    share = jnp.where(across > limit, limit / jnp.where(across > 0, across, 1.0), 1.0)
    return jnp.concatenate([push[:, None], share[:, None] * y[:, 1:]], axis=1)


def weights(
    rows: Float[Array, "m 3 n"],
    ties: Float[Array, "k n"],
    answers: Callable[[Float[Array, "_ n"]], Float[Array, "_ n"]],
) -> tuple[Impulses, Tensions]:
    r"""Return $\rho$: the masses that contacts and joints feel, the same in all slip directions."""
    flat = rows.reshape(-1, rows.shape[2])
    give = jnp.sum(flat * answers(flat), axis=1).reshape(len(rows), 3)
    slip = jnp.maximum(give[:, 1], give[:, 2])
    give = jnp.stack([give[:, 0], slip, slip], axis=1)
    tied = jnp.sum(ties * answers(ties), axis=1) if len(ties) else jnp.zeros(0)
    return _reciprocal(give), _reciprocal(tied)


def iterated(problem: Contact, guess: Found) -> tuple[Found, NewtonStatus]:
    """Iterate from a guess.

    Derivatives are taken once, where a round of iterations begins. A round that fails ends with
    sweeps from where it began, twice as many as the one before.
    """
    law = problem.law
    rho, sigma = law.weights
    rows, ties, friction = law.rows, law.ties, law.friction
    masses = jnp.sum(rho[:, 0]) + jnp.sum(sigma)

    def looked(at: Found) -> _Seen:
        need = problem.need(at.xi) - jnp.einsum("iak,ia->k", rows, at.z) - at.lam @ ties
        u, c = problem.speeds(at.xi), problem.held(at.xi)
        left = jnp.abs(at.z - _allowed(law, at.z - rho * u))
        rough = jnp.sum(left[:, 0]) + jnp.sum(jnp.abs(sigma * c))
        fine = jnp.sum(jnp.abs(need)) + jnp.sum(left[:, 1:])
        terms = law.terms + jnp.sum(jnp.abs(at.z)) + jnp.sum(jnp.abs(at.lam)) + SMALLEST
        size = jnp.maximum(fine / terms, rough / (terms + law.unseen * masses))
        hard = jnp.sum(jnp.abs(need)) / terms
        hard = jnp.maximum(hard, rough / (terms + law.rounding * masses))
        return _Seen(at, need, u, c, size, hard, terms)

    def newton(slopes: _Slopes, seen: _Seen, kappa: Scalar) -> _Seen:
        (xi, z, lam), (V, D, G) = seen.at, slopes
        stiff, y = kappa * sigma, z - rho * seen.u
        K, right = D + ties.T @ (stiff[:, None] * G), -seen.need - (stiff * seen.c) @ ties
        answers = []
        for i in range(len(friction)):
            pushed = law.pushed[i]
            one = partial(_answer, z[i], y[i], seen.u[i], rho[i], friction[i], pushed, kappa)
            closed = law.touching[i] & ((y[i, 0] > 0) | (pushed > 0))
            K, right, answer = lax.cond(
                closed,
                partial(_add, K, right, rows[i], V[i], one),
                partial(_let_go, K, right, rows[i], z[i]),
            )
            answers.append(answer)
        move = partly_ordered_solve(K, right, len(K))  # (4)
        given = jnp.stack([a + E @ (V[i] @ move) for i, (a, E) in enumerate(answers)])
        part = jnp.where(kappa > _STIFF, _until_one_lets_go(z, given), 1.0)
        lam = lam - part * stiff * (seen.c + G @ move)
        new = looked(Found(xi + part * move, z - part * given, lam))
        calm = jnp.sum(jnp.abs(D @ move)) <= _CALM * new.terms
        enough = calm & (new.hard <= _ACCEPT) & (new.size <= _AT_ODDS)
        return new._replace(size=jnp.where(enough, jnp.minimum(new.size, new.hard), new.size))

    def swept(slopes: _Slopes, seen: _Seen, sweeps: Int[Array, ""]) -> _Seen:
        """Sweep over contacts and joints, each with the others as they are."""
        (xi, z, lam), (V, _, G) = seen.at, slopes
        pushes = problem.answers(rows.reshape(-1, rows.shape[2])).reshape(rows.shape)
        pulls = problem.answers(ties) if len(ties) else ties

        def sweep(carried: tuple[Int[Array, ""], Found]) -> tuple[Int[Array, ""], Found]:
            count, (move, z, lam) = carried
            impulses, tensions = [], []
            for i in range(len(friction)):
                y = z[i] - rho[i] * (seen.u[i] + V[i] @ move)
                one = projected(y[None], friction[i : i + 1], law.pushed[i : i + 1])[0]
                impulses.append(jnp.where(law.touching[i], one, 0.0))
                move = move + (impulses[i] - z[i]) @ pushes[i]
            for j in range(len(ties)):
                tensions.append(lam[j] - sigma[j] * (seen.c[j] + G[j] @ move))
                move = move + (tensions[j] - lam[j]) * pulls[j]
            lam = jnp.stack(tensions) if tensions else lam
            return count + 1, Found(move, jnp.stack(impulses), lam)

        begun = Found(-problem.answers(seen.need[None])[0], z, lam)
        _, (move, z, lam) = lax.while_loop(
            lambda carried: carried[0] < sweeps, sweep, (jnp.asarray(0), begun)
        )
        return looked(Found(xi + move, z, lam))

    def unfinished(it: _Round) -> Bool[Array, ""]:
        return ~_solved(it.seen, it.sweeps) & (it.sweeps < _MOST_SWEEPS)

    def again(it: _Round) -> _Round:
        seen = it.seen
        xi = seen.at.xi
        V, G = problem.slopes(xi)
        slopes = _Slopes(V, jax.jacfwd(problem.need)(xi), G)

        def tries(it: _Chord) -> Bool[Array, ""]:
            stalls = (it.seen.size <= _ACCEPT) & (it.failed > 0)
            return ~(it.seen.size <= _AIM) & ~stalls & (it.failed < _PATIENCE)

        def chord(it: _Chord) -> _Chord:
            new = newton(slopes, it.seen, it.kappa)
            slow = new.size > _SLOW * it.seen.size
            kappa = jnp.where(slow, jnp.minimum(_STIFFER * it.kappa, _STIFFEST), it.kappa)
            failed = jnp.where(new.size < it.best / 2, 0, it.failed + 1)
            return _Chord(new, kappa, jnp.minimum(it.best, new.size), failed, it.count + 1)

        begun = _Chord(
            seen, jnp.asarray(_STIFF), jnp.asarray(jnp.inf), jnp.asarray(0), it.iterations
        )
        found, _, _, _, count = lax.while_loop(tries, chord, begun)
        solved = found.size <= _ACCEPT
        last = lax.cond(solved, lambda: found, lambda: swept(slopes, seen, it.sweeps))
        return _Round(last, jnp.where(solved, it.sweeps, 2 * it.sweeps), count)

    start = _Round(looked(guess), jnp.asarray(_SWEEPS), jnp.asarray(0))
    it = lax.while_loop(unfinished, again, start._replace(seen=_unsolved(start.seen)))
    return it.seen.at, NewtonStatus(_solved(it.seen, it.sweeps), it.seen.size, it.iterations)


def _solved(seen: _Seen, sweeps: Int[Array, ""]) -> Bool[Array, ""]:
    """Whether everything is solved to round-off or, after sweeps, only friction to `_TORN`."""
    torn = (sweeps > 2 * _SWEEPS) & (seen.hard <= _ACCEPT) & (seen.size <= _TORN)
    return (seen.size <= _ACCEPT) | torn


def _unsolved(seen: _Seen) -> _Seen:
    """Return a place that asks for at least one iteration, unless it solves everything."""
    return seen._replace(size=jnp.where(seen.size <= _GUESSED, seen.size, jnp.inf))


def _allowed(law: Law, y: Impulses) -> Impulses:
    z = projected(y, law.friction, law.pushed)
    return jnp.where(law.touching[:, None], z, jnp.zeros_like(z))


def _until_one_lets_go(z: Impulses, less: Impulses) -> Scalar:
    """Return which part of a change takes the first contact that pushes to zero; at most one.

    Contacts that bear more than there are freedoms share their load as they like. Where they do not
    agree on it, stiffness makes the load move, and the first that has none left lets go.
    """
    push, lost = z[:, 0], less[:, 0]
    part = jnp.where((push > 0) & (lost > push), push / jnp.where(lost > 0, lost, 1.0), 1.0)
    return jnp.min(part)


class _Answer(NamedTuple):
    """How a contact answers a change of velocities: $a$ and $E$ of (4)."""

    a: Float[Array, "3"]
    E: Float[Array, "3 3"]


_System = tuple[Float[Array, "n n"], Velocity, _Answer]


def _add(
    K: Float[Array, "n n"],
    right: Velocity,
    W: Float[Array, "3 n"],
    V: Float[Array, "3 n"],
    answer: Callable[[], _Answer],
) -> _System:
    """Add a closed contact to (4)."""
    one = answer()
    across = one.E @ V
    for row, answered in zip(W, across, strict=True):
        K = K + row[:, None] * answered[None]
    return K, right - one.a @ W, one


def _let_go(
    K: Float[Array, "n n"], right: Velocity, W: Float[Array, "3 n"], z: Float[Array, "3"]
) -> _System:
    """Add an open contact to (4): its impulse goes."""
    return K, right - z @ W, _Answer(z, jnp.zeros((3, 3)))


def _answer(
    z: Float[Array, "3"],
    y: Float[Array, "3"],
    u: Float[Array, "3"],
    rho: Float[Array, "3"],
    f: Scalar,
    pushed: Scalar,
    kappa: Scalar,
) -> _Answer:
    """Return the answer of a closed contact."""
    pushes, stiff = y[0] > 0, kappa * rho
    size = jnp.sqrt(y[1] * y[1] + y[2] * y[2])
    limit = f * (jnp.maximum(y[0], 0.0) + pushed)
    slips, safe = size > limit, jnp.where(size > 0, size, 1.0)
    d, share = y[1:] / safe, jnp.minimum(limit / safe, 1.0)
    loose = 1 / jnp.maximum(1 - share, 1 / kappa)
    # Along the normal: it must not open, or its push goes.
    a_n, E_n = jnp.where(pushes, stiff[0] * u[0], z[0]), jnp.where(pushes, stiff[0], 0.0)
    # Along the slip q = f (p + p0), so that it answers as p does; across it the direction turns.
    rest = f * (z[0] + pushed) * d - z[1:]
    along, off = d @ rest, jnp.eye(2) - d[:, None] * d[None]
    slip_a = f * a_n * d - along * d - loose * (rest - along * d)
    a_t = jnp.where(slips, slip_a, stiff[1] * u[1:])
    E_t = jnp.where(slips, share * loose * rho[1] * off, stiff[1] * jnp.eye(2))
    couples = jnp.where(slips, f * E_n * d, 0.0)
    top = jnp.stack([E_n, jnp.zeros(()), jnp.zeros(())])
    below = jnp.concatenate([couples[:, None], E_t], axis=1)
    return _Answer(jnp.concatenate([a_n[None], a_t]), jnp.concatenate([top[None], below]))


def _reciprocal(x: Array) -> Array:
    return jnp.where(x > 0, 1 / jnp.where(x > 0, x, 1.0), 0.0)
