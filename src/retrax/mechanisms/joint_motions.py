"""How the joints of a mechanism move along a run, and what they transmit."""

import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np

from retrax.errors import BadInput
from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.composition import Composition
from retrax.integrators.driven import Driven
from retrax.mechanisms.joined import Connection
from retrax.mechanisms.loads import Load, Motion, Part, load_of, motion_of, part, part_names
from retrax.mechanisms.system import MechanismSystem
from retrax.numerics.compositions import fractions
from retrax.numerics.evaluate import Evaluated
from retrax.trajectory.observe import Values, in_blocks, make_picker

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory

# Two turns at the most between saved states (rad), foretold by the rates there to this much (rad).
_FARTHEST, _FORETOLD = 4 * math.pi, 0.3


class JointMotions(Mapping[str, "JointMotion"]):
    """The joints and wheels of a run, by name."""

    def __init__(self, run: "Trajectory"):
        if not isinstance(run.system, MechanismSystem):
            raise BadInput(
                f"the {run.provenance['system']} is not a mechanism, so it has no joints."
            )
        self._run, self._system = run, run.system

    def __getitem__(self, name: str) -> "JointMotion":
        return JointMotion(self._run, self._system, name)

    def __iter__(self) -> Iterator[str]:
        return iter(part_names(self._system))

    def __len__(self) -> int:
        return len(part_names(self._system))

    def __contains__(self, name: object) -> bool:
        return name in part_names(self._system)

    def __repr__(self) -> str:
        return f"<joints {', '.join(map(repr, self))}>"


class _Moved(NamedTuple):
    """The coordinates of a joint and their rates, along states."""

    values: np.ndarray
    rates: np.ndarray


class _Loaded(NamedTuple):
    """The force and the torque of a joint, along states."""

    force: np.ndarray
    torque: np.ndarray


