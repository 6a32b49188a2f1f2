r"""Symmetries of a mechanism: rigid motions of the whole, and turns of single bodies.

Moving all bodies as one by $(\omega, v)$ gives each the velocity

$$ \Omega_i = R_i^T\omega, \qquad v_i = v + \omega\times x_i \tag{1} $$

and has the momentum $\omega\cdot L + v\cdot P$ with the angular momentum $L = \sum R_iJ_i\Omega_i
+ m_ix_i\times v_i$ about the origin and $P = \sum m_iv_i$. This is no translation of the group, for
positions turn too. Turning one body about an axis $\zeta$ of its own has the momentum
$\zeta\cdot J_i\Omega_i$. Either is kept where no force works on it and no joint or wheel crosses
it, wherever the bodies are; so they are looked for at random places, as null spaces.
"""

from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from retrax.errors import BadInput
from retrax.groups.base import Coordinates, Element
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Symmetries, axis_or_components
from retrax.mechanisms.pose import Pose
from retrax.numerics.evaluate import Evaluated
from retrax.numerics.known import known
from retrax.numerics.small_matrices import cross, null_space

if TYPE_CHECKING:
    from retrax.mechanisms.system import MechanismSystem

# Rates below this, relative to the largest, count as zero.
_TOLERANCE = 1e-9
_SAMPLES = 12


def moved(system: "MechanismSystem", g: Element, motion: Float[Array, " six"]) -> Coordinates:
    """Return the velocity (1) of all bodies, for (omega, v) or, in the plane, three numbers."""
    R, x = g
    turns = system.inertia.shape[1]
    omega, v = motion[:turns], motion[turns:]

    def each(R: Float[Array, "d d"], x: Float[Array, " d"]) -> Float[Array, " dim"]:
        if turns == 1:
            swept = omega[0] * jnp.stack([-x[1], x[0]])
            return jnp.concatenate([omega, v + swept])
        return jnp.concatenate([R.T @ omega, v + cross(omega, x)])  # (1)

    return jax.vmap(each)(R, x).reshape(-1)


class _Rates(NamedTuple):
    """What forces do along motions of the whole and turns of each body, and joints across them."""

    forces: Float[Array, "samples six"]
    joints: Float[Array, "samples k six"]
    torques: Float[Array, "samples n turns"]
    held: Float[Array, "samples n k turns"]
    size: Float[Array, " samples"]


def _rates(system: "MechanismSystem", g: Element, xi: Coordinates, t: Float[Array, ""]) -> _Rates:
    n, d, turns = len(system.names), system.gravity.shape[0], system.inertia.shape[1]
    mu = system.at_time(t).momentum(g, xi)
    force = system.total_force(g, xi, mu, t)
    motions = jax.vmap(lambda e: moved(system, g, e))(jnp.eye(turns + d))
    torque = (force + system.group.coad(xi, mu)).reshape(n, -1)[:, :turns]
    constraint = system.constraint
    if constraint is None:
        across = jnp.zeros((0, turns + d))
        held = jnp.zeros((n, 0, turns))
    else:
        across = jax.vmap(lambda xi: constraint.violation(g, xi, t), out_axes=1)(motions)
        held = _held(system, g)
    size = jnp.max(jnp.abs(mu)) * jnp.max(jnp.abs(xi))
    return _Rates(motions @ force, across, torque, held, size)


def _held(system: "MechanismSystem", g: Element) -> Float[Array, "n k turns"]:
    """Return, for each body, the squared rows of joints and wheels on its turning: R^T R of them.

    A null vector of their Gram matrix is a null vector of the rows.
    """
    constraint = system.constraint
    assert constraint is not None
    turns = system.inertia.shape[1]
    sums = [jnp.zeros((turns, turns)) for _ in system.names]
    for c in constraint.connections:
        for body, block in zip(c.bodies, c.law.rows(*c.poses(g)), strict=True):
            if body >= 0:
                sums[body] = sums[body] + block[:, :turns].T @ block[:, :turns]
    for one in () if constraint.rolling is None else constraint.rolling.contacts:
        block = one.contact.rows(Pose(g[0][one.body], g[1][one.body]))[:, :turns]
        sums[one.body] = sums[one.body] + block.T @ block
    return jnp.stack(sums)


