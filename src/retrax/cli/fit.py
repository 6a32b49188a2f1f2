"""`retrax fit`: parameters of a system from measurements in a file."""

import dataclasses
import inspect
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import jax
import numpy as np
import typer

from retrax.cli import options
from retrax.cli.options import AsJson
from retrax.cli.run import read_request
from retrax.cli.tables import print_lines, print_table
from retrax.errors import BadInput
from retrax.files import require_place

if TYPE_CHECKING:
    from retrax.mechanics.system import AbstractGroupSystem


def fit(
    case: Annotated[
        str,
        typer.Argument(
            help="What moved: a name from `retrax list`, a run file, or a function in a Python "
            "file, which is run. Its numbers are the first guess.",
            autocompletion=options.runnable,
        ),
    ],
    data: Annotated[
        Path,
        typer.Argument(
            help="A CSV file with a header: t, and R11 to R33, qw to qz, rx to rz, x to z, or wx "
            "to wz. Units may follow: t \\[ms], wx \\[deg/s].",
            metavar="DATA",
        ),
    ],
    free: Annotated[
        list[str],
        typer.Option("--free", "-f", help="A number of the system to be found; may be repeated."),
    ],
    noise: Annotated[
        float | None,
        typer.Option(help="The standard deviation of the measurements.", show_default="unknown"),
    ] = None,
    known_start: Annotated[
        bool,
        typer.Option("--known-start", help="The motion starts in the state of the case."),
    ] = False,
    drop: Annotated[
        bool, typer.Option("--drop-missing", help="Leave rows with NaN or empty cells out.")
    ] = False,
    integrator: Annotated[
        str | None,
        typer.Option(
            help="A name from `retrax list`.",
            show_default="rkmk-5",
            autocompletion=options.integrators,
        ),
    ] = None,
    h: Annotated[
        float | None,
        typer.Option("--h", help="The longest step in seconds.", show_default="short enough"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Keep the fit in this NetCDF file.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write a page of the fit to this HTML file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find numbers of a system from measurements of its motion, with their standard errors.

    Example: retrax fit free-rigid-body attitudes.csv --free inertia --noise 0.01
    """
    from retrax.estimation.fit import fit as find
    from retrax.estimation.measurements import Measurements

    for place in (output, report):
        if place is not None:
            require_place(place)
    asked = read_request(case, integrator)
    system_of, start = _free_numbers(asked.system, free)
    measured = Measurements.read(data, noise=noise, missing="drop" if drop else "refuse")
    state = None
    if known_start:
        first = min(float(one.t[0]) for one in measured)
        state = jax.tree.map(
            np.asarray, type(asked.state)(asked.state.g, asked.state.momentum, first)
        )
    found = find(
        system_of,
        measured,
        start,
        state=state,
        free_state=not known_start,
        integrator=None if integrator is None else asked.integrator,
        h=h,
    )
    if output is not None:
        found.save(output)
    if report is not None:
        found.report(report)
    if as_json:
        typer.echo(json.dumps(_as_json(found), indent=2, allow_nan=False))
        return
    from retrax.estimation.result import COLUMNS

    print_lines(*found.lines(), "")
    print_table(COLUMNS, found.rows())
    for path, what in ((output, "fit is in"), (report, "page is")):
        if path is not None:
            print_lines(f"The {what} {path}.")


def _as_json(found: Any) -> dict[str, Any]:
    """Return the fit in numbers; `null` for an error that is not finite."""
    errors = np.sqrt(np.diag(found.covariance))
    return {
        "system": found.system.name,
        "parameters": {
            name: {"value": float(value), "standard_error": _finite_or_none(error)}
            for name, value, error in zip(found.names, found.values, errors, strict=True)
        },
        "correlations": [[_finite_or_none(x) for x in row] for row in found.correlations],
        "chi2": found.chi2,
        "degrees_of_freedom": found.degrees_of_freedom,
        "noise": _finite_or_none(found.noise),
        "converged": found.converged,
        "undetermined": list(found.identifiability.undetermined),
        "notes": list(found.notes),
    }


def _finite_or_none(x: float) -> float | None:
    return float(x) if math.isfinite(x) else None


def _free_numbers(
    system: "AbstractGroupSystem", names: Sequence[str]
) -> tuple[Callable[[dict[str, Any]], "AbstractGroupSystem"], dict[str, np.ndarray]]:
    """Return a function that makes the system anew with other numbers, and those it has.

    **Raises:** `BadInput` where its constructor has no such numbers, or does not make it again.
    """
    kind, fields = type(system), {f.name for f in dataclasses.fields(system)}
    known = inspect.signature(kind).parameters
    kept = {name: getattr(system, name) for name in known if name in fields}
    needed = [k for k, p in known.items() if p.default is p.empty and k not in kept]
    if needed:
        raise BadInput(
            f"a {kind.__name__} does not keep its {needed[0]}, so it cannot be made with other "
            "numbers: write system_of(p) in Python and call rx.fit."
        )
    numbers = {k: np.asarray(x) for k, x in kept.items() if isinstance(x, jax.Array | np.ndarray)}
    for name in names:
        if name not in numbers:
            listed = ", ".join(numbers) or "none"
            raise BadInput(
                f"{name!r} is not a number of the {system.name} that can be fitted: there are "
                f"{listed}."
            )
    if "physical" in known and "physical" not in kept:
        kept["physical"] = False

    def system_of(p: dict[str, Any]) -> "AbstractGroupSystem":
        return kind(**(kept | p))

    start = {name: numbers[name] for name in names}
    _require_the_same(system, system_of(start))
    return system_of, start


def _require_the_same(system: "AbstractGroupSystem", again: "AbstractGroupSystem") -> None:
    pairs = zip(jax.tree.leaves(system), jax.tree.leaves(again), strict=False)
    alike = jax.tree.structure(system) == jax.tree.structure(again)
    if not (alike and all(np.array_equal(x, y) for x, y in pairs)):
        raise BadInput(
            f"the {system.name} is not made again from its own numbers: write system_of(p) in "
            "Python and call rx.fit."
        )
