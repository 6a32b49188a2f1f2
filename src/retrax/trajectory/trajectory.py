"""The result of a run: times, states, and what can be measured on them."""

from collections.abc import Callable
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import jax
import numpy as np
from jaxtyping import Array, Int, PyTree

from retrax.engine.progress import Interval
from retrax.engine.step_program import step_identity
from retrax.errors import BadInput, warn
from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.driven import Driven
from retrax.mechanics.remembered import RememberedSystem
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import ArrayLike, is_traced
from retrax.numerics.fingerprint import Fingerprint
from retrax.numerics.looks import HasChanged, looking
from retrax.numerics.meant import no_attribute
from retrax.trajectory.crossings import Events, events_of
from retrax.trajectory.dense import DenseOutput
from retrax.trajectory.energy_balance import EnergyBalance, balance_of
from retrax.trajectory.observe import (
    Observations,
    Values,
    along,
    observe,
    observe_driven,
    observe_remembered,
    observe_traced,
)
from retrax.trajectory.provenance import Origin
from retrax.trajectory.reactions import AbstractReactions, had_contact, has_contact
from retrax.trajectory.records import Records
from retrax.trajectory.shown import AbstractShown
from retrax.trajectory.summary import html, measures, summary

if TYPE_CHECKING:
    import xarray as xr

T = TypeVar("T")
# What a run makes of its rows of numbers when it is asked for.
_LATER = ("t", "states", "info", "provenance", "failed")
# Configurations stacked along time: an array, or nested tuples of arrays.
Configurations = PyTree[Values]


