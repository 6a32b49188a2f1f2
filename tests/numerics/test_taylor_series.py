"""Taylor coefficients of everything a vector field may be made of, against mpmath and JAX."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from jax import lax

from retrax.numerics.newton import newton
from retrax.numerics.taylor.curve import Curve, still
from retrax.numerics.taylor.expansion import Expansion, solution
from retrax.numerics.taylor.rules import NoSeries

ORDER = 9
# x(s) = 0.3 + 0.5 s - 0.2 s^2 + 0.1 s^3: every function below is smooth there.
POLYNOMIAL = (0.3, 0.5, -0.2, 0.1)


def along(function, *starts):
    """Coefficients of a function along the polynomial, or along (x, 1 + x^2) and so on."""
    curves = [Curve(lambda k, c=c: jnp.asarray(c[k] if k < len(c) else 0.0)) for c in starts]
    zeros = [jnp.zeros(())] * len(starts)
    expansion = Expansion()
    outs = expansion.evaluate_closed(jax.make_jaxpr(function)(*zeros), curves)
    return np.array([[out[k] for k in range(ORDER + 1)] for out in outs])


def exact(function):
    """The same by mpmath, from 40 digits."""

    def at(s):
        return function(sum(c * s**k for k, c in enumerate(map(mp.mpf, POLYNOMIAL))))

    with mp.workdps(40):
        return np.array(mp.taylor(at, 0, ORDER))


FUNCTIONS = {
    "exp": (jnp.exp, mp.exp),
    "exp2": (jnp.exp2, lambda x: 2**x),
    "expm1": (jnp.expm1, mp.expm1),
    "log": (jnp.log, mp.log),
    "log1p": (jnp.log1p, mp.log1p),
    "logistic": (jax.nn.sigmoid, lambda x: 1 / (1 + mp.exp(-x))),
    "sin": (jnp.sin, mp.sin),
    "cos": (jnp.cos, mp.cos),
    "sin and cos": (lambda x: jnp.sin(x) * jnp.cos(x), lambda x: mp.sin(x) * mp.cos(x)),
    "tan": (jnp.tan, mp.tan),
    "sinh": (jnp.sinh, mp.sinh),
    "cosh": (jnp.cosh, mp.cosh),
    "tanh": (jnp.tanh, mp.tanh),
    "asin": (jnp.arcsin, mp.asin),
    "acos": (jnp.arccos, mp.acos),
    "atan": (jnp.arctan, mp.atan),
    "asinh": (jnp.arcsinh, mp.asinh),
    "acosh": (lambda x: jnp.arccosh(1 + x), lambda x: mp.acosh(1 + x)),
    "atanh": (jnp.arctanh, mp.atanh),
    "erf": (jax.scipy.special.erf, mp.erf),
    "erfc": (jax.scipy.special.erfc, mp.erfc),
    "sqrt": (jnp.sqrt, mp.sqrt),
    "rsqrt": (lax.rsqrt, lambda x: 1 / mp.sqrt(x)),
    "cbrt": (jnp.cbrt, mp.cbrt),
    "square": (lax.square, lambda x: x * x),
    "x^5": (lambda x: x**5, lambda x: x**5),
    "x^-3": (lambda x: x**-3, lambda x: x**-3),
    "x^0": (lambda x: lax.integer_pow(x, 0) + 0.0 * x, lambda x: mp.mpf(1)),
    "x^1.7": (lambda x: x**1.7, lambda x: x ** mp.mpf(1.7)),
    "x^x": (lambda x: x**x, lambda x: x**x),
    "1.3^x": (lambda x: 1.3**x, lambda x: mp.mpf(1.3) ** x),
    "quotient": (lambda x: (1 + x) / (2 - x * x), lambda x: (1 + x) / (2 - x * x)),
    "3/x": (lambda x: 3 / x, lambda x: 3 / x),
    "atan2": (lambda x: jnp.arctan2(x, 1 + x * x), lambda x: mp.atan2(x, 1 + x * x)),
    "abs": (lambda x: jnp.abs(-x), lambda x: x),
    "sign": (lambda x: jnp.sign(x) * x, lambda x: x),
    "max": (lambda x: jnp.maximum(x, 0.1) * jnp.minimum(x, 0.1), lambda x: x * mp.mpf(0.1)),
    "clip": (lambda x: jnp.clip(x, -1.0, 0.2) + jnp.clip(x, 0.0, 1.0), lambda x: x + mp.mpf(0.2)),
    "where": (lambda x: jnp.where(x < 1, jnp.sin(x), jnp.exp(x)), mp.sin),
    "mod": (lambda x: jnp.mod(x + 7.0, 2.0), lambda x: x - 1 + 2),
    "cond": (lambda x: lax.cond(x < 0.2, jnp.sin, jnp.cos, x), mp.cos),
    "sum": (lambda x: jnp.sum(jnp.stack([x, x * x, jnp.exp(x)])), lambda x: x + x * x + mp.exp(x)),
    "largest": (lambda x: jnp.max(jnp.stack([x, x * x, jnp.exp(x)])), mp.exp),
    "smallest": (lambda x: jnp.min(jnp.stack([x, x * x, jnp.exp(x)])), lambda x: x * x),
    "scan": (
        lambda x: lax.scan(lambda c, y: (c * x + y, c), x, jnp.arange(3.0))[0],
        lambda x: ((x * x) * x + 1) * x + 2,
    ),
    "backwards": (
        lambda x: lax.scan(lambda c, y: (c, c * y), x, x * jnp.arange(3.0), reverse=True)[1][2],
        lambda x: 2 * x * x,
    ),
    "jit": (jax.jit(lambda x: x * jnp.cos(x)), lambda x: x * mp.cos(x)),
    "checkpoint": (jax.checkpoint(lambda x: x * jnp.cos(x)), lambda x: x * mp.cos(x)),
    "gradient": (jax.grad(lambda x: jnp.sin(x) ** 3), lambda x: 3 * mp.sin(x) ** 2 * mp.cos(x)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_series_of_a_function(name):
    function, same = FUNCTIONS[name]
    found, wanted = along(function, POLYNOMIAL)[0], exact(same).astype(float)
    # Measured: at most 3e-15 of the largest coefficient so far, by the cube root.
    scale = np.maximum.accumulate(np.maximum(np.abs(wanted), 1e-2))
    assert np.max(np.abs(found - wanted) / scale) < 2e-14


def test_products_of_arrays_and_numbers():
    """Contractions, products of numbers with vectors, of what moves with what does not."""
    M = np.random.default_rng(3).normal(size=(3, 3))

    def function(x):
        a = jnp.stack([x, x * x, 1 - x])
        A = jnp.outer(a, jnp.sin(a)) + M
        return (x * (A @ M) @ a) @ (a / x) + jnp.einsum("ij,jk,ki->", A, M, A)

    def same(x):
        a = mp.matrix([x, x * x, 1 - x])
        s, m = mp.matrix([mp.sin(y) for y in a]), mp.matrix(M.tolist())
        A = a * s.T + m
        trace = A * m * A
        return (x * (A * m * a).T * a / x)[0] + sum(trace[i, i] for i in range(3))

    found, wanted = along(function, POLYNOMIAL)[0], exact(same).astype(float)
    assert np.max(np.abs(found - wanted)) < 2e-13  # measured: 2e-14


def test_entries_that_move_about():
    """Slices, updates, gathers and the like, each compared with the function of one number."""

    def function(x):
        a = jnp.stack([x, jnp.sin(x), x * x, 1 + x])
        b = a.at[1].set(x**3).at[2].add(x)
        c = jnp.concatenate([a[::-1], jnp.roll(b, 1), jnp.pad(a, 1)])
        d = jnp.take(c, jnp.array([3, 0, 5])) @ lax.dynamic_slice(c, (2,), (3,))
        return d + jnp.cumsum(a)[2] + jnp.tile(a, 2)[5] + jnp.split(a, 2)[1][0]

    def same(x):
        s = mp.sin(x)
        a, b = [x, s, x * x, 1 + x], [x, x**3, x * x + x, 1 + x]
        c = [*a[::-1], b[3], *b[:3], 0, *a, 0]
        d = c[3] * c[2] + c[0] * c[3] + c[5] * c[4]
        return d + x + s + x * x + s + x * x

    found, wanted = along(function, POLYNOMIAL)[0], exact(same).astype(float)
    assert np.max(np.abs(found - wanted)) < 1e-14  # measured: 4e-16


def test_the_solution_of_an_equation_by_its_derivative():
    """Newton's loop runs once; the rest follows from the implicit function theorem."""

    def function(x):
        return newton(lambda y: jnp.stack([y[0] ** 3 + y[0] - x]), jnp.ones(1))[0][0]

    def same(x):
        return mp.findroot(lambda y: y**3 + y - x, 0.3)

    found, wanted = along(function, POLYNOMIAL)[0], exact(same).astype(float)
    assert np.max(np.abs(found - wanted)) < 1e-13  # measured: 2e-15


