r"""Why contacts of a step could not be solved, found out on the host.

Impulses $z$ at the start of a step change the speeds of contacts by $Az$, $A = W\,\partial_\mu\xi\,
W^T$. A contact that slips along $d$ with the friction $f$ answers its own push $p$ by

$$ \Delta u_n = (A_{nn} - f\,A_{nt}\cdot d)\,p. \tag{1} $$

Where this is not positive, pushing harder makes it sink faster: Painlevé's case, in which rigid
bodies under Coulomb's law have no motion, or several.

References: [AcaryBrogliato2008].
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.mechanics.reactions import answers
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.evaluate import evaluate

# Sweeps over the linear problem, and what they may leave of the impulses where it can be solved.
_SWEEPS, _SOLVED = 2000, 1e-8


class _Problem(NamedTuple):
    """Contacts at the start of a step: gaps, speeds now and with the forces, A, friction."""

    gap: np.ndarray | Array
    now: np.ndarray | Array
    free: np.ndarray | Array
    rows: np.ndarray | Array
    give: np.ndarray | Array
    ties: np.ndarray | Array
    tied: np.ndarray | Array
    friction: np.ndarray | Array


def fault_of_contact(system: AbstractGroupSystem, state: State, h: float) -> str:
    """Say which contact a step of size `h` could not solve, and whether it is Painlevé's case."""
    seen = evaluate(_problem, system, jax.tree.map(jnp.asarray, state), jnp.asarray(h))
    problem = _Problem(*(np.asarray(x) for x in seen))
    A = _delassus(problem)
    left, touching = _find_residuals(problem, A, h)
    names = system.contact.names
    jammed = [_jam(problem, A, i) if touching[i] else 1.0 for i in range(len(names))]
    worst = int(np.argmin(jammed))
    if jammed[worst] <= 0:
        return _painleve(problem, A, worst, names[worst])
    worst = int(np.argmax(left))
    if left[worst] > _SOLVED:
        return (
            f"The contact {names[worst]!r} could not be solved: {left[worst]:.1e} of the impulses "
            f"is left of its law after {_SWEEPS} sweeps over all contacts, more than of any other, "
            f"with friction {float(problem.friction[worst]):g} and a gap of "
            f"{float(problem.gap[worst]):.2g} m. Contacts that push against each other, as those "
            "of a body that is wedged in, need not have an answer."
        )
    nearest = int(np.argmin(problem.gap))
    return (
        f"The contact {names[nearest]!r}, whose gap of {float(problem.gap[nearest]):.2g} m is the "
        f"smallest, could not be solved together with the others and with joints: {sum(touching)} "
        f"of {len(names)} contacts push, as far as the velocities at the start of the step tell."
    )


def _painleve(problem: _Problem, A: np.ndarray, i: int, name: str) -> str:
    friction, slip = float(problem.friction[i]), float(np.linalg.norm(problem.now[i, 1:]))
    own, across = A[3 * i, 3 * i], float(np.linalg.norm(A[3 * i, 3 * i + 1 : 3 * i + 3]))
    return (
        f"The contact {name!r} cannot be solved, and it is Painlevé's case: with friction "
        f"{friction:g}, pushing harder makes it sink faster. An impulse of 1 N s opens it by "
        f"{own:.3g} m/s, and the friction that comes with it closes it by up to "
        f"{friction * across:.3g} m/s; it slips at {slip:.3g} m/s and its gap is "
        f"{float(problem.gap[i]):.2g} m. Rigid bodies under Coulomb's law have no motion there, or "
        f"several: a friction below {own / across:.3g} has one."
    )


def _jam(problem: _Problem, A: np.ndarray, i: int) -> float:
    """Return (1) relative to the first term, in the worst direction of slip."""
    own, across = A[3 * i, 3 * i], np.linalg.norm(A[3 * i, 3 * i + 1 : 3 * i + 3])
    return float(1 - problem.friction[i] * across / own) if own > 0 else 1.0


def _delassus(problem: _Problem) -> np.ndarray:
    """Return A, with joints that hold."""
    W, Y, G, X = (np.asarray(x) for x in (problem.rows, problem.give, problem.ties, problem.tied))
    W = W.reshape(-1, W.shape[2])
    across = W @ X.T
    return W @ Y.T - across @ np.linalg.pinv(G @ X.T) @ across.T


def _find_residuals(problem: _Problem, A: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """Sweep over the linear problem; return the residuals, and which contacts have pushed."""
    count = len(problem.gap)
    u = np.array(problem.free)
    u[:, 0] += problem.gap / h
    z, diagonal = np.zeros((count, 3)), np.diag(A).reshape(count, 3)
    rho = 1 / np.maximum(diagonal, np.finfo(float).tiny)
    rho[:, 1:] = np.min(rho[:, 1:], axis=1, keepdims=True)
    blocks = A.reshape(count, 3, count, 3)

    def allow(i: int) -> np.ndarray:
        y = z[i] - rho[i] * (u[i] + np.einsum("ajb,jb->a", blocks[i], z))
        push, across = max(y[0], 0.0), float(np.linalg.norm(y[1:]))
        limit = problem.friction[i] * push
        return np.array([push, *(y[1:] * (limit / across if across > limit else 1.0))])

    pushed, largest = np.zeros(count, bool), np.finfo(float).tiny
    with np.errstate(all="ignore"):
        for _ in range(_SWEEPS):
            before = z.copy()
            for i in range(count):
                z[i] = allow(i)
            pushed, largest = pushed | ~(z[:, 0] <= 0), max(largest, float(np.max(np.abs(z))))
            if not np.isfinite(z).all() or np.array_equal(before, z):
                break
        left = np.array([np.linalg.norm(z[i] - allow(i)) for i in range(count)])
        left = left / largest
    return np.where(np.isfinite(left), left, 1.0), pushed


def _problem(system: AbstractGroupSystem, state: State, h: Float[Array, ""]) -> _Problem:
    g, mu, t = state.g, state.momentum, state.t
    now, touch = system.at_time(t), system.contact.look(g)
    xi = now.velocity(g, mu)
    pushed = mu + h * (system.group.coad(xi, mu) + now.total_force(g, xi, mu, t))
    held = jnp.zeros((0, system.group.dim))
    ties = held if system.constraint is None else system.constraint.rows(g, t)
    rows = touch.rows
    return _Problem(
        touch.gap,
        jnp.einsum("iak,k->ia", rows, xi),
        jnp.einsum("iak,k->ia", rows, now.velocity(g, pushed)),
        rows,
        answers(now, rows.reshape(-1, rows.shape[2]), g, mu),
        ties,
        answers(now, ties, g, mu) if len(ties) else ties,
        system.contact.friction,
    )
