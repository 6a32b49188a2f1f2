"""The vocabulary of checks at the door, on the host: shapes, numbers, choices, double precision.

Each takes the name that its sentence uses, and returns the value as retrax keeps it or raises
`BadInput`. Where JAX hides the numbers of a traced value, it passes.
"""

import math
import numbers
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.numerics.known import require_each

T = TypeVar("T")

# A sentence shows this much of a value, and of the reason that another library gave.
_SHOWN = 160
# Matrices of more rows than this, and lists of more nodes, fit no memory or no patience.
MOST_ROWS, MOST_NODES = 1000, 1_000_000


def shown(value: Any) -> str:
    """A value as a sentence shows it: on one line, and not all of a long one."""
    try:
        text = " ".join(repr(value).split())
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 4]} ..."


def reason(cause: BaseException) -> str:
    """What another library said: the kind of error and the first line of its text."""
    kind, text = type(cause).__name__, str(cause).strip()
    return f"{kind}: {text.splitlines()[0][:_SHOWN].rstrip('.')}" if text else kind


def within(folder: Path, name: Any) -> Path | None:
    """The path that a file gives as `name`, from `folder` on; `None` where it leads out of it.

    Absolute paths lead out, `..` does, and so does a link.
    """
    if not isinstance(name, str) or not name.strip("./") or "\0" in name or "\\" in name:
        return None
    plain = PurePosixPath(name)
    if plain.is_absolute() or ".." in plain.parts:
        return None
    try:
        leads_out = not (folder / plain).resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # a link to itself
        return None
    return None if leads_out else folder / plain


def is_traced(*values: Any) -> bool:
    """Whether any leaf of any of the pytrees `values` is being traced by JAX."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(values))


def shape_and_dtype(x: Any) -> tuple[tuple[int, ...], Any]:
    """What a compiled program depends on, of an array or a number."""
    return np.shape(x), x.dtype if hasattr(x, "dtype") else jnp.result_type(x)


def require_float64(name: str, x: Any) -> None:
    """Raise `BadInput` unless every leaf of `x` is a float64 array or scalar."""
    for leaf in jax.tree.leaves(x):
        _, dtype = shape_and_dtype(leaf)
        if dtype != np.float64:
            raise BadInput(f"{name} has dtype {dtype}, but retrax computes in float64.")


def require_shape(name: str, x: Any, shape: tuple[int, ...]) -> None:
    """Raise `BadInput` unless `x` has the shape `shape`."""
    if np.shape(x) != tuple(shape):
        raise BadInput(f"{name} has shape {np.shape(x)}, but must have shape {tuple(shape)}.")


def require_finite(name: str, x: Any) -> None:
    """Raise `BadInput` if a leaf of `x` has an entry that is not a finite number."""

    def check(values: np.ndarray) -> None:
        if not np.isfinite(values).all():
            values = np.atleast_1d(values)
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
            raise BadInput(
                f"{name} must be finite, but its entry {list(where)} is {values[where]}."
            )

    for leaf in jax.tree.leaves(x):
        require_each(check, leaf, fine=finite_rows)


def finite_rows(values: np.ndarray) -> np.ndarray:
    """Of each member, whether all its numbers are finite."""
    return np.asarray(np.isfinite(values).reshape(len(values), -1).all(axis=1))


def require_above_zero(name: str, value: Any, sentence: str = "must be positive") -> None:
    """Raise `BadInput` if an entry of `value` is not above zero."""

    def check(values: np.ndarray) -> None:
        if not np.all(values > 0):
            raise BadInput(f"{name} = {shown(values.tolist())} {sentence}.")

    require_each(check, value, fine=lambda x: (x > 0).reshape(len(x), -1).all(axis=1))


def require_instance(name: str, value: Any, kind: type[T], what: str) -> T:
    """`value`, where it is a `kind`; `what` says in the sentence what that is."""
    if not isinstance(value, kind):
        raise BadInput(f"{name} = {shown(value)} is not {what}.")
    return value


def require_whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """`value` as an `int`, where it is a whole number from `least` to `most`."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    count = int(value) if whole else None
    if count is None or count < least or (most is not None and count > most):
        low = count is not None and count < least
        span = f"of at least {least}" if most is None or low else f"from {least} to {most}"
        raise BadInput(f"{name} = {shown(value)} must be a whole number {span}.")
    return count


def require_flag(name: str, value: Any) -> bool:
    """`value` as a `bool`, where it is one."""
    if not isinstance(value, bool | np.bool_):
        raise BadInput(f"{name} = {shown(value)} must be True or False.")
    return bool(value)


