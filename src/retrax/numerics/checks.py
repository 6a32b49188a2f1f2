"""The vocabulary of checks at the door, on the host: numbers, arrays, choices, functions.

Each check takes the name that its sentence uses, and returns the value as retrax keeps it or
raises `BadInput`. Where JAX hides the numbers of a traced value, it passes.
"""

import math
import numbers
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import jax.typing
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, PyTree

from retrax.errors import BadInput
from retrax.numerics.known import require_each
from retrax.numerics.platform import require_platform
from retrax.numerics.untraceable import untraceable

T = TypeVar("T")
# What a user may hand in for an array: numbers, nested lists of them, NumPy or JAX arrays.
ArrayLike = jax.typing.ArrayLike | Sequence[Any]

# A sentence shows this much of a value, and of the reason that another library gave.
_SHOWN = 160
# The squares of shorter vectors, and of those as much longer than 1, are not numbers any more.
_SHORTEST = 1e-150
# Matrices of more rows than this, and lists of more nodes, fit no memory or no patience.
MOST_ROWS, MOST_NODES = 1000, 1_000_000


# Words for sentences.


def quote(value: object) -> str:
    """Return a value as a sentence shows it: on one line, a long one cut short."""
    try:
        text = " ".join(repr(value).split())
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 4]} ..."


def reason(cause: BaseException) -> str:
    """Return what another library said: the kind of error and the first line of its text.

    Of a function that JAX cannot trace: what it does, and what to write instead.
    """
    told = untraceable(cause)
    if told is not None:
        return told
    kind, text = type(cause).__name__, str(cause).strip()
    return f"{kind}: {text.splitlines()[0][:_SHOWN].rstrip('.')}" if text else kind


def require_known(name: str, value: object) -> None:
    """Reject a value that JAX is tracing where a number is needed."""
    if not isinstance(value, Iterator) and is_traced(value):
        raise BadInput(
            f"{name} is needed as a number, but JAX is tracing it (jit, grad, jvp or vmap): it "
            "cannot be traced or differentiated."
        )


# Single values.


def require_instance(name: str, value: object, kind: type[T], what: str) -> T:
    """Return `value` if it is a `kind`; `what` says in the sentence what that is."""
    if not isinstance(value, kind):
        raise BadInput(f"{name} = {quote(value)} is not {what}.")
    return value


def require_flag(name: str, value: object) -> bool:
    """Return `value` as a `bool` if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        require_known(name, value)
        raise BadInput(f"{name} = {quote(value)} must be True or False.")
    return bool(value)


def require_whole(name: str, value: object, least: int, most: int | None = None) -> int:
    """Return `value` as an `int` if it is a whole number from `least` to `most`."""
    count = None
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        count = int(value)
    elif isinstance(value, float | np.floating) and float(value).is_integer():
        count = int(value)
    if count is None or count < least or (most is not None and count > most):
        require_known(name, value)
        low = count is not None and count < least
        span = f"of at least {least}" if most is None or low else f"from {least} to {most}"
        raise BadInput(f"{name} = {quote(value)} must be a whole number {span}.")
    return count


def require_choice(name: str, value: object, choices: Sequence[T]) -> T:
    """Return the one of `choices` that `value` is."""
    for choice in choices:
        if type(value) is type(choice) and value == choice:
            return choice
    require_known(name, value)
    listed = ", ".join(str(choice) for choice in choices)
    raise BadInput(f"{name} = {quote(value)} is not known: choose one of {listed}.")


def require_number(name: str, value: object, rule: str = "finite", unit: str = "") -> float:
    """Return `value` as a `float` if it is one real number that is "finite", "> 0" or ">= 0"."""
    number = as_float(value)
    kept = {"finite": True, "> 0": number > 0, ">= 0": number >= 0}[rule]
    if not (math.isfinite(number) and kept):
        require_known(name, value)
        wanted = {"finite": "a", "> 0": "a positive,", ">= 0": "a non-negative,"}[rule]
        raise BadInput(
            f"{name} = {quote(value)}{unit and f' {unit}'} must be {wanted} finite number."
        )
    return number


def as_float(value: object) -> float:
    """Return one real number of any kind as a `float`, and NaN for anything else."""
    try:
        if isinstance(value, np.ndarray | np.generic | jax.Array):
            kind = getattr(value.dtype, "kind", "")  # the keys of JAX have none
            return float(value) if np.shape(value) == () and kind in ("i", "u", "f") else math.nan
        if isinstance(value, numbers.Real) and not isinstance(value, bool):
            return float(value)
    except (OverflowError, TypeError, ValueError):
        pass
    return math.nan


def within(folder: Path, name: object) -> Path | None:
    """Return the path that a file gives as `name`, from `folder` on; `None` if it leads out of it.

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


# Arrays, in double precision.


def require_double_precision() -> None:
    """Reject float32: its round-off would hide every structure that is preserved."""
    require_platform()
    if not jax.config.read("jax_enable_x64"):
        raise BadInput(
            "jax_enable_x64 = False: something switched JAX to float32 after `import retrax`, but "
            'retrax computes in float64; put back jax.config.update("jax_enable_x64", True).'
        )


