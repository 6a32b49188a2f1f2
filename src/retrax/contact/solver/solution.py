r"""Impulses and velocities of `complementarity`, and how they answer a change of the equations.

Where no contact is on the border between two cases of the law, those cases stay as they are under
small changes, and the solution is a smooth function of all that the equations depend on. With dots
for changes, (1) and (2) of `complementarity` become

$$
\begin{aligned}
R'\dot\xi + \dot R &= \sum_i\bigl(W_i^T\dot z_i + \dot W_i^Tz_i\bigr) + B^T\dot\lambda
    + \dot B^T\lambda, \qquad c'\dot\xi + \dot c = 0                               &&\text{(1)}\\
\dot z &= 0 \quad\text{(open)}, \qquad \dot u = V\dot\xi + \partial u = 0
    \quad\text{(sticks)}                                                           &&\text{(2)}\\
\dot u_n &= 0, \qquad \dot q = \bigl(\dot f(p + p_0) + f(\dot p + \dot p_0)\bigr)d
    - \frac{f(p + p_0)}{|u_t|}(1 - dd^T)\,\dot u_t \quad\text{(slips)}             &&\text{(3)}
\end{aligned}
$$

with the direction $d$ of friction. They are linear, and so solved as one iteration of
`complementarity` is, with a stiffness $\kappa$ that a few repetitions take out again. Loads that
contacts share in more than one way share their changes likewise.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import lu_factor, lu_solve
from jaxtyping import Array, Bool, Float

from retrax.contact.solver.complementarity import (
    Choice,
    Choices,
    Contact,
    Found,
    Law,
    Scalar,
    try_guess,
)
from retrax.contact.solver.coupled_blocks import Couples, spread
from retrax.numerics.newton import NewtonStatus
from retrax.numerics.small_matrices import partly_ordered_solve

_KAPPA = 1e8
_REPEATED = 4
# Elimination of so many velocities is written out, for native programs.
_WRITTEN_OUT = 18


def solve_contact(problem: Contact, guess: Found) -> tuple[Found, NewtonStatus]:
    """Solve (1) and (2) to round-off from a guess, with a solution that the problem calls good.

    Derivatives of the solution, forward and reverse, are those of the law and
    not those of the iteration.
    """
    # What functions close over becomes an argument, so that derivatives can reach it.
    xi, (choice, _, past) = guess.xi, problem.choice
    converted = [
        jax.closure_convert(function, *examples)
        for function, *examples in (
            (problem.need, xi),
            (problem.speeds, xi, choice),
            (problem.slopes, xi, choice),
            (problem.held, xi),
            (lambda push: problem.answers(push[None])[0], xi),
            (problem.judge, guess, choice, past),
        )
    ]
    functions, closed_over = zip(*converted, strict=True)
    equations = _Equations(functions, problem.couples)
    found, (solved, size, count, _) = _root(
        equations, problem.law, (guess, problem.choice), closed_over
    )
    return found, NewtonStatus(solved > 0, size, count.astype(int))


class _Equations(NamedTuple):
    """The functions of a solve, which close over nothing, and what velocities they are for."""

    functions: tuple[Callable, ...]
    couples: Couples | None


def _with(equations: _Equations, law: Law, choice: Choices, closed_over: tuple) -> Contact:
    """Return the equations whose functions close over these arrays."""
    functions, couples = equations
    need, speeds, slopes, held, answer, judge = (
        partial(lambda f, given, *x: f(*x, *given), function, given)
        for function, given in zip(functions, closed_over, strict=True)
    )
    return Contact(need, speeds, slopes, held, jax.vmap(answer), law, couples, judge, choice)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _root(
    equations: _Equations, law: Law, start: tuple[Found, Choices], closed_over: tuple
) -> tuple[Found, tuple[Scalar, Scalar, Scalar, Choice]]:
    """Iterate. How it went travels as floats, whose derivatives are ordinary zeros."""
    guess, choice = start
    found, status, chosen = try_guess(_with(equations, law, choice, closed_over), guess)
    solved, count = (jnp.asarray(x, float) for x in (status.converged, status.iterations))
    return found, (solved, status.residual, count, chosen)


@_root.defjvp
def _root_jvp(equations: _Equations, primals: tuple, changes: tuple) -> tuple:
    """Differentiate the solution, which depends on the equations, not on guess and sizes."""
    (found, status), (law, (_, choice), closed_over) = _root(equations, *primals), primals
    problem, couples = _with(equations, law, choice, closed_over), equations.couples
    xi, chosen, moved = found.xi, status[3], changes[2]

    def change_of(k: int, *at: Array) -> Array:
        return jax.jvp(partial(equations.functions[k], *at), closed_over[k], moved[k])[1]

    def speeds(xi: Float[Array, " n"]) -> Float[Array, "m 3"]:
        return problem.speeds(xi, chosen)

    new = changes[0]
    change = _Changes(
        *(change_of(0, xi), change_of(1, xi, chosen), change_of(3, xi), spread(new.rows, couples)),
        *(new.ties, new.friction, new.pushed),
    )
    at = _Solution(
        found.z,
        found.lam,
        speeds(xi),
        *(spread(law.rows, couples), law.ties, law.friction, law.pushed, law.touching),
        *law.weights,
    )
    slopes = (jax.jacfwd(f)(xi) for f in (problem.need, speeds, problem.held))
    return (found, status), (
        _tangents(at, change, *slopes),
        jax.tree.map(jnp.zeros_like, status),
    )


class _Solution(NamedTuple):
    """A solution, and what the law is made of there."""

    z: Float[Array, "m 3"]
    lam: Float[Array, " k"]
    u: Float[Array, "m 3"]
    rows: Float[Array, "m 3 n"]
    ties: Float[Array, "k n"]
    friction: Float[Array, " m"]
    pushed: Float[Array, " m"]
    touching: Bool[Array, " m"]
    rho: Float[Array, "m 3"]
    sigma: Float[Array, " k"]


class _Changes(NamedTuple):
    """How all that the equations depend on changes, the velocities held: need, speeds, joints."""

    need: Float[Array, " n"]
    u: Float[Array, "m 3"]
    c: Float[Array, " k"]
    rows: Float[Array, "m 3 n"]
    ties: Float[Array, "k n"]
    friction: Float[Array, " m"]
    pushed: Float[Array, " m"]


class _Case(NamedTuple):
    """The case of one contact, the direction of its friction, and how that turns with the slip."""

    pushes: Bool[Array, ""]
    slips: Bool[Array, ""]
    d: Float[Array, "2"]
    turns: Float[Array, "2 2"]


def _tangents(
    at: _Solution,
    change: _Changes,
    D: Float[Array, "n n"],
    V: Float[Array, "m 3 n"],
    G: Float[Array, "k n"],
) -> Found:
    """Return the changes of velocities and impulses; `D`, `V`, `G` are R', u' and c'."""
    one = _each(at)
    case = jax.vmap(_case)(one)
    stiff, E = _KAPPA * at.sigma, jax.vmap(_stiffness)(case, one)
    K = D + at.ties.T @ (stiff[:, None] * G)
    K = K + jnp.einsum("iak,ial->kl", at.rows, jnp.einsum("iab,ibl->ial", E, V))
    solved = _solver(K)
    new = jnp.einsum("iak,ia->k", change.rows, at.z) + at.lam @ change.ties
    moved = new - change.need

    def again(
        dxi: Float[Array, " n"], dz: Float[Array, "m 3"], dlam: Float[Array, " k"]
    ) -> tuple[Float[Array, " n"], Float[Array, "m 3"], Float[Array, " k"]]:
        du = jnp.einsum("iak,k->ia", V, dxi) + change.u
        dc = G @ dxi + change.c
        held = dz - jax.vmap(_off)(case, one, change.friction, change.pushed, dz, du)
        right = moved - D @ dxi + jnp.einsum("iak,ia->k", at.rows, held)  # (1)
        right = right + (dlam - stiff * dc) @ at.ties
        move = solved(right)
        dz = held - jnp.einsum("iab,ib->ia", E, jnp.einsum("iak,k->ia", V, move))
        return dxi + move, dz, dlam - stiff * (dc + G @ move)

    found = jnp.zeros_like(change.need), jnp.zeros_like(at.z), jnp.zeros_like(at.lam)
    for _ in range(_REPEATED):
        found = again(*found)
    _, dz, dlam = found
    return Found(*found, new + jnp.einsum("iak,ia->k", at.rows, dz) + dlam @ at.ties)


