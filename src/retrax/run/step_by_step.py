"""Step by step, for a loop that lives in Python: hardware, a game, a learner."""

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import jax
import numpy as np

from retrax.engine.backends import make_steps
from retrax.engine.backends.members import pad
from retrax.engine.backends.native import step_info_of
from retrax.engine.backends.stepping import Rows
from retrax.engine.progress import INTERVAL, Packing
from retrax.engine.progress import start as begun
from retrax.engine.step_program import step_identity
from retrax.errors import BadInput, warn
from retrax.integrators.base import AbstractIntegrator, as_integrator
from retrax.integrators.driven import Driven
from retrax.mechanics.actuated import Actuated
from retrax.mechanics.controls import Held
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import (
    ArrayLike,
    as_float,
    host_float64,
    is_traced,
    quote,
    require_double_precision,
    require_finite,
    require_flag,
    require_instance,
)
from retrax.numerics.looks import looking
from retrax.numerics.meant import explain_keywords
from retrax.numerics.watch import copy_parts
from retrax.run.checks import MOST_STEPS, require_count, require_run, start_of
from retrax.run.failure import ending_of, explain
from retrax.run.member_checks import require_ensemble
from retrax.run.spans import whole_steps
from retrax.trajectory.energy_band import escape
from retrax.trajectory.observe import aliasing
from retrax.trajectory.provenance import Origin, provenance
from retrax.trajectory.records import Records
from retrax.trajectory.run import Plan, Run
from retrax.trajectory.trajectory import Trajectory

if TYPE_CHECKING:
    import xarray as xr

_FLOAT = np.dtype(np.float64)


