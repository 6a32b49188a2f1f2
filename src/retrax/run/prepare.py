"""Runs that are called many times: everything that does not change from call to call, done once."""

from typing import NoReturn

import jax
from jax.typing import ArrayLike
from jaxtyping import Array

from retrax.engine.backends import require_backend
from retrax.errors import BadInput
from retrax.integrators.base import AbstractIntegrator, as_integrator, require_fit
from retrax.mechanics.controls import AbstractControl
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import as_float, is_traced, require_double_precision
from retrax.numerics.fingerprint import content
from retrax.numerics.known import explaining_leaks
from retrax.numerics.looks import looking
from retrax.numerics.meant import explain_keywords
from retrax.numerics.watch import copy_parts
from retrax.run.checks import require_count, require_step_size, require_system
from retrax.run.drive import Plant, begin_run, unwrap
from retrax.run.progress_bar import ProgressOption, is_shown, require_progress
from retrax.run.ready_loop import ReadyLoop, is_quiet
from retrax.run.simulate import run_quickly, simulate
from retrax.run.spans import count_steps
from retrax.trajectory.trajectory import Trajectory


class PreparedRun:
    """A run that is called with a state and a number of steps; `prepare` makes it.

    `run(state, steps)` returns what `simulate` returns of the same, bit for bit, and raises what it
    raises. All that functions of the system read (globals, closures, attributes) is read when the
    run is prepared, and not again. The end of a run, `run(state, steps).final`, is a start like any
    other.

    **Attributes:** `system`, `integrator`, `h`, `save_every`, `backend`: as given.
    """

    def __init__(
        self,
        system: AbstractGroupSystem,
        integrator: AbstractIntegrator,
        h: float | Array,
        save_every: int,
        progress: ProgressOption,
        backend: str,
    ):
        system, integrator = copy_parts((system, integrator))
        self.system, self.integrator, self.backend = system, integrator, backend
        self.h, self.save_every, self._progress = h, save_every, progress
        known = is_quiet() and not is_traced(system, integrator, h)
        self._ready = ReadyLoop(system, integrator, backend, frozen=True) if known else None
        self._looks = content(jax.tree.structure((system, integrator))).looks if known else None
        if self._ready is not None and not self._ready.is_native:
            self._ready.ask()
        for look in self._looks or ():
            look.is_sealed = True

    def __reduce__(self) -> NoReturn:
        raise BadInput(
            "a prepared run holds compiled steps, which cannot be copied or sent to another "
            "process: send the system and the integrator, and prepare one there."
        )

    def __repr__(self) -> str:
        return (
            f"<PreparedRun of {self.system.name} by {self.integrator!r}: steps of {self.h} s, "
            f"every {self.save_every} of them saved>"
        )

    def __call__(
        self, state: State | ArrayLike, steps: int | None = None, until: float | None = None
    ) -> Trajectory:
        """Take `steps` steps from `state`, or those that end at the time `until`.

        **Raises:** `StepFailed` at the first step that does not converge or gives a number that is
        not finite; it carries the trajectory up to there. `BadInput` where the run cannot start.
        """
        with looking(self._looks):
            state = begin_run(self.system, self.integrator, state)
            steps = steps if until is None else count_steps(state, self.h, steps, until)
            if self._ready is not None and not is_shown(self._progress):
                run = run_quickly(self._ready, state, self.h, steps, self.save_every)
                if run is not None:
                    return run
            return simulate(
                self.system,
                self.integrator,
                state,
                h=self.h,
                steps=steps,
                save_every=self.save_every,
                progress=self._progress,
                backend=self.backend,
            )


@explain_keywords
@explaining_leaks()
@looking()
def prepare(
    system: Plant,
    integrator: AbstractIntegrator | str,
    *,
    h: float | Array,
    control: AbstractControl | None = None,
    save_every: int = 1,
    progress: ProgressOption = False,
    backend: str = "auto",
) -> PreparedRun:
    """Compile a run once, to be called many times with different states and step counts.

    ```python
    run = rx.prepare(system, rx.LieVerlet(), h=0.01)
    state = run(state, 1).final
    ```

    The step is compiled here, from functions as they are now. A call takes some tens of
    microseconds besides its steps, where `simulate` takes more than a hundred: for shooting, and
    whatever else runs one system from many starts.

    **Arguments:**

    - `system`, `integrator`, `h`, `control`, `save_every`, `backend`: as in `simulate`.
    - `progress`: as in `simulate`, but nothing is shown unless it is asked for: who calls a run
        thousands of times wants no bar for each. With `None` a bar is shown on a terminal.

    A prepared run has no checkpoint: what is to be resumed is a run of `simulate`.

    **Raises:** `BadInput` where no run of this kind can start.
    """
    moving, method = unwrap(system, as_integrator(integrator), control)
    require_double_precision()
    require_fit(require_system(moving), method)
    require_step_size(h)
    require_progress(progress)
    require_backend(backend)
    size = h if is_traced(h) else as_float(h)
    return PreparedRun(
        moving, method, size, require_count("save_every", save_every), progress, backend
    )
