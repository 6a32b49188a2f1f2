"""`retrax run`: simulate a case, a run file or a system of the user's own."""

import dataclasses
import json
import shlex
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from retrax.cases.makers import choose
from retrax.cases.names import default_integrator, make_integrator
from retrax.cases.python_file import is_reference, load_setting
from retrax.cases.run_file import RunFile, read
from retrax.cli import options
from retrax.cli.options import AsJson, Progress
from retrax.cli.tables import print_lines, print_table
from retrax.errors import BadInput, NotWritten, RetraxError, StepFailed
from retrax.files import is_written_by_retrax, require_place
from retrax.run.simulate import simulate
from retrax.run.spans import count_steps
from retrax.systems.catalogue import CASES
from retrax.trajectory.provenance import label_runs
from retrax.trajectory.summary import COLUMNS, heading, rows
from retrax.trajectory.trajectory import Trajectory

_SAVED_STATES = 2000
_AS_ASKED = "that of the case"


def run(
    case: Annotated[
        str,
        typer.Argument(
            help="A name from `retrax list`, a run file `my_case.toml`, or a function in a Python "
            "file, `my_system.py:make`, which is run.",
            autocompletion=options.runnable,
        ),
    ],
    integrator: Annotated[
        str | None,
        typer.Option(
            help="A name from `retrax list`.",
            show_default=_AS_ASKED,
            autocompletion=options.integrators,
        ),
    ] = None,
    h: Annotated[
        float | None, typer.Option("--h", help="The step in seconds.", show_default=_AS_ASKED)
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="How many steps.", show_default=_AS_ASKED)
    ] = None,
    until: Annotated[
        float | None,
        typer.Option(help="The time in seconds at which the run ends, instead of --steps."),
    ] = None,
    save_every: Annotated[
        int | None,
        typer.Option(
            help="Steps between saved states.", show_default=f"about {_SAVED_STATES} states in all"
        ),
    ] = None,
    backend: Annotated[
        str | None, typer.Option(help="The engine: auto, native or xla.", show_default="auto")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Keep the run in this NetCDF file.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write a page of the run to this HTML file.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Commit the run to this Zarr store as it goes; `retrax resume` continues it."
        ),
    ] = None,
    every: Annotated[
        int | None,
        typer.Option(
            help="Steps between commits to the checkpoint.", show_default="one every 10 s"
        ),
    ] = None,
    as_json: AsJson = False,
    progress: Progress = None,
) -> None:
    """Simulate a case and print how well its invariants were kept.

    Options override what the case or the run file says.

    Example: retrax run heavy-top --integrator composition-4 --h 0.02 --steps 5000 -o top.nc
    """
    if integrator is not None:
        make_integrator(integrator)  # a wrong name is told before a system is made
    given = {
        "h": h,
        "steps": steps,
        "save_every": save_every,
        "backend": backend,
        "output": output,
        "report": report,
        "checkpoint": checkpoint,
        "every": every,
    }
    asked = read_request(case, integrator)
    asked = dataclasses.replace(asked, **{k: x for k, x in given.items() if x is not None})
    if until is not None:
        asked = dataclasses.replace(asked, steps=count_steps(asked.state, asked.h, steps, until))
    for key, path in (("output", asked.output), ("report", asked.report)):
        if path is not None:
            require_asked(key, path, typed=given[key] is not None)
    trajectory = _simulate(asked, case, progress)
    if asked.report is not None:
        trajectory.report(asked.report)
    if as_json:
        measured = {**trajectory.measures(), "case": asked.name, "integrator": asked.method}
        typer.echo(json.dumps(measured, indent=2))
        return
    print_lines(*heading(trajectory), "")
    print_table(COLUMNS, rows(trajectory))
    if asked.checkpoint is not None:
        path = asked.checkpoint
        quoted = shlex.quote(str(path))
        print_lines(f"The run is in {path}; `retrax resume {quoted}` takes it further.")
    if asked.output is not None:
        path = asked.output
        quoted = shlex.quote(str(path))
        print_lines(f"The run is in {path}; `retrax report {quoted}` makes a page of it.")
    if asked.report is not None:
        print_lines(f"The page is {asked.report}.")


def read_request(what: str, integrator: str | None) -> RunFile:
    """Make what is to be run from a case, a run file or a function in a Python file."""
    if what.endswith(".toml"):
        asked = read(what)
        method = integrator or asked.method
        chosen = asked.integrator if integrator is None else make_integrator(integrator)
        return dataclasses.replace(asked, integrator=chosen, method=method)
    plant = control = None
    if is_reference(what):
        name, method = what, integrator
        system, state, h, steps = load_setting(what)
    else:
        if Path(what).is_file():
            raise BadInput(f"{what!r} is a file, but run files end in .toml, Python files in .py.")
        case = choose("case", what, CASES)
        name, method = case.name, integrator or case.integrator
        system, state, h, steps = case.make()
        if case.driven is not None:
            plant, control = case.driven()[:2]
    method = method or default_integrator(system)
    chosen = make_integrator(method)
    return RunFile(name, system, state, chosen, method, h, steps, plant=plant, control=control)


def _simulate(asked: RunFile, typed: str, progress: bool | None) -> Trajectory:
    """Run and save to the output, also a run that failed; its provenance holds what was typed."""
    save_every = asked.save_every
    if save_every is None:
        whole = isinstance(asked.steps, int)
        save_every = max(1, round(asked.steps / _SAVED_STATES)) if whole else 1
    try:
        with label_runs(case=asked.name, asked=typed):
            trajectory = simulate(
                asked.system if asked.plant is None else asked.plant,
                asked.integrator,
                asked.state,
                control=asked.control,
                h=asked.h,
                steps=asked.steps,
                save_every=save_every,
                backend=asked.backend,
                progress=progress,
                checkpoint=asked.checkpoint,
                every=asked.every,
            )
    except StepFailed as failure:
        if asked.output is None:
            raise
        path = keep(failure.trajectory, asked.output)
        error = type(failure)
        raise error(f"{failure} It was saved to {path}.", failure.trajectory) from failure
    if asked.output is not None:
        keep(trajectory, asked.output)
    return trajectory


def keep(trajectory: Trajectory, path: Path) -> Path:
    """Save a run; if its disk is full, save it among temporary files and raise.

    **Raises:** `NotWritten`, with the place where the run is now.
    """
    try:
        return trajectory.save(path)
    except NotWritten as cause:
        try:
            other = trajectory.save(Path(tempfile.mkdtemp(prefix="retrax-")) / path.name)
        except (RetraxError, OSError):
            raise cause from None
        raise NotWritten(f"{cause} The run was saved to {str(other)!r} instead.") from cause


def require_asked(key: str, path: Path, typed: bool) -> None:
    """Reject, before a run, a place that cannot be written, and a file that must not be replaced.

    A file named on the command line is replaced. One that only a run file names is replaced only
    if retrax wrote it.
    """
    place = require_place(path)
    if not typed and place.exists() and not is_written_by_retrax(place):
        raise BadInput(
            f"{key} = {str(path)!r} in the run file is a file that retrax did not write: give "
            f"--{key} {str(path)!r} on the command line to replace it."
        )
