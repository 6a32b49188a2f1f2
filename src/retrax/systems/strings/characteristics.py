r"""Strings in contact without a lattice: along the characteristics.

With $w_R = u_t - cu_x$ and $w_L = u_t + cu_x$, constant along $x - ct$ and $x + ct$, the contact
sees the mean $a_1 = \tfrac12(w_R^- + w_L^+)$ of what arrives from both sides, $a_2$ on the other
string, and $U = \langle u_t\rangle$ solves

$$
\begin{aligned}
F\,(a_1 - U)(c^2 - G_1^2U^2) &= (U/F - a_2)(c^2 - G_2^2U^2/F^2)                    &&\text{(1)}\\
\lambda &= 2\,(a_1 - U)(c^2 - G_1^2U^2)/c                                         &&\text{(2)}\\
w_R^+ &= w_R^- - \lambda/(c - \dot s_1), \quad w_L^- = w_L^+ - \lambda/(c + \dot s_1) &&\text{(3)}\\
\dot s_1 &= G_1U, \qquad \dot s_2 = G_2U/F                                        &&\text{(4)}
\end{aligned}
$$

with $-F\lambda$ for $\lambda$ in (3) on the other string. Emitted waves come back from an end, or
round the ring, with a delay that depends on the place of the contact: (4) is a delay equation. A
lane is one such way back: it records emissions under a key that is constant along the way.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from retrax.errors import BadInput, ContactTooFast
from retrax.numerics.checks import (
    finite64,
    host_float64,
    quote,
    reason,
    require_finite,
    require_instance,
    require_number,
    require_shape,
    require_whole,
)
from retrax.systems.strings.strings_in_contact import StringsInContact

# A function of the place, and of the time and place for the key of a lane.
Wave = Callable[[Any], Any]
Key = Callable[[float, float], float]
_ROUNDS = 60
_MOST_STEPS = 10_000_000


class CharacteristicPath(NamedTuple):
    r"""Times, places of both contacts, and the contact force at these times."""

    t: np.ndarray
    s: np.ndarray
    force: np.ndarray


class _Lane:
    """One way for waves from the contact back to it.

    `out(t, s)` and `back(t, s)` are the keys of waves that leave and that arrive at the contact.
    """

    def __init__(self, out: Key, back: Key, sign: float, before: Wave, steps: int):
        self.out, self.back, self.sign, self.before = out, back, sign, before
        self.keys, self.values, self.count = np.empty(steps + 1), np.empty(steps + 1), 0

    def record(self, t: float, s: float, value: float) -> None:
        self.keys[self.count], self.values[self.count] = self.out(t, s), value
        self.count += 1

    def arriving(self, t: float, s: float) -> float:
        key = self.back(t, s)
        if self.count == 0 or key <= self.keys[0]:
            return self.sign * float(self.before(key))
        # Interpolate four points about the key, fewer at the ends: the wave was emitted long ago.
        k = int(np.searchsorted(self.keys[: self.count], key))
        first = min(max(k - 2, 0), max(self.count - 4, 0))
        window = slice(first, min(first + 4, self.count))
        return self.sign * _lagrange(self.keys[window], self.values[window], key)


def characteristic_path(
    system: StringsInContact,
    s: tuple[float, float],
    u_t: Wave,
    u_x: Wave,
    v_t: Wave,
    v_x: Wave,
    *,
    h: float,
    steps: int,
) -> CharacteristicPath:
    r"""Return the paths of the contacts by the classical Runge-Kutta method of step `h` on (4).

    It uses $F$, $G$, $c$, the length and the kind of ends, but no lattice: this is the model, to
    which the lattice converges. The order in `h` is 2 behind the first echo, where the paths have
    kinks.

    **Arguments:** `s`: where the contacts start; `u_t`, ... `v_x`: the strings at the start, as
    functions of the place; they must satisfy $u_t(s_1) = F\,v_t(s_2)$.

    **Raises:** `ContactTooFast` if a contact reaches the speed of the waves.
    """
    require_instance("system", system, StringsInContact, "a StringsInContact")
    h, steps = require_number("h", h, "> 0", "s"), require_whole("steps", steps, 1, _MOST_STEPS)
    first, second = map(float, finite64("s", s, (2,)))
    s = first, second
    waves = {"u_t": u_t, "u_x": u_x, "v_t": v_t, "v_x": v_x}
    u_t, u_x, v_t, v_x = (_check_wave(name, wave, s[0]) for name, wave in waves.items())
    F, c, length = float(system.F), float(system.c), float(system.length)
    G = (float(system.G[0]), float(system.G[1]))
    start = np.array([float(s[0]), float(s[1])])
    gap = float(u_t(start[0]) - F * v_t(start[1]))
    if abs(gap) > 1e-10:
        raise BadInput(f"u_t(s1) - F v_t(s2) = {gap:.3g} at the start, but it must be 0.")
    lanes = [
        _lanes(system.ends, c, length, u_t, u_x, steps),
        _lanes(system.ends, c, length, v_t, v_x, steps),
    ]

    def look(t: float, s: np.ndarray) -> tuple[float, float, list[tuple[float, float]]]:
        arriving = [(right.arriving(t, x), left.arriving(t, x)) for (right, left), x in
                    zip(lanes, s, strict=True)]  # fmt: skip
        a1, a2 = ((wr + wl) / 2 for wr, wl in arriving)
        U = _rate(a1, a2, F, G, c)
        if not (abs(G[0] * U) < c and abs(G[1] * U / F) < c):
            raise ContactTooFast(f"a contact reached the speed of the waves at t = {t:.6g} s.")
        return U, 2 * (a1 - U) * (c * c - (G[0] * U) ** 2) / c, arriving  # (2)

    def speeds(U: float) -> np.ndarray:
        return np.array([G[0] * U, G[1] * U / F])  # (4)

    t, places, forces = np.arange(steps + 1) * h, np.empty((steps + 1, 2)), np.empty(steps + 1)
    now = start
    for k in range(steps + 1):
        U, force, arriving = look(t[k], now)
        places[k], forces[k] = now, force
        _emit(lanes, t[k], now, speeds(U), (force, -F * force), arriving, c)
        k1 = speeds(U)
        k2 = speeds(look(t[k] + h / 2, now + h / 2 * k1)[0])
        k3 = speeds(look(t[k] + h / 2, now + h / 2 * k2)[0])
        k4 = speeds(look(t[k] + h, now + h * k3)[0])
        now = now + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return CharacteristicPath(t, places, forces)


def _check_wave(name: str, wave: object, place: float) -> Wave:
    """Return `wave` as a function of the place, with a finite number at `place`."""
    if not callable(wave):
        raise BadInput(f"{name} = {quote(wave)} must be a function of the place.")
    try:
        value = wave(np.float64(place))
    except Exception as cause:
        raise BadInput(f"{name} cannot be evaluated at s = {place:g}: {reason(cause)}.") from cause
    array = host_float64(f"{name}(s)", value)
    require_shape(f"{name}(s)", array, ())
    require_finite(f"{name}(s)", array)
    return wave


def _lanes(
    ends: str, c: float, length: float, rate: Wave, slope: Wave, steps: int
) -> tuple[_Lane, _Lane]:
    """Return the lanes of waves that arrive from the left and from the right on one string.

    Each holds the wave that runs along it at the start, as a function of the key.
    """

    def right(x):
        return rate(x) - c * slope(x)

    def left(x):
        return rate(x) + c * slope(x)

    if ends == "periodic":
        return (
            _Lane(lambda t, s: c * t - s, lambda t, s: c * t - s - length, 1.0,
                  lambda key: right(np.mod(-key, length)), steps),
            _Lane(lambda t, s: c * t + s, lambda t, s: c * t + s - length, 1.0,
                  lambda key: left(np.mod(key, length)), steps),
        )  # fmt: skip
    return (
        _Lane(lambda t, s: c * t + s, lambda t, s: c * t - s, -1.0,
              lambda key: left(key) if key > 0 else -right(-key), steps),
        _Lane(lambda t, s: c * t + length - s, lambda t, s: c * t - length + s, -1.0,
              lambda key: right(length - key) if key > 0 else -left(length + key), steps),
    )  # fmt: skip


def _emit(
    lanes: list[tuple[_Lane, _Lane]],
    t: float,
    s: np.ndarray,
    speeds: np.ndarray,
    forces: tuple[float, float],
    arriving: list[tuple[float, float]],
    c: float,
) -> None:
    """Record the waves (3) that leave the contacts. At a fixed end they change their direction."""
    for (first, second), x, speed, force, (right, left) in zip(
        lanes, s, speeds, forces, arriving, strict=True
    ):
        onwards, backwards = right - force / (c - speed), left - force / (c + speed)
        if first.sign > 0:  # round the ring: right-goers arrive from the left again
            first.record(t, x, onwards)
            second.record(t, x, backwards)
        else:
            first.record(t, x, backwards)
            second.record(t, x, onwards)


def _rate(a1: float, a2: float, F: float, G: tuple[float, float], c: float) -> float:
    """Solve (1) for U by Newton's method, from its value for contacts at rest."""
    U = F * (F * a1 + a2) / (1 + F * F)
    for _ in range(_ROUNDS):
        p, q = c * c - (G[0] * U) ** 2, c * c - (G[1] * U / F) ** 2
        f = F * (a1 - U) * p - (U / F - a2) * q
        slope = (
            -F * p - 2 * F * (a1 - U) * G[0] ** 2 * U
            - q / F + 2 * (U / F - a2) * G[1] ** 2 * U / F**2
        )  # fmt: skip
        move = f / slope
        U -= move
        if abs(move) <= 1e-15 * (abs(U) + 1e-3):
            break
    return U


def _lagrange(x: np.ndarray, y: np.ndarray, at: float) -> float:
    """Return the value at `at` of the polynomial through the points (x, y)."""
    total = 0.0
    for i in range(len(x)):
        weight = 1.0
        for j in range(len(x)):
            if j != i:
                weight *= (at - x[j]) / (x[i] - x[j])
        total += weight * y[i]
    return float(total)
