"""What a rod is given beside its material, checked and brought into the form of its mechanics."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.so3 import SO3
from retrax.mechanics.functions import Function, as_pytree, takes_time
from retrax.mechanics.system import ArrayLike
from retrax.nodal.drag import Drag
from retrax.nodal.supports import Base
from retrax.numerics.checks import (
    finite64,
    float64,
    output,
    outputs,
    quote,
    require_above_zero,
    require_finite,
    require_real,
)
from retrax.numerics.evaluate import evaluate, evaluate_in_jax
from retrax.numerics.known import require_each
from retrax.systems.rods.acting import NodeLoads
from retrax.systems.rods.along import Along, OfTime, Profile

Scalar = Float[Array, ""]
# A vector, or a function of time.
EndLoad = ArrayLike | Callable[[Scalar], object]
# A vector, one for each place, or a function of arc length, or of arc length and time.
AlongRod = ArrayLike | Callable[[Scalar], object] | Callable[[Scalar, Scalar], object]
# The place of a pin, or the frame and the place of a clamp.
MovingBase = Callable[[Scalar], object]

_NUMBER = jax.ShapeDtypeStruct((), jnp.float64)
# Times at which the frames of a base are looked at, and how far from a rotation they may be.
_LOOKED_AT, _SKEW = (0.0, 0.1, 1.0, 10.0), 1e-9


def per_segment(
    name: str, value: ArrayLike, elements: int, shape: tuple[int, ...]
) -> Float[Array, "..."]:
    """Return a positive property of segments: of this shape, or in rows, one for each segment."""
    array = float64(name, value)
    if array.shape not in (shape, (elements, *shape)):
        one = "a number" if shape == () else f"{shape[0]} numbers"
        rows = (elements, *shape)
        raise BadInput(
            f"{name} has shape {array.shape}, but must be {one}, or have shape {rows}, a row for "
            "each segment."
        )
    require_finite(name, array)
    require_above_zero(name, array)
    return array


def segment_arcs(elements: int, spacing: Scalar) -> Float[Array, " segments"]:
    """Return the arc lengths of the middles of all segments."""
    return evaluate_in_jax(lambda h: h * (jnp.arange(elements, dtype=float) + 0.5), spacing)


def profile(
    name: str,
    value: AlongRod | None,
    arcs: Float[Array, " places"],
    places: str,
    weights: Float[Array, " places"] | None = None,
) -> Profile | None:
    """Return a vector along the rod at `arcs`, which are called `places`, times `weights`."""
    if value is None:
        return None
    if callable(value):
        if takes_time(name, value, ("s",)):
            function = as_pytree(value)
            require_real(name, output(name, function, (_NUMBER, _NUMBER)), (3,))
            return Profile(None, (Along(function, arcs, weights),))
        function = as_pytree(value)
        require_real(name, output(name, function, (_NUMBER,)), (3,))
        rows = evaluate_in_jax(lambda s: jax.vmap(lambda x: jnp.asarray(function(x)))(s), arcs)
    else:
        rows = float64(name, value)
        if rows.shape not in ((3,), (arcs.shape[0], 3)):
            raise BadInput(
                f"{name} has shape {rows.shape}, but must be 3 numbers, {arcs.shape[0]} rows of "
                f"3, one for each of the {places}, or a function of arc length s or of s and t."
            )
    require_finite(name, rows)
    return Profile(evaluate_in_jax(_weigh, rows, arcs, weights))


def _weigh(
    rows: Float[Array, "..."], arcs: Float[Array, " places"], weights: Array | None
) -> Float[Array, "places 3"]:
    rows = jnp.broadcast_to(rows, (arcs.shape[0], 3))
    return rows if weights is None else rows * weights[:, None]


def node_loads(
    elements: int,
    spacing: Scalar,
    at_end: dict[str, EndLoad | None],
    per_length: dict[str, AlongRod | None],
) -> NodeLoads | None:
    """Return the loads of `NodeLoads`, in this order: on the last node, and per length.

    The names are those of the options.
    """
    if all(x is None for x in (*at_end.values(), *per_length.values())):
        return None
    arcs, weights = evaluate_in_jax(lambda h: _lump(elements, h), spacing)
    last = evaluate_in_jax(lambda x: (jnp.arange(len(x)) == elements).astype(float), arcs)
    kinds = []
    for (end, load), (line, spread) in zip(at_end.items(), per_length.items(), strict=True):
        one = profile(line, spread, arcs, "nodes", weights)
        two = None if load is None else _end_load(end, load, arcs, last)
        kinds.append(_both(one, two))
    return NodeLoads(*kinds)


def _lump(elements: int, h: Scalar) -> tuple[Float[Array, " nodes"], Float[Array, " nodes"]]:
    """Return the arc lengths of all nodes, and the lengths that they stand for."""
    weights = np.ones(elements + 1)
    weights[[0, -1]] = 0.5
    return h * jnp.arange(elements + 1, dtype=float), h * jnp.asarray(weights)


def _end_load(
    name: str, load: EndLoad, arcs: Float[Array, " nodes"], last: Float[Array, " nodes"]
) -> Profile:
    """Return a load on the last node: a vector, or a function of time."""
    if not callable(load):
        return Profile(evaluate_in_jax(jnp.outer, last, finite64(name, load, (3,))))
    function = as_pytree(load)
    require_real(name, output(name, function, (_NUMBER,)), (3,))
    return Profile(None, (Along(OfTime(function), arcs, last),))


def _both(one: Profile | None, two: Profile | None) -> Profile | None:
    """Add two profiles."""
    if one is None or two is None:
        return two if one is None else one
    constants = [x.constant for x in (one, two) if x.constant is not None]
    if len(constants) < 2:
        return Profile(constants[0] if constants else None, one.driven + two.driven)
    constant = evaluate_in_jax(jnp.add, *constants)
    return Profile(constant, one.driven + two.driven)


def drag_rates(
    drag: ArrayLike | None,
    spin_drag: ArrayLike | None,
    mass: Float[Array, "..."],
    inertia: Float[Array, "..."],
    nodal: Float[Array, " dim"],
    spacing: Scalar,
) -> Drag | None:
    """Return the rates at which drag takes momenta away.

    `mass` and `inertia` are those per length, `nodal` is the inertia of all nodes.
    """
    if drag is None and spin_drag is None:
        return None
    given = [
        None if value is None else _drag(name, value)
        for name, value in (("drag", drag), ("spin_drag", spin_drag))
    ]
    uniform = mass.ndim == 0 and inertia.ndim == 1

    def rates(of: Array, per_length: Array, nodes: Array) -> Array:
        if uniform:
            return of / per_length
        _, weights = _lump(nodes.shape[0] - 1, spacing)
        rows = jnp.broadcast_to(of, nodes.shape)
        return rows * weights[:, None] / nodes

    masses, moments = (nodal.reshape(-1, 6)[:, k : k + 3] for k in (3, 0))
    along, about = (
        None if value is None else evaluate_in_jax(rates, value, of, nodes)
        for value, of, nodes in zip(given, (mass, inertia), (masses, moments), strict=True)
    )
    return Drag(along, about)


def _drag(name: str, value: ArrayLike) -> Float[Array, "..."]:
    array = float64(name, value)
    if array.shape not in ((), (3,)):
        raise BadInput(
            f"{name} has shape {array.shape}, but must be a number, or 3 numbers along the axes of "
            "the section."
        )
    require_finite(name, array)

    def check(values: np.ndarray) -> None:
        if not np.all(values >= 0):
            raise BadInput(f"{name} = {quote(values.tolist())} must not be negative.")

    require_each(check, array)
    return array


def moving_base(base: MovingBase | None, end: str) -> tuple[Base, ...]:
    """Return the support of the first node, if it moves."""
    if base is None:
        return ()
    if end == "free":
        raise BadInput(
            'base moves the first node, but ends says that it is free; make that end "clamped", '
            'with base(t) -> (frame, place), or "pinned", with base(t) -> place.'
        )
    clamped = end == "clamped"
    like = outputs("base", base, (_NUMBER,))
    if clamped and not (isinstance(like, tuple | list) and len(like) == 2):
        raise BadInput(
            "base(t) must return the frame and the place of a clamped node, a rotation matrix and "
            "3 numbers."
        )
    function = as_pytree(base)
    if not clamped:
        require_real("base", output("base", function, (_NUMBER,)), (3,))
        return (Base(0, False, function),)
    for k, (what, shape) in enumerate((("frame of base", (3, 3)), ("place of base", (3,)))):
        part = output("base", lambda t, k=k: function(t)[k], (_NUMBER,))
        require_real(what, part, shape)
    _require_frames(function)
    return (Base(0, True, function),)


def _require_frames(function: Function) -> None:
    """Reject a base whose frames are no rotations, at some times."""

    def defect(t: Scalar) -> Scalar:
        return SO3().defect(jnp.asarray(function(t)[0]))

    for t in _LOOKED_AT:
        off = float(evaluate(defect, np.asarray(t)))
        if off > _SKEW:
            raise BadInput(
                f"base({t:g}) has a frame that is not a rotation: it misses that by {off:.2g}."
            )
