"""The results as a page: `results/*.json` to `docs/benchmarks.md` with its figure.

python -m benchmarks.report
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.figure import work_precision
from benchmarks.timing import RESULTS, spread

DOCS = Path(__file__).parent.parent / "docs"
FIGURE = "assets/work-precision.svg"
STARTUP = ("call_seconds", "compile_wall_seconds")

INTRODUCTION = """# Benchmarks

How fast retrax is against hand-written C and against other libraries, measured by the programs in
`benchmarks/` of the repository, whose README says how. Times are processor time; a ratio is the
median over pairs of runs, with the smallest and the largest in brackets. Below 1 means faster than
what it is compared with. This page is written by `python -m benchmarks.report`.
"""


def table(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    lines = [list(header), *(list(row) for row in rows)]
    text = ["| " + " | ".join(str(cell) for cell in line) + " |" for line in lines]
    return "\n".join([text[0], "|" + "---|" * len(lines[0]), *text[1:]]) + "\n"


def about(record: dict[str, Any]) -> str:
    """The machine, in one line under a section's title."""
    m = record["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in m["versions"].items())
    return (
        f"*{m['processor']}, {m['cores']} cores, load {m['load']} at the end; {m['compiler']}, "
        f"`{m['flags']}`; Python {m['python']}, {versions}; {record['date']}.*\n"
    )


def single(results: dict[str, Any]) -> str:
    rows = [
        (
            row["problem"], row["order"], f"{row['c_ns']:.0f}", f"{row['loop_ns']:.0f}",
            spread(row["loop"]), spread(row["call"]), f"{row['newton_per_substep']:.2f}",
        )
        for row in results["per_step"]
    ]  # fmt: skip
    error = [
        (
            row["problem"], f"{row['target']:.0e}", row["order"], row["steps"],
            spread(row["loop"]), spread(row["call"]),
        )
        for row in results["to_error"]
    ]  # fmt: skip
    return (
        "## One trajectory against C\n\n"
        f"`LieVerlet` (order 2) and its compositions, native, h = {results['h']}, every "
        f"{results['save_every']}th state saved. *Loop* is the compiled loop, *call* all of "
        "`rx.simulate`.\n\n"
        + table(
            ["problem", "order", "C, ns/step", "retrax, ns/step", "loop / C", "call / C", "Newton"],
            rows,
        )
        + "\nTo a given error at the end:\n\n"
        + table(["problem", "error", "order", "steps", "loop / C", "call / C"], error)
        + f"\nA call of `rx.simulate` costs {results['call_overhead_seconds'] * 1e3:.2f} ms "
        "before its first step.\n"
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


def ensemble(results: dict[str, Any]) -> str:
    rows = [
        (name, f"{r['c_ns']:.2f}", f"{r['ns']:.2f}", spread(r)) for name, r in results["c"].items()
    ]
    sizes = [(r["members"], f"{r['ns']:.2f}", f"{r['c_ns']:.2f}") for r in results["sizes"]]
    return (
        "## Ensembles on the processor\n\n"
        f"{results['members']} free bodies, {results['steps']} steps; nanoseconds per body, step "
        "and core. Newton's iteration in C runs twice, or until a block of bodies has converged, "
        "which is what retrax does.\n\n"
        + table(["Newton in C", "C", "retrax", "ratio"], rows)
        + f"\n`jax.vmap` of the same step in a `lax.scan` takes {results['vmap']['vmap_ns']:.0f} "
        f"ns per body and step, {spread(results['vmap'])} times as long as `rx.ensemble`.\n\n"
        + table(["members", "retrax, ns", "C, ns"], sizes)
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
        "Whole calls, as a user makes them, at the coarsest setting that meets the error.\n\n"
        f"### One free body, T = 1000, to {w1['target']:.2e} rad\n\n"
        "Ratios to C at order 2, which needs 100,000 steps.\n\n"
        + table(["library", "method", "time, ratio to C"], one)
        + "\n### One 3D pendulum, T = 30\n\nRatios to C at order 8 at the same error.\n\n"
        + table(["library", "method", *targets], two)
        + f"\n### {w3['members']} free bodies, T = {w3['steps'] * w3['h']:g}, to a median error "
        f"of {w3['target']:.1e} rad\n\nRatios to the C ensemble kernel, per body.\n\n"
        + table(["library", "method", "members", "time, ratio to C"], three)
    )


def figure(curves: list[dict[str, Any]]) -> str:
    (DOCS / FIGURE).parent.mkdir(exist_ok=True)
    work_precision(curves, DOCS / FIGURE)
    return (
        "## Error against time\n\nThe 3D pendulum. Left: C and the compiled loops of retrax. "
        f"Right: whole calls, of retrax at order 8.\n\n![Error against processor time]({FIGURE})\n"
    )


def gpu(results: dict[str, Any]) -> str:
    card = results["card"]
    rows = [
        (
            r["members"], r["steps"], f"{r['body_steps_per_second']:.2e}",
            f"{r['limit_by_arithmetic']:.2e}", f"{r['limit_by_memory']:.2e}", f"{r['share']:.0%}",
        )
        for r in results["rows"]
    ]  # fmt: skip
    return (
        f'## Ensembles on a GPU\n\n3D pendulums, `LieVerlet`, float64, `backend="pallas"`, on an '
        f"{results['device']}: {card['bandwidth']:.2e} bytes/s and {card['fp64_rate']:.2e} "
        f"operations/s measured on the card. A step has {results['cost']['flops']:.0f} floating-"
        f"point operations (Newton: {results['cost']['newton']:.2f}); a division counts as one.\n\n"
        + table(
            ["members", "steps", "body-steps/s", "limit by arithmetic", "by memory", "share"], rows
        )
    )


SECTIONS: dict[str, Callable[[Any], str]] = {
    "single": single,
    "startup": startup,
    "ensemble": ensemble,
    "rivals": rivals,
    "work_precision": figure,
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
