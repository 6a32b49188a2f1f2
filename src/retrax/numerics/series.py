r"""Even functions of an angle $\theta$ that are 0/0 at the origin, evaluated from $\theta^2$.

Every small-angle branch in the library is here and nowhere else. Below $\theta = \sqrt{10}$ the
polynomials of `even_polynomials` are exact to round-off and above it the closed forms no longer
cancel: at no angle is either branch, or its derivative, inaccurate, so there is no threshold to
tune. With $1 - \cos\theta = 2\sin^2(\theta/2)$ and
$$
c = \frac{1-\cos\theta}{\theta^2},\quad s = \frac{\sin\theta}{\theta},\quad
s_3 = \frac{\theta-\sin\theta}{\theta^3},\quad
c_4 = \frac{\theta^2/2 - 1 + \cos\theta}{\theta^4},\quad
\kappa = \frac{1-\frac\theta2\cot\frac\theta2}{\theta^2}
$$
the derivatives with respect to $\theta^2$, written with a dash, are
$$
s' = \frac{s_3 - c}{2},\quad c' = \frac{s - 2c}{2\theta^2},\quad
s_3' = \frac{c - 3 s_3}{2\theta^2},\quad c_4' = -\frac{c' + c_4}{\theta^2},\quad
\kappa = -\frac{c'}{c},\quad \kappa' = -\frac{c_4'}{2c}.
$$
"""

from collections.abc import Callable, Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.numerics import even_polynomials as polynomials

Value = Float[Array, "..."]

_SWITCH = 10.0


def _horner(coefficients: Sequence[float], x: Value) -> Value:
    value = coefficients[-1] * x + coefficients[-2]
    for c in reversed(coefficients[:-2]):
        value = value * x + c
    return value


def _even(t2: Value, coefficients: Sequence[float], closed: Callable[[Value], Value]) -> Value:
    """The polynomial below the switch, `closed(t2)` above it; safe arguments in both branches."""
    small = t2 < _SWITCH
    series = _horner(coefficients, jnp.where(small, t2, 0.0))
    return jnp.where(small, series, closed(jnp.where(small, _SWITCH, t2)))


def _sinc_closed(t2: Value) -> Value:
    t = jnp.sqrt(t2)
    return jnp.sin(t) / t


def _cosc_closed(t2: Value) -> Value:
    s = jnp.sin(jnp.sqrt(t2) / 2)
    return 2 * s * s / t2


def sinc(t2: Value) -> Value:
    r"""$\sin\theta/\theta$."""
    return _even(t2, polynomials.SINC, _sinc_closed)


def cosc(t2: Value) -> Value:
    r"""$(1-\cos\theta)/\theta^2$."""
    return _even(t2, polynomials.COSC, _cosc_closed)


def sinc3(t2: Value) -> Value:
    r"""$(\theta-\sin\theta)/\theta^3$."""
    return _even(t2, polynomials.SINC3, lambda t2: (1 - _sinc_closed(t2)) / t2)


def cotc(t2: Value) -> Value:
    r"""$(1-\frac\theta2\cot\frac\theta2)/\theta^2$, with poles at $2\pi, 4\pi, \dots$"""

    def closed(t2):
        c = _cosc_closed(t2)
        return (2 * c - _sinc_closed(t2)) / (2 * t2 * c)

    return _even(t2, polynomials.COTC, closed)


def d_sinc(t2: Value) -> Value:
    r"""The derivative of `sinc` with respect to $\theta^2$."""
    return (sinc3(t2) - cosc(t2)) / 2


def d_cosc(t2: Value) -> Value:
    r"""The derivative of `cosc` with respect to $\theta^2$."""

    def closed(t2):
        return (_sinc_closed(t2) - 2 * _cosc_closed(t2)) / (2 * t2)

    return _even(t2, polynomials.D_COSC, closed)


def d_sinc3(t2: Value) -> Value:
    r"""The derivative of `sinc3` with respect to $\theta^2$."""

    def closed(t2):
        return (_cosc_closed(t2) - 3 * (1 - _sinc_closed(t2)) / t2) / (2 * t2)

    return _even(t2, polynomials.D_SINC3, closed)


def d_cotc(t2: Value) -> Value:
    r"""The derivative of `cotc` with respect to $\theta^2$."""

    def closed(t2):
        c = _cosc_closed(t2)
        return ((_sinc_closed(t2) - 2 * c) / 2 + 0.5 - c) / (2 * c * t2 * t2)

    return _even(t2, polynomials.D_COTC, closed)


_ATAN_SWITCH = 0.05
_ATANC = [(-1) ** k / (2 * k + 1) for k in range(13)]


def atanc(s2: Value, c: Value) -> Value:
    r"""$\mathrm{atan2}(s, c)/s$ from $s^2$ and $c$, for $s > 0$ or $c > 0$.

    With $(c, s)$ the cosine and sine of an angle it is the angle over its sine, from 0 up to but
    not including $\pi$.
    """
    small = (s2 < _ATAN_SWITCH * c * c) & (c > 0)
    near = jnp.where(small, c, 1.0)
    series = _horner(_ATANC, jnp.where(small, s2, 0.0) / (near * near)) / near
    s = jnp.sqrt(jnp.where(small, 1.0, s2))
    return jnp.where(small, series, jnp.arctan2(s, c) / s)