class Stepper:
    """A plant that stands still until it is told to step, with the inputs that it is told.

    ```python
    stepper = rx.Stepper(plant, rx.LieVerlet(), start, h=0.001)
    state = stepper.step([0.1, 0.0, 0.0], steps=10)
    ```

    The inputs of a call are held during its steps, and clipped at the bounds of the plant. Steps
    are those of `simulate` with a `Signal` of the same inputs. Where `start` has a
    leading axis of members, all of them step at once, and inputs and states have that axis as well.

    All that functions of the plant read (globals, closures, attributes) is read when the stepper is
    made, and not again: what shall change from call to call is an input.

    **Arguments:**

    - `plant`: an `Actuated`; or a system, which steps without inputs.
    - `integrator`: how a step is taken, or its name as in `retrax list`.
    - `state`: where it starts; with a leading axis of members, where each of them starts.
    - `h`: the size of a step in seconds.
    - `keep`: whether the states at the ends of all calls are kept for `run()`. In a loop that
        never ends they would fill the memory.

    **Attributes:** `system`, `integrator`, `h`: what runs; `members`: how many, or `None` for one.
    """

    @explain_keywords
    @looking()
    def __init__(
        self,
        plant: Actuated | AbstractGroupSystem,
        integrator: AbstractIntegrator | str,
        state: State | ArrayLike,
        *,
        h: float,
        keep: bool = True,
    ):
        require_double_precision()
        clock = time.perf_counter()
        method = as_integrator(integrator)
        self._count: int = plant.count if isinstance(plant, Actuated) else 0
        if isinstance(plant, Actuated):
            self.system, method = plant.system, Driven(method, plant.actuators, Held())
        else:
            what = "a retrax system, or one with inputs: Actuated(system, inputs=B)"
            self.system = require_instance("plant", plant, AbstractGroupSystem, what)
        if is_traced(plant, integrator, state, h):
            raise BadInput(
                "a Stepper steps numbers, but JAX is tracing these; simulate(..., control=Signal("
                "t, u)) can be differentiated and batched."
            )
        self.system, method = copy_parts((self.system, method))
        self.integrator, self.h, self._keeps = method, as_float(h), require_flag("keep", keep)
        start = start_of(self.system, state)
        many = isinstance(start, State) and np.ndim(start.t) == 1
        self.members = len(start.t) if many else None
        start = self._check(start)
        self._identity = step_identity(self.system, method)
        self._steps = make_steps(self.system, method, start, self.h, many)
        one: Any = jax.tree.map(lambda x: x[0], start) if many else start
        self._packing = Packing(one)
        self._unpacked = _unpacker(one, self._packing, self.members)
        size, columns = self._steps.state.shape
        self._rows = Rows(size, columns, self._keeps)
        self._shape: tuple[int, ...] = (self._count,) if not many else (len(start.t), self._count)
        *_, first, last = (0, 0, 0) if not self._count else self._packing.slots[-2]
        self._slot = first, last
        held = self._steps.state[first:last]
        self._inputs = held[:, 0] if self.members is None else held[:, : self.members]
        self._compile_seconds = time.perf_counter() - clock
        self._begin(start)
        for look in self._identity.looks:
            look.is_sealed = True

    def __reduce__(self) -> NoReturn:
        raise BadInput(
            "a Stepper holds compiled steps, which cannot be copied or sent to another process: "
            "send the plant, the integrator and stepper.state, and make one there."
        )

    def __repr__(self) -> str:
        many = "" if self.members is None else f"{self.members} members, "
        inputs = "no inputs" if not self._count else f"{self._count} inputs"
        return (
            f"<Stepper of {self.system.name} by {self.integrator!r}: {many}{inputs}, steps of "
            f"{self.h:g} s, {self._steps.taken} taken>"
        )

    @property
    def state(self) -> State:
        """Where the plant stands, with the inputs that are held."""
        return self._state

    @property
    def t(self) -> float | np.ndarray:
        """The time there, in seconds; of each member, where there are several."""
        return np.asarray(self._state.t).copy() if self.members else float(self._state.t)

    @property
    def failed(self) -> bool | np.ndarray:
        """Whether the last call failed; of several members, which of them have."""
        many = self.members
        return self._failed if many is None else ~np.isnan(self._steps.failure[0, :many])

    def reset(self, state: State | ArrayLike) -> State:
        """Stand at another state, at its time; what was passed is forgotten, inputs are zero."""
        with looking(self._identity.looks):
            self._begin(self._check(start_of(self.system, state)))
        return self._state

    def step(
        self, u: ArrayLike | None = None, steps: int | None = None, *, until: float | None = None
    ) -> State:
        """Hold the inputs `u` for `steps` steps and return the state after them.

        **Arguments:**

        - `u`: the inputs, (m,); of a batch (members, m), or (m,) for all. Without them those of the
            last call stay; they are zero at the start, or the nearest to it within the bounds.
        - `steps`: how many; one, unless it is given.
        - `until`: instead, the time at which they end.

        **Returns:** the state, in arrays that cannot be written to. Members whose step has failed
        are NaN from then on, and true in `failed`.

        **Raises:** `StepFailed` where a step of the one body fails; it carries `run()`, and the
        stepper stands where the last good step ended. `BadInput` for inputs that do not fit.
        """
        if until is not None:
            steps = self._steps_until(until, steps)
        elif steps is None:
            steps = 1
        elif type(steps) is not int or not 1 <= steps <= MOST_STEPS:
            steps = require_count("steps", steps)
        if u is not None:
            self._hold(u)
        clock, moving, rows = time.perf_counter(), self._steps, self._rows
        good = moving.go(*rows.next(), steps)
        self._seconds += time.perf_counter() - clock
        if not good:
            if self.members is None:
                with looking(self._identity.looks):
                    self._fail(steps)
            rows.blank(~np.isnan(moving.failure[0]))
        self._failed = False
        self._behind.append(moving.taken)
        state = self._state = self._unpacked(rows.add())
        return state

    def run(self) -> "Trajectory | xr.Dataset":
        """Return what was passed since the start, or since `reset`: the ends of all calls.

        This is what `simulate` returns, and of several members what `ensemble` returns. A state
        has the inputs that act from its time on, the last one those that are held. Where calls
        differ in their numbers of steps, `save_every` is 1, the dataset has none, and the
        trajectory cannot be saved.

        **Raises:** `BadInput` where nothing is kept.
        """
        if not self._keeps:
            raise BadInput("keep = False: this Stepper keeps nothing of what it passes.")
        numbers, passed = self._rows.all()
        if self._count:
            first, last = self._slot
            numbers[:-1, first:last] = numbers[1:, first:last]
        behind = np.array(self._behind)
        every = _steps_apart(behind)
        if self.members is not None:
            with looking(self._identity.looks):
                return self._dataset(numbers, passed, behind, every)
        run = Trajectory.of_records(
            Records(self._packing, numbers[..., 0], passed[..., 0]),
            Origin(self.system, self.integrator, self.backend),
            h=self.h,
            steps=int(behind[-1]),
            completed=int(behind[-1]),
            save_every=every or 1,
            seconds=self._seconds,
            compile_seconds=self._compile_seconds,
            _identity=self._identity,
        )
        with looking(self._identity.looks):
            doubts = self.system.find_overlooked(run.states), aliasing(run), escape(run)
        for doubt in doubts:
            if doubt is not None:
                warn(doubt)
        return run

    @property
    def backend(self) -> str:
        """What takes the steps: `"native"` or `"xla"`."""
        return self._steps.name

    def _dataset(
        self, numbers: np.ndarray, passed: np.ndarray, behind: np.ndarray, every: int | None
    ) -> "xr.Dataset":
        from retrax.trajectory.inputs import ask_members, limit
        from retrax.trajectory.members import members_dataset

        many, made = self.members, provenance(self.system, self.integrator, self.backend)
        # The clock goes on where a member has failed.
        numbers[:, -1] = numbers[0, -1] + (behind * self.h)[:, None]

        def inputs(states: State) -> np.ndarray:
            assert isinstance(self.integrator, Driven)
            u = ask_members(self.system, self.integrator, states, self.h, shared=True)
            return limit(self.integrator, u)

        return members_dataset(
            self._packing.unpack(numbers[..., :many]),
            passed[..., :many],
            self._steps.failure[:, :many],
            behind,
            attributes={
                "h": self.h,
                "steps": int(behind[-1]),
                **({} if every is None else {"save_every": every}),
                "shared_system": 1,
                "seconds": self._seconds,
                "compile_seconds": self._compile_seconds,
                **{f"provenance_{key}": value for key, value in made.items()},
            },
            inputs=inputs if self._count else None,
        )

    def _check(self, state: object) -> State:
        """Return a start with inputs of zero, or reject it."""
        start: Any = state
        if isinstance(start, State):
            held: Any = None
            if self._count:
                held = np.zeros((*np.shape(start.t), self._count))
            given = jax.tree.map(np.asarray, (start.g, start.momentum, start.t))
            start = State(*given, control=held)
        if self.members is None:
            require_run(self.system, self.integrator, start, self.h, 1, 1)
        else:
            if not isinstance(start, State) or np.shape(start.t) != (self.members,):
                raise BadInput(
                    f"state = {quote(start)}, but this Stepper has {self.members} members: a State "
                    "whose arrays have a leading axis of that length."
                )
            require_ensemble(self.system, self.integrator, start, self.h, 1, None, True)
        return start

    def _begin(self, start: State) -> None:
        """Stand at a start, and keep it as the first that is passed."""
        many = self.members
        rows = self._packing.rows(start) if many is None else self._packing.member_rows(start)
        rows = pad(rows, self._steps.state.shape[1])
        self._steps.begin(rows)
        self._rows.clear()
        self._rows.next()
        self._rows.write(rows, 0.0)
        self._behind, self._seconds, self._failed = [0], 0.0, False
        self._state = self._unpacked(self._rows.add())

    def _hold(self, u: ArrayLike) -> None:
        """Write the inputs to where a step reads them."""
        inputs = u
        if type(inputs) is not np.ndarray or inputs.dtype is not _FLOAT:
            inputs = host_float64("u", u)
        if inputs.shape != self._shape:
            inputs = self._for_all(inputs)
        # A sum is finite only if everything in it is; of a few numbers Python's is the quickest.
        few = self.members is None
        if not (math.isfinite(sum(inputs.tolist())) if few else np.isfinite(inputs).all()):
            require_finite("u", inputs)
        self._inputs[...] = inputs if few else inputs.T

    def _for_all(self, inputs: np.ndarray) -> np.ndarray:
        """Return inputs that all members share for each of them, or reject their shape."""
        if not self._count:
            raise BadInput(
                f"u = {quote(inputs)}, but the {self.system.name} has no inputs: make a plant of "
                "it with Actuated(system, inputs=B)."
            )
        if self.members is not None and inputs.shape == (self._count,):
            return np.broadcast_to(inputs, self._shape)
        each = f", or ({self._count},) for all" if self.members else ""
        raise BadInput(
            f"u has shape {inputs.shape}, but the inputs of this plant have shape "
            f"{self._shape}{each}."
        )

    def _steps_until(self, until: object, steps: object) -> int:
        """Return how many steps end at a time."""
        if steps is not None:
            raise BadInput(f"steps = {quote(steps)} and until = {quote(until)}: give one of them.")
        t0 = np.asarray(self._rows.first[-1, : self.members or 1])
        if np.any(t0 != t0[0]):
            raise BadInput("until = ... needs members that started at one time; give steps.")
        return whole_steps(float(t0[0]), until, self.h, self._steps.taken)

    def _fail(self, steps: int) -> NoReturn:
        """Raise the failure of the body, which stays where its last good step ended."""
        moving = self._steps
        before, taken, went = self._behind[-1], moving.taken, step_info_of(moving.failure[:, 0])
        moving.forget()
        self._failed = True
        t = float(self._rows.first[-1, 0]) + taken * self.h
        if taken > before:
            self._rows.write(np.append(moving.state[:-1], [[t]], axis=0), 0.0)
            self._behind.append(taken)
            self._state = self._unpacked(self._rows.add())
        plan = Plan(t, self.h, before + steps)
        run = Run(self.system, self.integrator, self._state, None, plan)
        at = begun(self._state)._replace(step=np.int64(taken), failed=np.bool_(True), failure=went)

        def takes(h: float, steps: int) -> bool:
            other = make_steps(self.system, self.integrator, self._state, h, False)
            numbers, passed = np.empty(moving.state.shape), np.empty(len(INTERVAL))
            return other.go(numbers.ctypes.data, passed.ctypes.data, steps)

        ended = ending_of(self.system, self.integrator, at, self.h)
        error, sentence = explain(run, at, takes, ended)
        raise error(sentence, self.run() if self._keeps else None)


