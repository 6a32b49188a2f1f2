r"""Taylor coefficients of elementary functions, from the equations that their derivatives satisfy.

A function $y = f(x)$ moves with $\dot y = f'(x)\,\dot x$, and its slope is made of $x$ and $y$ by
arithmetic. So is a power, $\dot y = a\,y\,\dot x/x$.
"""

import math
from collections.abc import Callable

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from retrax.numerics.host.arithmetic import multiply
from retrax.numerics.taylor.curve import Curve, integral, product, rate, square_root

Slope = Callable[[Curve, Curve], Curve]

_GAUSS = 2 / math.sqrt(math.pi)

# The slope of each function as one of its argument x and its value y.
SLOPES: dict[str, Slope] = {
    "exp": lambda x, y: y,
    "exp2": lambda x, y: y * math.log(2),
    "expm1": lambda x, y: y + 1.0,
    "log": lambda x, y: x.over(1.0),
    "log1p": lambda x, y: (x + 1.0).over(1.0),
    "logistic": lambda x, y: y - y * y,
    "tan": lambda x, y: y * y + 1.0,
    "tanh": lambda x, y: (y * y - 1.0) * -1.0,
    "asin": lambda x, y: square_root((x * x - 1.0) * -1.0).over(1.0),
    "acos": lambda x, y: square_root((x * x - 1.0) * -1.0).over(-1.0),
    "atan": lambda x, y: (x * x + 1.0).over(1.0),
    "asinh": lambda x, y: square_root(x * x + 1.0).over(1.0),
    "acosh": lambda x, y: square_root(x * x - 1.0).over(1.0),
    "atanh": lambda x, y: (x * x - 1.0).over(-1.0),
    "erf": lambda x, y: function("exp", jnp.exp, x * x * -1.0) * _GAUSS,
    "erfc": lambda x, y: function("exp", jnp.exp, x * x * -1.0) * -_GAUSS,
}
# Functions that are each other's slopes up to signs: the function, the other, both signs.
_PAIRS = {
    "sin": (jnp.sin, jnp.cos, 1, -1),
    "cos": (jnp.cos, jnp.sin, -1, 1),
    "sinh": (jnp.sinh, jnp.cosh, 1, 1),
    "cosh": (jnp.cosh, jnp.sinh, 1, 1),
}
FUNCTIONS = (*SLOPES, *_PAIRS)


def function(name: str, value: Callable[[Array], Array], x: Curve) -> Curve:
    """Return f(x) for one of `FUNCTIONS`; `value` is f on arrays."""
    if name in _PAIRS:
        return _of_pair(name, x)
    # The slope depends on y, which is only then made.
    y = integral(value(x[0]), lambda: moving)
    moving = product(rate(x), SLOPES[name](x, y))
    return y


def _of_pair(name: str, x: Curve) -> Curve:
    this, other, first, second = _PAIRS[name]
    y = integral(this(x[0]), lambda: y_rate)
    z = integral(other(x[0]), lambda: z_rate)
    y_rate, z_rate = _with_sign(first, product(rate(x), z)), _with_sign(second, product(rate(x), y))
    return y


def _with_sign(sign: int, a: Curve) -> Curve:
    return a if sign > 0 else Curve(lambda k: -a[k])


def power(x: Curve, exponent: Curve) -> Curve:
    """Return x to any power, for positive x where the power is not whole."""
    if exponent.moves:
        return function("exp", jnp.exp, function("log", jnp.log, x) * exponent)
    a = exponent[0].astype(x[0].dtype)
    y = integral(lax.pow(x[0], jnp.broadcast_to(a, x[0].shape)), lambda: moving)
    moving = product(rate(x), (y / x) * Curve(lambda k: a, moves=False))
    return y


def cube_root(x: Curve) -> Curve:
    """Return the cube root."""
    y = integral(lax.cbrt(x[0]), lambda: moving)
    moving = product(rate(x), (y * y * 3.0).over(1.0))
    return y


def whole_power(x: Curve, n: int) -> Curve:
    """Return x to a whole power, by repeated squaring: x may be zero."""
    if n == 0:
        return x * 0.0 + 1.0
    return multiply(x, -n).over(1.0) if n < 0 else multiply(x, n)


def absolute(x: Curve) -> Curve:
    """Return the absolute value; its sign is that of the start."""
    return Curve(lambda k: jnp.where(x[0] < 0, -x[k], x[k]))


def angle(y: Curve, x: Curve) -> Curve:
    """Return the angle of the point (x, y)."""
    slope = (product(x, rate(y)) - product(y, rate(x))) / (x * x + y * y)
    return integral(jnp.arctan2(y[0], x[0]), lambda: slope)
