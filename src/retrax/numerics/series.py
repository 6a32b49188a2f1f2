r"""Even functions of an angle $\theta$ that are 0/0 at the origin, evaluated from $\theta^2$.

Every small-angle branch in the library is here and nowhere else. Below $\theta = \sqrt{10}$ the
polynomials at the end of this file are exact to round-off and above it the closed forms no longer
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

Value = Float[Array, "..."]

_SWITCH = 10.0


def _polynomial(coefficients: Sequence[float], x: Value) -> Value:
    """Sum even and odd powers side by side, each by Horner's scheme: half as long to wait for."""
    square = x * x
    even, odd = (_horner(coefficients[first::2], square) for first in (0, 1))
    return odd * x + even


def _horner(coefficients: Sequence[float], x: Value) -> Value:
    value = coefficients[-1] * x + coefficients[-2]
    for c in reversed(coefficients[:-2]):
        value = value * x + c
    return value


def _even(t2: Value, coefficients: Sequence[float], closed: Callable[[Value], Value]) -> Value:
    """Take the polynomial below the switch, `closed(t2)` above it; both get safe arguments."""
    small = t2 < _SWITCH
    series = _polynomial(coefficients, jnp.where(small, t2, 0.0))
    return jnp.where(small, series, closed(jnp.where(small, _SWITCH, t2)))


def _sinc_closed(t2: Value) -> Value:
    t = jnp.sqrt(t2)
    return jnp.sin(t) / t


def _cosc_closed(t2: Value) -> Value:
    s = jnp.sin(jnp.sqrt(t2) / 2)
    return 2 * s * s / t2


def sinc(t2: Value) -> Value:
    r"""Return $\sin\theta/\theta$."""
    return _even(t2, SINC, _sinc_closed)


def cosc(t2: Value) -> Value:
    r"""Return $(1-\cos\theta)/\theta^2$."""
    return _even(t2, COSC, _cosc_closed)


def sinc3(t2: Value) -> Value:
    r"""Return $(\theta-\sin\theta)/\theta^3$."""
    return _even(t2, SINC3, lambda t2: (1 - _sinc_closed(t2)) / t2)


def cotc(t2: Value) -> Value:
    r"""Return $(1-\frac\theta2\cot\frac\theta2)/\theta^2$, with poles at $2\pi, 4\pi, \dots$"""

    def closed_form(t2):
        c = _cosc_closed(t2)
        return (2 * c - _sinc_closed(t2)) / (2 * t2 * c)

    return _even(t2, COTC, closed_form)


def d_sinc(t2: Value) -> Value:
    r"""Return the derivative of `sinc` with respect to $\theta^2$."""
    return (sinc3(t2) - cosc(t2)) / 2


def d_cosc(t2: Value) -> Value:
    r"""Return the derivative of `cosc` with respect to $\theta^2$."""

    def closed_form(t2):
        return (_sinc_closed(t2) - 2 * _cosc_closed(t2)) / (2 * t2)

    return _even(t2, D_COSC, closed_form)


def d_sinc3(t2: Value) -> Value:
    r"""Return the derivative of `sinc3` with respect to $\theta^2$."""

    def closed_form(t2):
        return (_cosc_closed(t2) - 3 * (1 - _sinc_closed(t2)) / t2) / (2 * t2)

    return _even(t2, D_SINC3, closed_form)


def d_cotc(t2: Value) -> Value:
    r"""Return the derivative of `cotc` with respect to $\theta^2$."""

    def closed_form(t2):
        c = _cosc_closed(t2)
        return ((_sinc_closed(t2) - 2 * c) / 2 + 0.5 - c) / (2 * c * t2 * t2)

    return _even(t2, D_COTC, closed_form)


_ATAN_SWITCH = 0.05
_ATANC = [(-1) ** k / (2 * k + 1) for k in range(13)]


def atanc(s2: Value, c: Value) -> Value:
    r"""Return $\mathrm{atan2}(s, c)/s$ from $s^2$ and $c$, for $s > 0$ or $c > 0$.

    With $(c, s)$ the cosine and sine of an angle it is the angle over its sine, from 0 up to but
    not including $\pi$.
    """
    small = (s2 < _ATAN_SWITCH * c * c) & (c > 0)
    near = jnp.where(small, c, 1.0)
    series = _polynomial(_ATANC, jnp.where(small, s2, 0.0) / (near * near)) / near
    s = jnp.sqrt(jnp.where(small, 1.0, s2))
    return jnp.where(small, series, jnp.arctan2(s, c) / s)