def is_traced(*values: PyTree) -> bool:
    """Tell whether JAX is tracing any leaf of any of the pytrees `values`."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(values))


def require_untraced(what: str, *values: PyTree) -> None:
    """Reject values that JAX is tracing: `what` needs their numbers."""
    if is_traced(*values):
        raise BadInput(
            f"{what} is computed on the host with numbers, but JAX is tracing what it is given "
            f"(jit, grad, jvp or vmap): call {what} outside of what JAX transforms."
        )


def shape_and_dtype(x: Any) -> tuple[tuple[int, ...], Any]:
    """Return what a compiled program depends on, of an array, a number or keys of JAX."""
    return np.shape(x), x.dtype if hasattr(x, "dtype") else jnp.result_type(x)


def float64(name: str, value: object) -> Float[Array, "..."]:
    """Return `value` as a float64 array of its own.

    Copied on the host and moved as it is: `jnp.asarray` compiles a program for every shape.
    """
    if not isinstance(value, Iterator) and is_traced(value):
        return jnp.asarray(value)
    require_platform()
    host = host_float64(name, value)
    with jax.ensure_compile_time_eval():  # plain numbers are known also where a program is traced
        return jax.device_put(host)


def host_float64(name: str, value: object) -> Float[np.ndarray, "..."]:
    """Return `value` as a float64 array on the host: any real numbers, no text, flags or gaps."""
    try:
        given = np.asarray(value)
        real = given.dtype.kind in "iuf" or (given.dtype.kind == "O" and _all_real(given))
        if real and not np.ma.is_masked(value):
            return np.array(given, dtype=np.float64)
        cause = None
    except Exception as error:  # whatever `__array__` and `__len__` of a foreign object raise
        cause = error
    require_known(name, value)
    raise BadInput(f"{name} = {quote(value)} must be an array of real numbers.") from cause


def _all_real(entries: np.ndarray) -> bool:
    kinds = numbers.Real | np.ndarray | jax.Array
    return all(isinstance(x, kinds) and not isinstance(x, bool) for x in entries.flat)


def finite64(name: str, value: object, shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
    """Return `value` as a float64 array if it has this shape and every entry is finite."""
    array = float64(name, value)
    require_shape(name, array, shape)
    require_finite(name, array)
    return array


def host_finite64(name: str, value: object, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """Return what `finite64` does, on the host."""
    array = host_float64(name, value)
    require_shape(name, array, shape)
    require_finite(name, array)
    return array


def positive64(name: str, value: object, shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
    """Return `value` as a float64 array if it has this shape and every entry is above zero."""
    array = finite64(name, value, shape)
    require_above_zero(name, array)
    return array


def require_float64(name: str, x: PyTree) -> None:
    """Reject a pytree with a leaf that is not a float64 array or scalar."""
    for leaf in jax.tree.leaves(x):
        _, dtype = shape_and_dtype(leaf)
        if dtype != np.float64:
            raise BadInput(f"{name} has dtype {dtype}, but retrax computes in float64.")


def require_shape(name: str, x: Any, shape: tuple[int, ...]) -> None:
    """Reject an array of another shape."""
    if np.shape(x) != tuple(shape):
        raise BadInput(f"{name} has shape {np.shape(x)}, but must have shape {tuple(shape)}.")


def require_finite(name: str, x: PyTree) -> None:
    """Reject a pytree with an entry that is not finite."""

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
    """Tell of each member whether all its numbers are finite."""
    return np.asarray(np.isfinite(values).reshape(len(values), -1).all(axis=1))


def require_direction(name: str, values: np.ndarray) -> float:
    """Return the length of a vector if squares tell it; zeros and what is as small have none."""
    with np.errstate(over="ignore"):
        length = float(np.linalg.norm(values))
    if not _SHORTEST < length < 1 / _SHORTEST:
        raise BadInput(f"{name} = {quote(values.tolist())} has no direction.")
    return length


def require_above_zero(name: str, value: Any, sentence: str = "must be positive") -> None:
    """Reject an array with an entry that is not above zero."""

    def check(values: np.ndarray) -> None:
        if not np.all(values > 0):
            raise BadInput(f"{name} = {quote(values.tolist())} {sentence}.")

    require_each(check, value, fine=lambda x: (x > 0).reshape(len(x), -1).all(axis=1))


# Functions of JAX arrays.


def require_function(name: str, function: object) -> Callable[..., Any]:
    """Return `function` if it can be called and is no class, which makes objects."""
    if not callable(function):
        raise BadInput(f"{name} = {quote(function)} must be a function of JAX arrays.")
    if isinstance(function, type):
        raise BadInput(
            f"{name} = {quote(function)} is a class: give a function, or an object made of it."
        )
    return function


def outputs(name: str, function: object, arguments: tuple[PyTree, ...]) -> PyTree:
    """Trace a function and return what it returns, without the numbers."""
    call = require_function(name, function)
    try:
        return jax.eval_shape(lambda *a: call(*a), *arguments)
    except BadInput:
        raise
    except Exception as cause:
        raise BadInput(f"{name} cannot be evaluated on JAX arrays: {reason(cause)}.") from cause


def output(name: str, function: object, arguments: tuple[PyTree, ...]) -> jax.ShapeDtypeStruct:
    """Trace a function of one array or number as result, and return that without the numbers."""
    call = require_function(name, function)
    return outputs(name, lambda *a: jnp.asarray(call(*a)), arguments)


def require_output(
    name: str,
    function: object,
    arguments: tuple[PyTree, ...],
    shape: tuple[int, ...],
    optional: bool = False,
) -> None:
    """Reject a function that cannot be traced or that returns something of another shape."""
    if not (optional and function is None):
        require_real(name, output(name, function, arguments), shape)


def require_real(name: str, out: jax.ShapeDtypeStruct, shape: tuple[int, ...]) -> None:
    """Reject an output that is not real numbers of that shape."""
    if out.shape != shape or out.dtype != jnp.float64:
        wanted = "a real number" if shape == () else f"real numbers of shape {shape}"
        raise BadInput(
            f"{name} returns {out.dtype} of shape {out.shape}, but it must return {wanted} "
            "in float64."
        )
