"""What is exported: the program of a step, and the names and numbers of what it takes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import tree_flatten_with_path

from retrax.engine.kinds import Unscalarisable
from retrax.engine.llvm.body_memory import PlannedStep, StepPorts
from retrax.engine.origins import Origins, noting
from retrax.engine.passes.fusion import fuse
from retrax.engine.passes.live import live
from retrax.engine.passes.sinking import sink
from retrax.engine.program import Program
from retrax.engine.progress import StepInputs, length
from retrax.engine.step_program import Parts, signature, step_program
from retrax.engine.trace.scalarise import scalarise
from retrax.errors import BadInput
from retrax.exporting.names import distinct, field_name
from retrax.integrators.base import AbstractIntegrator, StepInfo, require_fit
from retrax.integrators.driven import Driven
from retrax.mechanics.actuated import Actuated
from retrax.mechanics.controls import AbstractControl, Held
from retrax.mechanics.holonomic import AbstractHolonomic
from retrax.mechanics.state import State, as_state
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import as_float, host_finite64, quote, require_untraced
from retrax.numerics.reuse import Signature, reading

# Longer programs take compilers minutes.
_MOST_OPERATIONS = 40_000


class Field(NamedTuple):
    """Numbers with a name: a parameter, or a part of the state.

    **Attributes:** `shape`; `first`: the place of its first number among all of its struct;
    `values`: its numbers at the time of the export, in order.
    """

    name: str
    shape: tuple[int, ...]
    first: int
    values: tuple[float, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def entry(self, k: int) -> str:
        """Name one of its numbers, as C does in a struct."""
        index = np.unravel_index(k, self.shape) if self.shape else ()
        return self.name + "".join(f"[{i}]" for i in index)


class Info(NamedTuple):
    """How a step went, as operands of the program."""

    converged: Any
    residual: Any
    iterations: Any
    increment: Any
    in_chart: Any


class Places(NamedTuple):
    """Places in the struct of a state, counted in numbers, and how many it has."""

    time: int
    clock_start: int
    clock_h: int
    clock_steps: int
    remembers: int
    memory: int
    work: int
    size: int


class StepModel:
    """A step that can be written in another language.

    **Attributes:**

    - `program`, `inputs`: of the step, and how many of its inputs are what.
    - `ports`, `planned`: what it takes and makes, and where its buffers lie.
    - `params`, `state`: the fields, those of the state without time.
    - `control`: the names of the fields of the state that are inputs of a plant.
    - `origins`: where lines come from.
    - `made_for`: what the programs of its derivatives are made from.
    """

    def __init__(
        self,
        system: AbstractGroupSystem | Actuated,
        integrator: AbstractIntegrator,
        state: State | None,
        h: float | None,
        name: str,
        control: AbstractControl | None = None,
    ):
        require_untraced("export", system, integrator, state, h, control)
        plant = system if isinstance(system, Actuated) else None
        if plant is None and control is not None:
            raise BadInput(f"control = {control!r} drives a plant: give rx.Actuated(system, ...).")
        if isinstance(system, Actuated):
            integrator = Driven(integrator, system.actuators, control or Held())
            system = system.system
        if not isinstance(system, AbstractGroupSystem):
            raise BadInput(f"system = {quote(system)} is not a retrax system.")
        if not isinstance(integrator, AbstractIntegrator):
            raise BadInput(f"integrator = {quote(integrator)} is not a retrax integrator.")
        require_fit(system, integrator)
        start = _resting(system) if state is None else _start(system, state)
        self.name, self.h = name, 0.01 if h is None else as_float(h)
        if not (math.isfinite(self.h) and self.h != 0.0):
            raise BadInput(f"h = {quote(h)}, but a step is a finite number other than 0.")
        if control is not None and isinstance(integrator, Driven):
            integrator.check(system)
            control.check_run(float(start.t), self.h, 1)
            start = integrator.begin(system, start)
        elif plant is not None and start.control is None:
            start = State(start.g, start.momentum, start.t, jnp.zeros(plant.count))
        self.system, self.integrator, self.start = system, integrator, start
        self.made_for = signature(system, integrator, start)
        self.program, self.inputs, self.origins = _program(self.made_for, integrator, system)
        self.ports = StepPorts(self.program, self.inputs)
        self.planned = PlannedStep(self.program, self.ports)
        self.params = fields((system, integrator), skip=1)
        state_fields = fields(start)
        self.state, (self.time,) = state_fields[:-1], state_fields[-1:]
        self.control = [f.name for f in self.state if f.name.startswith("control")]
        self.info = Info(*self.ports.info)
        assert Info._fields == StepInfo._fields

    def program_of(self, function: Callable[..., Any], *examples: Any) -> Program:
        """Return the program of `function(system, integrator, *examples)`, parameters first."""
        parts = Parts(self.made_for.tree, self.made_for.avals)

        def trace(params: list, *given: Any) -> Any:
            return function(*parts.of(params), *given)

        with reading(self.made_for.identity):
            program = scalarise(trace, parts.params, *examples, invariant=len(parts.params))
        return fuse(sink(live(program)))

    @property
    def memory_size(self) -> int:
        """How many numbers a step hands to the next one outside of buffers."""
        return len(self.ports.memory_numbers)

    @property
    def places(self) -> "Places":
        """Where in the struct of the state things begin that every step has."""
        time = self.ports.size - 1
        memory = time + 5
        work = memory + self.memory_size
        size = work + self.planned.plan.size
        return Places(time, time + 1, time + 2, time + 3, time + 4, memory, work, size)

    @property
    def param_count(self) -> int:
        """How many numbers the struct of parameters has."""
        return sum(field.size for field in self.params)

    @property
    def title(self) -> str:
        """The step in words."""
        return f"A step of {self.integrator!r} on the {self.system.name}."


def fields(tree: Any, skip: int = 0) -> list[Field]:
    """List the leaves of a pytree with their names, those without numbers left out.

    `skip` parts of the way to a leaf do not show in its name.
    """
    found = tree_flatten_with_path(tree)[0]
    names = distinct(field_name(path[skip:]) for path, _ in found)
    made, first = [], 0
    for name, (_, leaf) in zip(names, found, strict=True):
        numbers = np.asarray(leaf, float)
        made.append(Field(name, numbers.shape, first, tuple(numbers.ravel().tolist())))
        first += numbers.size
    return [field for field in made if field.size]


def owners(items: Sequence[Any], among: Sequence[Field]) -> list[tuple[Field, int]]:
    """Return for each input the field that it belongs to, and its place there."""
    found, place = [], 0
    for item in items:
        field = next(f for f in among if f.first <= place < f.first + f.size)
        found.append((field, place - field.first))
        place += length(item)
    return found


def _resting(system: AbstractGroupSystem) -> State:
    """Return the system at rest, at the identity of a group or at some point of a space."""
    if isinstance(system.constraint, AbstractHolonomic):
        raise BadInput(
            f"the {system.name} must start on its constraint: give state=..., as system.state(...) "
            "makes it."
        )
    space = system.configuration_space
    identity = getattr(space, "identity", None) or getattr(system.group, "identity", None)
    alike = jax.tree.map(lambda a: (a.shape, a.dtype), space.layout())
    g = identity() if identity is not None else None
    if g is None or jax.tree.map(lambda a: (a.shape, a.dtype), g) != alike:
        g = space.random(jax.random.key(0))
    return State(g, jnp.zeros(system.group.dim))


def _start(system: AbstractGroupSystem, state: object) -> State:
    start = as_state(system.as_state(state))
    system.configuration_space.check("state.g", start.g)
    host_finite64("state.momentum", start.momentum, (system.group.dim,))
    return start


def _timeless(program: Program, inputs: StepInputs) -> Program:
    """Return the program without the new time, which callers find by counting steps."""
    outputs = list(program.outputs)
    outputs[inputs.state - 1] = 0.0
    return live(replace(program, outputs=tuple(outputs)))


def _program(
    made_for: Signature, integrator: AbstractIntegrator, system: AbstractGroupSystem
) -> tuple[Program, StepInputs, Origins]:
    """Build the program anew, noting where its lines come from."""
    try:
        with noting() as origins:
            program, inputs = step_program.anew(*made_for)
            program = _timeless(program, inputs)
    except Unscalarisable as why:
        raise BadInput(
            f"the step of {integrator!r} on the {system.name} cannot be exported: {why}."
        ) from why
    count = program.count()
    if count > _MOST_OPERATIONS:
        raise BadInput(
            f"the step of {integrator!r} on the {system.name} has {count:,} operations; more than "
            f"{_MOST_OPERATIONS:,} are not exported, since compilers take minutes for them."
        )
    return program, inputs, origins
