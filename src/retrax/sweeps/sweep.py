"""Many bodies with many parameters, on many machines, into one store."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jax.typing import ArrayLike

from retrax.engine.backends import require_backend
from retrax.errors import BadInput
from retrax.files import require_folder
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.actuated import Actuated
from retrax.mechanics.controls import AbstractControl
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.meant import explain_keywords
from retrax.run.checks import require_count
from retrax.run.drive import Plant
from retrax.run.driven_members import check_runs
from retrax.run.member_checks import require_ensemble
from retrax.run.progress_bar import ProgressOption, reporter
from retrax.sweeps.axes import axes, settings
from retrax.sweeps.bodies import bodies, bodies_from
from retrax.sweeps.plan import plan_sweep

if TYPE_CHECKING:
    import xarray as xr
    from distributed import Client

    from retrax.sweeps.axes import Table
    from retrax.sweeps.blocks import Measured


@explain_keywords
def sweep(
    make: Callable[..., tuple[Any, ...]] | Plant,
    integrator: AbstractIntegrator | str | Mapping[str, AbstractIntegrator | str],
    *,
    grid: Mapping[str, ArrayLike | Sequence[str]] | None = None,
    samples: "Mapping[str, ArrayLike] | Sequence[Mapping[str, ArrayLike]] | Table | None" = None,
    states: State | ArrayLike | None = None,
    control: AbstractControl | None = None,
    h: float | Sequence[float],
    steps: int | Sequence[int],
    save_every: int | Sequence[int | None] | None = None,
    store: str | Path,
    measure: "Callable[[xr.Dataset, AbstractGroupSystem], Measured] | None" = None,
    client: "Client | str | None" = None,
    chunk: int | None = None,
    retries: int = 3,
    backend: str = "auto",
    progress: ProgressOption = None,
) -> "xr.Dataset":
    """Run a body for every point of a grid of parameters, or for every sample of them.

    Members run in blocks, each a task on a Dask worker, which writes what comes out into its region
    of one Zarr store and commits it. The same sweep with the same store does only what is missing.

    **Arguments:**

    - `make`: a function that returns the system and the state for parameters given by name, and
        after them the control of an `Actuated` system where it depends on them; or one system, and
        `states` then.
    - `integrator`: how a step is taken; a dict of integrators by name adds a dimension to the
        results.
    - `grid`: parameters and their values by name; every combination runs, and each parameter is a
        dimension of the results.
    - `samples`: parameters by name, with one value or array a member: a dict of arrays, a table
        with named columns or a list of dicts. They are one dimension, `member`.
    - `states`: a state for each member, as `ensemble` takes them.
    - `control`: what drives the inputs of `Actuated` systems, as for `simulate`.
    - `h`, `steps`, `save_every`: as for `ensemble`; a list of step sizes, with one number or a list
        for the other two, adds a dimension to the results.
    - `store`: the folder to write to, which all workers must see.
    - `measure`: `measure(runs, system)`, what to keep of the runs of some members where all of them
        would be too much; `runs` is a dataset as `ensemble` returns it with the parameters as
        coordinates, `system` one for all of these members or one for each along the first axis. It
        returns numbers with an axis of members, or a dict of such.
    - `client`: a Dask client, or the address of a scheduler. `None` takes the current client, or
        else starts a process for each core of this machine, or stays in this one where JAX has a
        GPU; `"serial"` runs in this process.
    - `chunk`: how many members a block has at most.
    - `retries`: how often a block that fails, or whose worker dies, is tried again.
    - `backend`: as for `ensemble`; `"auto"` is the best one of each worker.
    - `progress`: `None` shows a bar on a terminal; `True`, `False`, or a function of members
        (done, total).

    **Returns:** an `xarray.Dataset` that reads from the store, with the parameters as coordinates.

    **Raises:** `BadInput` where the sweep cannot start; `SweepStopped` where it cannot go on.
    """
    _require_rest(make, store, measure, retries)
    backend = require_backend(backend)
    chosen = settings(integrator, h, steps, save_every)
    if isinstance(make, AbstractGroupSystem | Actuated):
        if grid is not None or samples is not None:
            raise BadInput("make is one system, so it takes states, and neither grid nor samples.")
        spread, made = bodies_from(make, states, control)
    else:
        if states is not None:
            raise BadInput("states are for one system; where make makes it, it makes the state.")
        spread = axes(grid, samples)
        made = bodies(make, spread, control)
    for setting in chosen.each:
        parts = made.parts(setting.integrator)
        require_ensemble(made.system, parts.one, made.states, *setting[1:], made.shared)
        check_runs(parts, np.asarray(made.states.t), float(setting.h), int(setting.steps))
    plan = plan_sweep(Path(store), spread, chosen, made, backend, measure, chunk)
    with reporter(progress, f"sweep of {spread.members} members", unit="members") as report:
        plan.run(client, int(retries), report)
    plan.warn_of_failures()
    plan.warn_of_aliasing()
    return plan.open_results()


def _require_rest(make: object, store: object, measure: object, retries: object) -> None:
    if not callable(make) and not isinstance(make, AbstractGroupSystem | Actuated):
        raise BadInput(
            f"make = {make!r} must be a function that returns a system and a state, or a system."
        )
    if not isinstance(store, str | Path):
        raise BadInput(f"store = {store!r} must be the path of a folder.")
    require_folder(Path(store))
    if measure is not None and not callable(measure):
        raise BadInput(f"measure = {measure!r} must be a function of the runs and their system.")
    if retries != 0:
        require_count("retries", retries)