def _solver(K: Float[Array, "n n"]) -> Callable[[Float[Array, " n"]], Float[Array, " n"]]:
    """Return the solution of K x = b: written out, or with the factors that LAPACK finds."""
    if len(K) <= _WRITTEN_OUT:
        return lambda b: partly_ordered_solve(K, b, len(K))
    factors = lu_factor(K)
    return lambda b: lu_solve(factors, b)


class _One(NamedTuple):
    """One contact of a solution."""

    z: Float[Array, "3"]
    u: Float[Array, "3"]
    friction: Float[Array, ""]
    pushed: Float[Array, ""]
    touching: Bool[Array, ""]
    rho: Float[Array, "3"]


def _each(at: _Solution) -> _One:
    """Return all contacts, along a first axis."""
    parts: list[Any] = [at.z, at.u, at.friction, at.pushed, at.touching, at.rho]
    return _One(*parts)


def _case(at: _One) -> _Case:
    y = at.z - at.rho * at.u
    size = jnp.sqrt(y[1] * y[1] + y[2] * y[2])
    limit = at.friction * (jnp.maximum(y[0], 0.0) + at.pushed)
    safe = jnp.where(size > 0, size, 1.0)
    d, share = y[1:] / safe, jnp.minimum(limit / safe, 1.0)
    loose = 1 / jnp.maximum(1 - share, 1 / _KAPPA)
    pushes = at.touching & (y[0] > 0)
    closed = at.touching & ((y[0] > 0) | (at.pushed > 0))
    turns = share * loose * at.rho[1] * (jnp.eye(2) - d[:, None] * d[None])
    # An open contact slips without a direction: its friction stays zero.
    slips = (size > limit) | ~closed
    return _Case(pushes, slips, jnp.where(closed, d, 0.0), jnp.where(closed, turns, 0.0))


