"""A sweep that has been checked: how it is cut up, where it goes, what is left to do."""

import contextlib
import json
import math
import platform
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from retrax.errors import BadInput, SweepStopped, warn
from retrax.files import WritingLock
from retrax.integrators.base import AbstractIntegrator
from retrax.numerics.fingerprint import digest, fingerprint
from retrax.run.checks import require_count
from retrax.run.progress_bar import Reporter
from retrax.store.run_objects import encode_objects
from retrax.sweeps import zarr_store as store
from retrax.sweeps.axes import (
    MEMBER,
    Axes,
    Block,
    Labels,
    Setting,
    Settings,
    block_shape,
    blocks,
    times,
    usual_block,
)
from retrax.sweeps.blocks import Job, Load, load, results
from retrax.sweeps.bodies import Bodies
from retrax.sweeps.workers import connect, run_on, run_serially, runs_here
from retrax.trajectory.provenance import provenance, versions

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class SweepPlan:
    """What runs, in which blocks, and the store they go to.

    **Attributes:**

    - `path`: the store.
    - `axes`, `settings`, `bodies`: parameters, integrators with step sizes, and what moves.
    - `backend`, `measure`: as `sweep` was told.
    - `results`: the variables of the store; `labels`: its coordinates.
    - `sides`: how many members a block has along each dimension; `blocks`: all of them.
    """

    path: Path
    axes: Axes
    settings: Settings
    bodies: Bodies
    backend: str
    measure: Callable[..., Any] | None
    results: tuple[store.Variable, ...]
    labels: Labels
    sides: tuple[int, ...]
    blocks: tuple[Block, ...]

    def run(self, client: object, retries: int, report: Reporter) -> None:
        """Do what is missing."""
        with contextlib.ExitStack() as stack:
            self._run(client, retries, report, stack)

    def _run(
        self,
        client: object,
        retries: int,
        report: Reporter,
        stack: contextlib.ExitStack,
    ) -> None:
        begun = store.existing(self.path, self._identity())
        if begun and not self._comparable():
            raise BadInput(
                f"store = {str(self.path)!r} holds results, but functions of this sweep use a "
                "rule or a callback whose content cannot be compared (jax.custom_vjp, "
                "jax.pure_callback): whether these are their results cannot be known. "
                "Choose another path."
            )
        if begun:  # no one else commits between what is read here and what is written
            self._hold(store.take_lock(self.path), stack)
            store.require_layout(self.path, self._layout())
        done = store.list_committed(self.path, self.results, self.blocks) if begun else set()
        todo = [block for block in self.blocks if block.number not in done]
        total = self.axes.members * len(self.settings.each)
        gone = total - sum(len(block.members) for block in todo)
        report(gone, total)
        if begun and todo:
            store.require_writable(self.path)
            self._compare_versions()

        def finish(load: Load) -> None:
            nonlocal gone
            gone += len(load.block.members)
            done.add(load.block.number)
            report(gone, total)

        if not todo:
            return
        try:
            with self._runner(client, len(todo), retries) as runner:
                if not begun:
                    self._hold(store.create(self.path, self._layout()), stack)
                runner(self._job(), self._loads(todo), finish)
        except (SweepStopped, KeyboardInterrupt) as stopped:
            raise type(stopped)(
                f"{str(stopped) or 'the sweep was interrupted.'} Of {len(self.blocks)} blocks "
                f"{len(done)} are in the store and stay there; the same sweep goes on with the "
                "others."
            ) from stopped

    def open_results(self) -> "xr.Dataset":
        """Open the results, which are read from the store when they are used."""
        import xarray as xr

        return xr.open_zarr(self.path, chunks=None, zarr_format=3)

    def warn_of_failures(self) -> None:
        """Warn in one sentence about all members that failed."""
        failed_step = self.open_results()["failed_step"].values
        failed = np.flatnonzero(failed_step > 0)
        if not len(failed):
            return
        first = failed[np.argmin(failed_step.flat[failed])]
        setting, member = divmod(int(first), self.axes.members)
        warn(
            f"{len(failed)} of {failed_step.size} members failed, the first of them "
            f"{self.axes.describe(member)} at step {failed_step.flat[first]} of "
            f"{self.settings.each[setting].steps}; see failed_step and failure in the dataset. "
            "They are NaN from there on."
        )

    def warn_of_aliasing(self) -> None:
        """Warn in one sentence about members that a step turned by more than half a turn.

        Looked at are the first steps of all members and, where all coordinates of the group are
        angles and no `measure` has dropped them, the increments of all steps.
        """
        angles = self.bodies.system.group.angles()
        if not angles.any():
            return
        in_axes = (None if self.bodies.shared else 0, 0)
        system, states = jax.tree.map(jnp.asarray, self.bodies[:2])
        velocity = jax.vmap(lambda system, state: system.velocity_at(state), in_axes)(
            system, states
        )
        first = np.max(np.abs(np.asarray(velocity)[:, angles]), axis=1)
        sizes = np.abs([setting.h for setting in self.settings.each])
        turn = sizes[:, None] * first[None, :]
        runs = self.open_results()
        if angles.all() and "increment" in runs:
            turn = np.fmax(turn, runs["increment"].max("time").values.reshape(turn.shape))
        beyond = turn > math.pi
        if beyond.any():
            which = int(np.argmax(beyond.any(axis=0)))
            warn(
                f"a step turned {beyond.sum()} of {turn.size} members by more than half a turn, "
                f"the first of them {self.axes.describe(which)}, by up to |h xi| = "
                f"{float(np.nanmax(turn)):.4g} rad: beyond pi the states cannot tell how often "
                "they went round, and their errors do not show in the invariants; use shorter "
                "steps."
            )

    @contextlib.contextmanager
    def _runner(self, client: object, tasks: int, retries: int) -> Iterator[Callable[..., None]]:
        if runs_here(client):
            yield run_serially
            return
        with connect(client, tasks) as workers:
            yield lambda job, loads, done: run_on(workers, job, loads, retries, done)

    def _loads(self, todo: list[Block]) -> Iterator[Load]:
        return (load(self.bodies, block, self.axes.columns) for block in todo)

    def _job(self) -> Job:
        few = self.bodies.some(np.arange(1))
        path = str(self.path.absolute())
        return Job(path, self.settings.each, few, self.backend, self.measure, self.results)

    def _identity(self) -> dict[str, Any]:
        """Return what distinguishes this sweep from all others, by name."""
        each, drive = self.settings.each, self.bodies.drive
        return {
            **({} if drive is None else {"drive": digest(drive)}),
            "parameters": digest([self.axes.sizes, self.axes.columns]),
            "systems": digest(self.bodies.system),
            "states": digest(self.bodies.states),
            "integrator": digest([setting.integrator for setting in each]),
            "h": [setting.h for setting in each],
            "steps": [setting.steps for setting in each],
            "save_every": [setting.save_every for setting in each],
            "measure": digest(self.measure),
            "chunk": list(self.sides),
            "backend": self.backend,
            "Python": ".".join(platform.python_version_tuple()[:2]),
        }

    def _comparable(self) -> bool:
        """Return whether the identity has all that the functions of the sweep read."""
        integrators = [setting.integrator for setting in self.settings.each]
        return fingerprint((self.bodies.whole, integrators, self.measure)).is_lasting

    @staticmethod
    def _hold(lock: WritingLock | None, stack: contextlib.ExitStack) -> None:
        if lock is not None:
            stack.callback(lock.release)

    def _layout(self) -> store.Layout:
        each, one = self.settings.each, len(self.settings.each) == 1
        made = provenance(self.bodies.system, self._first_method(), self.backend)
        attributes = {
            "format": store.FORMAT,
            "format_version": store.FORMAT_VERSION,
            "identity": json.dumps(self._identity()),
            **{
                name: getattr(each[0], name) if one else [getattr(s, name) for s in each]
                for name in ("h", "steps", "save_every")
            },
            **{f"provenance_{key}": value for key, value in made.items()},
            "run": json.dumps(self._first_run()),
        }
        sizes = self.settings.sizes | self.axes.sizes
        return store.Layout(
            self.results, sizes, self.sides, len(self.blocks), self.labels, attributes
        )

    def _first_run(self) -> dict[str, Any]:
        """Encode what moves and how: the system of the first member, and the first integrator."""
        first = self.bodies.some(np.arange(1))
        system = first.system
        if not first.shared:
            system = jax.tree.map(lambda x: jnp.asarray(x[0]), system)
        data, _ = encode_objects(system, self._first_method())
        return data

    def _first_method(self) -> AbstractIntegrator:
        """Return the first integrator, with what drives the first member."""
        return self.bodies.parts(self.settings.each[0].integrator).one

    def _compare_versions(self) -> None:
        attributes = self.open_results().attrs
        other = [
            f"{name} {attributes.get(f'provenance_{name}')}"
            for name, here in versions().items()
            if attributes.get(f"provenance_{name}") != here
        ]
        if other:
            warn(
                f"this sweep was begun with {', '.join(other)}, and goes on with other versions: "
                "its members may differ by rounding."
            )


