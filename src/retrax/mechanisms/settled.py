"""Random places at which single joints are closed, on the host.

A joint may be symmetric where it is closed and nowhere else. Whether a mechanism with loops can get
to such a place does not matter: what holds for every place of each joint holds for the whole.
"""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from retrax.mechanisms.body import GROUND
from retrax.mechanisms.joined import Connection
from retrax.mechanisms.laws import AbstractLaw, Blocks, Residual, Side
from retrax.mechanisms.pose import Pose
from retrax.mechanisms.rolling import AbstractContact, Touching
from retrax.numerics.evaluate import Evaluated

# Some places are lost: where a joint comes together the wrong way round.
_PLACES, _ITERATIONS, _CLOSED = 16, 40, 1e-12


class Settled(NamedTuple):
    """A joint at some places where it is closed.

    **Attributes:** `bodies`: their indices; `R`, `x`: where they are, along places and bodies;
    `blocks`: its rows, for each body along places.
    """

    bodies: tuple[int, ...]
    R: Float[np.ndarray, "places bodies d d"]
    x: Float[np.ndarray, "places bodies d"]
    blocks: tuple[Float[np.ndarray, "places k dim"], ...]


def sample_closed_joints(connections: tuple[Connection, ...], d: int) -> Iterator[Settled]:
    """Close every joint at a few random places; joints alike are closed side by side."""
    alike: dict[object, list[Connection]] = {}
    for c in connections:
        shapes = tuple(np.shape(leaf) for leaf in jax.tree.leaves(c.law))
        fixed = tuple(body == GROUND for body in c.bodies)
        alike.setdefault((jax.tree.structure(c.law), shapes, fixed), []).append(c)
    for joints in alike.values():
        yield from _settle(joints, d)


def _settle(joints: list[Connection], d: int) -> Iterator[Settled]:
    laws = jax.tree.map(
        lambda *x: np.stack([np.asarray(one) for one in x]), *(c.law for c in joints)
    )
    bodies = joints[0].bodies
    rng = np.random.default_rng(5)
    R, x = _random(rng, (len(joints), _PLACES, len(bodies)), d)
    for k, body in enumerate(bodies):
        if body == GROUND:
            R[:, :, k], x[:, :, k] = np.eye(d), 0.0
    free = [k for k, body in enumerate(bodies) if body != GROUND]
    residual, blocks, sides = _evaluate_laws(laws, R, x)
    for _ in range(_ITERATIONS):
        if np.max(np.abs(residual)) < _CLOSED:
            break
        rows = np.concatenate([blocks[k] for k in free], axis=-1)
        delta = -(np.linalg.pinv(rows, rcond=1e-10) @ residual[..., None])[..., 0]
        size = np.max(np.abs(delta), axis=-1, keepdims=True)
        delta = delta / np.maximum(size, 1.0)  # of at most about a radian
        for k, part in zip(free, np.split(delta, len(free), axis=-1), strict=True):
            R[:, :, k], x[:, :, k] = _advance(R[:, :, k], x[:, :, k], part)
        residual, blocks, sides = _evaluate_laws(laws, R, x)
    closed = np.max(np.abs(residual), axis=-1) < 1e3 * _CLOSED
    closed &= np.min(sides, axis=-1, initial=np.inf) > 0
    for i, joint in enumerate(joints):
        kept = closed[i]
        yield Settled(
            joint.bodies,
            R[i][kept],
            x[i][kept],
            tuple(np.asarray(block)[i][kept] for block in blocks),
        )


def sample_wheels(contacts: tuple[Touching, ...], d: int) -> Iterator[Settled]:
    """Look at what rolls at a few random places."""
    rng = np.random.default_rng(6)
    for one in contacts:
        R, x = _random(rng, (_PLACES, 1), d)
        yield Settled(
            (one.body,), R, x, (np.asarray(_evaluate_rows(one.contact, R[:, 0], x[:, 0])),)
        )


@Evaluated
def _evaluate_rows(
    contact: AbstractContact, R: Float[Array, "places d d"], x: Float[Array, "places d"]
) -> Float[Array, "places k dim"]:
    return jax.vmap(lambda R, x: contact.rows(Pose(R, x)))(R, x)


@Evaluated
def _evaluate_laws(
    laws: AbstractLaw,
    R: Float[Array, "joints places bodies d d"],
    x: Float[Array, "joints places bodies d"],
) -> tuple[Float[Array, "joints places k"], Blocks, Float[Array, "joints places sides"]]:
    """Return what many laws alike are broken by at many places, their rows and their sides."""

    def at(law: AbstractLaw, R: Array, x: Array) -> tuple[Residual, Blocks, Side]:
        poses = [Pose(R[k], x[k]) for k in range(R.shape[0])]
        return law.residual(*poses), law.rows(*poses), law.side(*poses)

    return jax.vmap(jax.vmap(at, in_axes=(None, 0, 0)))(laws, R, x)


def _random(
    rng: np.random.Generator, shape: tuple[int, ...], d: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return random rotations and places."""
    x = rng.normal(size=(*shape, d))
    turns = rng.normal(size=(*shape, 1 if d == 2 else 3))
    R = np.broadcast_to(np.eye(d), (*shape, d, d)).copy()
    return _advance(R, x, np.concatenate([turns, np.zeros_like(x)], axis=-1))


def _advance(R: np.ndarray, x: np.ndarray, delta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rotations and places moved along velocities: R exp(Omega), x + v."""
    if x.shape[-1] == 2:
        c, s = np.cos(delta[..., 0]), np.sin(delta[..., 0])
        turn = np.stack([np.stack([c, -s], -1), np.stack([s, c], -1)], -2)
        return R @ turn, x + delta[..., 1:]
    omega = delta[..., :3]
    angle = np.linalg.norm(omega, axis=-1)[..., None, None]
    hat = np.zeros((*omega.shape, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        hat[..., i, j], hat[..., j, i] = -omega[..., k], omega[..., k]
    first = np.sinc(angle / np.pi)
    second = np.sinc(angle / (2 * np.pi)) ** 2 / 2
    return R @ (np.eye(3) + first * hat + second * hat @ hat), x + delta[..., 3:]
