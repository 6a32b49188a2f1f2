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

(1) and (2) may have several solutions, or one that a step must not take. A problem judges what is
found, and may ask again with another choice of what its speeds depend on. What is refused without
one, or not found at all, is looked for from where contacts come to with friction that lets nothing
slip, which in Painlevé's case is near the impact without a collision, and then from where they
come to without friction, while it grows.

References: [AlartCurnier1991], [AcaryBrogliato2008].
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PyTree

from retrax.contact.solver.answers import At, answer
from retrax.contact.solver.body_sweeps import Joints, Laws, project, sweep_over
from retrax.contact.solver.coupled_blocks import Couples, impulse_of, velocity_changes
from retrax.numerics.newton import SMALLEST, NewtonStatus

Scalar = Float[Array, ""]
Velocity = Float[Array, " n"]
Impulses = Float[Array, "m 3"]
Tensions = Float[Array, " k"]
# What speeds depend on beside velocities.
Choice = Float[Array | np.ndarray, " _"]
Choices = tuple[Choice, Choice, PyTree]

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

# Where nothing is found: friction that lets nothing slip, and how it grows from none, as parts of
# what there is; a solution is one with all of it. And how often a problem may ask again.
_BONDED = 1e9
_WAYS = (1.0, _BONDED, 1.0, 0.0, *(2.0 ** (k / 2) for k in range(-12, 1)))
_MOST_ASKED = 12
_NONE = np.zeros(0)

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

    rows: Float[Array, "m 3 _"]
    friction: Float[Array, " m"]
    pushed: Float[Array, " m"]
    touching: Bool[Array, " m"]
    ties: Float[Array, "k n"]
    weights: tuple[Impulses, Tensions]
    terms: Scalar
    unseen: Scalar
    rounding: Scalar


class Found(NamedTuple):
    """Velocities and impulses; `impulse` is what these add up to."""

    xi: Velocity
    z: Impulses
    lam: Tensions
    impulse: Velocity


class Verdict(NamedTuple):
    """What a problem thinks of a solution.

    **Attributes:** `good`: whether it stays; `again`: whether to try another choice; `choice`,
    `past`: of that.
    """

    good: Bool[Array, ""]
    again: Bool[Array, ""]
    choice: Choice
    past: PyTree


def _agree(found: Found, choice: Choice, past: PyTree) -> Verdict:
    return Verdict(jnp.asarray(True), jnp.asarray(False), choice, past)


class Contact(NamedTuple):
    """The equations of one solve.

    **Attributes:**

    - `need`: $R(\\xi)$ of (1), without impulses.
    - `speeds`: $u(\\xi)$, a row for each contact: opening, and slip in two directions; from $\\xi$
        and a choice.
    - `slopes`: $u'$ and $c'$, nearly, from the same: what they miss slows the iteration down.
    - `held`: $c(\\xi)$ of joints.
    - `answers`: the changes of the velocities that impulses make, nearly.
    - `law`: the arrays.
    - `couples`: which velocities rows and `slopes` are for; without, for all.
    - `judge`: what to think of a solution that a choice led to, from these and the past.
    - `choice`: the first; that for friction that lets nothing slip, and from there; a past. Their
        changes do not count as changes of the solution.
    """

    need: Callable[[Velocity], Velocity]
    speeds: Callable[[Velocity, Choice], Impulses]
    slopes: Callable[[Velocity, Choice], tuple[Float[Array, "m 3 n"], Float[Array, "k n"]]]
    held: Callable[[Velocity], Tensions]
    answers: Callable[[Float[Array, "_ n"]], Float[Array, "_ n"]]
    law: Law
    couples: Couples | None = None
    judge: Callable[[Found, Choice, PyTree], Verdict] = _agree
    choice: Choices = (_NONE, _NONE, ())


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
    """Where the iteration stands, what is left there, and whether it is done and solved.

    `sweeps` is how many come next, `iterations` how many there were.
    """

    at: Found
    size: Scalar
    done: Bool[Array, ""]
    solved: Bool[Array, ""]
    sweeps: Int[Array, ""]
    iterations: Int[Array, ""]


def weights(
    rows: Float[Array, "m 3 _"],
    ties: Float[Array, "k n"],
    answers: Callable[[Float[Array, "_ n"]], Float[Array, "_ n"]],
    couples: Couples | None = None,
) -> tuple[Impulses, Tensions]:
    r"""Return $\rho$: the masses that contacts and joints feel, the same in all slip directions."""
    give = jnp.sum(rows * pushes(rows, answers, couples), axis=2)
    slip = jnp.maximum(give[:, 1], give[:, 2])
    give = jnp.stack([give[:, 0], slip, slip], axis=1)
    tied = jnp.sum(ties * answers(ties), axis=1) if len(ties) else jnp.zeros(0)
    return _reciprocal(give), _reciprocal(tied)