@pytest.mark.parametrize(
    "function, name",
    [
        (lambda x: lax.while_loop(lambda y: y < 10, lambda y: 2 * y, x), "while"),
        (lambda x: lax.fori_loop(0, 100, lambda i, y: jnp.sin(y), x), "scan of 100 rounds"),
        (lambda x: jnp.sort(jnp.stack([x, 2 * x]))[0], "sort"),
        (lambda x: jnp.mod(3.0, x), "rem"),
        (lambda x: jax.scipy.special.gammaln(x), "lgamma"),
    ],
)
def test_what_has_no_series_is_named(function, name):
    with pytest.raises(NoSeries, match=f"^{name}$"):
        along(function, POLYNOMIAL)


def test_what_does_not_move_costs_nothing():
    """A loop of numbers that are the same all along the motion is only evaluated."""

    def function(x):
        return x * lax.while_loop(lambda y: y < 10, lambda y: 2 * y, jnp.asarray(0.7))

    assert np.allclose(along(function, POLYNOMIAL)[0][:4], 11.2 * np.array(POLYNOMIAL), rtol=1e-15)
    assert not still(jnp.ones(3)).moves


def test_the_solution_of_a_differential_equation():
    """Lotka and Volterra's, against mpmath's own Taylor method."""

    def field(x):
        a, b = x["prey"], x["hunters"]
        return {"prey": a - a * b, "hunters": a * b - 1.3 * b}

    start = {"prey": jnp.asarray(0.8), "hunters": jnp.asarray(1.7)}
    terms = solution(field, start, jnp.asarray(0.25), 24)
    assert len(terms) == 25
    with mp.workdps(30):
        path = mp.odefun(lambda t, x: [x[0] - x[0] * x[1], x[0] * x[1] - 1.3 * x[1]], 0, [0.8, 1.7])
        end = path(mp.mpf(0.25))
    found = [sum(float(term[name]) for term in terms) for name in ("prey", "hunters")]
    assert np.max(np.abs(np.array(found) - np.array(end, float))) < 1e-15
