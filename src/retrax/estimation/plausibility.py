"""Whether units can be right: sensors against each other, and against the first guess."""

import math
from collections.abc import Sequence

import numpy as np

from retrax.errors import BadInput
from retrax.estimation.measurements import Measurements
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.evaluate import evaluate

_DEGREES = 180 / math.pi
# How far a ratio may be off the factor between two units to be taken for it.
_NEAR = 1.6
# Attitudes are compared over times in which a body turns by about so much, so that noise is small.
_TURN = 0.5


def require_units(
    data: Sequence[Measurements], system: AbstractGroupSystem, guess: State | None
) -> None:
    """Reject measurements whose units contradict each other or the first guess.

    Nothing is asked about units that the user has named, with `unit` and `time_unit`. `guess` is
    the state that the user gave, if any.
    """
    angles = system.group.angles()
    if not angles.any():
        return
    rates = {}
    for one in data:
        if one.of == "attitude":
            rates["attitude"] = turning_rate(one)
        if one.of == "velocity":
            values = np.asarray(one.values)[:, angles]
            rate = float(np.sqrt(np.mean(np.sum(values**2, axis=1))))
            rates["velocity"] = np.deg2rad(rate) if one.unit == "deg" else rate
            _compare_velocity(one, rates, system, guess, angles)
        untold = one.time_unit is None
        if untold and guess is not None and one.of == "attitude":
            _compare_time(rates["attitude"], _speed(system, guess, angles))


def turning_rate(data: Measurements) -> float:
    """Return the usual speed, in rad/s, at which measured attitudes turn."""
    lag, rotations, t = 1, data.values, data.t
    while True:
        # The length of R - S is 2 sqrt(2) sin(angle / 2), the angle that between R and S.
        apart = np.linalg.norm(rotations[lag:] - rotations[:-lag], axis=(1, 2))
        angle = 2 * np.arcsin(np.minimum(apart / math.sqrt(8), 1.0))
        if np.median(angle) > _TURN or 4 * lag >= len(t):
            passing = t[lag:] - t[:-lag]
            some = passing > 0
            return float(np.sqrt(np.mean((angle[some] / passing[some]) ** 2)))
        lag *= 2


def _compare_velocity(
    one: Measurements,
    rates: dict[str, float],
    system: AbstractGroupSystem,
    guess: State | None,
    angles: np.ndarray,
) -> None:
    others = {}
    if "attitude" in rates:
        others["the measured attitudes turn at"] = rates["attitude"]
    elif guess is not None:
        others["the first guess turns at"] = _speed(system, guess, angles)
    for what, rate in others.items():
        ratio = rates["velocity"] / rate if rate > 0 else math.nan
        if one.unit is None and _is_near(ratio, _DEGREES):
            raise BadInput(
                f"the velocities of {one.name} are {ratio:.3g} times as large as expected: {what} "
                f"{rate:.3g} rad/s. If they are in degrees per second, give "
                'unit="deg"; if not, unit="rad".'
            )
        if one.time_unit is None and "attitude" in rates and _is_near(ratio, 1000.0):
            raise BadInput(
                f"the velocities of {one.name} are {ratio:.3g} times as large as expected: {what} "
                f"{rate:.3g} rad/s. If t is in milliseconds, give "
                'time_unit="ms"; if not, time_unit="s".'
            )


def _compare_time(measured: float, expected: float) -> None:
    ratio = expected / measured if measured > 0 else math.nan
    if _is_near(ratio, 1000.0):
        raise BadInput(
            f"the measured attitudes turn at {measured:.3g} rad/s, the first guess at "
            f'{expected:.3g} rad/s. If t is in milliseconds, give time_unit="ms"; if not, '
            'time_unit="s".'
        )


def _is_near(ratio: float, factor: float) -> bool:
    return factor / _NEAR < ratio < factor * _NEAR


def _speed(system: AbstractGroupSystem, state: State, angles: np.ndarray) -> float:
    velocity = np.asarray(evaluate(lambda s, x: s.velocity_at(x), system, state))
    return float(np.linalg.norm(velocity[angles]))
