r"""What a fit looks for: parameters, and the state at the start, as one vector of changes.

Parameters change by adding, the start as a point of the group does,
$g \mapsto g\exp\eta$, $\xi \mapsto \xi + N\zeta$ with $N$ spanning the admissible velocities.
"""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup
from retrax.mechanics.actuated import Actuated
from retrax.mechanics.functions import Function
from retrax.mechanics.holonomic import AbstractHolonomic
from retrax.mechanics.placement import place_near
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import host_float64, quote, reason, require_function
from retrax.numerics.evaluate import evaluate
from retrax.numerics.frozen import Frozen
from retrax.numerics.looks import as_maker
from retrax.run.checks import require_system
from retrax.run.drive import Plant
from retrax.spaces.group_itself import GroupItself


class Point(NamedTuple):
    """Where a fit is: parameters in a row; configuration and velocity or momentum at the start."""

    p: Float[Array | np.ndarray, " parameter"]
    g: PyTree
    motion: Float[Array | np.ndarray, " dim"]


class Nesting(NamedTuple):
    """How parameters in a row are nested: the shapes of numbers, and all other leaves."""

    tree: Any
    shapes: tuple[tuple[int, ...] | None, ...]
    constants: tuple[Any, ...]
    names: tuple[str, ...]

    @property
    def size(self) -> int:
        return sum(math.prod(shape) for shape in self.shapes if shape is not None)

    def nest(self, p: Float[Array | np.ndarray, " parameter"]) -> PyTree:
        """Return parameters as the user nests them."""
        leaves, at = [], 0
        for shape, constant in zip(self.shapes, self.constants, strict=True):
            if shape is None:
                leaves.append(constant)
                continue
            end = at + math.prod(shape)
            leaves.append(p[at:end].reshape(shape))
            at = end
        return jax.tree.unflatten(self.tree, leaves)


class Unknowns(Frozen):
    """How points are made into systems and states, and how they change.

    **Attributes:** `system_of`, `nesting`: how parameters make a system; `group`: where it moves;
    `t`: the time of the start; `admissible`: a basis of velocities, one in each row; `free`:
    whether the start is unknown; `by_momentum`: whether the motion there is kept as a momentum.
    """

    system_of: Function
    group: AbstractLieGroup
    nesting: Nesting = eqx.field(static=True)
    t: Float[np.ndarray, ""]
    admissible: Float[np.ndarray, "free dim"]
    free: bool = eqx.field(static=True)
    by_momentum: bool = eqx.field(static=True)

    def size(self, point: Point) -> int:
        """Return how many unknowns there are."""
        start = len(point.motion) + len(self.admissible) if self.free else 0
        return self.nesting.size + start

    def plant(self, point: Point) -> Plant:
        """Return what the parameters make: a system, with inputs or without."""
        return make_plant(self.system_of, self.nesting.nest(point.p))

    def make(self, point: Point) -> tuple[Plant, State]:
        """Return what moves, and the state at the start."""
        plant = self.plant(point)
        system = without_inputs(plant)
        g, t, momentum = point.g, jnp.asarray(self.t), jnp.asarray(point.motion)
        now = system.at_time(t)
        if isinstance(system.constraint, AbstractHolonomic):  # it may depend on parameters
            there = momentum if self.by_momentum else now.momentum(g, momentum)
            g = place_near(system, system.constraint, jax.tree.map(jnp.asarray, g), there, t)
        if not self.by_momentum:
            momentum = now.momentum(g, momentum)
        if system.constraint is not None:
            momentum = system.project_momentum(g, momentum, t)
        return plant, State(g, momentum, t)

    def move(self, point: Point, change: Float[Array, " unknown"]) -> Point:
        """Return the point after a change of the unknowns."""
        n, dim = self.nesting.size, len(point.motion)
        p = point.p + change[:n]
        if not self.free:
            return point._replace(p=p)
        g = self.group.compose(point.g, self.group.exp(change[n : n + dim]))
        return Point(p, g, point.motion + change[n + dim :] @ jnp.asarray(self.admissible))

    def state_names(self, point: Point) -> list[str]:
        """Return the names of what is unknown of the start."""
        if not self.free:
            return []
        turned = [f"start of g, {k + 1}" for k in range(len(point.motion))]
        return turned + [f"start of velocity, {k + 1}" for k in range(len(self.admissible))]


