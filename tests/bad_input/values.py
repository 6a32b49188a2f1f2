"""Wrong values: what people and programs pass by mistake, by the kind of the right value."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

import retrax as rx


class Opaque:
    """An object that nothing knows; its text has two lines."""

    def __repr__(self) -> str:
        return "<opaque\nobject>"


class Stubborn:
    """An object that refuses to be made a number or an array."""

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("no array")

    def __float__(self) -> float:
        raise RuntimeError("no number")

    def __index__(self) -> int:
        raise RuntimeError("no whole number")

    def __len__(self) -> int:
        raise RuntimeError("no length")

    def __bool__(self) -> bool:
        raise RuntimeError("no truth")


def raises(*args: Any) -> Any:
    raise RuntimeError("broken\nin two lines")


def branches(*args: Any) -> Any:
    return 1.0 if jnp.sum(jnp.ravel(args[0][0])) > 0 else 2.0


JUNK: list[Any] = [
    None, "text", "", "two\nlines", b"bytes", True, False, 1j, {}, {"a": 1.0}, {1, 2}, [], (), [[]],
    [[1.0], [2.0, 3.0]], [None, None, None], ["a", "b", "c"], [1.0, "b", None], Opaque(),
    Stubborn(), object, int, lambda: None, raises, np.nan, np.inf, -np.inf, 0, -1, 0.0, -0.0,
    1e308, -1e308, 5e-324, 10**400, -(10**400), 10**9, Decimal("1.5"), Fraction(1, 3),
    np.array("x"),
    np.array([object()], dtype=object), np.array(1 + 1j), np.datetime64("2020-01-01"),
    np.ma.masked_array([1.0, 2.0, 3.0], [True, False, False]), np.zeros((0, 3)),
    np.zeros((2, 2, 2)),
    np.ones((40, 40)), np.array([("a", 1)], dtype=[("n", "U1"), ("i", "i4")]), range(3),
    iter([1.0]),
    slice(3), NotImplemented, ..., Exception("no"), rx.SO3, rx.SO3(), rx.Exp(), rx.Exp,
    rx.LieVerlet,
    rx.LieVerlet(), rx.Sphere(3), np.float32(1.5), np.int8(3), np.bool_(True), jnp.ones(3),
    jnp.ones((3, 3), jnp.float32), jnp.arange(3), jnp.nan, np.random.default_rng(0),
]  # fmt: skip
NUMBERS: list[Any] = [
    np.nan, np.inf, -np.inf, 0.0, -0.0, 0, 1, -1, 2, -1.0, 1e-300, 5e-324, 1e300, 1e308, -1e308,
    1e-16, 1e16, np.float32(0.1), np.array(0.5), jnp.asarray(2.0), np.array([0.5]), [0.5], "0.5",
    Decimal("0.5"), Fraction(1, 2), True, 0.5 + 0j, 10**400, 0.5, 1.5,
]  # fmt: skip
WHOLES: list[Any] = [
    0, 1, 2, 3, 5, 17, -1, -(2**63), 2**31, 2**63, 10**12, 10**400, 1.0, 2.0, 2.5, np.nan, np.inf,
    np.int64(3), np.uint8(3), np.float64(3.0), np.array(3), jnp.asarray(3), "3", True,
    np.bool_(True),
    3 + 0j, [3], Fraction(3),
]  # fmt: skip
RETURNS: list[Any] = [
    None, "text", np.nan, jnp.nan, np.inf, 1j, 0, 1, True, [], [1.0], (1.0, 2.0), {}, jnp.zeros(3),
    jnp.full(3, jnp.nan), jnp.zeros((3, 3)), jnp.zeros(0), jnp.zeros(2, jnp.int32), Opaque(),
    np.array(1.0, dtype=object), jnp.zeros(3, jnp.float32), 10**400,
]  # fmt: skip


def _safe(values: list[Any]) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


junk = _safe(JUNK)
floats = st.floats(allow_nan=True, allow_infinity=True, width=64)


def wrong(value: Any) -> st.SearchStrategy[Any]:
    """Strategies for what may stand in the place of the right `value`."""
    if isinstance(value, bool) or value is None:
        return junk | _safe(NUMBERS)
    if isinstance(value, int):
        return junk | _safe(WHOLES) | st.integers(-3, 40)
    if isinstance(value, float):
        return junk | _safe(NUMBERS) | floats
    if isinstance(value, str):
        return junk | st.text(max_size=8) | st.just(value.upper()) | st.just(value + " ")
    if isinstance(value, list | np.ndarray) or hasattr(value, "__jax_array__"):
        return junk | _arrays(value)
    if isinstance(value, tuple):
        return junk | _parts(value)
    if isinstance(value, dict):
        return junk | _fields(value)
    if hasattr(value, "dtype") and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        return junk
    if type(value).__module__.startswith("jax"):
        return junk | _arrays(value)
    if callable(value):
        return junk | _functions(value)
    return junk


@st.composite
def _parts(draw: st.DrawFn, value: tuple) -> Any:
    """One part of a tuple wrong, or one too many, or one too few, or a list of the same."""
    how = draw(st.integers(0, 5))
    if how == 0 or not value:
        return value[:-1]
    if how == 1:
        return (*value, value[-1])
    if how == 2:
        return list(value)
    k = draw(st.integers(0, len(value) - 1))
    return (*value[:k], draw(wrong(value[k])), *value[k + 1 :])


@st.composite
def _fields(draw: st.DrawFn, value: dict) -> Any:
    """A field wrong, missing, or one that nobody knows."""
    how = draw(st.integers(0, 3))
    if how == 0 or not value:
        return value | {draw(st.sampled_from(["unknown", "", 3])): 1.0}
    key = draw(st.sampled_from(sorted(value)))
    if how == 1:
        return {k: v for k, v in value.items() if k != key}
    return value | {key: draw(wrong(value[key]))}


@st.composite
def _functions(draw: st.DrawFn, value: Any) -> Any:
    """A function of the wrong arity, that raises, that returns something else or branches."""
    returned = draw(_safe(RETURNS))
    small = draw(st.floats(-2, 2))
    return draw(
        st.sampled_from(
            [
                lambda *args: returned,
                lambda: returned,
                lambda a, b, c, d: returned,
                lambda *args: args,
                lambda *args: np.asarray(value(*args)),
                lambda *args: float(jnp.sum(value(*args))),
                lambda *args: value(*args) * jnp.nan,
                lambda *args: value(*args) * small,
                lambda *args: jnp.asarray(value(*args), jnp.float32),
                lambda *args: value(*args)[None],
                lambda *args: value(*args[:-1]),
                raises,
                branches,
            ]
        )
    )


@st.composite
def _arrays(draw: st.DrawFn, value: Any) -> Any:
    """An array of another shape, of another type, or with an entry that is wrong."""
    array = np.array(value, dtype=float)
    changes = [_with_entry, _reshaped, _retyped, _rescaled, _redrawn]
    if not array.size:
        changes = [_reshaped, _retyped]
    return draw(st.sampled_from(changes))(draw, array)


def _with_entry(draw: st.DrawFn, array: np.ndarray) -> Any:
    flat = array.ravel().tolist()
    flat[draw(st.integers(0, len(flat) - 1))] = draw(_safe(NUMBERS) | floats)
    changed = _nested(flat, array.shape)
    try:
        return draw(st.sampled_from([changed, np.array(changed, float)]))
    except (TypeError, ValueError, OverflowError):
        return changed


def _nested(flat: list, shape: tuple[int, ...]) -> Any:
    if not shape:
        return flat[0]
    step = len(flat) // shape[0]
    return [_nested(flat[k * step : (k + 1) * step], shape[1:]) for k in range(shape[0])]


def _reshaped(draw: st.DrawFn, array: np.ndarray) -> Any:
    shapes = [
        lambda a: a[None], lambda a: a[..., None], lambda a: a.T, lambda a: a[:0], lambda a: a[:-1],
        lambda a: a.ravel(), lambda a: np.concatenate([a, a]), lambda a: a[::-1], lambda a: a[0],
        lambda a: np.zeros(()), lambda a: np.stack([a] * 3), lambda a: a[..., :0],
        lambda a: [a.tolist(), 1.0], lambda a: [[a.tolist()]],
    ]  # fmt: skip
    return draw(st.sampled_from(shapes))(np.atleast_1d(array))


def _retyped(draw: st.DrawFn, array: np.ndarray) -> Any:
    kinds = [np.float32, np.int64, complex, object, str, bool, np.float16, "S8"]
    kind = draw(st.sampled_from(kinds))
    return array.astype(kind)


def _rescaled(draw: st.DrawFn, array: np.ndarray) -> Any:
    scales = [-1.0, 0.0, 1e-300, 1e300, 1e308, 1e-8, 1e8, 1 + 1e-6]
    with np.errstate(all="ignore"):
        return array * draw(st.sampled_from(scales))


def _redrawn(draw: st.DrawFn, array: np.ndarray) -> Any:
    entries = st.floats(-3, 3) | floats
    drawn = draw(st.lists(entries, min_size=array.size, max_size=array.size))
    return np.array(drawn).reshape(array.shape)
