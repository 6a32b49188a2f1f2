r"""Symmetries of a mechanism: rigid motions of the whole, and turns of single bodies.

Moving all bodies as one by $(\omega, v)$ gives each the velocity

$$ \Omega_i = R_i^T\omega, \qquad v_i = v + \omega\times x_i \tag{1} $$

and has the momentum $\omega\cdot L + v\cdot P$ with the angular momentum $L = \sum R_iJ_i\Omega_i
+ m_ix_i\times v_i$ about the origin and $P = \sum m_iv_i$. This is no translation of the group, for
positions turn too. Turning one body about an axis $\zeta$ of its own has the momentum
$\zeta\cdot J_i\Omega_i$. Either is kept where no force works on it and no joint, wheel or contact
crosses it, wherever the bodies are; so they are looked for at random places, as null spaces.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from retrax.errors import BadInput
from retrax.groups.base import Coordinates, Element
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Symmetries, axis_or_components, pushes
from retrax.mechanisms.body import GROUND
from retrax.mechanisms.joined import Joints
from retrax.mechanisms.settled import Settled, sample_closed_joints, sample_wheels
from retrax.numerics.evaluate import Evaluated
from retrax.numerics.known import read_numbers
from retrax.numerics.small_matrices import cross, echelon, null_space

if TYPE_CHECKING:
    from retrax.mechanisms.system import MechanismSystem

# Rates below this, relative to the largest, count as zero.
_TOLERANCE = 1e-9
# Forces below this part of |mu||xi| are measured by that: they may be nothing but rounding.
_FAINT = 1e-4
_SAMPLES = 12


def rigid_velocities(
    system: "MechanismSystem", g: Element, motion: Float[Array, " six"]
) -> Coordinates:
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
    """What forces do along motions of the whole and turns of each body; the size of |mu||xi|.

    `pushes` and `twists` are what contacts may do along them, a row for each of their impulses.
    """

    forces: Array | np.ndarray
    torques: Array | np.ndarray
    size: Array | np.ndarray
    pushes: Array | np.ndarray
    twists: Array | np.ndarray


@Evaluated
def _rates(system: "MechanismSystem") -> _Rates:
    """Return the rates at random places and velocities."""
    n, d, turns = len(system.names), system.gravity.shape[0], system.inertia.shape[1]

    def at(key: Key[Array, ""]) -> _Rates:
        keys = jax.random.split(key, 3)
        g = system.group.random(keys[0])
        xi = jax.random.normal(keys[1], (system.group.dim,), jnp.float64)
        t = jax.random.uniform(keys[2], (), jnp.float64)
        mu = system.at_time(t).momentum(g, xi)
        force = system.total_force(g, xi, mu, t)
        motions = jax.vmap(lambda e: rigid_velocities(system, g, e))(jnp.eye(turns + d))
        torque = (force + system.group.coad(xi, mu)).reshape(n, -1)[:, :turns]
        size = jnp.max(jnp.abs(mu)) * jnp.max(jnp.abs(xi))
        touch = jnp.zeros((0, len(mu))) if system.contact is None else pushes(system.contact, g)
        twists = touch.reshape(len(touch), n, len(mu) // n)[:, :, :turns]
        return _Rates(motions @ force, torque, size, touch @ motions.T, twists)

    return jax.vmap(at)(jax.random.split(jax.random.key(7), _SAMPLES))


def find_motions(system: "MechanismSystem") -> Symmetries:
    """Find the rigid motions and the turns of single bodies whose momenta are kept."""
    found = read_numbers(_rates(system), system.constraint)
    if found is None or found.members:
        raise BadInput(
            f"JAX hides the numbers in which to find the symmetries of the {system.name}: look for "
            "invariants outside of jax.jit and jax.vmap."
        )
    forces, torques, size, touch, twists = (np.asarray(x) for x in found.values[0])
    n, turns, dim = len(system.names), system.inertia.shape[1], system.group.dim
    constraint = system.constraint
    whole = _force_free(forces, size)
    axes = [_force_free(torques[:, i], size) for i in range(n)]
    for place in () if constraint is None else _places(constraint):
        if GROUND in place.bodies or len(place.bodies) == 1:
            whole = _null_part(whole, _across(place, turns))
        for body, block in zip(place.bodies, place.blocks, strict=True):
            if body != GROUND:
                axes[body] = _null_part(axes[body], block[:, :, :turns])
    if touch.size:
        faint = _FAINT * float(np.max(np.abs(touch)))
        whole = _null_part(whole, touch, faint)
        axes = [_null_part(own, twists[:, :, i], faint) for i, own in enumerate(axes)]
    spins = np.zeros((sum(map(len, axes)), n, dim // n))
    spins[np.arange(len(spins)), np.repeat(np.arange(n), [len(a) for a in axes]), :turns] = (
        np.concatenate(axes)
    )
    return Symmetries(np.zeros((0, dim)), spins.reshape(-1, dim), whole)


def _places(constraint: Joints) -> Iterator[Settled]:
    """Look at all joints and wheels."""
    yield from sample_closed_joints(constraint.connections, constraint.d)
    if constraint.rolling is not None:
        yield from sample_wheels(constraint.rolling.contacts, constraint.d)


def _force_free(forces: Float[np.ndarray, "samples m"], size: np.ndarray) -> np.ndarray:
    """Return the directions along which no force acts, measured by the largest of each state."""
    fine = np.isfinite(forces).all(axis=1)  # an energy may be singular at a random place
    scale = np.maximum(np.max(np.abs(forces[fine]), axis=1), _FAINT * size[fine])
    relative = forces[fine] / np.maximum(scale, np.finfo(float).tiny)[:, None]
    return null_space(relative, _TOLERANCE * np.sqrt(len(relative)))


def _null_part(
    kept: Float[np.ndarray, "m q"],
    rows: Float[np.ndarray, "places k q"],
    faint: float = np.finfo(float).tiny,
) -> np.ndarray:
    """Return the part of a span of directions that rows do not cross.

    Rows smaller than `faint` are measured by that: they may be nothing but rounding.
    """
    if not len(kept) or not len(rows):  # without rows nothing is known about this joint
        return kept[:0]
    across = rows.reshape(-1, kept.shape[1])
    size = max(float(np.max(np.abs(across), initial=0.0)), faint)
    inside = null_space(across @ kept.T / size, _TOLERANCE * np.sqrt(max(len(across), 1)))
    return echelon(_orthonormal(inside @ kept))


def _orthonormal(rows: np.ndarray) -> np.ndarray:
    return np.linalg.qr(rows.T)[0].T if len(rows) else rows


def _across(place: Settled, turns: int) -> Float[np.ndarray, "places k motions"]:
    """Return how fast a motion of the whole would break a joint, a column for each motion."""
    total = 0.0
    for k, body in enumerate(place.bodies):
        if body == GROUND:
            continue
        x, R = place.x[:, k], place.R[:, k]
        if turns == 1:
            swept = np.stack([-x[:, 1], x[:, 0]], axis=-1)[:, :, None]
            top = np.concatenate([np.ones((len(x), 1, 1)), np.zeros((len(x), 1, 2))], axis=-1)
            rest = np.concatenate([swept, np.broadcast_to(np.eye(2), (len(x), 2, 2))], axis=-1)
        else:
            hat = np.cross(np.eye(3)[None], x[:, None])  # rows e_i x x
            swept = np.swapaxes(hat, 1, 2)
            still = np.zeros((len(x), 3, 3))
            top = np.concatenate([np.swapaxes(R, 1, 2), still], axis=-1)
            rest = np.concatenate([swept, np.broadcast_to(np.eye(3), (len(x), 3, 3))], axis=-1)
        total = total + place.blocks[k] @ np.concatenate([top, rest], axis=1)  # (1)
    return np.asarray(total)


def momenta(
    system: "MechanismSystem", symmetries: Symmetries, state: State
) -> dict[str, Float[Array, ""]]:
    """Return the momenta of all symmetries, by name."""
    mu = state.momentum
    n, turns = len(system.names), system.inertia.shape[1]
    found = {}
    for row in symmetries.motions:
        velocity = rigid_velocities(system, state.g, jnp.asarray(row))
        found[_name_motion(row, turns)] = velocity @ mu
    each = len(mu) // n
    for row in symmetries.body:
        i = int(np.flatnonzero(row)[0]) // each
        axis = row[i * each : i * each + turns]
        along = "" if turns == 1 else f" {axis_or_components(axis, 'e')}"
        found[f"spin of {system.names[i]}{along}"] = jnp.asarray(row) @ mu
    return found


def _name_motion(row: np.ndarray, turns: int) -> str:
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
    p = (p[:2] if turns == 1 else p) + 0.0
    along = float(omega @ v)
    travel = f", with {along:.4g} along it" if abs(along) > _TOLERANCE else ""
    return f"{about} about ({', '.join(f'{x:.4g}' for x in p)}){travel}"
