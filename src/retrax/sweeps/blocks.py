"""The work on one block of a sweep: run its members, measure them, write them to the store."""

import errno
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from retrax.errors import BadInput, SweepStopped
from retrax.numerics.checks import quote
from retrax.numerics.fingerprint import digest_of, fingerprint
from retrax.run.ensemble import run_members
from retrax.sweeps.axes import MEMBER, Block, Setting
from retrax.sweeps.bodies import Bodies
from retrax.sweeps.zarr_store import Variable, write

if TYPE_CHECKING:
    import xarray as xr

    # What `measure` may return: numbers with an axis of members, or several by name.
    Measured: TypeAlias = ArrayLike | xr.DataArray | xr.Dataset | Mapping[str, ArrayLike]

# Of members that are measured these are kept besides.
_FAILURES = ("failed_step", "failure", "failure_residual", "failure_increment")
# A disk that is full or cannot be written to is not worth another try.
_HOPELESS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)


class Job(NamedTuple):
    """What all blocks of a sweep have in common; of `alike` only the kind of its bodies counts.

    `reads` is a digest of what its functions read, or nothing where that cannot be known.
    """

    path: str
    settings: tuple[Setting, ...]
    alike: Bodies
    backend: str
    measure: Callable[..., Any] | None
    results: tuple[Variable, ...]
    reads: str | None = None

    def seal(self) -> "Job":
        """Return the job with the digest of this moment."""
        return self._replace(reads=self.content())

    def content(self) -> str | None:
        """Return what the functions of the job read now, in this process."""
        integrators = [setting.integrator for setting in self.settings]
        found = fingerprint((jax.tree.structure(self.alike.whole), integrators, self.measure))
        return digest_of(found) if found.is_lasting else None


class Load(NamedTuple):
    """What a block has to itself: the numbers of its bodies, and their parameters."""

    block: Block
    system: list[np.ndarray]
    states: list[np.ndarray]
    parameters: dict[str, np.ndarray]


def load(bodies: Bodies, block: Block, columns: dict[str, np.ndarray]) -> Load:
    here = bodies.some(block.members)
    parameters = {name: column[block.members] for name, column in columns.items()}
    return Load(block, jax.tree.leaves(here.whole), jax.tree.leaves(here.states), parameters)


def run_block(job: Job | bytes, load: Load, threads: int | None) -> int:
    """Run a block and commit it; how many of its members failed."""
    if isinstance(job, bytes):
        job = _unpack(job)
    clock = time.perf_counter()
    system, drive = jax.tree.unflatten(jax.tree.structure(job.alike.whole), load.system)
    states = jax.tree.unflatten(jax.tree.structure(job.alike.states), load.states)
    bodies = Bodies(system, states, job.alike.shared, drive)
    setting = job.settings[load.block.setting]
    runs = results(bodies, setting, load.parameters, job.backend, job.measure, threads)
    seconds = time.perf_counter() - clock
    try:
        write(Path(job.path), job.results, load.block, runs, seconds)
    except OSError as cause:
        if cause.errno in _HOPELESS:
            raise SweepStopped(
                f"store = {job.path!r} cannot be written: {cause.strerror}."
            ) from cause
        raise
    return int(np.sum(runs["failed_step"].values > 0))


@lru_cache(maxsize=4)
def _unpack(job: bytes) -> Job:
    """Unpack a job once a process, so that all blocks are of one kind and share programs."""
    from distributed.protocol.pickle import loads

    unpacked: Job = loads(job)
    here = unpacked.content()
    if None not in (here, unpacked.reads) and here != unpacked.reads:
        raise SweepStopped(
            "the functions of this sweep read other values in a worker than in the process that "
            "began it: a module was changed after it had been imported, and workers import it as "
            "it is written. Hand these values over as parameters of make, write them into the "
            "module, or use client='serial'."
        )
    return unpacked


def results(
    bodies: Bodies,
    setting: Setting,
    parameters: dict[str, np.ndarray],
    backend: str,
    measure: Callable[..., Any] | None,
    threads: int | None,
) -> "xr.Dataset":
    """Return the runs of some members, or what is measured of them."""
    system, shared = bodies.system, bodies.shared
    parts = bodies.parts(setting.integrator)
    runs = run_members(
        system, parts.integrator, bodies.states, setting.h, setting.steps, setting.save_every,
        shared=shared, own=parts.own, backend=backend, threads=threads,
    )  # fmt: skip
    if measure is None:
        return runs.drop_vars("t", errors="ignore")
    labels = {
        name: ((MEMBER, *(f"{name}_{k}" for k in range(values.ndim - 1))), values)
        for name, values in parameters.items()
        if name not in runs
    }
    system = jax.tree.map(jnp.asarray, system)
    measured = _measure(measure, runs.assign_coords(labels), system)
    return measured.assign({name: runs[name] for name in _FAILURES})


def _measure(measure: Callable[..., Any], runs: "xr.Dataset", system: Any) -> "xr.Dataset":
    """Return what `measure` returns, as a dataset of variables with a dimension of members."""
    import xarray as xr

    try:
        result = measure(runs, system)
    except Exception as cause:
        raise BadInput(
            f"measure raised {type(cause).__name__} on the runs of {runs.sizes[MEMBER]} members: "
            f"{cause}"
        ) from cause
    if isinstance(result, xr.Dataset):
        result = dict(result.data_vars)
    if not isinstance(result, Mapping):
        name = getattr(result, "name", None) or getattr(measure, "__name__", "measured")
        result = {name if str(name).isidentifier() else "measured": result}
    arrays = {}
    for name, x in result.items():
        if not isinstance(name, str) or not name.strip(".") or {"/", "\\", "\0"} & set(name):
            raise BadInput(
                f"measure returned {quote(name)} as the name of a result, but it names an array in "
                "the store: a word without slashes."
            )
        if not isinstance(x, xr.DataArray):
            x = np.asarray(x)
            own = tuple(f"{name}_{axis}" for axis in range(x.ndim - 1))
            x = xr.DataArray(x, dims=(MEMBER, *own)) if x.ndim else xr.DataArray(x)
        fits = x.sizes.get(MEMBER) == runs.sizes[MEMBER]
        if not fits or x.dtype.kind not in "fiubc" or name in _FAILURES:
            raise BadInput(
                f"measure returned {name} of shape {x.shape} and type {x.dtype}, but it must "
                f"return numbers with a first axis of {runs.sizes[MEMBER]} members, under a name "
                "of its own."
            )
        arrays[str(name)] = x.variable
    return xr.Dataset(arrays)
