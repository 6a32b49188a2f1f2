"""The lines of a signal, and what lies between them."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from retrax.errors import BadInput
from retrax.numerics.checks import host_float64, require_finite

# The window of Blackman and Harris with four terms: its own lobes lie 92 dB below a line.
_WINDOW = (0.35875, 0.48829, 0.14128, 0.01168)
# Half the width of a line behind that window, in bins.
_HALF_LINE = 4


class Spectrum(NamedTuple):
    """The power of a signal over angular frequency.

    **Attributes:** `omega`: rad/s; `power`: of each frequency, 1 in all.
    """

    omega: Float[np.ndarray, " bin"]
    power: Float[np.ndarray, " bin"]

    @property
    def decibels(self) -> Float[np.ndarray, " bin"]:
        """Power relative to the highest line."""
        return 10 * np.log10(np.maximum(self.power / np.max(self.power), 1e-30))

    def peaks(self, above: float = -40.0) -> Float[np.ndarray, "peak 2"]:
        """Return angular frequency and height in dB of every line higher than `above`, in order.

        A line is a maximum within its own width; its place is that of the parabola through the
        three highest values, better than the distance of two frequencies.
        """
        y = self.decibels
        found = []
        for k in range(1, len(y) - 1):
            near = y[max(k - _HALF_LINE, 0) : k + _HALF_LINE + 1]
            if y[k] > above and y[k] == np.max(near):
                bend = y[k - 1] - 2 * y[k] + y[k + 1]
                shift = 0.5 * (y[k - 1] - y[k + 1]) / bend if bend else 0.0
                found.append((self.omega[k] + shift * self.omega[1], y[k]))
        return np.array(found).reshape(-1, 2)

    def fraction(self, omega: float) -> float:
        """Return the part of the power that belongs to the line at `omega`."""
        line = np.abs(self.omega - omega) <= (_HALF_LINE + 0.5) * self.omega[1]
        return float(np.sum(self.power[line]))

    def floor(self, up_to: float | None = None) -> float:
        """Return the median height in dB, of frequencies up to `up_to`: low if all are lines."""
        chosen = self.omega <= (self.omega[-1] if up_to is None else up_to)
        return float(np.median(self.decibels[chosen]))


def spectrum(t: np.ndarray, values: np.ndarray) -> Spectrum:
    r"""Return the power spectrum of values at equal distances in time, less their mean.

    $$ P_k \propto \Bigl|\sum_jw_j\,(x_j - \bar x)\,e^{-i\omega_kt_j}\Bigr|^2, \qquad
       \omega_k = 2\pi k/T, \tag{1} $$

    with a window $w$ whose own lobes lie 92 dB below a line, so that what stands between the lines
    belongs to the signal.

    **Raises:** `BadInput` if the times are not equally spaced, or fewer than 16.
    """
    t, x = host_float64("t", t), host_float64("values", values)
    if t.ndim != 1 or t.shape != x.shape or len(t) < 16:
        raise BadInput(
            f"t and values have shapes {t.shape} and {x.shape}, but a spectrum needs two vectors "
            "of one length, at least 16."
        )
    require_finite("t", t)
    require_finite("values", x)
    step = (t[-1] - t[0]) / (len(t) - 1)
    if not step > 0 or np.max(np.abs(np.diff(t) - step)) > 1e-6 * step:
        raise BadInput("the times are not equally spaced: let save_every divide the steps.")
    phase = 2 * np.pi * np.arange(len(t)) / len(t)
    window = sum((-1) ** k * a * np.cos(k * phase) for k, a in enumerate(_WINDOW))
    power = np.abs(np.fft.rfft(window * (x - x.mean()))) ** 2  # (1)
    total = float(np.sum(power))
    if not math.isfinite(total):
        raise BadInput("values are so large that their squares overflow: scale them.")
    if total == 0:
        raise BadInput("values do not change: a constant has no spectrum.")
    return Spectrum(2 * np.pi * np.fft.rfftfreq(len(t), step), power / total)
