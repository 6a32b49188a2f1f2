r"""Exact motions of strings in contact, for $u = A\sin kx$, $k = 2\pi/l$, from rest, $G_2 = FG_1$.

As long as the contact meets the first string as it would move without contact, and the second one
at rest,

$$
\begin{aligned}
\tan\tfrac{ks_1}2 &= \tan\tfrac{ks_1(0)}2\;e^{\kappa Ak(\cos kct-1)}, \qquad
    \kappa = \frac{G_1F^2}{1+F^2}                                                  &&\text{(1)}\\
\lambda &= \pm\frac{2c}{1+F^2}\,a\,(1 - \dot s_1^2/c^2), \qquad
    a = -Akc\,\sin ks_1\,\sin kct                                                 &&\text{(2)}
\end{aligned}
$$

and $s_2 - s_2(0) = s_1 - s_1(0)$. This holds

- with periodic ends, for any $s_2(0)$ and all times: all emitted waves come back to the contacts
  at once, after $T = l/c$, and change the sign of $\lambda$ each time, while the paths repeat;
- with fixed ends and $s_2 = s_1$, for all times: then $Fu + v$ is a free wave, and (1) holds;
- with fixed ends and any $s_2(0)$, until the first echo: $ct = s_i(t) + s_i(0)$, or its mirror
  image;
- with $v = u/F$ and $s_2 = s_1$, where $\lambda = 0$ and $\kappa = G_1$ (`together`).
"""

import numpy as np

from retrax.errors import BadInput
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import (
    finite64,
    host_float64,
    require_finite,
    require_flag,
    require_instance,
    require_number,
)
from retrax.systems.strings.strings_in_contact import StringsInContact

_SAMPLES = 20_000


def exact_path(
    system: StringsInContact,
    s0: float,
    t: ArrayLike,
    *,
    amplitude: float = 1.0,
    together: bool = False,
) -> np.ndarray:
    r"""Return $s_1(t)$ of (1), from $s_1(0)$ = `s0`; with `together` of $v = u/F$, $s_2 = s_1$."""
    _require_matched(system)
    s0, amplitude = require_number("s0", s0), require_number("amplitude", amplitude)
    together, t = require_flag("together", together), host_float64("t", t)
    require_finite("t", t)
    k, c, F = 2 * np.pi / float(system.length), float(system.c), float(system.F)
    kappa = float(system.G[0]) * (1.0 if together else F * F / (1 + F * F))
    growth = np.exp(kappa * amplitude * k * (np.cos(k * c * t) - 1))
    half = np.pi * np.floor(k * s0 / (2 * np.pi) + 0.5)  # tan has lost the number of half turns
    return np.asarray(2 / k * (half + np.arctan(np.tan(k * s0 / 2) * growth)))


def exact_force(
    system: StringsInContact, s0: float, t: ArrayLike, *, amplitude: float = 1.0
) -> np.ndarray:
    r"""Return $\lambda(t)$ of (2), with periodic ends; with fixed ends until the first echo."""
    s = exact_path(system, s0, t, amplitude=amplitude)
    k, c, F = 2 * np.pi / float(system.length), float(system.c), float(system.F)
    t = host_float64("t", t)
    wave = -amplitude * k * c * np.sin(k * s) * np.sin(k * c * t)
    speed = float(system.G[0]) * F * F / (1 + F * F) * wave
    rounds = np.floor(c * t / float(system.length) + 1e-9)
    sign = np.where(rounds % 2 == 0, 1.0, -1.0) if system.ends == "periodic" else 1.0
    force = np.asarray(sign * 2 * c / (1 + F * F) * wave * (1 - (speed / c) ** 2))  # (2)
    require_finite("the force of a wave of this amplitude", force)
    return force


def first_echo(
    system: StringsInContact, s: tuple[float, float], *, amplitude: float = 1.0
) -> float:
    """Return the time until which (1) holds with fixed ends: when the first wave is back."""
    _require_matched(system)
    c, length = float(system.c), float(system.length)
    first, second = map(float, finite64("s", s, (2,)))
    s = first, second
    t = np.linspace(0.0, 2 * length / c, _SAMPLES)
    moved = exact_path(system, s[0], t, amplitude=amplitude) - s[0]
    ways = [2 * s0 + moved for s0 in s] + [2 * (length - s0) - moved for s0 in s]
    return float(min(np.interp(0.0, c * t - way, t) for way in ways))


def _require_matched(system: StringsInContact) -> None:
    """Reject a system other than strings in contact with G2 = F G1."""
    require_instance("system", system, StringsInContact, "a StringsInContact")
    G1, G2, F = float(system.G[0]), float(system.G[1]), float(system.F)
    if not abs(G2 - F * G1) <= 1e-12 * max(abs(G1), abs(G2)):
        raise BadInput(f"G = ({G1:g}, {G2:g}) has no closed form; G2 = F G1 = {F * G1:g} has one.")
