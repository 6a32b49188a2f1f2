"""Which rows of joints and wheels are independent, on the host."""

from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from retrax.errors import BadInput
from retrax.groups.base import Element
from retrax.mechanics.constraints import Rows
from retrax.mechanics.state import State
from retrax.numerics.checks import is_traced
from retrax.numerics.evaluate import evaluate

if TYPE_CHECKING:
    from retrax.mechanisms.system import MechanismSystem

# A row that leaves the span of others by less than this part of itself is one of them.
_DEPENDENT = 1e-9


class Owned(NamedTuple):
    """Rows of a constraint, and whose each is."""

    rows: Float[np.ndarray, "k dim"]
    owners: tuple[str, ...]


def rows_of(system: "MechanismSystem", g: Element) -> Owned:
    """Return the rows of all joints and wheels, with a unit of length and mass for each body.

    They act on velocities whose squares add up to twice the kinetic energy.
    """
    constraint = system.constraint
    if constraint is None:
        return Owned(np.zeros((0, system.group.dim)), ())
    rows = np.asarray(evaluate(_rows, system, g))
    owners = [c.name for c in constraint.connections for _ in range(c.law.count)]
    if constraint.rolling is not None:
        for one in constraint.rolling.contacts:
            owners += [one.name] * one.contact.count
    return Owned(rows @ inverse_root(system), tuple(owners))


def inverse_root(system: "MechanismSystem") -> Float[np.ndarray, "dim dim"]:
    """Return $L^{-T}$ for the inertia $LL^T$: from velocities of unit energy to velocities."""
    n, d = len(system.names), system.gravity.shape[0]
    turns = system.inertia.shape[1]
    each = turns + d
    root = np.zeros((n * each, n * each))
    inertia, mass = np.asarray(system.inertia), np.asarray(system.mass)
    for i in range(n):
        first = i * each
        lower = np.linalg.cholesky(inertia[i])
        root[first : first + turns, first : first + turns] = np.linalg.inv(lower).T
        rest = slice(first + turns, first + each)
        root[rest, rest] = np.eye(d) / np.sqrt(mass[i])
    return root


def _rows(system: "MechanismSystem", g: Element) -> Rows:
    assert system.constraint is not None
    return system.constraint.rows(g, jnp.zeros(()))


def independent(rows: Float[np.ndarray, "k dim"]) -> np.ndarray:
    """Tell of each row whether it is independent of those before it."""
    size = np.linalg.norm(rows, axis=1)
    basis, found = np.zeros((min(rows.shape), rows.shape[1])), np.zeros(len(rows), bool)
    count = 0
    for k, row in enumerate(rows):
        rest = row.copy()
        for _ in range(2):  # once more, against rounding
            rest -= basis[:count].T @ (basis[:count] @ rest)
        left = float(np.linalg.norm(rest))
        if left > _DEPENDENT * size[k] and count < len(basis):
            basis[count] = rest / left
            found[k], count = True, count + 1
    return found


def redundant(system: "MechanismSystem", state: State) -> tuple[str, ...]:
    """Return the owners of rows that depend on the rows before them."""
    rows, owners = rows_of(system, state.g)
    kept = independent(rows)
    names = [name for name, own in zip(owners, kept, strict=True) if not own]
    return tuple(dict.fromkeys(names))


def require_wheels_apart(system: "MechanismSystem", state: State) -> None:
    """Reject wheels that roll as joints and other wheels make them roll already.

    Their equations agree at every place, but not over a step that turns them.
    """
    joints = system.constraint
    if joints is None or joints.rolling is None or is_traced(*jax.tree.leaves((system, state))):
        return
    first = joints.position_count
    rows, owners = rows_of(system, state.g)
    found = zip(owners[first:], independent(rows)[first:], strict=True)
    names = dict.fromkeys(name for name, own in found if not own)
    if names:
        raise BadInput(
            f"{', '.join(map(repr, names))} may not slip where other wheels and joints leave no "
            "slip already, as two wheels on one axle do sideways: over a step that turns them such "
            "equations contradict each other. Let only one wheel of an axle roll."
        )


def freedoms(system: "MechanismSystem", state: State) -> int:
    """Return the dimension of the velocities that no row forbids."""
    rows, _ = rows_of(system, state.g)
    return system.group.dim - int(np.sum(independent(rows)))