def require_choice(name: str, value: Any, choices: Sequence[T]) -> T:
    """The one of `choices` that `value` is."""
    for choice in choices:
        if type(value) is type(choice) and value == choice:
            return choice
    listed = ", ".join(str(choice) for choice in choices)
    raise BadInput(f"{name} = {shown(value)} is not known: choose one of {listed}.")


def require_number(name: str, value: Any, rule: str = "finite", unit: str = "") -> float:
    """`value` as a `float`, where it is one real number that is "finite", "> 0" or ">= 0"."""
    number = as_float(value)
    kept = {"finite": True, "> 0": number > 0, ">= 0": number >= 0}[rule]
    if not (math.isfinite(number) and kept):
        wanted = {"finite": "a", "> 0": "a positive,", ">= 0": "a non-negative,"}[rule]
        raise BadInput(
            f"{name} = {shown(value)}{unit and f' {unit}'} must be {wanted} finite number."
        )
    return number


def as_float(value: Any) -> float:
    """One real number of any kind as a `float`; NaN where it is none, or none that fits."""
    array = isinstance(value, np.ndarray | np.generic | jax.Array)
    single = array and np.shape(value) == () and value.dtype.kind in "iuf"
    if not (single or isinstance(value, numbers.Real)) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except (OverflowError, TypeError, ValueError):
        return math.nan


def output(name: str, function: Any, arguments: tuple) -> jax.ShapeDtypeStruct:
    """What a function returns, without the numbers; refused where it cannot be traced."""
    if not callable(function):
        raise BadInput(f"{name} = {shown(function)} must be a function of JAX arrays.")
    try:
        return jax.eval_shape(lambda *a: jnp.asarray(function(*a)), *arguments)
    except Exception as cause:
        raise BadInput(f"{name} cannot be evaluated on JAX arrays: {reason(cause)}.") from cause


def require_output(
    name: str, function: Any, arguments: tuple, shape: tuple[int, ...], optional: bool = False
) -> None:
    """Refuse a function that cannot be traced or that returns something of another shape."""
    if not (optional and function is None):
        require_real(name, output(name, function, arguments), shape)


def require_real(name: str, out: jax.ShapeDtypeStruct, shape: tuple[int, ...]) -> None:
    """Refuse what a function returns where it is not real numbers of that shape."""
    if out.shape != shape or out.dtype != jnp.float64:
        wanted = "a real number" if shape == () else f"real numbers of shape {shape}"
        raise BadInput(
            f"{name} returns {out.dtype} of shape {out.shape}, but it must return {wanted} "
            "in float64."
        )


def require_double_precision() -> None:
    """Refuse to compute in float32: round-off would hide every structure that is preserved."""
    if not jax.config.read("jax_enable_x64"):
        raise BadInput(
            "jax_enable_x64 = False: something switched JAX to float32 after `import retrax`, but "
            'retrax computes in float64; put back jax.config.update("jax_enable_x64", True).'
        )


def float64(name: str, value: Any) -> Float[Array, "..."]:
    """`value`, called `name` in the sentence that refuses it, as a float64 array of its own.

    Copied on the host and moved as it is: `jnp.asarray` compiles a program for every shape.
    """
    if is_traced(value):
        return jnp.asarray(value)
    host = host_float64(name, value)
    with jax.ensure_compile_time_eval():  # plain numbers are known also where a program is traced
        return jax.device_put(host)


def host_float64(name: str, value: Any) -> Float[np.ndarray, "..."]:
    """`float64`, on the host: numbers of any real kind, but no text, truth values or gaps."""
    try:
        given = np.asarray(value)
        real = given.dtype.kind in "iuf" or (given.dtype.kind == "O" and _all_real(given))
        if real and not np.ma.is_masked(value):
            return np.array(given, dtype=np.float64)
        cause = None
    except Exception as error:  # whatever `__array__` and `__len__` of a foreign object raise
        cause = error
    raise BadInput(f"{name} = {shown(value)} must be an array of real numbers.") from cause


def finite64(name: str, value: Any, shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
    """`float64`, for numbers that must be finite and of one shape."""
    array = float64(name, value)
    require_shape(name, array, shape)
    require_finite(name, array)
    return array


def _all_real(entries: np.ndarray) -> bool:
    kinds = numbers.Real | np.ndarray | jax.Array
    return all(isinstance(x, kinds) and not isinstance(x, bool) for x in entries.flat)