def pushes(
    rows: Float[Array, "m a _"],
    answers: Callable[[Float[Array, "_ n"]], Float[Array, "_ n"]],
    couples: Couples | None,
) -> Float[Array, "m a _"]:
    """Return the changes of velocities that impulses along rows make."""
    if couples is None:
        return answers(rows.reshape(-1, rows.shape[2])).reshape(rows.shape)
    return velocity_changes(rows, answers(jnp.eye(couples.dim)), couples)


class _Trial(NamedTuple):
    """One solve after the other: where the next begins, and what the last came to.

    `way` is the place in `_WAYS`, and `asked` how often the problem has asked again.
    """

    at: Found
    choice: Choice
    past: PyTree
    way: Int[Array, ""]
    asked: Int[Array, ""]
    done: Bool[Array, ""]
    status: NewtonStatus


def try_guess(problem: Contact, guess: Found) -> tuple[Found, NewtonStatus, Choice]:
    """Iterate from a guess until a solution is good; return it and the choice that led there."""
    law, (first, firm, past) = problem.law, problem.choice
    ways, none = jnp.asarray(_WAYS), jnp.asarray(0)
    unloaded = Found(guess.xi, *(jnp.zeros_like(x) for x in guess[1:]))

    def trial(it: _Trial) -> _Trial:
        one = problem._replace(law=law._replace(friction=ways[it.way] * law.friction))
        found, status = iterate(one, it.at, it.choice)
        status = status._replace(iterations=status.iterations + it.status.iterations)
        verdict = problem.judge(found, it.choice, it.past)
        solved = status.converged & (ways[it.way] == 1)
        again = solved & verdict.again & (it.asked < _MOST_ASKED)
        good = solved & verdict.good
        ends = good | (~again & (it.way == len(_WAYS) - 1))
        new = it._replace(at=found, done=ends, status=status._replace(converged=good))
        return lax.cond(ends, lambda: new, lambda: following(new, again, verdict))

    def following(it: _Trial, again: Bool[Array, ""], verdict: Verdict) -> _Trial:
        """Return what the next trial begins with."""
        way = it.way + jnp.where(again, 0, 1)
        cold = ~again & ((ways[way] == 0) | (ways[way] == _BONDED))
        at = jax.tree.map(lambda x, y: jnp.where(cold, x, y), unloaded, it.at)
        other = (verdict.choice, verdict.past, it.asked + 1)
        choice, then, asked = jax.tree.map(
            lambda x, y: jnp.where(again, x, y), other, (firm, past, none)
        )
        return it._replace(at=at, choice=choice, past=then, way=way, asked=asked)

    begun = NewtonStatus(jnp.asarray(False), jnp.asarray(jnp.inf), none)
    start = _Trial(guess, first, past, none, none, jnp.asarray(False), begun)
    end = lax.while_loop(lambda it: ~it.done, trial, start)
    return end.at, end.status, end.choice