class Trajectory(AbstractShown, AbstractReactions):
    """Times and states of a run, how each step went, and how all of it was made.

    **Attributes:**

    - `t`: the saved times in seconds, computed as `t0 + k h`; the last one is the end.
    - `states`: the states, stacked along time. `g`, `momentum` and `velocity` are its parts, the
        last two in body coordinates; `final` is the last state, ready to start another run.
    - `info`: solver statistics between saved states: `iterations` (their sum), `residual` and
        `increment` (their largest). The first entry is zero.
    - `failed`: whether a step before each saved state has failed. False unless JAX traces the run
        (`jax.grad`, `jax.vmap`, `jax.jit`), where nothing can be raised: from the failed step on,
        states, `residual` and `increment` are NaN and `iterations` are -1.
    - `h`, `steps`, `save_every`: the run as asked for; `completed`: the steps that were taken.
    - `seconds`, `compile_seconds`: wall-clock time of the loop and of compiling it.
    - `provenance`: names and versions of everything involved.
    - `events`: what was looked for with `events=...`, by name.
    - `system`, `integrator`: the objects. A file keeps them too; of a system with functions of
        yours in it, it keeps the group and the numbers, enough to draw but not to continue. `None`
        where a file does not tell.
    """

    _records: Records
    _origin: Origin
    _observations: Observations | None = None
    # Whether its observations came with it, as from a file, and whether its inputs were held.
    _measured: bool = False
    _held: bool = False
    _events: Events | None = None
    _dense: DenseOutput | None = None
    # The inputs of a driven run as a checkpoint has them, which may lack the controller.
    _recorded: Values | None = None

    def __init__(
        self,
        *,
        t: Values,
        states: State,
        info: Interval,
        h: float | Array,
        steps: int,
        completed: int,
        save_every: int,
        seconds: float,
        compile_seconds: float,
        provenance: dict[str, str],
        system: AbstractGroupSystem | None = None,
        integrator: AbstractIntegrator | None = None,
        observations: Observations | None = None,
        identity: Fingerprint | None = None,
        failed: Values | None = None,
        held: bool = False,
        events: Events | None = None,
        inputs: Values | None = None,
    ):
        self.t = t
        self.states = states
        self.info = info
        self.h = cast(float, h)  # a traced number while JAX traces the run
        self.steps = steps
        self.completed = completed
        self.save_every = save_every
        self.seconds = seconds
        self.compile_seconds = compile_seconds
        self.provenance = provenance
        self.system = system
        self.integrator = integrator
        self._observations = observations
        self._measured = observations is not None
        self._held, self._recorded, self._events = held, inputs, events
        self._identity = identity
        self.failed = np.zeros(len(t), bool) if failed is None else failed

    @classmethod
    def of_records(cls, records: Records, origin: Origin, **rest: Any) -> "Trajectory":
        """Make a run from rows of numbers: arrays and words are made when they are asked for.

        `rest` is what the class is given besides, all of it.
        """
        run = cls.__new__(cls)
        vars(run).update(rest, _records=records, _origin=origin, system=origin.system)
        run.integrator = origin.integrator
        return run

    @cached_property
    def t(self) -> Values:
        return self._records.times()

    @cached_property
    def states(self) -> State:
        return self._records.states()

    @cached_property
    def info(self) -> Interval:
        return self._records.info()

    @cached_property
    def provenance(self) -> dict[str, str]:
        return self._origin.describe()

    @cached_property
    def failed(self) -> Values:
        return np.zeros(len(self._records), bool)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise no_attribute("a run", name, (n for n in dir(self) if not n.startswith("_")))

    def __repr__(self) -> str:
        size = "a traced size" if is_traced(self.h) else f"h = {self.h:g} s"
        return (
            f"<Trajectory of {self.provenance['system']} by {self.provenance['integrator']}: "
            f"{len(self.t)} states, {self.completed} steps of {size}>"
        )

    def __len__(self) -> int:
        return len(self.t)

    @property
    def g(self) -> Configurations:
        """The configurations along the run, stored as the group stores elements."""
        return self.states.g

    @property
    def y(self) -> Configurations:
        """The points along the run, where configurations are points of a space."""
        return self.states.g

    @property
    def momentum(self) -> Values:
        """The body momenta along the run."""
        return cast(Values, self.states.momentum)

    @property
    def velocity(self) -> Values:
        """The body velocities along the run."""
        return self.observations.velocity

    @property
    def final(self) -> State:
        """The last state: `simulate(run.system, run.integrator, run.final, ...)` goes on."""
        if "states" in vars(self):
            return jax.tree.map(lambda x: x[-1], self.states)
        return self._records.last()

    def states_at(self, rows: Any) -> State:
        """Return some of the saved states; where none was asked for yet, the others stay packed."""
        if "states" in vars(self):
            return jax.tree.map(lambda x: x[rows], self.states)
        return self._records.states(rows)

    @property
    def inputs(self) -> Values:
        """The inputs that act from each saved state on, one column each; none in a free run."""
        found = self.observations.inputs
        return np.zeros((len(self.t), 0)) if found is None else found

    @property
    def inputs_are_held(self) -> bool:
        """Whether inputs stay as they are during a step; a law of feedback acts within it."""
        if isinstance(self.integrator, Driven):
            return self.integrator.control.holds
        return self._held

    @property
    def events(self) -> Events:
        """The events that were looked for, by name: times, states and directions of each.

        Of a system with contact also what happened to contacts: `run.events["impact"].t`, and
        `run.events.entries`, all of them in the order of time.
        """
        if self._events is None:
            self._events = Events((), (), jax.tree.map(lambda x: x[0], self.states))
        if self.traced or not (has_contact(self) or had_contact(self)):
            return self._events
        return self._events.of_contacts(lambda: self._history.events, told=has_contact(self))

    @property
    def ended_by(self) -> str | None:
        """The name of the event that ended the run, if one did."""
        return None if self._events is None else self._events.ended_by

    def take_events(self, data: object) -> None:
        """Take the events that a file stores; `None` for none."""
        if data is not None:
            self._events = events_of(data, jax.tree.map(lambda x: x[0], self.states))

    def at(self, t: ArrayLike) -> State:
        """Return the state at any time within the run; of several times, the states stacked.

        Between saved states it is found by whole steps from the one before and one shorter step,
        and so has the order of the method. At saved times it is the saved state.
        """
        self._require_numbers("at(t)")
        return self.dense.at(t)

    @property
    def dense(self) -> DenseOutput:
        """What finds states between those that were saved."""
        if self._dense is None:
            self._dense = self.as_it_was(lambda: DenseOutput(self))
        return self._dense

    @property
    def observations(self) -> Observations:
        """Everything measured at the saved states; computed once."""
        if self._observations is None:
            if self.system is None:
                raise BadInput(
                    "the system of this run is not in its file, so nothing can be computed from "
                    "its states; rx.resume(path, system=..., integrator=...) brings it."
                )
            if isinstance(self.system, RememberedSystem):
                seen = observe_remembered(self.system, self.states)
                self._observations = seen._replace(inputs=self._recorded)
                return self._observations
            if self._recorded is not None and self.integrator is None:
                self._observations = observe_driven(self.system, self.states, self._recorded)
                return self._observations
            look = observe_traced if self.traced else observe
            system = self.system
            self._observations = self.as_it_was(
                lambda: look(system, self.states, self.integrator, self.h)
            )
        return self._observations

    @property
    def measured(self) -> bool:
        """Whether its observations came with it, as from a file."""
        return self._measured

    def measure_again(self, rows: Int[np.ndarray, " row"]) -> "Trajectory":
        """Return the same run at some of its states, of which nothing has been measured."""
        other = Trajectory.__new__(Trajectory)
        vars(other).update(vars(self), _observations=None, _measured=False, _identity=None)
        other.states = jax.tree.map(lambda x: np.asarray(x)[rows], self.states)
        inputs = self.observations.inputs
        other._recorded = None if inputs is None else np.asarray(inputs)[rows]
        return other

    def forget_observations(self) -> None:
        """Measure the saved states anew when they are asked for next; recorded inputs stay."""
        if self._observations is not None:
            self._recorded = self._observations.inputs
        self._observations, self._measured = None, False

    def as_it_was(self, look: Callable[[], T]) -> T:
        """Return what `look` finds, with functions of users that do what they did in the run.

        Where that cannot be had any more, warn and look at what they do now.
        """
        then = self._identity
        if then is None or self.integrator is None or self.traced:
            return look()
        for one in then.looks:
            one.is_sealed = True
        with looking(then.looks):
            if not then.complete or then == step_identity(self.system, self.integrator):
                try:
                    return look()
                except HasChanged:
                    pass
        warn(
            f"what the functions of the {self.provenance['system']} read (globals, attributes, "
            "closures) has changed since this run: its energy, velocity and all else that is "
            "computed from its states are those of the new values. Look at them before "
            "changing anything, or change it back and run again."
        )
        return look()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the identity of the functions: in another process they are other objects."""
        made = {name: getattr(self, name) for name in _LATER}
        gone = ("_records", "_origin", "_dense", "_history")
        kept = {k: v for k, v in vars(self).items() if k not in gone}
        return kept | made | {"_identity": None}

    @property
    def traced(self) -> bool:
        """Whether JAX is tracing the run: its arrays have no numbers yet."""
        return is_traced(self.states, self.h)

    def _require_numbers(self, what: str) -> None:
        if self.traced:
            raise BadInput(
                f"{what} needs the numbers of the run, but JAX is tracing it: return what you need "
                "of the run from the function that is transformed, and call this outside."
            )

    @property
    def lacking(self) -> str | None:
        """What cannot be measured, in a sentence: the file lacks functions; `None` otherwise."""
        if self._measured or not isinstance(self.system, RememberedSystem):
            return None
        return self.system.lack()

    def _require_functions(self) -> None:
        if self.lacking is not None:
            raise BadInput(f"{self.lacking}.")

    def invariants(self) -> dict[str, Values]:
        """Return what the system conserves along the run, by name.

        These are the energy, the momentum of each symmetry, and what else the system and the
        integrator know. The energy is left out where a force, contact, damping or a driven
        constraint does work: see `energy_balance`. Where `jax.jit` hides the numbers of the system,
        its symmetries must be declared.
        """
        if self.traced and self.system is not None:
            found = self.system.symmetries()
            seen = observe_traced(self.system, self.states, self.integrator, self.h, found)
            return seen.invariants
        self._require_functions()
        return self.observations.invariants

    def energy(self) -> Values:
        """Return the energy at every saved state, conserved or not."""
        self._require_functions()
        energy = self.observations.energy
        energy = self.invariants().get("energy") if energy is None else energy
        if energy is None:
            raise BadInput(f"this run of the {self.provenance['system']} has no energy.")
        return energy

    def energy_balance(self) -> EnergyBalance | None:
        """Compare the change of the energy with the work done.

        The work is a quadrature over the saved states. So with `save_every` above 1, or with forces
        that jump, the difference is the error of that too, and not of the integrator alone;
        `uncertainty` estimates it. What contacts do is among the work: see `energy_book`.

        Return `None` where the energy is conserved, and for flows, which have no energy.
        """
        self._require_numbers("energy_balance()")
        self._require_functions()
        return self.energy_book().balance if has_contact(self) else balance_of(self)

    def observables(self) -> dict[str, Values]:
        """Return what else the system measures along the run, by name: strain, tension."""
        self._require_functions()
        return self.observations.observables

    def group_defect(self) -> Values:
        """Return the distance of every saved configuration from the group."""
        return self.observations.defect

    def along(self, function: Callable[[State], object]) -> Values:
        """Return the values of a function of the state, written in JAX, at every saved state."""
        return along(function, self.states)

    def measures(self) -> dict[str, Any]:
        """Return the run in numbers, as `retrax run --json` prints it."""
        self._require_numbers("measures()")
        return measures(self)

    def summary(self) -> str:
        """Return the run as a table for people."""
        self._require_numbers("summary()")
        return summary(self)

    def dataset(self) -> "xr.Dataset":
        """Return the run as an `xarray.Dataset`, with units, long names and provenance."""
        from retrax.trajectory.dataset import dataset

        self._require_numbers("dataset()")

        return dataset(self)

    def save(self, path: str | Path) -> Path:
        """Write the run with its system to a NetCDF file, whole; `retrax.load` reads it back."""
        from retrax.store.netcdf import save

        self._require_numbers("save(path)")
        return save(self, path)

    def _repr_html_(self) -> str:
        """Show the summary in a notebook, with a small picture where matplotlib is there."""
        if self.traced:
            return escape(repr(self))
        return html(self, self._inline_image())

    def _with_numbers(self, what: str) -> "Trajectory":
        self._require_numbers(what)
        return self
