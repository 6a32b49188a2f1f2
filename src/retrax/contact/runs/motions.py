"""What contacts do along a run: gaps, impulses, slip, and where the energy goes."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from retrax.contact.node_contact import AbstractNodeContact
from retrax.contact.runs.events import Listening
from retrax.contact.runs.node_columns import RodColumns, Things
from retrax.contact.runs.node_events import RodListening
from retrax.contact.runs.replay import Powers, ReplayedSteps, join_powers, replay
from retrax.contact.solver.complementarity import OPEN, SLIPS, STICKS
from retrax.errors import BadInput
from retrax.mechanics.contact import AbstractContacts
from retrax.mechanics.remembered import RememberedSystem
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.evaluate import Evaluated, evaluate
from retrax.trajectory.contact_events import ContactEvent
from retrax.trajectory.observe import Values, in_blocks, make_picker
from retrax.trajectory.reactions import has_contact

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory

MODES = {OPEN: "open", STICKS: "sticks", SLIPS: "slips"}
# As for records: a gap, and a slip, that are rounding errors at most.
_SMALL = 1e-9
# What is summed over the steps between saved states.
_SUMS = ("normal", "tangential", "friction_work", "impact_loss", "friction_doubt", "impact_doubt")


class History(NamedTuple):
    """What contacts did along a run, a column for each; of rods the first column has all.

    **Attributes:** `gap`, `mode`, `slip`: at saved states; `normal`, `tangential`, `friction_work`,
    `impact_loss`: sums over the steps between saved states, and by how much these may be off;
    `joint_work`: what all joints did in them, `joint_doubt`: those that nobody drives; `tension`:
    of the constraint at saved states; `events`: in the order of time; `powers`: of what else works,
    after every step.
    """

    names: tuple[str, ...]
    gap: np.ndarray
    mode: np.ndarray
    slip: np.ndarray
    normal: np.ndarray
    tangential: np.ndarray
    friction_work: np.ndarray
    impact_loss: np.ndarray
    friction_doubt: np.ndarray
    impact_doubt: np.ndarray
    joint_work: np.ndarray
    joint_doubt: np.ndarray
    tension: np.ndarray
    events: tuple[ContactEvent, ...]
    powers: Powers


class ContactMotions(Mapping[str, "ContactMotion"]):
    """The contacts of a run, by name.

    Those of rods come and go: their names are "all", and the pairs of things that have touched,
    such as "rod on itself", "rod 0 on rod 1" and "rod on plane".
    """

    def __init__(self, run: "Trajectory", history: History):
        self._run, self._history = run, history

    def __getitem__(self, name: str) -> "ContactMotion":
        if name not in self._history.names:
            raise KeyError(f"{name!r}: the contacts are {', '.join(map(repr, self))}.")
        return ContactMotion(self._run, self._history, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._history.names)

    def __len__(self) -> int:
        return len(self._history.names)

    def __repr__(self) -> str:
        return f"<contacts {', '.join(map(repr, self))}>"


class ContactMotion:
    """A contact along a run; of rods, all contacts of a pair of things, or all that there are.

    Sums of several contacts are sums of theirs; their gap is the smallest of those nearer than the
    skin, their slip the largest of those that push, and they slip where one of them does. How
    rods slip at the first saved state is not known, and NaN.
    """

    def __init__(self, run: "Trajectory", history: History, name: str):
        self._run, self._history, self.name = run, history, name
        self._column = history.names.index(name)

    def __repr__(self) -> str:
        now = self.mode[-1]
        return f"<contact {self.name!r} along {len(self._run.t)} states; at the end it {_is(now)}>"

    @property
    def gap(self) -> Values:
        """How far apart the surfaces are at each saved state (m)."""
        return self._history.gap[:, self._column]

    @property
    def mode(self) -> Values:
        """What the contact does at each saved state: "open", "sticks" or "slips".

        One without friction slips while it is closed.
        """
        return np.array([MODES[int(x)] for x in self._history.mode[:, self._column]])

    @property
    def slip(self) -> Values:
        """How fast the surfaces slip at each saved state (m/s); of open contacts as well."""
        return self._history.slip[:, self._column]

    @property
    def normal(self) -> Values:
        """The normal impulse between two saved states, summed over steps (N s)."""
        return self._history.normal[:, self._column]

    @property
    def tangential(self) -> Values:
        """The size of the friction impulse, summed over the steps between saved states (N s)."""
        return self._history.tangential[:, self._column]

    @property
    def force(self) -> Values:
        """The mean normal force between two saved states (N), impacts included."""
        return self.normal / np.abs(np.diff(np.asarray(self._run.t)))

    @property
    def friction_work(self) -> Values:
        """The energy that friction took between two saved states (J)."""
        return self._history.friction_work[:, self._column]

    @property
    def impact_loss(self) -> Values:
        """The energy that impacts took between two saved states (J)."""
        return self._history.impact_loss[:, self._column]


def history_of(run: "Trajectory") -> History:
    """Take the steps of a run again and collect what contacts did.

    **Raises:** `BadInput` for a system without contact, and where a file lacks functions.
    """
    if not has_contact(run):
        raise BadInput(
            f"{run.system.lack()}."
            if isinstance(run.system, RememberedSystem)
            else f"this run of the {run.provenance['system']} has no contacts to tell about: "
            "MechanicalSystem(..., contact=rx.Contacts(...)) has, by NonsmoothRattle."
        )
    assert run.system is not None
    contact = run.system.contact
    return (
        _of_rods(run, contact)
        if isinstance(contact, AbstractNodeContact)
        else _of_bodies(run, contact)
    )


def _of_rods(run: "Trajectory", contact: AbstractNodeContact) -> History:
    count, things = len(run.t), Things(contact)
    columns, listening, powers = RodColumns(things, count), RodListening(things), []
    for steps in replay(run):
        powers.append(steps.powers)
        columns.add(steps)
        listening.hear(steps)
    names, found = columns.columns()
    none = np.zeros(max(count - 1, 0)), np.zeros((count, 0))
    events = tuple(listening.events)
    joined = join_powers(powers)
    return History(
        names,
        **found,
        joint_work=none[0],
        joint_doubt=none[0],
        tension=none[1],
        events=events,
        powers=joined,
    )


def _of_bodies(run: "Trajectory", contact: AbstractContacts) -> History:
    names, count, start = tuple(contact.names), len(run.t), _start(run)
    listening = Listening(contact, start.closed, start.mode)
    at = {name: np.zeros((count, len(names))) for name in ("gap", "mode", "slip")}
    sums = {name: np.zeros((max(count - 1, 0), len(names))) for name in _SUMS}
    joints = {name: np.zeros(max(count - 1, 0)) for name in ("joint_work", "joint_doubt")}
    tension, powers = None, []
    at["gap"][0], at["mode"][0], at["slip"][0] = start.gap, start.mode, start.slip
    for steps in replay(run):
        powers.append(steps.powers)
        listening.hear(steps)
        found = _columns(steps)
        for name, values in at.items():  # of steps between two states the last one stays
            values[steps.interval + 1] = found[name]
        for name, values in sums.items():
            np.add.at(values, steps.interval, found[name])
        for name, values in joints.items():
            np.add.at(values, steps.interval, getattr(steps.record, name))
        ends = steps.record.tensions
        if tension is None:
            tension = np.empty((count, ends.shape[2]))
            tension[0] = ends[0, 0]
        tension[steps.interval + 1] = ends[:, 1]
    at |= {"mode": at["mode"].astype(int)} | sums
    tension = np.zeros((count, 0)) if tension is None else tension
    events = tuple(listening.events)
    joined = join_powers(powers)
    return History(names, **at, **joints, tension=tension, events=events, powers=joined)


def reaction_of(run: "Trajectory", lam: np.ndarray) -> Values:
    """Return the reaction of the constraint along a run, from its multipliers."""
    if run.system is None or run.system.constraint is None:
        return np.zeros_like(run.momentum)
    seen = make_picker((run.states.g, np.asarray(run.t), lam))
    return in_blocks(_reacting, seen, len(lam), run.system)


@Evaluated
def _reacting(seen: tuple, system: AbstractGroupSystem) -> Array:
    return jax.vmap(lambda g, t, lam: lam @ system.constraint.rows(g, t))(*seen)


def _columns(steps: ReplayedSteps) -> dict[str, np.ndarray]:
    """Return what steps tell of each contact."""
    record = steps.record
    return {
        "gap": record.gap,
        "mode": record.mode,
        "slip": _length(record.slip),
        "normal": record.normal,
        "tangential": _length(record.tangential),
        "friction_work": -record.friction_work,
        "impact_loss": -record.impact_work,
        "friction_doubt": record.friction_doubt,
        "impact_doubt": record.impact_doubt,
    }


class _Start(NamedTuple):
    """The contacts at the start of a run; `closed` are those that do not just land there."""

    gap: np.ndarray
    mode: np.ndarray
    slip: np.ndarray
    closed: np.ndarray


def _start(run: "Trajectory") -> _Start:
    system = run.system
    assert system is not None
    first = State(*(_first(x) for x in (run.g, run.momentum, run.t)))
    gap, u, reach, size = (np.asarray(x) for x in evaluate(_look, system, first))
    slip = _length(u[:, 1:])
    closed = gap <= _SMALL * float(size)
    moves = (slip > _SMALL * reach) | (np.asarray(system.contact.friction) == 0)
    mode = np.where(closed, np.where(moves, SLIPS, STICKS), OPEN)
    return _Start(gap, mode, slip, closed & ~(u[:, 0] < -_SMALL * reach))


def _look(
    system: AbstractGroupSystem, state: State
) -> tuple[Float[Array, " m"], Float[Array, "m 3"], Float[Array, " m"], Float[Array, ""]]:
    touch, xi = system.contact.look(state.g), system.velocity_at(state)
    largest = jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(state.g)])
    reach = jnp.einsum("iak,k->i", jnp.abs(touch.rows), jnp.abs(xi))
    speeds = jnp.einsum("iak,k->ia", touch.rows, xi)
    return touch.gap, speeds, reach, jnp.maximum(jnp.max(largest), 1.0)


def _first(tree: PyTree) -> PyTree:
    return jax.tree.map(lambda x: np.asarray(x)[0], tree)


def _length(x: np.ndarray) -> np.ndarray:
    return np.linalg.norm(x, axis=-1)


def _is(mode: str) -> str:
    return "is open" if mode == "open" else mode