def iterate(problem: Contact, guess: Found, choice: Choice) -> tuple[Found, NewtonStatus]:
    """Iterate from a guess, with one choice.

    Derivatives are taken once, where a round of iterations begins. A round that fails ends with
    sweeps from where it began, twice as many as the one before.
    """
    law, couples = problem.law, problem.couples
    rho, sigma = law.weights
    rows, ties, friction = law.rows, law.ties, law.friction
    masses = jnp.sum(rho[:, 0]) + jnp.sum(sigma)

    def find(xi: Velocity, z: Impulses, lam: Tensions) -> Found:
        return Found(xi, z, lam, impulse_of(rows, z, couples) + lam @ ties)

    def look(at: Found) -> _Seen:
        need = problem.need(at.xi) - at.impulse
        u, c = problem.speeds(at.xi, choice), problem.held(at.xi)
        left = jnp.abs(at.z - _allow(law, at.z - rho * u))
        rough = jnp.sum(left[:, 0]) + jnp.sum(jnp.abs(sigma * c))
        fine = jnp.sum(jnp.abs(need)) + jnp.sum(left[:, 1:])
        terms = law.terms + jnp.sum(jnp.abs(at.z)) + jnp.sum(jnp.abs(at.lam)) + SMALLEST
        size = jnp.maximum(fine / terms, rough / (terms + law.unseen * masses))
        hard = jnp.sum(jnp.abs(need)) / terms
        hard = jnp.maximum(hard, rough / (terms + law.rounding * masses))
        return _Seen(at, need, u, c, size, hard, terms)

    def newton(slopes: _Slopes, seen: _Seen, kappa: Scalar) -> _Seen:
        (xi, z, lam, _), (V, D, G) = seen.at, slopes
        stiff, y = kappa * sigma, z - rho * seen.u
        K, right = D + ties.T @ (stiff[:, None] * G), -seen.need - (stiff * seen.c) @ ties
        at = At(z, y, seen.u, rho, friction, law.pushed, law.touching)
        move, given = answer(K, right, rows, V, at, kappa, couples)  # (4)
        part = jnp.where(kappa > _STIFF, _until_one_lets_go(z, given), 1.0)
        lam = lam - part * stiff * (seen.c + G @ move)
        new = look(find(xi + part * move, z - part * given, lam))
        calm = jnp.sum(jnp.abs(D @ move)) <= _CALM * new.terms
        enough = calm & (new.hard <= _ACCEPT) & (new.size <= _AT_ODDS)
        return new._replace(size=jnp.where(enough, jnp.minimum(new.size, new.hard), new.size))

    def sweep(slopes: _Slopes, seen: _Seen, count: Int[Array, ""]) -> Found:
        contacts = Laws(rho, seen.u, slopes.V, friction, law.pushed, law.touching)
        pulls = problem.answers(ties) if len(ties) else ties
        joints = Joints(sigma, seen.c, slopes.G, pulls)
        begun = -problem.answers(seen.need[None])[0], seen.at.z, seen.at.lam
        give = pushes(rows, problem.answers, couples)
        move, z, lam = sweep_over(begun, contacts, give, joints, count, couples)
        return find(seen.at.xi + move, z, lam)

    def again(it: _Round) -> _Round:
        seen = look(it.at)
        seen = lax.cond(it.iterations > 0, lambda: seen, lambda: _first_look(seen))
        solved = _is_solved(seen, it.sweeps)
        return lax.cond(
            solved | (it.sweeps >= _MOST_SWEEPS),
            lambda: it._replace(size=seen.size, solved=solved, done=jnp.asarray(True)),
            lambda: improve(seen, it),
        )

    def improve(seen: _Seen, it: _Round) -> _Round:
        xi = seen.at.xi
        V, G = problem.slopes(xi, choice)
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
        last, _, _, _, count = lax.while_loop(tries, chord, begun)
        solved = last.size <= _ACCEPT
        at = lax.cond(solved, lambda: last.at, lambda: sweep(slopes, seen, it.sweeps))
        more = jnp.where(solved, it.sweeps, 2 * it.sweeps)
        return _Round(at, last.size, solved, solved, more, count)

    no, none = jnp.asarray(False), jnp.asarray(0)
    start = _Round(guess, jnp.asarray(jnp.inf), no, no, jnp.asarray(_SWEEPS), none)
    it = lax.while_loop(lambda it: ~it.done, again, start)
    return it.at, NewtonStatus(it.solved, it.size, it.iterations)


def _is_solved(seen: _Seen, sweeps: Int[Array, ""]) -> Bool[Array, ""]:
    """Tell whether everything is solved to round-off or, after sweeps, friction to `_TORN`."""
    torn = (sweeps > 2 * _SWEEPS) & (seen.hard <= _ACCEPT) & (seen.size <= _TORN)
    return (seen.size <= _ACCEPT) | torn


def _first_look(seen: _Seen) -> _Seen:
    """Return a place that asks for at least one iteration, unless it solves everything."""
    return seen._replace(size=jnp.where(seen.size <= _GUESSED, seen.size, jnp.inf))


def _allow(law: Law, y: Impulses) -> Impulses:
    z = project(y, law.friction, law.pushed)
    return jnp.where(law.touching[:, None], z, jnp.zeros_like(z))


def _until_one_lets_go(z: Impulses, less: Impulses) -> Scalar:
    """Return which part of a change takes the first contact that pushes to zero; at most one.

    Contacts that bear more than there are freedoms share their load as they like. Where they do not
    agree on it, stiffness makes the load move, and the first that has none left lets go.
    """
    push, lost = z[:, 0], less[:, 0]
    part = jnp.where((push > 0) & (lost > push), push / jnp.where(lost > 0, lost, 1.0), 1.0)
    return jnp.min(part)


def _reciprocal(x: Array) -> Array:
    return jnp.where(x > 0, 1 / jnp.where(x > 0, x, 1.0), 0.0)