def _steps_apart(behind: np.ndarray) -> int | None:
    """Return how many steps lie between two states; `None` where that differs.

    The last interval may be shorter, as that of a call in which a step has failed.
    """
    between = np.diff(behind)
    if not len(between):
        return 1
    alike = np.all(between[:-1] == between[0]) and between[-1] <= between[0]
    return int(between[0]) if alike else None


def _unpacker(state: State, packing: Packing, many: int | None) -> Callable[[np.ndarray], State]:
    """Make the function from rows of numbers to a state: many times faster than a pytree's own."""
    slots = iter(packing.slots)

    def part(tree: Any) -> Callable[[np.ndarray], Any]:
        if tree is None:
            return lambda row: None
        if isinstance(tree, tuple):
            parts = [part(x) for x in tree]
            return lambda row: tuple([get(row) for get in parts])
        shape, first, last = next(slots)
        if many is not None:
            return lambda row: np.moveaxis(row[first:last, :many].reshape((*shape, many)), -1, 0)
        if len(shape) == 1:
            return lambda row: row[first:last, 0]
        return lambda row: row[first:last].reshape(shape)

    names = ("g", "momentum", "control", "t")
    parts = [part(getattr(state, name)) for name in names]
    g_of, momentum_of, control_of, t_of = parts

    def unpack(row: np.ndarray) -> State:
        made = object.__new__(State)
        fields: Any = made.__dict__
        fields["g"], fields["momentum"] = g_of(row), momentum_of(row)
        fields["control"], fields["t"] = control_of(row), t_of(row)
        return made

    return unpack
