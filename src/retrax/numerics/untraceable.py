"""What a user's function does that JAX cannot trace, and what to write instead."""

import builtins
import dis
import os
import re
import sysconfig
from types import FrameType, ModuleType, TracebackType
from typing import Any

import jax
import jax.numpy as jnp

from retrax.errors import BadInput

_LIBRARIES = tuple(
    os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "purelib", "platlib")
)
_HERE = os.path.realpath(os.path.join(os.path.dirname(__file__), os.pardir)) + os.sep
_HIDDEN = (jax.errors.JAXTypeError, jax.errors.JAXIndexError)
# What JAX says of a traced real number that is taken for an index.
_WHOLE = "Only integer scalar arrays"
# Of Python's own functions and the methods of numbers: what to write instead.
_INSTEAD = {
    "float": "leave float() out",
    "complex": "leave complex() out",
    "int": "use jnp.floor(x) or x.astype(int)",
    "bool": "leave bool() out",
    "max": "use jnp.maximum or jnp.max",
    "min": "use jnp.minimum or jnp.min",
    "round": "use jnp.round",
    "pow": "use jnp.power",
    "any": "use jnp.any",
    "all": "use jnp.all",
    "sorted": "use jnp.sort",
    "range": "use jax.lax.fori_loop, or a number that is known beforehand",
    "item": "leave .item() out",
    "tolist": "leave .tolist() out",
    "fsum": "use jnp.sum",
    "dist": "use jnp.linalg.norm",
    "prod": "use jnp.prod",
    "gamma": "use jax.scipy.special.gamma",
    "lgamma": "use jax.scipy.special.gammaln",
    "erf": "use jax.scipy.special.erf",
    "erfc": "use jax.scipy.special.erfc",
}
_CHOICE = "use jnp.where(condition, a, b), or jax.lax.cond"


def untraceable(cause: BaseException) -> str | None:
    """Return a clause about the line of a user's that needs a number where JAX has none yet.

    `None` if `cause` is another error.
    """
    if isinstance(cause, BadInput):  # which says it already
        return None
    if isinstance(cause, TypeError) and "immutable" in str(cause):
        return "it assigns to an entry of a JAX array: use x = x.at[i].set(y)"
    returned = re.search(r"returned a value of type (?:<class ')?([\w.]+)", str(cause))
    if isinstance(cause, TypeError) and returned is not None:
        return f"it returns a value of type {returned[1]}, which is no number or array"
    error: BaseException | None = cause
    while error is not None and not isinstance(error, _HIDDEN) and _WHOLE not in str(error):
        error = error.__cause__ or error.__context__
    if error is None:
        return None
    user = _of_user(cause.__traceback__)
    if user is None:
        return f"it needs the number of a value that JAX traces: {_advice(error)}"
    frame, at, line = user
    what = _describe_call(frame, at)
    advice = _advice(error) if what is None else what
    return f"line {line} of {frame.f_code.co_name} {advice}"


def _of_user(trace: TracebackType | None) -> tuple[FrameType, int, int] | None:
    """Return the innermost frame that is neither of a library nor of retrax, and where it is."""
    found = None
    while trace is not None:
        file = os.path.realpath(trace.tb_frame.f_code.co_filename)
        if not file.startswith((*_LIBRARIES, _HERE)):
            found = trace.tb_frame, trace.tb_lasti, trace.tb_lineno
        trace = trace.tb_next
    return found


def _advice(error: BaseException) -> str:
    if isinstance(error, jax.errors.TracerBoolConversionError):
        return f"decides by a value that JAX traces (if, while, and, or, min, max): {_CHOICE}"
    if isinstance(error, jax.errors.TracerIntegerConversionError) or _WHOLE in str(error):
        return "takes a value that JAX traces for an integer: use jnp and jax.lax.fori_loop"
    if isinstance(error, jax.errors.TracerArrayConversionError):
        return "hands a value that JAX traces to NumPy: use jnp, the NumPy of JAX, instead of np"
    return "takes a value that JAX traces for a Python number: use jnp instead of np and math"


def _describe_call(frame: FrameType, at: int) -> str | None:
    """Say what the instruction `at` does, if it is a decision or calls a function with a name."""
    instructions = list(dis.get_instructions(frame.f_code))
    here = sum(one.offset <= at for one in instructions) - 1
    one = instructions[here]
    if "JUMP" in one.opname or one.opname in ("UNARY_NOT", "TO_BOOL", "CONTAINS_OP"):
        return f"decides by a value that JAX traces (if, while, and, or, not, in): {_CHOICE}"
    if one.opname == "STORE_SUBSCR":
        return "assigns a value that JAX traces to a NumPy array: use jnp and x = x.at[i].set(y)"
    if "CALL" not in one.opname:
        return None
    names = _names_before(instructions, here)
    if not names:
        return None
    return _use_instead(".".join(names), _value(frame, names))


def _names_before(instructions: list[dis.Instruction], here: int) -> list[str]:
    """Read the name `a.b.c` of what a call calls: it begins where the call begins.

    Of a method of something that has no name, such as `x[0].item()`, the first part is empty.
    """
    names: list[str] = []
    call = instructions[here].positions
    if call is None or call.lineno is None:
        return names
    begin = call.lineno, call.col_offset
    for one in instructions[:here]:
        where = one.positions
        if where is None or (where.lineno, where.col_offset) != begin:
            continue
        if one.opname.startswith(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FAST", "LOAD_DEREF")):
            names = [str(one.argval)]
        elif one.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            names.append(str(one.argval))
        elif one.opname.startswith(("BINARY_", "CALL")):
            names = [""]
    return names


def _value(frame: FrameType, names: list[str]) -> Any:
    """Return what the name stands for in that frame, modules and what they hold only."""
    first = names[0]
    found: Any = None
    for place in (frame.f_locals, frame.f_globals, vars(builtins)):
        if first in place:
            found = place[first]
            break
    for name in names[1:]:
        if not isinstance(found, ModuleType):
            return None
        found = getattr(found, name, None)
    return found


def _use_instead(written: str, function: Any) -> str:
    name = written.rpartition(".")[2]
    name = getattr(function, "__name__", name)
    says = f"calls {written} on a value that JAX traces"
    if name in _INSTEAD:
        return f"{says}: {_INSTEAD[name]}"
    for module, place in ((jnp, "jnp"), (jnp.linalg, "jnp.linalg"), (jnp.fft, "jnp.fft")):
        if hasattr(module, name):
            return f"{says}: use {place}.{name}"
    return f"{says}: use functions of jnp and jax only"
