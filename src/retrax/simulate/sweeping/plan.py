"""A sweep that has been checked: how it is cut up, where it goes, what is left to do."""

import contextlib
import json
import math
import platform
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from retrax.errors import BadInput, SweepStopped
from retrax.numerics.fingerprint import digest, fingerprint
from retrax.simulate.sweeping import store
from retrax.simulate.sweeping.axes import MEMBER, Axes
from retrax.simulate.sweeping.blocks import Block, block_shape, blocks, usual_block
from retrax.simulate.sweeping.bodies import Bodies
from retrax.simulate.sweeping.cluster import connected, runs_here
from retrax.simulate.sweeping.crowd import run_on, run_serially
from retrax.simulate.sweeping.settings import Setting, Settings
from retrax.simulate.sweeping.task import Job, Load, loaded, results
from retrax.simulate.sweeping.times import times
from retrax.simulate.validate import require_count
from retrax.simulate.writing_lock import WritingLock
from retrax.trajectory.provenance import provenance, versions

if TYPE_CHECKING:
    import xarray as xr


class Plan:
    """What runs, in which blocks, and the store they go to."""

    def __init__(
        self,
        path: Path,
        axes: Axes,
        settings: Settings,
        bodies: Bodies,
        backend: str,
        measure: Callable[..., Any] | None,
        chunk: Any,
    ):
        self._path, self._axes, self._settings, self._bodies = path, axes, settings, bodies
        self._backend, self._measure = backend, measure
        example = self._example()
        self._results = store.variables(example)
        self._labels = axes.labels | settings.labels
        if any("time" in v.before or "time" in v.after for v in self._results):
            self._labels |= times(axes, settings, bodies)
        self._require_names()
        most = self._members_of_a_block(chunk, example)
        self._sizes = settings.sizes | axes.sizes
        sides = block_shape(list(axes.sizes.values()), most)
        self._sides = (1,) * len(settings.sizes) + sides
        parts = blocks(list(settings.sizes.values()), list(axes.sizes.values()), sides)
        self._blocks: list[Block] = list(parts)

    def run(self, client: Any, retries: int, report: Callable[[int, int], object]) -> None:
        """Do what is missing."""
        with contextlib.ExitStack() as stack:
            self._run(client, retries, report, stack)

    def _run(
        self,
        client: Any,
        retries: int,
        report: Callable[[int, int], object],
        stack: contextlib.ExitStack,
    ) -> None:
        begun = store.existing(self._path, self._identity())
        if begun and not self._comparable():
            raise BadInput(
                f"store = {str(self._path)!r} holds results, but functions of this sweep read "
                "something whose content cannot be compared, such as os.environ, a file or an "
                "object of an extension module: whether these are their results cannot be known. "
                "Choose another path, or make what they read a parameter of the sweep."
            )
        if begun:  # nobody else commits between what is read here and what is written
            self._hold(store.held(self._path), stack)
            store.require_layout(self._path, self._layout())
        done = store.committed(self._path, self._results, self._blocks) if begun else set()
        todo = [block for block in self._blocks if block.number not in done]
        total = self._axes.members * len(self._settings.each)
        gone = total - sum(len(block.members) for block in todo)
        report(gone, total)
        if begun and todo:
            store.require_writable(self._path)
            self._compare_versions()

        def finished(load: Load) -> None:
            nonlocal gone
            gone += len(load.block.members)
            done.add(load.block.number)
            report(gone, total)

        if not todo:
            return
        try:
            with self._runner(client, len(todo), retries) as runner:
                if not begun:
                    self._hold(store.create(self._path, self._layout()), stack)
                runner(self._job(), self._loads(todo), finished)
        except (SweepStopped, KeyboardInterrupt) as stopped:
            raise type(stopped)(
                f"{str(stopped) or 'the sweep was interrupted.'} Of {len(self._blocks)} blocks "
                f"{len(done)} are in the store and stay there; the same sweep goes on with the "
                "others."
            ) from stopped

    def opened(self) -> "xr.Dataset":
        """The results, read from the store when they are looked at."""
        import xarray as xr

        return xr.open_zarr(self._path, chunks=None, zarr_format=3)

    def warn_of_failures(self) -> None:
        """One sentence about all members that failed."""
        failed_step = self.opened()["failed_step"].values
        failed = np.flatnonzero(failed_step > 0)
        if not len(failed):
            return
        first = failed[np.argmin(failed_step.flat[failed])]
        setting, member = divmod(int(first), self._axes.members)
        warnings.warn(
            f"{len(failed)} of {failed_step.size} members failed, the first of them "
            f"{self._axes.named(member)} at step {failed_step.flat[first]} of "
            f"{self._settings.each[setting].steps}; see failed_step and failure in the dataset. "
            "They are NaN from there on.",
            stacklevel=3,
        )

    def warn_of_aliasing(self) -> None:
        """One sentence about members that a step turned by more than half a turn.

        Looked at are the first steps of all members and, where all coordinates of the group are
        angles and no `measure` has dropped them, the increments of all steps.
        """
        angles = self._bodies.system.group.angles()
        if not angles.any():
            return
        in_axes = (None if self._bodies.shared else 0, 0)
        system, states = jax.tree.map(jnp.asarray, self._bodies[:2])
        velocity = jax.vmap(lambda system, state: system.velocity_at(state), in_axes)(
            system, states
        )
        first = np.max(np.abs(np.asarray(velocity)[:, angles]), axis=1)
        sizes = np.abs([setting.h for setting in self._settings.each])
        turn = sizes[:, None] * first[None, :]
        runs = self.opened()
        if angles.all() and "increment" in runs:
            turn = np.fmax(turn, runs["increment"].max("time").values.reshape(turn.shape))
        beyond = turn > math.pi
        if beyond.any():
            which = int(np.argmax(beyond.any(axis=0)))
            warnings.warn(
                f"a step turned {beyond.sum()} of {turn.size} members by more than half a turn, "
                f"the first of them {self._axes.named(which)}, by up to |h xi| = "
                f"{float(np.nanmax(turn)):.4g} rad: beyond pi the states cannot tell how often "
                "they went round, and their errors do not show in the invariants; use shorter "
                "steps.",
                stacklevel=3,
            )

    @contextlib.contextmanager
    def _runner(self, client: Any, tasks: int, retries: int) -> Iterator[Callable[..., None]]:
        if runs_here(client):
            yield run_serially
            return
        with connected(client, tasks) as workers:
            yield lambda job, loads, done: run_on(workers, job, loads, retries, done)

    def _loads(self, todo: list[Block]) -> Iterator[Load]:
        return (loaded(self._bodies, block, self._axes.columns) for block in todo)

    def _job(self) -> Job:
        few = self._bodies.some(np.arange(1))
        path = str(self._path.absolute())
        return Job(path, self._settings.each, few, self._backend, self._measure, self._results)

    def _example(self) -> "xr.Dataset":
        """The results of the first two members after as few steps as save as many states."""
        records, first = self._settings.records, self._settings.each[0]
        short = (1, None) if records == 1 else (records - 1, 1)
        few = np.arange(min(2, self._axes.members))
        parameters = {name: column[few] for name, column in self._axes.columns.items()}
        backend = "auto" if self._backend == "pallas" else self._backend
        setting = Setting(first.integrator, first.h, *short)
        return results(
            self._bodies.some(few), setting, parameters, backend, self._measure, threads=1
        )

    def _members_of_a_block(self, chunk: Any, example: "xr.Dataset") -> int:
        if chunk is not None:
            require_count("chunk", chunk)
            return int(chunk)
        members, records = self._axes.members, self._settings.records
        numbers = sum(leaf.size for leaf in jax.tree.leaves(self._bodies.states)) // members
        steps = max(setting.steps for setting in self._settings.each)
        kept = example.nbytes // example.sizes[MEMBER]
        return usual_block(members, steps * numbers, max(8 * records * numbers, kept))

    def _require_names(self) -> None:
        """Refuse a parameter with the name of a result."""
        taken = {v.name for v in self._results}
        taken |= {dim for v in self._results for dim in (*v.before, *v.after)} - {"time"}
        clash = sorted(taken & self._labels.keys())
        if clash:
            raise BadInput(
                f"the parameter {clash[0]!r} has the name of a result or of one of its axes; give "
                "it another."
            )

    def _identity(self) -> dict[str, Any]:
        """What makes this sweep another than all others, by name."""
        each = self._settings.each
        return {
            "parameters": digest([self._axes.sizes, self._axes.columns]),
            "systems": digest(self._bodies.system),
            "states": digest(self._bodies.states),
            "integrator": digest([setting.integrator for setting in each]),
            "h": [setting.h for setting in each],
            "steps": [setting.steps for setting in each],
            "save_every": [setting.save_every for setting in each],
            "measure": digest(self._measure),
            "chunk": list(self._sides),
            "backend": self._backend,
            "Python": ".".join(platform.python_version_tuple()[:2]),
        }

    def _comparable(self) -> bool:
        """Whether the identity has all that the functions of the sweep read."""
        integrators = [setting.integrator for setting in self._settings.each]
        return fingerprint((self._bodies.system, integrators, self._measure)).complete

    @staticmethod
    def _hold(lock: WritingLock | None, stack: contextlib.ExitStack) -> None:
        if lock is not None:
            stack.callback(lock.release)

    def _layout(self) -> store.Layout:
        each, one = self._settings.each, len(self._settings.each) == 1
        made = provenance(self._bodies.system, each[0].integrator, self._backend)
        attributes = {
            "format": store.FORMAT,
            "format_version": store.FORMAT_VERSION,
            "identity": json.dumps(self._identity()),
            **{
                name: getattr(each[0], name) if one else [getattr(s, name) for s in each]
                for name in ("h", "steps", "save_every")
            },
            **{f"provenance_{key}": value for key, value in made.items()},
        }
        blocks = len(self._blocks)
        return store.Layout(
            self._results, self._sizes, self._sides, blocks, self._labels, attributes
        )

    def _compare_versions(self) -> None:
        attributes = self.opened().attrs
        other = [
            f"{name} {attributes.get(f'provenance_{name}')}"
            for name, here in versions().items()
            if attributes.get(f"provenance_{name}") != here
        ]
        if other:
            warnings.warn(
                f"this sweep was begun with {', '.join(other)}, and goes on with other versions: "
                "its members may differ by rounding.",
                stacklevel=4,
            )