class JointMotion:
    """A joint or wheel along a run: all arrays have a row for each saved state.

    **Attributes:** `name`; `kind`: its class, such as "Revolute".
    """

    def __init__(self, run: "Trajectory", system: MechanismSystem, name: str):
        self._run, self._part, self.name = run, part(system, name), name
        self.kind = self._part.kind

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name!r} along {len(self._run.t)} states>"

    @property
    def angle(self) -> Values:
        """The angle of the second body against the first (rad), zero as drawn.

        It goes on beyond half a turn. Saved states tell it up to whole turns, and the rates at them
        which turn it is; `BadInput` where they lie too far apart for that. A joint with two angles
        has a column for each.
        """
        chosen = self._choose("angle", angles=True)
        wrapped, rates = self._motion.values[:, chosen], self._motion.rates[:, chosen]
        lead = None if self._part.joint is None else self._part.joint.lead
        if lead is not None:  # the travel tells the turns apart
            wound = self._motion.values[:, 1] / float(lead)
            off = wrapped[:, 0] - wound
            return wound + np.arctan2(np.sin(off), np.cos(off))
        t = np.asarray(self._run.t)
        columns = [self._continue(t, wrapped[:, k], rates[:, k]) for k in range(len(chosen))]
        return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)

    @property
    def position(self) -> Values:
        """The travel of the second body against the first (m), zero as drawn.

        A joint with two travels has a column for each.
        """
        chosen = self._choose("position", angles=False)
        found = self._motion.values[:, chosen]
        return found[:, 0] if len(chosen) == 1 else found

    @property
    def rate(self) -> Values:
        """The rate of the angle (rad/s) or of the position (m/s).

        A joint with several coordinates has a column for each, in the order of its docstring; a
        Screw tells the rate of its angle.
        """
        rates = self._motion.rates
        return rates[:, 0] if rates.shape[1] == 1 or self.kind == "Screw" else rates

    @property
    def force(self) -> Values:
        """The force of the joint on its second body, in space axes (N).

        From the multipliers of continuous time at the saved states; of systems with contact from
        the impulses of the steps that end there. Of joints that share a load in
        more than one way it is the smallest. A wheel tells the force of the ground on it, a Gear or
        Rack what it does to the second body of its second joint: along the travel of a rack, none
        from a Gear, for a mesh couples coordinates and has no forces between teeth.
        """
        return self._load.force

    @property
    def torque(self) -> Values:
        """The torque of the joint on its second body about the point of the joint (N m).

        In space axes; in the plane one number. The point moves with the second body. A wheel tells
        it about its centre of mass, a Gear or Rack about the point of its second joint.
        """
        return self._load.torque

    @cached_property
    def _motion(self) -> _Moved:
        joint = self._part.joint
        if joint is None or not joint.coordinates:
            raise BadInput(
                f"the {self.kind} {self.name!r} has no single angle or position; it has a force "
                "and a torque."
            )
        xi = np.asarray(self._run.velocity)
        seen = in_blocks(_moving, make_picker((self._run.states.g, xi)), len(xi), joint)
        return _Moved(*seen)

    @cached_property
    def _load(self) -> _Loaded:
        lam = np.asarray(self._run.multipliers)
        seen = in_blocks(_load, make_picker((self._run.states.g, lam)), len(lam), self._part)
        return _Loaded(*seen)

    def _choose(self, what: str, angles: bool) -> list[int]:
        joint = self._part.joint
        coordinates = () if joint is None else joint.coordinates
        chosen = [k for k, c in enumerate(coordinates) if c.is_angle == angles]
        if not chosen:
            raise BadInput(f"the {self.kind} {self.name!r} has no {what}.")
        return chosen

    def _continue(self, t: np.ndarray, wrapped: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """Add whole turns to an angle, as many as its rates foretell."""
        passed = np.abs(np.diff(t))
        foretold = np.diff(t) * (rates[1:] + rates[:-1]) / 2
        off = np.diff(wrapped) - foretold
        off = off - 2 * math.pi * np.round(off / (2 * math.pi))
        # No coordinate of a velocity was larger than this since the last saved state.
        longest = _share(self._run.integrator) * abs(self._run.h)
        fastest = np.asarray(self._run.info.increment)[1:] / longest
        below_half = 2 * math.sqrt(3) * fastest * passed < math.pi
        ends = np.maximum(np.abs(rates[1:]), np.abs(rates[:-1]))
        steady = (np.abs(off) <= _FORETOLD) & (np.abs(foretold) <= _FARTHEST)
        steady &= (fastest - ends) * passed <= math.pi
        lost = np.flatnonzero(~(below_half | steady))
        if len(lost):
            k = int(lost[0])
            raise BadInput(
                f"the saved states lie too far apart to tell how often {self.name!r} went round "
                f"between t = {t[k]:.6g} s and {t[k + 1]:.6g} s, where its rate is {rates[k]:.4g} "
                f"rad/s and then {rates[k + 1]:.4g} rad/s: save more states (save_every), or ask "
                f"run.observables()['angle of {self.name}'] for the angle between -pi and pi."
            )
        # Below half a turn the nearest angle is the next one, whatever the rates foretell.
        nearest = np.diff(wrapped)
        nearest = nearest - 2 * math.pi * np.round(nearest / (2 * math.pi))
        steps = np.where(below_half, nearest, foretold + off)
        total = wrapped[0] + np.concatenate([[0.0], np.cumsum(steps)])
        # Whole turns beside the measured angle, so that nothing adds up.
        return wrapped + 2 * math.pi * np.round((total - wrapped) / (2 * math.pi))


def _share(integrator: AbstractIntegrator | None) -> float:
    """Return how long the longest part of a step is, whose increment the run has noted."""
    if isinstance(integrator, Driven):
        integrator = integrator.integrator
    if isinstance(integrator, Composition):
        return max(map(abs, fractions(integrator.order)))
    return 1.0


@Evaluated
def _moving(seen: tuple, joint: Connection) -> Motion:
    return jax.vmap(lambda g, xi: motion_of(joint, g, xi))(*seen)


@Evaluated
def _load(seen: tuple, found: Part) -> Load:
    return jax.vmap(lambda g, lam: load_of(found, g, lam))(*seen)
