"""The results as a page: `results/*.json` to `docs/benchmarks.md` with its figure.

python -m benchmarks.report
"""

import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.figure import work_precision
from benchmarks.results import RESULTS
from retrax_papers.bench.timing import spread

DOCS = Path(__file__).parent.parent / "docs"
FIGURE = "assets/work-precision.svg"
STARTUP = ("call_seconds", "compile_wall_seconds")

INTRODUCTION = """# Benchmarks

How fast retrax is against C written by hand and against other libraries. `retrax bench` measures
the first two parts on your machine in about a minute; the programs in `benchmarks/` of the
repository measure the rest, and their README says how. Times are processor time over all threads.
A ratio is the median over pairs of runs, with the smallest and the largest in brackets; below 1
means faster than what it is compared with.

This page is written by `python -m benchmarks.report`; do not edit it.
"""


def table(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    lines = [list(header), *(list(row) for row in rows)]
    text = ["| " + " | ".join(str(cell) for cell in line) + " |" for line in lines]
    return "\n".join([text[0], "|" + "---|" * len(lines[0]), *text[1:]]) + "\n"


def about(record: dict[str, Any]) -> str:
    """The machine, in one line under a section."""
    m = record["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in m["versions"].items())
    compiler = f"{m['compiler']}, `{m['flags']}`; " if m["compiler"] else ""
    return (
        f"*{m['processor']}, {m['cores']} cores, load {m['load']} at the end; {compiler}"
        f"Python {m['python']}, {versions}; {record['date']}.*\n"
    )


def bench(results: dict[str, Any]) -> str:
    parts = [single(results["single"])]
    if "kahan" in results:
        parts.append(kahan(results["kahan"]))
    if "collocation" in results:
        parts.append(collocation(results["collocation"]))
    if "string" in results:
        parts.append(string(results["string"]))
    if "rod" in results:
        parts.append(large_rods(results["rod"]))
    return "\n".join([*parts, ensemble(results["ensemble"])])


def collocation(results: dict[str, Any]) -> str:
    rows = [
        (
            f"`{row['integrator']}`", f"{row['error']:.1e}", f"{row['sweeps']:.1f}",
            f"{row['seconds'] * 1e6:.0f}", spread(row["loop"]),
            f"{row['call']['seconds'] * 1e6:.0f}",
        )
        for row in results["rows"]
    ]  # fmt: skip
    first = results["rows"][0]
    return (
        "## Collocation against C\n\n"
        f"The {results['problem']} to T = 30 with an error below {results['target']:.0e} rad, "
        f"{results['steps']} steps of {results['stages']} stages. C is collocation by hand, with "
        "the stages in vector lanes and extrapolated from step to step "
        f"({first.get('c_sweeps', 0):.1f} sweeps a step, "
        f"{first.get('c_seconds', 0) * 1e6:.0f} µs in all). Microseconds to T = 30; *loop* is the "
        "compiled loop, measured on a run 20 times as long, *call* all of `rx.simulate`.\n\n"
        + table(["method", "error", "sweeps", "loop, µs", "loop / C", "call, µs"], rows)
    )


def string(results: dict[str, Any]) -> str:
    rows = [
        (row["elements"], f"{row.get('c_ns', 0):.0f}", f"{row['ns']:.0f}", spread(row["loop"]))
        for row in results["rows"]
    ]
    return (
        "## The string pendulum against C\n\n"
        "A body on an elastic string by `LieVerlet`, nanoseconds per step of the compiled loop; "
        "C is the same algorithm by hand. From 20 to 2000 elements the time grows with the power "
        f"{results['exponent']:.2f} of their number.\n\n"
        + table(["elements", "C, ns", "retrax, ns", "loop / C"], rows)
    )


def large_rods(results: dict[str, Any]) -> str:
    times = ("call_ns", "ns", "wall_ns", "wall_all_ns")
    rows = [
        (f"{row['elements']:,}", *(f"{row[name]:.1f}" for name in times)) for row in results["rows"]
    ]
    return (
        "## Rods of many elements\n\n"
        "A straight rod that is thrown, `LieVerlet`, nanoseconds per element and step: processor "
        "time of `rx.simulate` and of its loop on one core; time on the wall of `rx.simulate` on "
        f"one core and on all {results['cores']}. The longest takes {results['growth']:.2f} times "
        "the processor time per element of the shortest.\n\n"
        + table(["elements", "call", "loop", "call, one core", "call, all cores"], rows)
    )


def kahan(row: dict[str, Any]) -> str:
    c = "-" if "c_ns" not in row else f"{row['c_ns']:.1f}"
    return (
        "## Kahan's method against C\n\n"
        f"The {row['problem']} by `Kahan`, {row['steps']:,} steps of h = {row['h']}, every "
        f"{row['save_every']:,}th state saved; C is a loop of the explicit rational map. "
        "Nanoseconds per step; *loop* is the compiled loop, *call* all of `rx.simulate`.\n\n"
        + table(
            ["C, ns", "retrax, ns", "loop / C", "call / C"],
            [(c, f"{row['ns']:.1f}", spread(row["loop"]), spread(row["call"]))],
        )
    )


def single(results: dict[str, Any]) -> str:
    rows = [
        (
            row["problem"], row["order"], f"{row['c_ns']:.0f}",
            f"{row['lean_ns']:.0f}" if "lean_ns" in row else "-", f"{row['ns']:.0f}",
            spread(row["loop"]), spread(row.get("lean", {})), spread(row["call"]),
            f"{row['newton_per_substep']:.2f}",
        )
        for row in results["per_step"]
    ]  # fmt: skip
    error = results["to_error"]
    return (
        "## One trajectory against C\n\n"
        f"`LieVerlet` (order 2) and its compositions, native, h = {results['h']}, every "
        f"{results['save_every']}th state saved; nanoseconds per step. *Loop* is the compiled "
        "loop, *call* all of `rx.simulate`, *Newton* the iterations in a substep. C solves each "
        "step until it has converged, as retrax does; *lean C* takes two iterations without "
        "looking and merges the kicks between steps.\n\n"
        + table(
            [
                "problem",
                "order",
                "C, ns",
                "lean C, ns",
                "retrax, ns",
                "loop / C",
                "loop / lean C",
                "call / C",
                "Newton",
            ],
            rows,
        )
        + f"\nThe {error['problem']} by order {error['order']} to an error of "
        f"{error['target']:.0e} rad at T = 30, {error['steps']} steps: the loop takes "
        f"{error['loop']['seconds'] * 1e3:.2f} ms, {spread(error['loop'])} times C; the call "
        f"{error['call']['seconds'] * 1e3:.2f} ms, {spread(error['call'])}. A call of "
        f"`rx.simulate` with one step takes {results['call_seconds'] * 1e3:.2f} ms.\n"
    )


def ensemble(results: dict[str, Any]) -> str:
    rows = [
        (name, f"{r['c_ns']:.1f}", f"{r['ns']:.1f}", spread(r)) for name, r in results["c"].items()
    ]
    sizes = [
        (f"{r['members']:,}", f"{r['steps']:,}", f"{r['ns']:.1f}", f"{r['c_ns']:.1f}")
        for r in results["sizes"]
    ]
    return (
        "## Ensembles on the processor\n\n"
        f"{results['members']:,} free bodies, {results['steps']} steps, whole calls of "
        "`rx.ensemble`; nanoseconds per body, step and core. Newton's iteration in C runs twice, "
        "or until a block of eight bodies has converged, which is what retrax does.\n\n"
        + table(["Newton in C", "C, ns", "retrax, ns", "retrax / C"], rows)
        + f"\n`jax.vmap` of the same step in a `lax.scan` takes {results['vmap']['ns']:.0f} "
        f"ns per body and step, {spread(results['vmap'])} times as long as `rx.ensemble`.\n\n"
        + "From a hundred members to a million, whole calls:\n\n"
        + table(["members", "steps", "retrax, ns", "C, ns"], sizes)
    )


def startup(results: list[dict[str, Any]]) -> str:
    rows = [
        (r["case"], *(f"{r[k][t]:.2f}" for k in ("first", "second") for t in STARTUP))
        for r in results
    ]
    return (
        "## The first call\n\nThe first `rx.simulate` in a new process, with an empty cache and "
        "with the kernel on disk: processor seconds of the call, and seconds on the wall that it "
        "spends on tracing and compiling or loading.\n\n"
        + table(["case", "call", "compiling", "call, from disk", "loading, from disk"], rows)
    )


def _cell(row: dict[str, Any]) -> str:
    return f"{row['seconds'] * 1e3:.3g} ms, {spread(row)}" if row["reached"] else "not reached"


def rivals(results: dict[str, Any]) -> str:
    w1, w2, w3 = results["w1"], results["w2"], results["w3"]
    one = [(r["library"], r["method"], _cell(r)) for r in w1["rows"]]
    names = [(r["library"], r["method"]) for r in w2[0]["rows"]]
    two = [(*name, *(_cell(part["rows"][k]) for part in w2)) for k, name in enumerate(names)]
    three = [(r["library"], r["method"], r["members"], _cell(r)) for r in w3["rows"]]
    targets = [f"{part['target']:.0e} rad" for part in w2]
    return (
        "## Other libraries at equal error\n\n"
        "Whole calls, as a user makes them, at the coarsest setting that meets the error; for "
        "retrax also the loop alone.\n\n"
        f"### One free body, T = {w1['end']:g}, to {w1['target']:.2e} rad\n\n"
        "Ratios to C at order 2, which needs 100,000 steps.\n\n"
        + table(["library", "method", "time, ratio to C"], one)
        + f"\n### One 3D pendulum, T = {w2[0]['end']:g}\n\nRatios to C at order 8 at the same "
        "error.\n\n"
        + table(["library", "method", *targets], two)
        + f"\n### {w3['members']:,} free bodies, T = {w3['steps'] * w3['h']:g}, to a median error "
        f"of {w3['target']:.1e} rad\n\nRatios to the C ensemble kernel (order 2), per body.\n\n"
        + table(["library", "method", "members", "time, ratio to C"], three)
    )


def fastest(curves: list[dict[str, Any]], target: float) -> list[tuple[str, ...]]:
    """For each library the method that reaches an error in the least time, and retrax's loops."""
    best: dict[str, tuple[float, str]] = {}
    for curve in curves:
        alone = curve["method"].endswith("loop alone")
        library = "retrax, loop alone" if alone else curve["library"]
        for point in curve["points"]:
            found = (point["seconds"], curve["method"].removesuffix(", loop alone"))
            if point["error"] <= target and found < best.get(library, (math.inf, "")):
                best[library] = found
    rows = sorted((seconds, library, method) for library, (seconds, method) in best.items())
    return [(library, f"`{method}`", f"{1e6 * seconds:.0f}") for seconds, library, method in rows]


def figure(curves: list[dict[str, Any]]) -> str:
    work_precision(curves, DOCS / FIGURE)
    tables = "\n".join(
        f"To {target:.0e} rad, on the grid of settings of the figure:\n\n"
        + table(["library", "method", "microseconds"], fastest(curves, target))
        for target in (1e-3, 1e-6, 1e-9, 1e-11)
    )
    return (
        "## Error against time\n\nThe 3D pendulum. Left: the compiled loops of retrax, C, and "
        "heyoka, whose calls cost little more than its loop. Right: whole calls, the fastest "
        f"methods of each library.\n\n![Error against processor time]({FIGURE})\n\n{tables}"
    )


def pendulums(results: dict[str, Any]) -> str:
    rows = [
        (r["library"], f"`{r['method']}`", f"{r['setting']:g}", f"{r['microseconds']:.0f}")
        for r in results["rows"]
    ]
    return (
        f"## {results['members']:,} pendulums\n\nTo T = {results['end']:g} with a median error of "
        f"{results['target']:.0e} rad: microseconds of processor time per pendulum.\n\n"
        + table(["library", "method", "steps or tolerance", "microseconds"], rows)
        + "\nheyoka steps eight pendulums abreast, retrax as many as a vector register holds.\n"
    )


def gpu(results: dict[str, Any]) -> str:
    card, cost, calls = results["card"], results["cost"], results["calls"]
    rows = [
        (
            r["name"], f"{r['members']:,}", f"{r['steps']:,}", f"{r['rate']:.2e}",
            f"{r['kernel_rate']:.2e}",
            "not measured" if r["disagreement"] is None else f"{r['disagreement']:.0e}",
        )
        for r in results["rows"]
    ]  # fmt: skip
    limit, first = card["fp64_rate"] / cost["flops"], results["rows"][0]
    return (
        f"## Ensembles on a GPU\n\nWhole calls of `rx.ensemble` on one {results['device']}, "
        "float64, from states on the card to a dataset on the host: body-steps, or element-steps, "
        "per second; those of the kernel alone; and the largest difference from the native back "
        "end after 100 steps.\n\n"
        + table(["ensemble", "members", "steps", "whole call", "kernel", "difference"], rows)
        + f"\nThe first call in a process takes {calls['first']:.1f} s beside the run, the second "
        f"{1e3 * calls['second']:.0f} ms. The card moves {card['bandwidth']:.2e} bytes/s and takes "
        f"{card['fp64_rate']:.2e} floating-point operations/s in fused multiply-adds, both "
        f"measured. A step of a pendulum by `LieVerlet` has {cost['flops']:.0f} of them at "
        f"{cost['newton']:.2f} Newton iterations, divisions counted as one: at most {limit:.2e} "
        f"body-steps/s, if all were fused and no division took longer; whole calls reach "
        f"{first['rate'] / limit:.0%} of that.\n"
    )


def rods(results: dict[str, Any]) -> str:
    both = ("retrax", "PyElastica")
    rows = [
        (f"{r['elements']:,}", *(f"{r[k]:.0f}" for k in both), f"{r[both[0]] / r[both[1]]:.2f}")
        for r in results["rows"]
    ]
    tip = [
        (
            r["elements"],
            *(f"{r['error'][k]:.1e}" for k in both),
            *(f"{1e3 * r['seconds'][k]:.1f}" for k in both),
            f"{r['same_error'] / r['seconds']['PyElastica']:.3f}" if r["same_error"] else "-",
        )
        for r in results["tip"]
    ]
    return (
        "## A free rod against PyElastica\n\n"
        "A straight rod that is thrown, `LieVerlet` against `PositionVerlet`; nanoseconds of all "
        "of `rx.simulate` per element and step.\n\n"
        + table(["elements", *both, "ratio"], rows)
        + "\nThe error of the tip in m after 0.2 s, against the same library with 640 elements "
        "since the two models of a rod differ, and the time in ms. The last column is the time of "
        "retrax at PyElastica's error, divided by PyElastica's; a line has none where retrax's "
        "errors do not enclose that of PyElastica.\n\n"
        + table(
            ["elements", "error, retrax", "PyElastica", "retrax, ms", "PyElastica", "equal error"],
            tip,
        )
    )


SECTIONS: dict[str, Callable[[Any], str]] = {
    "bench": bench,
    "startup": startup,
    "rivals": rivals,
    "rods": rods,
    "work_precision": figure,
    "pendulums": pendulums,
    "gpu": gpu,
}


def main() -> None:
    parts = [INTRODUCTION]
    for name, section in SECTIONS.items():
        path = RESULTS / f"{name}.json"
        if not path.exists():
            print(f"results/{path.name} is missing: its section is left out.")
            continue
        record = json.loads(path.read_text())
        parts.append(section(record["results"]) + "\n" + about(record))
    (DOCS / "benchmarks.md").write_text("\n".join(parts))
    print("written: docs/benchmarks.md")


if __name__ == "__main__":
    main()