def plan_sweep(
    path: Path,
    axes: Axes,
    settings: Settings,
    bodies: Bodies,
    backend: str,
    measure: Callable[..., Any] | None,
    chunk: object,
) -> SweepPlan:
    """Run two members for a few steps to see what comes out; cut the sweep into blocks."""
    example = _example(axes, settings, bodies, backend, measure)
    variables = store.variables(example)
    labels = axes.labels | settings.labels
    if any("time" in v.before or "time" in v.after for v in variables):
        labels |= times(axes, settings, np.asarray(bodies.states.t))
    _require_names(variables, labels)
    sides = block_shape(
        list(axes.sizes.values()), _members_of_a_block(axes, settings, bodies, chunk, example)
    )
    parts = blocks(list(settings.sizes.values()), list(axes.sizes.values()), sides)
    whole = (1,) * len(settings.sizes) + sides
    return SweepPlan(
        path, axes, settings, bodies, backend, measure, variables, labels, whole, tuple(parts)
    )


def _example(
    axes: Axes,
    settings: Settings,
    bodies: Bodies,
    backend: str,
    measure: Callable[..., Any] | None,
) -> "xr.Dataset":
    """Return the results of the first two members after as few steps as save as many states."""
    first = settings.each[0]
    short = (1, None) if settings.records == 1 else (settings.records - 1, 1)
    few = np.arange(min(2, axes.members))
    parameters = {name: column[few] for name, column in axes.columns.items()}
    backend = "auto" if backend == "gpu" else backend
    setting = Setting(first.integrator, first.h, *short)
    return results(bodies.some(few), setting, parameters, backend, measure, threads=1)


def _members_of_a_block(
    axes: Axes, settings: Settings, bodies: Bodies, chunk: object, example: "xr.Dataset"
) -> int:
    if chunk is not None:
        return require_count("chunk", chunk)
    numbers = sum(leaf.size for leaf in jax.tree.leaves(bodies.states)) // axes.members
    steps = max(setting.steps for setting in settings.each)
    kept = example.nbytes // example.sizes[MEMBER]
    return usual_block(axes.members, steps * numbers, max(8 * settings.records * numbers, kept))


def _require_names(results: tuple[store.Variable, ...], labels: Collection[str]) -> None:
    """Reject a parameter with the name of a result."""
    taken = {v.name for v in results}
    taken |= {dim for v in results for dim in (*v.before, *v.after)} - {"time"}
    clash = sorted(taken & set(labels))
    if clash:
        raise BadInput(
            f"the parameter {clash[0]!r} has the name of a result or of one of its axes; give "
            "it another."
        )
