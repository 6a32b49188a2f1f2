"""The numbers behind values that JAX is tracing, where JAX knows them.

Under `jax.vmap` a value stands for many members, and its numbers are those of all of them; under
`jax.grad` and `jax.jvp` it stands for itself. Only `jax.jit` and what traces like it hide numbers.
So checks of single values work there too.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import PyTree

from retrax.errors import BadInput, RetraxError
from retrax.numerics.platform import require_platform

try:
    from jax._src.core import trace_state_clean as nothing_is_traced
except ImportError:  # then `depends_on_traced` traces to find out

    def nothing_is_traced() -> bool:
        """Tell whether JAX is tracing nothing now, for certain."""
        return False


LEAKED = (
    "the system, the integrator, the state or h holds a value that JAX was tracing in a function "
    "that has ended: let that function return what is needed, and use what it returns."
)


# What JAX says of rules and loops that can be differentiated in one direction only.
_NO_DERIVATIVE = ("forward-mode autodiff (jvp) to a custom_vjp", "Reverse-mode differentiation")


class BadMember(BadInput):
    """`BadInput` about one member of many.

    **Attributes:** `member`: which one, counted along the last axis first.
    """

    def __init__(self, message: str, member: int):
        super().__init__(message)
        self.member = member


class Known(NamedTuple):
    """Arrays on the host; those of many members have one first axis of members.

    `members` is the shape of the members: of length 0 for values that stand for themselves.
    """

    values: PyTree
    members: tuple[int, ...]


def read_numbers(*values: PyTree) -> Known | None:
    """Return the numbers of pytrees, or `None` if JAX hides one of them."""
    leaves, tree = jax.tree.flatten(values)
    if not any(isinstance(leaf, Tracer) for leaf in leaves):
        return Known(jax.tree.unflatten(tree, [np.asarray(leaf) for leaf in leaves]), ())
    seen = [_look(leaf) for leaf in leaves]
    sizes: dict[int, int] = {}
    for one in seen:
        if one is None:
            return None
        sizes |= dict(zip(one[1], one[0].shape, strict=False))
    shape = tuple(sizes.values())
    arrays = [_spread(*one, sizes) for one in seen if one is not None]
    return Known(jax.tree.unflatten(tree, arrays), shape)


def require_each(
    check: Callable[..., object],
    *values: PyTree,
    fine: Callable[..., np.ndarray | np.bool_] | None = None,
) -> None:
    """Call `check` with the numbers of the values, or with those of every member of a `vmap`.

    What the check raises then names the member. Call nothing where JAX hides a number.

    **Arguments:**

    - `fine`: a quick look at all members at once that tells which need no check; it is given what
        `check` is, with a first axis of members.
    """
    found = read_numbers(*values)
    if found is None:
        return
    if not found.members:
        check(*found.values)
        return
    check_members(check, found.values, found.members, fine)


def check_members(
    check: Callable[..., object],
    values: PyTree,
    members: tuple[int, ...],
    fine: Callable[..., np.ndarray | np.bool_] | None = None,
) -> None:
    """Call `check` for every member of arrays with a first axis of members, those `fine` left out.

    **Raises:** what the check raises, with the member's number before its sentence.
    """
    count = int(np.prod(members))
    ok = np.zeros(count, bool) if fine is None else np.asarray(fine(*values))
    for k in np.flatnonzero(~ok):
        one = jax.tree.map(lambda x, k=k: np.asarray(x[k]), values)
        try:
            check(*one)
        except BadInput as wrong:
            raise BadMember(f"member {_member_name(int(k), members)}: {wrong}", int(k)) from wrong
        except RetraxError as wrong:
            name = _member_name(int(k), members)
            raise type(wrong)(f"member {name}: {wrong}") from wrong


@contextmanager
def explaining_leaks() -> Iterator[None]:
    """Say in a sentence where a value has left the function that JAX was tracing.

    And where a function has no derivative of the kind that is needed.
    """
    require_platform()
    try:
        yield
    except jax.errors.UnexpectedTracerError as leak:
        raise BadInput(LEAKED) from leak
    except (TypeError, ValueError) as cause:
        text = str(cause)
        if isinstance(cause, RetraxError) or not any(words in text for words in _NO_DERIVATIVE):
            raise
        first = text.splitlines()[0].rstrip(".")
        raise BadInput(f"a derivative that is needed here does not exist: {first}.") from cause


def has_leaked(*values: PyTree) -> bool:
    """Tell whether values hold tracers although JAX is tracing nothing."""
    return nothing_is_traced() and any(isinstance(x, Tracer) for x in jax.tree.leaves(values))


def depends_on_traced(function: Callable[..., PyTree], *arguments: PyTree) -> bool:
    """Tell whether a function of plain values uses a value that JAX is tracing.

    It may have closed over one, or find one by a global name, in a `partial` or in an attribute.
    Costs nothing unless a transformation of JAX is going on. Where that is `jax.jit`, whatever is
    computed is traced.
    """
    if nothing_is_traced():
        return False
    if isinstance(jnp.zeros(()), Tracer):
        return True
    return any(isinstance(x, Tracer) for x in jax.make_jaxpr(function)(*arguments).consts)


def _member_name(k: int, members: tuple[int, ...]) -> str:
    where = tuple(int(i) for i in np.unravel_index(k, members))
    return str(where[0] if len(where) == 1 else where)


def _look(x: Any) -> tuple[np.ndarray, tuple[int, ...]] | None:
    """Return the numbers of a value with one first axis for each `vmap` it is in, and their ids.

    Tracers of `vmap` hold the values of all members, those of derivatives the value itself.
    """
    if not isinstance(x, Tracer):
        return np.asarray(x), ()
    if hasattr(x, "primal"):
        return _look(x.primal)
    if not (hasattr(x, "batch_dim") and hasattr(x, "val")):
        return None
    inner, axis = _look(x.val), x.batch_dim
    if inner is None or axis is None:
        return inner
    if not isinstance(axis, int):
        return None
    array, maps = inner
    return np.moveaxis(array, len(maps) + axis, len(maps)), (*maps, id(x._trace))


def _spread(array: np.ndarray, maps: tuple[int, ...], sizes: dict[int, int]) -> np.ndarray:
    """Join the axes of some `vmap`s to a single axis of the members of all."""
    if not sizes:
        return array
    own = array.shape[len(maps) :]
    order = sorted(range(len(maps)), key=lambda i: list(sizes).index(maps[i]))
    array = np.transpose(array, (*order, *range(len(maps), array.ndim)))
    lengths = [size if which in maps else 1 for which, size in sizes.items()]
    full = np.broadcast_to(array.reshape(*lengths, *own), (*sizes.values(), *own))
    return full.reshape(int(np.prod(full.shape[: len(sizes)])), *own)
