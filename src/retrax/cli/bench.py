"""`retrax bench`: how fast retrax is on this machine, against C written by hand."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from retrax.trajectory.files import require_folder, written_whole


def bench(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Keep the results in this JSON file.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """Time one trajectory and an ensemble against C kernels that gcc compiles here.

    Takes one to two minutes. Without a C compiler retrax is timed by itself.

    Example: retrax bench -o bench.json
    """
    if output is not None:
        require_folder(output)
    from retrax.bench.suite import measure

    with Console(stderr=True).status("Benchmarks") as status:
        record = measure(lambda what: status.update(f"{what} ..."))
    text = json.dumps(record, indent=1)
    if output is not None:
        with written_whole(output) as path:
            path.write_text(f"{text}\n")
    if as_json:
        typer.echo(text)
        return
    console = Console()
    console.print(_machine(record["machine"]), *_tables(record["results"]), sep="\n")
    console.print(*record["results"]["missing"], sep="\n", soft_wrap=True)
    if output is not None:
        console.print(f"The results are in {output}.", soft_wrap=True)


def _machine(machine: dict[str, Any]) -> str:
    return f"{machine['processor']}, {machine['cores']} cores, load {machine['load']}"


def _tables(results: dict[str, Any]) -> Iterable[Table | str]:
    from retrax.bench.timing import spread

    one, many = results["single"], results["ensemble"]
    steps = Table(
        "problem", "order", "C, ns", "retrax, ns", "loop / C", "call / C",
        title=f"One trajectory, a step of {one['h']} s, every {one['save_every']}th state saved",
    )  # fmt: skip
    for row in one["per_step"]:
        steps.add_row(
            row["problem"], f"{row['order']}", _ns(row, "c_ns"), _ns(row, "ns"),
            spread(row["loop"]), spread(row["call"]),
        )  # fmt: skip
    yield steps
    error = one["to_error"]
    yield (
        f"{error['problem']} to {error['target']:g} rad by order {error['order']} in "
        f"{error['steps']} steps: {error['loop']['seconds'] * 1e3:.2f} ms, loop / C "
        f"{spread(error['loop'])}; whole call {error['call']['seconds'] * 1e3:.2f} ms, "
        f"{spread(error['call'])}.\n"
    )
    staged = results["collocation"]
    for row in staged["rows"]:
        yield (
            f"{staged['problem']} to {staged['target']:g} rad by {row['integrator']} in "
            f"{staged['steps']} steps: {row['seconds'] * 1e6:.0f} µs, loop / C "
            f"{spread(row['loop'])}; whole call {row['call']['seconds'] * 1e3:.2f} ms.\n"
        )
    top = results["kahan"]
    yield (
        f"{top['problem']} by Kahan's method, {top['steps']:,} steps: C {_ns(top, 'c_ns')} ns, "
        f"retrax {_ns(top, 'ns')} ns a step, loop / C {spread(top['loop'])}, call / C "
        f"{spread(top['call'])}.\n"
    )
    string = Table("elements", "C, ns", "retrax, ns", "loop / C", title="The string pendulum")
    for row in results["string"]["rows"]:
        string.add_row(f"{row['elements']}", _ns(row, "c_ns"), _ns(row, "ns"), spread(row["loop"]))
    yield string
    bodies = Table(
        "Newton in C", "C, ns", "retrax, ns", "retrax / C",
        title=f"{many['members']} free bodies, {many['steps']} steps; per body, step and core",
    )  # fmt: skip
    for name, row in many["c"].items():
        bodies.add_row(name, _ns(row, "c_ns"), _ns(row, "ns"), spread(row))
    yield bodies
    yield f"Plain vmap: {_ns(many['vmap'], 'ns')} ns, {spread(many['vmap'])} times ensemble.\n"
    sizes = Table("members", "C, ns", "retrax, ns", title="Per body, step and core")
    for row in many["sizes"]:
        sizes.add_row(f"{row['members']:,}", _ns(row, "c_ns"), _ns(row, "ns"))
    yield sizes


def _ns(row: dict[str, Any], key: str) -> str:
    return f"{row[key]:.3g}" if key in row else "-"
