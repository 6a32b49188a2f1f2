"""The bodies of a sweep: every one built and checked before anything runs.

`potential=lambda R: -mass * R[2, 2]` is a new function for every mass. `open_up` takes the number
out of the closure: what is left is the same code each time, so that the bodies are of one kind and
share one program.
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import CellType, FunctionType
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np
from jax.core import Tracer
from jax.tree_util import Partial

from retrax.errors import BadInput, RetraxError
from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.driven import Driven, alone
from retrax.integrators.lie_verlet import LieVerlet
from retrax.mechanics.actuated import Actuated, Actuators
from retrax.mechanics.controls import AbstractControl
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.known import BadMember
from retrax.numerics.looks import UserFunction
from retrax.numerics.walk import ByContent
from retrax.run.checks import start_of
from retrax.run.drive import Plant, require_control, unwrap
from retrax.run.driven_members import DrivenMembers, begin_members, spread
from retrax.run.member_checks import stack_systems
from retrax.sweeps.axes import MEMBER, Axes

# Some integrator: what a controller keeps does not depend on it.
READY_STEP = LieVerlet()
# What drives a body: its actuators, and who chooses their inputs; `None` where nothing does.
Drive: TypeAlias = tuple[Actuators, AbstractControl] | None
# What moves, and what drives it.
Whole: TypeAlias = tuple[AbstractGroupSystem, Drive]
# That and a state, or as many as there are members along the first axis of all arrays.
Made: TypeAlias = tuple[Whole, State]


class Bodies(NamedTuple):
    """One system for all members, or one for each along the first axis, and their states.

    What drives them is one for all or one for each as well.
    """

    system: AbstractGroupSystem
    states: State
    shared: bool
    drive: Drive = None

    @property
    def whole(self) -> Whole:
        """What moves, and what drives it."""
        return self.system, self.drive

    def some(self, members: np.ndarray) -> "Bodies":
        """Return the members with these numbers."""
        system, drive = self.whole
        if not self.shared:
            system, drive = jax.tree.map(lambda x: np.asarray(x)[members], self.whole)
        states = jax.tree.map(lambda x: np.asarray(x)[members], self.states)
        return Bodies(system, states, self.shared, drive)

    def integrator(self, integrator: AbstractIntegrator) -> AbstractIntegrator:
        """Return the integrator of all members, with what drives them."""
        if self.drive is None:
            return integrator
        base = integrator if self.shared else spread(integrator, len(self.states.t))
        return Driven(base, *self.drive)

    def parts(self, integrator: AbstractIntegrator) -> DrivenMembers:
        """Return what moves and how it is stepped."""
        own = self.drive is not None and not self.shared
        return DrivenMembers(self.system, self.integrator(integrator), own)


def bodies(make: Callable[..., object], axes: Axes, control: AbstractControl | None) -> Bodies:
    """Return what `make` returns for every member: by `jax.vmap`, or else one by one."""
    make = partial(_with_control, make, control)
    first = _make(make, axes.row(0), axes.describe(0))
    together = None
    if all(column.dtype.kind != "U" for column in axes.columns.values()):
        try:
            together = _all_at_once(make, axes)
        except BadMember as refusal:  # made alone, it says so with its parameters
            _make(make, axes.row(refusal.member), axes.describe(refusal.member))
    wholes, states = together or _one_by_one(make, axes, first)
    wholes, states = jax.tree.map(np.asarray, (wholes, states))
    shared = all((leaf == leaf[:1]).all() for leaf in jax.tree.leaves(wholes))
    system, drive = jax.tree.map(lambda x: x[0], wholes) if shared else wholes
    return Bodies(system, states, shared, drive)


def bodies_from(
    plant: Plant, states: object, control: AbstractControl | None
) -> tuple[Axes, Bodies]:
    """Return one system and a state for each member."""
    system, drive = _whole(plant, control)
    begin = start_of(system, states)
    if not isinstance(begin, State):
        raise BadInput(
            f"states = {begin!r} is not a State whose arrays have a first axis of members, as "
            "jax.vmap(lambda v: system.state(g, velocity=v))(velocities) gives."
        )
    begin = jax.tree.map(np.asarray, alone(begin))
    lengths = {leaf.shape[0] if leaf.ndim else 0 for leaf in jax.tree.leaves(begin)}
    count = max(lengths)
    labels = {MEMBER: ((MEMBER,), np.arange(count))}
    system, drive = jax.tree.map(np.asarray, open_up((system, drive)))
    found = Bodies(system, begin, True, drive)
    if drive is not None:
        parts = found.parts(READY_STEP)
        found = found._replace(states=begin_members(parts, begin, True))
    return Axes({MEMBER: count}, {}, labels), found


def _with_control(
    make: Callable[..., object], control: AbstractControl | None, **row: object
) -> object:
    """Return what `make` returns, with the control of the whole sweep where it names none."""
    made = make(**row)
    if not isinstance(made, tuple) or len(made) not in (2, 3):
        return made
    if len(made) == 3 and control is not None:
        raise BadInput("make returns a control, so the sweep takes none besides.")
    return made if len(made) == 3 else (*made, control)


def _whole(plant: object, control: object) -> tuple[Any, Drive]:
    """Return what moves and what drives it, checked to fit."""
    if control is None or not isinstance(plant, Actuated):
        return unwrap(plant, READY_STEP, control)[0], None
    drives = require_control(control)
    drives.check(plant.system, plant.count)
    return plant.system, (plant.actuators.dense(), drives)


def _make(make: Callable[..., object], row: Mapping[str, object], name: str) -> Made:
    """Return the system and the state of one member, its functions opened."""
    try:
        made = make(**row)
    except BadMember:
        raise
    except RetraxError as refusal:
        raise BadInput(f"make({name}): {refusal}") from refusal
    except Exception as cause:
        raise BadInput(f"make({name}) raised {type(cause).__name__}: {cause}") from cause
    if not (isinstance(made, tuple) and len(made) == 3):
        raise BadInput(f"make({name}) must return a system and a state, but returned {made!r}.")
    plant, state, control = made
    try:
        system, drive = _whole(plant, control)
    except BadInput as refusal:
        raise BadInput(f"make({name}): {refusal}") from refusal
    if not isinstance(system, AbstractGroupSystem):
        raise BadInput(f"make({name}) returned {system!r}, which is not a retrax system.")
    state = start_of(system, state)
    if not isinstance(state, State):
        raise BadInput(
            f"make({name}) returned {state!r} as the state; make one with system.state(...)."
        )
    if drive is not None:
        state = Driven(READY_STEP, *drive).begin(system, state)
        state = jax.tree.map(jax.numpy.asarray, state)
    return open_up((system, drive)), alone(state) if drive is None else state


def _all_at_once(make: Callable[..., object], axes: Axes) -> Made | None:
    """Make all members by `jax.vmap`, or return nothing where `make` needs to see the numbers."""

    def member(row):
        return _make(make, row, "...")

    try:
        wholes, states = jax.vmap(member)(axes.columns)
        one = jax.tree.map(lambda x: x[0], (wholes, states))
        # Numbers that make has hidden where jax.vmap does not see them come to light here.
        jax.eval_shape(_look_at, *one)
    except BadMember:
        raise
    except Exception:
        return None
    return wholes, states


def _look_at(whole: Whole, state: State) -> object:
    """Ask all functions of a body something."""
    system, drive = whole
    if drive is not None:
        driven = Driven(READY_STEP, *drive)
        system = driven.acting(system, state, jax.numpy.ones(()))
    return system.vector_field(state.g, state.momentum, state.t)


def _one_by_one(make: Callable[..., object], axes: Axes, first: Made) -> Made:
    made = [first, *(_make(make, axes.row(k), axes.describe(k)) for k in range(1, axes.members))]
    wholes, states = zip(*made, strict=True)
    return stack_systems(wholes), jax.tree.map(lambda *xs: np.stack(xs), *states)


def open_up(tree: Any) -> Any:
    """Open a system: its functions hold the numbers of their closures as pytree arrays."""
    return jax.tree.map(_open, tree, is_leaf=lambda x: isinstance(x, Partial))


def _open(x: object) -> object:
    if not isinstance(x, Partial):
        return x
    arguments, keywords = open_up(x.args), open_up(x.keywords)
    function = x.func.__wrapped__ if isinstance(x.func, UserFunction) else None
    if not isinstance(function, FunctionType):
        return Partial(x.func, *arguments, **keywords)
    apart = _take_apart(function)
    return Partial(UserFunction(apart.func), *apart.args, *arguments, **keywords)


def _take_apart(function: FunctionType) -> Partial:
    """Return the code of a function, and the numbers it has closed over as its first argument."""
    held = (
        tuple(_within(cell, function) for cell in function.__closure__ or ()),
        open_up(function.__defaults__),
        open_up(function.__kwdefaults__),
    )
    leaves, _ = jax.tree.flatten(held)
    numbers = tuple(x if _is_number(x) else None for x in leaves)
    return Partial(
        Code(function, jax.tree.map(lambda x: 0.0 if _is_number(x) else x, held)), numbers
    )


def _within(cell: CellType, function: FunctionType) -> Any:
    """Return what a cell holds; a function in it is taken apart too, but not its own."""
    try:
        content = cell.cell_contents
    except ValueError:  # a name that has not been given a value
        return None
    if isinstance(content, FunctionType) and content is not function:
        return _take_apart(content)
    return open_up(content)


def _is_number(x: object) -> bool:
    """Return whether this may differ between members; whole numbers in Python may not."""
    if isinstance(x, float | np.floating | np.integer | Tracer):
        return True
    return isinstance(x, np.ndarray | jax.Array) and x.dtype.kind == "f"


def _refill(function: FunctionType, held: tuple) -> FunctionType:
    """Return the function with other cells, and other values for arguments that are left out."""
    contents, defaults, keywords = held
    cells = tuple(CellType(content) for content in contents)
    made = FunctionType(
        function.__code__, function.__globals__, function.__name__, defaults, cells or None
    )
    made.__kwdefaults__ = keywords
    made.__module__, made.__qualname__ = function.__module__, function.__qualname__
    return made


class Code(ByContent):
    """A function that is given the numbers it has closed over at every call. Equal code is equal.

    `held` is what it has closed over, with zeros for the numbers.
    """

    def __init__(self, function: FunctionType, held: tuple):
        bare = held == ((), None, None)
        self.function = function if bare else _refill(function, held)
        self.held = held

    @property
    def content(self) -> Any:
        return self.function, self.held

    def __call__(self, numbers: tuple, *arguments: Any, **keywords: Any) -> Any:
        if not numbers:
            return self.function(*arguments, **keywords)
        leaves, structure = jax.tree.flatten(self.held)
        leaves = [f if n is None else n for n, f in zip(numbers, leaves, strict=True)]
        held = jax.tree.unflatten(structure, leaves)
        return _refill(self.function, held)(*arguments, **keywords)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Code) or self.function.__code__ != other.function.__code__:
            return False
        ours, theirs = jax.tree.flatten(self.held), jax.tree.flatten(other.held)
        return (
            self.function.__globals__ is other.function.__globals__
            and ours[1] == theirs[1]
            and all(map(_same, ours[0], theirs[0]))
        )

    def __hash__(self) -> int:
        return hash(self.function.__code__)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray | jax.Array) or isinstance(b, np.ndarray | jax.Array):
        return np.array_equal(a, b)
    return a is b or (type(a) is type(b) and bool(a == b))