# The polynomials in theta^2, on 0 <= theta^2 <= 10. Each is the Taylor series of its function with
# the powers beyond the last taken away by Chebyshev polynomials of the interval, which spreads
# their effect evenly. What is left of it is below the rounding of the value, of the derivative and
# of the second derivative at the origin, with fewer terms than the series itself needs.
# tests/numerics/test_series.py makes them again, in exact arithmetic.
SINC = (
    1.0,
    -0.16666666666666666,
    0.008333333333333333,
    -0.0001984126984126984,
    2.755731922398577e-06,
    -2.505210838543354e-08,
    1.6059043836464258e-10,
    -7.647163721357116e-13,
    2.8114570446401768e-15,
    -8.220606376542262e-18,
    1.95702546439581e-20,
    -3.8519998703686166e-23,
    5.875974668530552e-26,
)
COSC = (
    0.5,
    -0.041666666666666664,
    0.001388888888888889,
    -2.480158730158723e-05,
    2.7557319223979144e-07,
    -2.0876756987483908e-09,
    1.1470745583853227e-11,
    -4.7794770023006046e-14,
    1.5619154546839422e-16,
    -4.109766933152342e-19,
    8.859995243120872e-22,
    -1.4694350966841171e-24,
)
SINC3 = (
    0.16666666666666666,
    -0.008333333333333333,
    0.0001984126984126984,
    -2.7557319223985863e-06,
    2.5052108385439206e-08,
    -1.6059043836678547e-10,
    7.647163726653009e-13,
    -2.8114571314587674e-15,
    8.220615734851272e-18,
    -1.9570892002051104e-20,
    3.85448592524358e-23,
    -5.918291891036357e-26,
)
COTC = (
    0.08333333333333333,
    0.001388888888888889,
    3.3068783068783064e-05,
    8.267195767195874e-07,
    2.0876756987838315e-08,
    5.28419013919054e-10,
    1.338253647418754e-11,
    3.389680742334024e-13,
    8.586036357315224e-15,
    2.174979616505256e-16,
    5.50535346010809e-18,
    1.4046997620204115e-19,
    3.352964968251834e-21,
    1.1716902574741357e-22,
    -9.62277902046859e-25,
    3.4337496798549205e-25,
    -1.719399305305935e-26,
    8.908481797056362e-28,
    -2.4079331611743034e-29,
    3.966691427705194e-31,
)
D_COSC = (
    -0.041666666666666664,
    0.002777777777777778,
    -7.44047619047619e-05,
    1.1022927689594345e-06,
    -1.0438378493932884e-08,
    6.882447358571436e-11,
    -3.3456341302731784e-13,
    1.2495365004527498e-15,
    -3.699276805052334e-18,
    8.895840348116753e-21,
    -1.7665597367823236e-23,
    2.730118971757725e-26,
)
D_SINC3 = (
    -0.008333333333333333,
    0.0003968253968253968,
    -8.267195767195768e-06,
    1.0020843354176683e-07,
    -8.029521918410403e-10,
    4.588298239068885e-12,
    -1.9680200772111204e-14,
    6.576507999740157e-17,
    -1.7615615594208694e-19,
    3.867840892411944e-22,
    -7.069664457061992e-25,
    1.0171966384511808e-27,
)
D_COTC = (
    0.001388888888888889,
    6.613756613756614e-05,
    2.48015873015873e-06,
    8.350702795147171e-08,
    2.642095069345818e-09,
    8.029521918023516e-11,
    2.372776212253142e-12,
    6.868849220755776e-14,
    1.9573845610739705e-15,
    5.5088703606022295e-17,
    1.5354837235123872e-18,
    4.2274206662687185e-20,
    1.1961049416826184e-21,
    2.60556626092493e-23,
    1.6507976536057253e-24,
    -6.145586188317643e-26,
    7.56378317541377e-27,
    -4.038597663920219e-28,
    1.8422662860806657e-29,
    -4.7966616990925894e-31,
    7.123458175756161e-33,
)
