"""A run to listen to: a quantity along it as a WAV file."""

import wave
from collections.abc import Callable
from pathlib import Path

import numpy as np
from jaxtyping import Array

from retrax.errors import BadInput
from retrax.files import as_path, require_place, write_whole
from retrax.mechanics.state import State
from retrax.numerics.checks import host_float64, require_number
from retrax.numerics.meant import explain_keywords
from retrax.systems.strings.strings_in_contact import StringsInContact
from retrax.trajectory.trajectory import Trajectory

# Shorter sounds are clicks; with fewer samples a period there is no tone to speak of.
_SHORTEST, _FEWEST_SAMPLES = 0.1, 6.0
_MOST_SAMPLES = 1e8
_LOUDEST = 0.9 * (2**15 - 1)


@explain_keywords
def write_sound(
    run: Trajectory,
    path: str | Path,
    observable: Callable[[State], Array] | np.ndarray | None = None,
    *,
    tone: float | None = None,
    pitch: float = 220.0,
    rate: int = 44_100,
) -> Path:
    r"""Write `observable` along the run as a 16-bit WAV file, one channel; returns the path.

    Time is scaled so that what oscillates `tone` times a second in the run is heard at `pitch`:
    the sample at $k/\texttt{rate}$ is the value at the time $k\,\texttt{pitch}/(\texttt{rate}\,
    \texttt{tone})$, by cubic splines through the saved values.

    **Arguments:**

    - `observable`: a function of the state, or its values at the saved times. For strings in
        contact the first harmonic unless given.
    - `tone`: in Hz; for strings in contact $c/l$, else the strongest line of the spectrum.
    - `pitch`, `rate`: of the sound, in Hz.

    **Raises:** `BadInput` if the run is too short to be heard, or saved too coarsely.
    """
    path = as_path(path)
    values = _values(run, observable)
    t = np.asarray(run.t, dtype=float) - float(run.t[0])
    tone = _tone(run, t, values) if tone is None else tone
    given = {"tone": tone, "pitch": pitch, "rate": rate}
    tone, pitch, per_second = (require_number(n, x, "> 0", "Hz") for n, x in given.items())
    seconds = t[-1] * tone / pitch
    if seconds * per_second > _MOST_SAMPLES:
        raise BadInput(
            f"{seconds:.3g} s of sound at rate = {per_second:g} Hz are more than the "
            f"{_MOST_SAMPLES:g} samples of a file: take a higher pitch or a lower rate."
        )
    if not seconds >= _SHORTEST:
        raise BadInput(
            f"the run of {t[-1]:.4g} s has {t[-1] * tone:.3g} periods, which at {pitch:g} Hz are "
            f"{seconds:.2g} s of sound; {_SHORTEST:g} s, that is a run of "
            f"{_SHORTEST * pitch / tone:.4g} s, is the least that can be heard."
        )
    samples = (len(t) - 1) / (t[-1] * tone)
    if samples < _FEWEST_SAMPLES:
        raise BadInput(
            f"the run has {samples:.2g} saved states a period, but a sound needs "
            f"{_FEWEST_SAMPLES:g}: take a smaller save_every (it is {run.save_every})."
        )
    from scipy.interpolate import CubicSpline

    at = np.arange(int(seconds * per_second)) * pitch / (per_second * tone)
    heard = CubicSpline(t, values - values.mean())(at)
    loudest = float(np.max(np.abs(heard)))
    if not loudest > 0:
        raise BadInput("the observable does not change along the run: there is nothing to hear.")
    require_place(path)
    with write_whole(path) as temporary, wave.open(str(temporary), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(int(per_second))
        file.writeframes(np.round(heard / loudest * _LOUDEST).astype("<i2").tobytes())
    return path


def _values(
    run: Trajectory, observable: Callable[[State], Array] | np.ndarray | None
) -> np.ndarray:
    if observable is None:
        if not isinstance(run.system, StringsInContact):
            raise BadInput(
                f"the {run.provenance['system']} needs an observable to be heard: a function of "
                "the state, or values at the saved times."
            )
        strings = run.system
        values = run.along(lambda state: strings.harmonic(state.g))
    else:
        called = callable(observable)
        values = run.along(observable) if called else host_float64("observable", observable)
    if not isinstance(values, np.ndarray):
        raise BadInput("observable returns several quantities, but a sound is made of one.")
    if values.shape != (len(run.t),) or not np.isfinite(values).all():
        raise BadInput(
            f"observable has values of shape {values.shape}, but one finite number at each of the "
            f"{len(run.t)} saved times is needed."
        )
    return values


def _tone(run: Trajectory, t: np.ndarray, values: np.ndarray) -> float:
    if isinstance(run.system, StringsInContact):
        return float(run.system.c / run.system.length)
    from retrax.analysis.spectrum import spectrum

    peaks = spectrum(t, values).peaks(above=-1e-9)
    return float(peaks[0, 0]) / (2 * np.pi) if len(peaks) else float("nan")
