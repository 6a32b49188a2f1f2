"""Tracks of a picture as formulas in the numbers of a state: what a live page draws by.

The picture of a run is made from saved states by `retrax.show.pictures`; here each of its tracks is
found as a function of the numbers of one state, from pictures of random states, and compared with
the tracks of the run.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from retrax.engine.progress import quiet
from retrax.integrators.driven import Driven
from retrax.mechanics.state import State
from retrax.numerics.evaluate import evaluate
from retrax.show.pictures.choose import picture
from retrax.show.pictures.own import Draw
from retrax.show.pictures.things import Track
from retrax.trajectory.trajectory import Trajectory

# States with more numbers are drawn by functions that are linear in them.
_FEW = 26
_EXACT = 1e-8
# The states that tracks are compared at.
COMPARED = 64

# A term of a track: its factor, and the feature of the state that it multiplies.
_Term = tuple[float, int, int, int]


def tracks(run: Trajectory, draw: Draw | None = None) -> list[dict[str, Any]]:
    """Return, for each thing of the picture, its tracks, each column a sum of terms.

    A track that is no such sum is left out, and the page does not move its thing.
    """
    real = picture(run, draw)
    few = _numbers(run).shape[1] <= _FEW
    tries = [_Probe(run, draw, products=few, angles=False)]
    if few:
        tries.append(_Probe(run, draw, products=True, angles=True))
    return [
        {
            key: next((t for t in (x.terms(value, k, key) for x in tries) if t is not None), None)
            for key, value in thing.items()
            if isinstance(value, Track)
        }
        for k, thing in enumerate(real.things)
    ]


class _Probe:
    """A picture of random states, made when it is first needed, and features of the states."""

    def __init__(self, run: Trajectory, draw: Draw | None, products: bool, angles: bool):
        self.run, self.draw, self.features = run, draw, _features(run, products, angles)

    @cached_property
    def drawn(self) -> tuple[np.ndarray, list[dict[str, Any]]]:
        """The features of the states, and the things of their picture."""
        probe = random_states(self.run, 3 * len(self.features) + 20)
        try:
            things = picture(probe, self.draw).things
        except (ArithmeticError, ValueError, np.linalg.LinAlgError):
            things = []  # a picture that not every state has
        return _evaluate(_numbers(probe), self.features), things

    def terms(self, track: Track, k: int, key: str) -> list[list[_Term]] | None:
        """Write the columns of a track as sums of terms; `None` if they are no such sums."""
        known, things = self.drawn
        other = things[k].get(key) if k < len(things) else None
        if not isinstance(other, Track) or other.values.shape[1] != track.values.shape[1]:
            return None
        factors, *_ = np.linalg.lstsq(known, other.values, rcond=None)
        size = float(np.max(np.abs(factors))) or 1.0
        factors[np.abs(factors) < _EXACT * size] = 0.0
        if not _alike(known @ factors, other.values):
            return None
        # Lengths of arrows depend on the run: one factor for the whole track.
        run, last = self.run, len(track.values) - 1
        few = np.unique(np.linspace(0, last, min(last + 1, COMPARED)).astype(int))
        every = -(-len(run.t) // (last + 1))  # a picture may have a track for every few states only
        here = _evaluate(_numbers(run)[every * few], self.features) @ factors
        wanted = track.values[few]
        squares = float(np.sum(here * here))
        scale = float(np.sum(here * wanted)) / squares if squares else 1.0
        if not _alike(scale * here, wanted):
            return None
        return [
            [
                (float(f"{scale * factors[n, c]:.10g}"), *self.features[n])
                for n in np.flatnonzero(factors[:, c])
            ]
            for c in range(factors.shape[1])
        ]


def _numbers(run: Trajectory) -> Float[np.ndarray, "time n"]:
    """Return the numbers of all states: configuration, momentum."""
    leaves = jax.tree.leaves((run.states.g, run.states.momentum))
    return np.concatenate([np.asarray(x).reshape(len(run.t), -1) for x in leaves], axis=1)


def _features(run: Trajectory, products: bool, angles: bool) -> list[tuple[int, int, int]]:
    """Return features (kind, i, j) of numbers x: 1; x_i; x_i x_j; cos(x_i) x_j; sin(x_i) x_j.

    In the last two j = -1 stands for a factor of 1. Products are those of a configuration with a
    momentum.
    """
    total = _numbers(run).shape[1]
    own = total - np.asarray(run.states.momentum).shape[1]
    found = [(0, 0, 0), *((1, i, 0) for i in range(total))]
    if products:
        found += [(2, i, j) for i in range(own) for j in range(own, total)]
    if angles:
        found += [(kind, i, j) for kind in (3, 4) for i in range(own) for j in range(-1, own)]
    return found


def _evaluate(x: np.ndarray, features: Sequence[tuple[int, int, int]]) -> np.ndarray:
    """Return the features of all states, one column each."""

    def factor(j: int) -> np.ndarray:
        return np.ones(len(x)) if j < 0 else x[:, j]

    made = {
        0: lambda i, j: np.ones(len(x)),
        1: lambda i, j: x[:, i],
        2: lambda i, j: x[:, i] * x[:, j],
        3: lambda i, j: np.cos(x[:, i]) * factor(j),
        4: lambda i, j: np.sin(x[:, i]) * factor(j),
    }
    return np.stack([made[kind](i, j) for kind, i, j in features], axis=1)


def random_states(run: Trajectory, count: int) -> Trajectory:
    """Return a run through states at random, of the same system."""
    system = run.system
    assert system is not None
    space = system.configuration_space

    def points(seeds: Any) -> Any:
        return jax.vmap(lambda seed: space.random(jax.random.key(seed)))(seeds)

    g = evaluate(points, np.arange(count))
    size = float(np.max(np.abs(np.asarray(run.states.momentum)))) or 1.0
    momenta: Any = size * np.random.default_rng(2).standard_normal((count, system.group.dim))
    if system.flows or not system.has_momentum:
        momenta = np.zeros_like(momenta)
    t = np.arange(count) * float(run.h)
    return Trajectory(
        t=t,
        states=State(g, momenta, t),
        info=jax.tree.map(lambda x: np.zeros(count), quiet()),
        h=run.h,
        steps=count - 1,
        completed=count - 1,
        save_every=1,
        seconds=0.0,
        compile_seconds=0.0,
        provenance=run.provenance,
        system=system,
        # What a controller keeps and what contacts did is not known at these states.
        integrator=None if isinstance(run.integrator, Driven) or touches(run) else run.integrator,
    )


def touches(run: Trajectory) -> bool:
    """Return whether bodies of the run may touch."""
    return getattr(run.system, "contact", None) is not None


def _alike(found: np.ndarray, wanted: np.ndarray) -> bool:
    size = float(np.max(np.abs(wanted), initial=0.0)) or 1.0
    return bool(np.all(np.abs(found - wanted) <= 1e-6 * size))
