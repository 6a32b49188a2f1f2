"""A table of functions: every operation, with every type, at numbers where types show.

`TABLE` has a name for each, with the function and its arguments, and those of the same function as
XLA is to compute it: where the engine folds constants, XLA is given them as arguments, because its
own folding of whole numbers stops the process at a division by zero. What a function computes is
the same on every back end, or it has no scalar program and says why.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

INF, NAN = np.inf, np.nan
TABLE = {}


def entry(name, *arguments):
    """Put the function that follows into the table."""

    def put(function):
        assert name not in TABLE, name
        TABLE[name] = (function, arguments, function, arguments)
        return function

    return put


def folded(name, function, *constants):
    """Put a function of constants into the table, which the engine computes as it builds."""
    arrays = [np.asarray(c) for c in constants]

    def of_nothing(x):
        return function(*(jnp.asarray(a) for a in arrays))

    assert name not in TABLE, name
    TABLE[name] = (of_nothing, (jnp.zeros(1),), function, constants)


# Numbers at which operations on floats differ from what one would write first.
EDGES = jnp.array([0.0, -0.0, INF, -INF, NAN, 1e308, -3e-300, 0.5, -1.5, 2.5, -2.5, 710.0, 4.5e15])
PLAIN = jnp.array([0.3, -0.7, 1.1, 0.05, -0.999])
PAIRS = [
    jnp.asarray(x)
    for x in zip(
        *itertools.product([0.0, -0.0, INF, -INF, NAN, 1e308, -2.5], [0.0, -INF, NAN, -3.0]),
        strict=True,
    )
]
WHOLE = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def edges(dtype):
    """Whole numbers at the ends of a type, as far as a float holds them."""
    info = np.iinfo(dtype)
    low, high = max(info.min, -(2**53)), min(info.max, 2**53)
    numbers = [low, low + 1, 0, 1, 2, 3, 7, 100, high - 1, high, high // 3]
    return jnp.asarray(np.array([*numbers, *((-1, -5) if low else ())], dtype))


def extremes(x):
    """The same with the largest numbers of 64 bits among them, made from smaller ones."""
    if x.dtype not in (jnp.int64, jnp.uint64):
        return x
    one = jnp.ones((), x.dtype)
    top = lax.shift_left(jnp.abs(x) + one - one, jnp.full(x.shape, 10, x.dtype))
    return jnp.concatenate([x, top, -top])


def halves(x):
    """A whole number as two floats that hold all of it."""
    x = x.astype(jnp.int64)
    low = jnp.full(x.shape, 2**32 - 1, jnp.int64)
    high = lax.shift_right_logical(x, jnp.full(x.shape, 32, jnp.int64))
    return (x & low).astype(jnp.float64), high.astype(jnp.float64)


FLOAT_UNARY = {
    "neg": jnp.negative, "abs": jnp.abs, "sign": jnp.sign, "floor": jnp.floor, "ceil": jnp.ceil,
    "round to even": jnp.round, "trunc": jnp.trunc, "sqrt": jnp.sqrt, "rsqrt": lax.rsqrt,
    "round away": lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
    "cbrt": jnp.cbrt, "square": jnp.square, "exp": jnp.exp, "exp2": jnp.exp2, "expm1": jnp.expm1,
    "log": jnp.log, "log1p": jnp.log1p, "log2": jnp.log2, "sin": jnp.sin, "cos": jnp.cos,
    "tan": jnp.tan, "arcsin": jnp.arcsin, "arccos": jnp.arccos, "arctan": jnp.arctan,
    "sinh": jnp.sinh, "cosh": jnp.cosh, "tanh": jnp.tanh, "arcsinh": jnp.arcsinh,
    "arccosh": jnp.arccosh, "arctanh": jnp.arctanh, "logistic": jax.nn.sigmoid, "erf": lax.erf,
    "erfc": lax.erfc, "is finite": jnp.isfinite, "is nan": jnp.isnan, "reciprocal": lambda x: 1 / x,
    "third power": lambda x: x**3, "minus second power": lambda x: x**-2, "real power": lambda x:
    x**0.7, "signbit": jnp.signbit, "sinc": jnp.sinc, "softplus": jax.nn.softplus,
    "nan_to_num": jnp.nan_to_num, "lgamma": lax.lgamma, "digamma": lax.digamma,
    "bessel": lax.bessel_i0e, "erf_inv": lax.erf_inv, "heaviside": lambda x: jnp.heaviside(x, 0.5),
    "relu": jax.nn.relu, "gelu": jax.nn.gelu, "frexp": lambda x: jnp.frexp(x)[0],
    "spacing": lambda x: jnp.spacing(x), "deg2rad": jnp.deg2rad, "i0": jnp.i0,
    "less digits": lambda x: lax.reduce_precision(x, 8, 10),
    "all digits": lambda x: lax.reduce_precision(x, 11, 52),
}  # fmt: skip
for _name, _f in FLOAT_UNARY.items():
    entry(f"{_name} at edges", EDGES)(_f)
    folded(f"{_name} folded", _f, EDGES)
    entry(f"gradient of {_name}", PLAIN)(
        jax.grad(lambda x, f=_f: jnp.sum(f(x) * 1.0)) if _name not in ("frexp", "spacing") else _f
    )

FLOAT_BINARY = {
    "add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "div": jnp.divide, "rem": lax.rem,
    "mod": jnp.mod, "floor divide": jnp.floor_divide, "max": jnp.maximum, "min": jnp.minimum,
    "fmax": jnp.fmax, "pow": jnp.power, "arctan2": jnp.arctan2, "nextafter": jnp.nextafter,
    "hypot": jnp.hypot, "copysign": jnp.copysign, "less": jnp.less, "not equal": jnp.not_equal,
    "logaddexp": jnp.logaddexp, "ldexp": lambda x, y: jnp.ldexp(x, jnp.int32(3)),
    "clip": lambda x, y: jnp.clip(x, y, 2.0), "xlogy": jax.scipy.special.xlogy,
    "guarded quotient": lambda x, y: jnp.where(y != 0, x / jnp.where(y != 0, y, 1.0), 0.0),
    "half guarded quotient": lambda x, y: jnp.where(y != 0, x / y, 0.0),
    "zero times log": lambda x, y: 0.0 * jnp.log(x) + y, "zero over": lambda x, y: 0.0 / y + x,
    "difference with itself": lambda x, y: x - x + y, "fmod": jnp.fmod,
    "large constants": lambda x, y: (x * 1e-300) + y / 1e300,
}  # fmt: skip
for _name, _f in FLOAT_BINARY.items():
    entry(f"{_name} at pairs of edges", *PAIRS)(_f)
    folded(f"{_name} of pairs, folded", _f, *PAIRS)

WHOLE_UNARY = {
    "neg": jnp.negative, "abs": jnp.abs, "sign": jnp.sign, "not": jnp.invert, "square": jnp.square,
    "cube": lambda x: x**3, "popcount": lax.population_count, "clz": lax.clz,
    "to float": lambda x: x.astype(jnp.float64) / 3.0, "to truth": lambda x: x.astype(bool),
    "sum": jnp.sum, "product": jnp.prod, "cumsum": jnp.cumsum, "max": jnp.max, "argmax": jnp.argmax,
    "sort": jnp.sort, "no entries": lambda x: (jnp.sum(x[:0]), jnp.prod(x[:0]), x[:0]),
    "max of none": lambda x: lax.reduce_max(x[:0], (0,)), "dot": lambda x: x @ x,
    "min of none": lambda x: lax.reduce_min(x[:0], (0,)), "xor of all": lambda x:
    lax.reduce_xor(x, (0,)), "and of all": lambda x: lax.reduce_and(x, (0,)),
    "wrap": lambda x: (x * x + x) * x - x,
}  # fmt: skip
WHOLE_BINARY = {
    "add": lax.add, "sub": lax.sub, "mul": lax.mul, "div": lax.div, "rem": lax.rem, "max": lax.max,
    "min": lax.min, "and": lax.bitwise_and, "or": lax.bitwise_or, "xor": lax.bitwise_xor,
    "less": lax.lt, "greater or equal": lax.ge, "shl": lax.shift_left,
    "shr": lax.shift_right_logical, "sar": lax.shift_right_arithmetic, "mod": jnp.mod,
    "floor divide": jnp.floor_divide, "clamp": lambda x, y: lax.clamp(y, x, y + y),
}  # fmt: skip


def _as_halves(f):
    return lambda *xs: jax.tree.map(
        lambda y: halves(y) if y.dtype.kind in "iu" else y, f(*map(extremes, xs))
    )


for _t in WHOLE:
    _x = edges(_t)
    for _name, _f in WHOLE_UNARY.items():
        entry(f"{_name} of {_t}", _x)(_as_halves(_f))
        folded(f"{_name} of {_t}, folded", _as_halves(_f), _x)
    for _name, _f in WHOLE_BINARY.items():
        entry(f"{_name} of {_t} and {_t}", _x, jnp.roll(_x, 3))(_as_halves(_f))
        folded(f"{_name} of {_t} and {_t}, folded", _as_halves(_f), _x, _x[::-1])
TYPES = (*WHOLE, "float64", "bool", "float32", "float16", "bfloat16", "complex128")
for _t in TYPES:
    entry(f"floats to {_t}", EDGES)(lambda x, t=_t: jnp.real(x.astype(t)).astype(jnp.float64))
    folded(f"floats to {_t}, folded", TABLE[f"floats to {_t}"][0], EDGES)
    for _s in WHOLE:
        entry(f"{_s} to {_t}", edges(_s))(
            lambda x, t=_t: (
                halves(jnp.real(extremes(x).astype(t)).astype(jnp.int64))
                if t != "float64"
                else extremes(x).astype(t)
            )
        )
    if _t not in ("bool", "complex128"):
        entry(f"an island of {_t}", PLAIN * 40)(
            lambda x, t=_t: (x.astype(t) * jnp.asarray(3, t) + jnp.asarray(7, t)).astype(float)
        )
        entry(f"constants of {_t}", PLAIN)(
            lambda x, t=_t: x * (jnp.asarray(3, t) / jnp.asarray(7, t)).astype(float)
        )
