"""`retrax export`: the step of a case as C, an object, WebAssembly or an FMU."""

import json
from pathlib import Path
from typing import Annotated

import typer

from retrax.cases.names import make_integrator
from retrax.cli import options
from retrax.cli.options import AsJson
from retrax.cli.run import read_request
from retrax.cli.tables import print_lines

_WRITTEN = {
    ".c": "readable C99, with a header, an example and a CMakeLists beside it",
    ".o": "an object, with its header beside it",
    ".wasm": "WebAssembly, with a script that loads it beside it",
    ".fmu": "an FMU for co-simulation",
}


def export(
    case: Annotated[
        str,
        typer.Argument(
            help="A name from `retrax list`, a run file `my_case.toml`, or a function in a Python "
            "file, `my_system.py:make`, which is run.",
            autocompletion=options.runnable,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Where to write: a name that ends in .c, .o, .wasm or .fmu."
        ),
    ],
    target: Annotated[
        str | None,
        typer.Option(
            help="Of an object the machine: x86_64, thumbv7em, aarch64, riscv32; of an FMU the "
            "version: 2 or 3.",
            show_default="this machine; version 3",
        ),
    ] = None,
    integrator: Annotated[
        str | None,
        typer.Option(
            help="A name from `retrax list`.",
            show_default="that of the case",
            autocompletion=options.integrators,
        ),
    ] = None,
    precision: Annotated[str, typer.Option(help="Of C: double or float.")] = "double",
    as_json: AsJson = False,
) -> None:
    """Write one step of a case for use outside of Python.

    Of a case that is driven the inputs are part of the state, for a controller of your own.

    Example: retrax export heavy-top -o top.c
    """
    from retrax.exporting.export import export as write

    if integrator is not None:
        make_integrator(integrator)
    asked = read_request(case, integrator)
    path = write(
        asked.system if asked.plant is None else asked.plant,
        asked.integrator,
        output,
        target,
        state=asked.state,
        h=asked.h,
        precision=precision,
    )
    if as_json:
        typer.echo(json.dumps({"path": str(path), "bytes": path.stat().st_size}, indent=2))
        return
    print_lines(f"The step is in {path}: {_WRITTEN[path.suffix]}.")