@Evaluated
def _sampled(system: "MechanismSystem") -> _Rates:
    """Return the rates at random places and velocities."""
    dim = system.group.dim

    def at(key: Key[Array, ""]) -> _Rates:
        keys = jax.random.split(key, 3)
        g = system.group.random(keys[0])
        xi = jax.random.normal(keys[1], (dim,), jnp.float64)
        return _rates(system, g, xi, jax.random.uniform(keys[2], (), jnp.float64))

    return jax.vmap(at)(jax.random.split(jax.random.key(7), _SAMPLES))


def find_motions(system: "MechanismSystem") -> Symmetries:
    """Find the rigid motions and the turns of single bodies whose momenta are kept."""
    found = known(_sampled(system))
    if found is None:
        raise BadInput(
            f"jax.jit hides the numbers in which to find the symmetries of the {system.name}: look "
            "for invariants outside of jax.jit."
        )
    rates = _Rates(*(np.asarray(x) for x in found.values[0]))
    n, turns, dim = len(system.names), system.inertia.shape[1], system.group.dim
    whole = _kept(rates.forces, rates.joints, rates.size)
    spins = []
    for i in range(n):
        for axis in _kept(rates.torques[:, i], rates.held[:, i], rates.size):
            row = np.zeros(dim)
            first = i * (dim // n)
            row[first : first + turns] = axis
            spins.append(row)
    body = np.array(spins).reshape(-1, dim)
    return Symmetries(np.zeros((0, dim)), body, whole)


def _kept(forces: np.ndarray, across: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return the null space of forces, measured by the state of each, and of rows."""
    fine = np.isfinite(forces).all(axis=1)  # an energy may be singular at a random place
    scale = np.maximum(np.max(np.abs(forces[fine]), axis=1), 1e-4 * size[fine])
    relative = forces[fine] / np.maximum(scale, np.finfo(float).tiny)[:, None]
    rows = across.reshape(-1, forces.shape[1])
    largest = max(float(np.max(np.abs(rows), initial=0.0)), np.finfo(float).tiny)
    both = np.concatenate([relative, rows / largest])
    return null_space(both, _TOLERANCE * np.sqrt(len(both)))


def momenta(
    system: "MechanismSystem", symmetries: Symmetries, state: State
) -> dict[str, Float[Array, ""]]:
    """Return the momenta of all symmetries, by name."""
    mu = state.momentum
    n, turns = len(system.names), system.inertia.shape[1]
    found = {}
    for row in symmetries.motions:
        velocity = moved(system, state.g, jnp.asarray(row))
        found[_named(row, turns)] = velocity @ mu
    each = len(mu) // n
    for row in symmetries.body:
        i = int(np.flatnonzero(row)[0]) // each
        axis = row[i * each : i * each + turns]
        along = "" if turns == 1 else f" {axis_or_components(axis, 'e')}"
        found[f"spin of {system.names[i]}{along}"] = jnp.asarray(row) @ mu
    return found


def _named(row: np.ndarray, turns: int) -> str:
    omega, v = row[:turns], row[turns:]
    if not omega.any():
        return f"momentum {axis_or_components(v, 'e')}"
    if turns == 1:
        omega = np.array([0.0, 0.0, omega[0]])
        v = np.array([*v, 0.0])
    about = (
        "angular momentum" if turns == 1 else f"angular momentum {axis_or_components(omega, 'e')}"
    )
    if not v.any():
        return about
    # v = -omega x p for a turn about an axis through p, and the rest is a travel along it.
    p = np.cross(omega, v) / (omega @ omega)
    p = p[:2] if turns == 1 else p
    along = float(omega @ v)
    travel = f", with {along:.4g} along it" if abs(along) > _TOLERANCE else ""
    return f"{about} about ({', '.join(f'{x:.4g}' for x in p)}){travel}"
