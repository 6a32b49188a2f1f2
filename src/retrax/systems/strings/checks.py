"""Checks of what a string and its bodies are made from, and of where they start."""

import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.mechanics.solids import require_rigid_body
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import (
    MOST_NODES,
    float64,
    host_float64,
    quote,
    require_choice,
    require_finite,
    require_shape,
    require_whole,
)
from retrax.numerics.evaluate import evaluate_in_jax
from retrax.numerics.known import require_each
from retrax.systems.strings.chain import StringDamping
from retrax.systems.strings.drift import Bodies

LAWS = ("two-sided", "slack")


def check_elements(elements: object) -> int:
    """Return the number of elements, a whole number of at least 1."""
    return require_whole("elements", elements, 1, MOST_NODES)


def check_law(law: object) -> str:
    """Return `"two-sided"` or `"slack"`."""
    return require_choice("law", law, LAWS)


def check_scalar(name: str, value: object, unit: str, *, least: str = "") -> Float[Array, ""]:
    """Return one finite number, and with `least` one that is "> 0" or ">= 0"."""
    array = float64(name, value)
    require_shape(name, array, ())
    require_finite(name, array)

    def check(number: np.ndarray) -> None:
        if number < 0 or (least == "> 0" and number == 0):
            raise BadInput(f"{name} = {number:g} {unit} is not physical: it must be {least}.")

    if least:
        require_each(check, array, fine=lambda x: x > 0)
    return array


def check_density(density: object, elements: int) -> Float[Array, ""]:
    """Return the mass per length; only a single element may be massless."""
    array = check_scalar("density", density, "kg/m", least=">= 0")

    def check(number: np.ndarray) -> None:
        if elements > 1 and number == 0:
            raise BadInput(
                f"density = 0 kg/m leaves the {elements - 1} inner nodes of {elements} elements "
                "without mass: it must be > 0, or elements = 1."
            )

    require_each(check, array, fine=lambda x: x > 0)
    return array


def check_nodes(nodes: object, elements: int) -> tuple[int, ...]:
    """Return the nodes that carry bodies: different whole numbers from 1 to `elements`."""
    if nodes is None:
        return (elements,)
    given = np.atleast_1d(host_float64("nodes", nodes))
    if given.ndim != 1 or not np.all(given == np.round(given)) or not np.all(np.isfinite(given)):
        raise BadInput(f"nodes = {quote(nodes)} must be whole numbers, the nodes with bodies.")
    listed = tuple(int(node) for node in given)
    if not listed or len(set(listed)) != len(listed) or not set(listed) <= set(range(elements + 1)):
        raise BadInput(
            f"nodes = {list(listed)} must be different nodes of the string, from 1 to {elements}."
        )
    if 0 in listed:
        raise BadInput(f"nodes = {list(listed)}: node 0 is the pivot and carries no body.")
    return listed


def check_bodies(mass: object, arm: object, inertia: object, count: int) -> Bodies:
    """Return masses, arms and inertias with a first axis of bodies, each that of a rigid body."""
    masses = float64("mass", mass)
    single = count == 1 and masses.ndim == 0
    front = () if single else (count,)
    given = {"mass": (mass, front), "arm": (arm, (*front, 3)), "inertia": (inertia, (*front, 3, 3))}
    arrays = {}
    for name, (value, shape) in given.items():
        array = float64(name, value)
        require_shape(name, array, shape)
        require_finite(name, array)
        arrays[name] = evaluate_in_jax(lambda x: x[None], array) if single else array

    def check(m: np.ndarray, rho: np.ndarray, J: np.ndarray) -> None:
        for b in range(count):
            whose = "" if single else f" of body {b}"
            if not m[b] > 0:
                raise BadInput(f"mass{whose} = {m[b]:g} kg is not positive: a body has mass.")
            require_rigid_body(J[b], m[b], rho[b], whose)

    bodies = Bodies(**arrays)
    require_each(check, *bodies)
    return bodies


def check_damping(damping: object) -> StringDamping:
    """Return the damping, by default none."""
    if damping is None:
        return StringDamping()
    if not isinstance(damping, StringDamping):
        raise BadInput(
            f"damping = {quote(damping)} is not a StringDamping; write "
            "damping=rx.systems.StringDamping(drag=..., viscosity=...)."
        )
    return damping


def without_pivot(r: ArrayLike, elements: int) -> ArrayLike:
    """Return the nodes 1 to N; a row for node 0 must lie at the pivot, and is left out."""
    if np.shape(r) != (elements + 1, 3):
        return r
    nodes = float64("nodes", r)
    require_each(_require_pivot, nodes)
    return evaluate_in_jax(lambda x: x[1:], nodes)


def _require_pivot(r: np.ndarray) -> None:
    if np.any(r[0] != 0):
        raise BadInput(
            f"node 0 of the string is at {r[0].tolist()}, but it is the pivot and must be at 0."
        )


def require_apart(r: Float[Array, "n 3"]) -> None:
    """Reject neighbours that coincide: the tension between them has no direction."""
    require_each(_require_gaps, r, fine=lambda r: np.all(_gaps(r) > 0, axis=-1))


def _gaps(r: np.ndarray) -> np.ndarray:
    """Return the distances between neighbours, from the support on."""
    ends = np.concatenate([np.zeros_like(r[..., :1, :]), r], axis=-2)
    return np.linalg.norm(np.diff(ends, axis=-2), axis=-1)


def _require_gaps(r: np.ndarray) -> None:
    gaps = _gaps(r)
    if np.any(gaps == 0):
        a = int(np.argmin(gaps))
        raise BadInput(
            f"nodes {a} and {a + 1} of the string coincide: an element of length 0 has no "
            "direction to pull in."
        )