def parameters(start: object) -> tuple[Float[np.ndarray, " parameter"], Nesting]:
    """Return the numbers of the first guess in a row, and how they are nested.

    Lists of numbers are arrays; every number is a parameter, anything else stays as it is.
    """
    with_paths, tree = jax.tree_util.tree_flatten_with_path(start, is_leaf=_is_row)
    rows: list[np.ndarray] = []
    shapes, constants, names = [], [], []
    for path, leaf in with_paths:
        number = _is_row(leaf) or _is_number(leaf) or eqx.is_inexact_array(leaf)
        constants.append(None if number else leaf)
        if not number:
            shapes.append(None)
            continue
        array = host_float64("start", leaf)
        if not np.isfinite(array).all():
            raise BadInput(f"start = {quote(start)} must hold finite numbers.")
        rows.append(array.ravel())
        shapes.append(array.shape)
        base = "".join(_part(key, first=k == 0) for k, key in enumerate(path)) or "p"
        places = np.ndindex(array.shape) if array.ndim else [()]
        names += [base + (f"[{', '.join(map(str, i))}]" if i else "") for i in places]
    if not rows:
        raise BadInput(f"start = {quote(start)} holds no numbers: there is nothing to fit.")
    return np.concatenate(rows), Nesting(tree, tuple(shapes), tuple(constants), tuple(names))


def require_any_start(system: AbstractGroupSystem) -> None:
    """Reject a system whose start cannot be changed freely, as a search would change it."""
    if not isinstance(system.configuration_space, GroupItself):
        raise BadInput(
            f"the configurations of the {system.name} are points of "
            f"{system.configuration_space.name}, not of a group, and their start cannot be "
            "fitted: give state=... and free_state=False."
        )
    if isinstance(system.constraint, AbstractHolonomic):
        raise BadInput(
            f"the {system.name} starts on a constraint on positions, where not every change of the "
            "start is possible: give state=... and free_state=False."
        )


def unknowns(
    system_of: object, start: object, state: State, free: bool, velocity_known: bool
) -> tuple[Unknowns, Point]:
    """Return what is unknown, and the first guess.

    **Arguments:** `velocity_known`: keep the velocity of the state, not its momentum, where the
    start is not free.
    """
    p, nesting = parameters(start)
    system = without_inputs(make_plant(system_of, nesting.nest(p)))
    by_momentum = not system.has_momentum or not (free or velocity_known)
    motion = np.asarray(state.momentum)
    if not by_momentum:
        motion = np.asarray(evaluate(lambda s, x: s.velocity_at(x), system, state))
    found = Unknowns(
        Partial(as_maker(require_function("system_of", system_of))),
        system.group,
        nesting,
        np.asarray(state.t),
        _admissible(system, state) if free else np.zeros((0, system.group.dim)),
        free,
        by_momentum,
    )
    return found, Point(p, jax.tree.map(np.asarray, state.g), motion)


def without_inputs(plant: Plant) -> AbstractGroupSystem:
    """Return what moves, without its inputs."""
    return plant.system if isinstance(plant, Actuated) else plant


def make_plant(system_of: object, p: PyTree) -> Plant:
    """Build the system of some parameters, with a sentence where that fails."""
    build = require_function("system_of", system_of)
    try:
        made = build(p)
        return made if isinstance(made, Actuated) else require_system(made)
    except BadInput:
        raise
    except Exception as cause:
        raise BadInput(f"system_of(start) cannot be built: {reason(cause)}.") from cause


def _admissible(system: AbstractGroupSystem, state: State) -> np.ndarray:
    """Return a basis of the velocities that a constraint leaves, one in each row."""
    if not system.has_momentum:
        return np.zeros((0, system.group.dim))
    if system.constraint is None:
        return np.eye(system.group.dim)
    rows = np.asarray(evaluate(lambda s, x: s.constraint.rows(x.g, x.t), system, state))
    _, values, basis = np.linalg.svd(rows)
    rank = int(np.sum(values > 1e-10 * values[0]))
    return basis[rank:]


def _is_row(x: object) -> bool:
    """Tell whether a list or tuple holds numbers, not parts of a pytree."""
    return isinstance(x, list | tuple) and bool(x) and all(_is_number(y) or _is_row(y) for y in x)


def _is_number(x: object) -> bool:
    return isinstance(x, int | float | np.number) and not isinstance(x, bool)


def _part(key: Any, first: bool) -> str:
    name = getattr(key, "key", getattr(key, "name", None))
    if name is None:
        return f"[{key.idx}]" if hasattr(key, "idx") else str(key)
    return str(name) if first else f".{name}"