def _stiffness(case: _Case, at: _One) -> Float[Array, "3 3"]:
    """Return how a contact answers velocities."""
    push = jnp.where(case.pushes, _KAPPA * at.rho[0], 0.0)
    across = jnp.where(case.slips, case.turns, _KAPPA * at.rho[1] * jnp.eye(2))
    couples = jnp.where(case.slips, at.friction * push * case.d, 0.0)
    top = jnp.stack([push, jnp.zeros(()), jnp.zeros(())])
    return jnp.concatenate([top[None], jnp.concatenate([couples[:, None], across], axis=1)])


def _off(
    case: _Case,
    at: _One,
    dfriction: Float[Array, ""],
    dpushed: Float[Array, ""],
    dz: Float[Array, "3"],
    du: Float[Array, "3"],
) -> Float[Array, "3"]:
    """Return how far a change of impulses is from (2) and (3)."""
    along = jnp.where(case.pushes, _KAPPA * at.rho[0] * du[0], dz[0])
    grows = dfriction * (at.z[0] + at.pushed) + at.friction * (dz[0] - along + dpushed)
    slides = dz[1:] - grows * case.d + case.turns @ du[1:]
    across = jnp.where(case.slips, slides, _KAPPA * at.rho[1] * du[1:])
    return jnp.concatenate([along[None], across])
