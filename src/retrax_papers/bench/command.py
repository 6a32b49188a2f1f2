"""`retrax bench`: how fast retrax is on this machine, against C written by hand."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from retrax.cli.options import AsJson
from retrax.cli.tables import print_lines, print_table
from retrax.files import require_place, write_whole

# What is measured of a rod.
ROD = ("call_ns", "ns", "wall_ns", "wall_all_ns")


def bench(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Keep the results in this JSON file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Time one trajectory and an ensemble against C kernels that gcc compiles here.

    Takes one to two minutes. Without a C compiler retrax is timed by itself.

    Example: retrax bench -o bench.json
    """
    if output is not None:
        require_place(output)
    from retrax_papers.bench.suite import measure

    with Console(stderr=True).status("Benchmarks") as status:
        record = measure(lambda what: status.update(f"{what} ..."))
    text = json.dumps(record, indent=1)
    if output is not None:
        with write_whole(output) as path:
            path.write_text(f"{text}\n")
    if as_json:
        typer.echo(text)
        return
    print_lines(_machine(record["machine"]), "")
    for part in _parts(record["results"]):
        print_lines(part, "") if isinstance(part, str) else print_table(*part)
    print_lines(*record["results"]["missing"])
    if output is not None:
        print_lines(f"The results are in {output}.")


def _machine(machine: dict[str, Any]) -> str:
    return f"{machine['processor']}, {machine['cores']} cores, load {machine['load']}"


def _parts(results: dict[str, Any]) -> Iterable[tuple[list[str], list[list[str]], str] | str]:
    """What was measured: tables as (columns, rows, title), and sentences."""
    from retrax_papers.bench.timing import spread

    one, many = results["single"], results["ensemble"]
    yield (
        [
            "problem",
            "order",
            "C, ns",
            "lean C, ns",
            "retrax, ns",
            "loop / C",
            "loop / lean C",
            "call / C",
        ],
        [
            [
                row["problem"],
                f"{row['order']}",
                _ns(row, "c_ns"),
                _ns(row, "lean_ns"),
                _ns(row, "ns"),
                spread(row["loop"]),
                spread(row.get("lean", {})),
                spread(row["call"]),
            ]
            for row in one["per_step"]
        ],
        f"One trajectory, a step of {one['h']} s, every {one['save_every']}th state saved",
    )
    error = one["to_error"]
    yield (
        f"{error['problem']} to {error['target']:g} rad by order {error['order']} in "
        f"{error['steps']} steps: {error['loop']['seconds'] * 1e3:.2f} ms, loop / C "
        f"{spread(error['loop'])}; whole call {error['call']['seconds'] * 1e3:.2f} ms, "
        f"{spread(error['call'])}."
    )
    staged = results["collocation"]
    for row in staged["rows"]:
        yield (
            f"{staged['problem']} to {staged['target']:g} rad by {row['integrator']} in "
            f"{staged['steps']} steps: {row['seconds'] * 1e6:.0f} µs, loop / C "
            f"{spread(row['loop'])}; whole call {row['call']['seconds'] * 1e3:.2f} ms."
        )
    top = results["kahan"]
    yield (
        f"{top['problem']} by Kahan's method, {top['steps']:,} steps: C {_ns(top, 'c_ns')} ns, "
        f"retrax {_ns(top, 'ns')} ns a step, loop / C {spread(top['loop'])}, call / C "
        f"{spread(top['call'])}."
    )
    yield (
        ["elements", "C, ns", "retrax, ns", "loop / C"],
        [
            [f"{row['elements']}", *_pair(row), spread(row["loop"])]
            for row in results["string"]["rows"]
        ],
        "The string pendulum",
    )
    yield (
        ["elements", "call, ns", "loop, ns", "call on one core, ns on the wall", "on all"],
        [[f"{row['elements']:,}", *(_ns(row, k) for k in ROD)] for row in results["rod"]["rows"]],
        "A rod; per element and step, on one core and on all",
    )
    yield (
        ["Newton in C", "C, ns", "retrax, ns", "retrax / C"],
        [[name, *_pair(row), spread(row)] for name, row in many["c"].items()],
        f"{many['members']} free bodies, {many['steps']} steps; per body, step and core",
    )
    yield f"Plain vmap: {_ns(many['vmap'], 'ns')} ns, {spread(many['vmap'])} times ensemble."
    yield (
        ["members", "C, ns", "retrax, ns"],
        [[f"{row['members']:,}", *_pair(row)] for row in many["sizes"]],
        "Per body, step and core",
    )


def _pair(row: dict[str, Any]) -> list[str]:
    return [_ns(row, "c_ns"), _ns(row, "ns")]


def _ns(row: dict[str, Any], key: str) -> str:
    return f"{row[key]:.3g}" if key in row else "-"
