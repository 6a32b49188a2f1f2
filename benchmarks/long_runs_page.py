"""The page of the very long runs: `results/long_runs.json` to `docs/long-runs.md`."""

import json
from typing import Any

from benchmarks.report import DOCS, about, table
from benchmarks.results import RESULTS

INTRODUCTION = """# Very long runs

What rounding does to a run of $10^8$ steps. A structure-preserving method has no drift of its own;
what is left is one rounding error a step. If these errors are independent they add up like a random
walk: after $n$ steps $\\varepsilon\\sqrt n$, about $10^{-12}$ at the end, and as often up as down.
A bias, however small, would add up to $\\varepsilon n$ instead.

This page is written by `python -m benchmarks.long_runs --page` from `results/long_runs.json`, and
that by `python -m benchmarks.long_runs`; do not edit it. `tests/run/test_long_runs.py` makes
the same measurements over 200,000 steps.

Every run is one trajectory on the native back end; a thousand states are saved. *Error* is the
largest difference from the start. *Exponent* is the power of time with which differences between
two moments grow with the time between them: 1/2 for a random walk, 1 for a drift, 0 for an error
that stays bounded ([`growth_exponent`](api/analysis.md)). *Bias* is the slope of the errors in
standard errors, from straight lines through 16 parts of the run ([`bias`](api/analysis.md)): a
number of size one is chance. Of several momenta the one with the largest error is shown.
"""

READING = """
- **Momentum.** Below $10^{-11}$ after $10^8$ steps of the heavy top with every method, and a random
  walk.
- **Group.** Rotations stay within a few units in the last place however long the run: every step
  subtracts the defect that it finds
  ([decision 3](decisions/0003-group-membership-without-drift.md)). The row *R not corrected* is the
  same step without it. This one-step projection is part of `SO2`, `SO3`, `SE2`, `SE3`, of rotations
  in $n$ dimensions, and of their products and powers. A `MatrixGroup`, of which only a basis is
  known, has none, and its defect grows like that of the uncorrected row.
- **Energy.** The error of a symplectic method of low order is truncation, which stays bounded:
  exponent 0, no bias. With order 8 at this step nothing is left but rounding, which walks.
- **Clock.** Times are $t_0 + kh$, each computed by itself; every saved time of every run equals it.
- The angular momentum of the rod is taken about the origin, from which the rod has flown away by
  kilometres: its rounding errors have the size of the lever.
"""

COMPENSATED = """
## Does compensated summation pay?

A step adds small changes to $R$ and $\\mu$, and rounds each sum once. Compensated summation keeps
what rounding takes away and adds it to the next change. `python -m benchmarks.compensated` runs
four variants of one step of Störmer-Verlet, {steps:,} steps of h = {h} from {starts} starts,
through XLA; the momentum error is the root of the mean square over the starts, computed from the
states in extended precision.

{table}
It makes the error of the momentum about {gain:.0f} times smaller if $R$ and $\\mu$ are both
compensated, {part:.1f} times if $\\mu$ alone is. It is **not** adopted. What was taken away has to
be kept, so the state would be twice as large in every file, checkpoint, ensemble and derivative,
while after $10^8$ steps the momentum is right to $10^{{-12}}$ without it. And the correction of
$R$, which keeps the defect at one rounding error, excludes the compensation of $R$, with which the
defect walks. Adding up the small changes of a step before they are added to the state costs
nothing and is done everywhere.
"""

HEADER = ["method", "steps", "group defect", "momentum error", "exponent", "bias",
          "energy error", "exponent", "bias"]  # fmt: skip


def write_page() -> None:
    record = json.loads((RESULTS / "long_runs.json").read_text())
    rows = record["results"]
    on_top = {name: row for name, row in rows.items() if row["problem"].startswith("heavy top")}
    others = {name: row for name, row in rows.items() if name not in on_top}
    h = next(iter(on_top.values()))["h"]
    parts = [
        INTRODUCTION,
        f"## The asymmetric heavy top, h = {h}\n",
        table(HEADER, [cells(row, row["problem"] != "heavy top") for row in on_top.values()]),
        "## Other systems\n",
        table(HEADER, [cells(row, True) for row in others.values()]),
        findings(rows),
        READING,
        compensated(),
        about(record),
    ]
    (DOCS / "long-runs.md").write_text("\n".join(parts))
    print("written: docs/long-runs.md")


def cells(row: dict[str, Any], with_problem: bool) -> list[str]:
    kept = {k: v for k, v in row["invariants"].items() if is_kept(k, row)}
    worst = max(kept.values(), key=lambda law: law["largest"], default=None)
    method = f"`{row['integrator']}`" + (f", {row['problem']}" if with_problem else "")
    count = f"{row['steps']:.0e}".replace("e+0", "e")
    return [method, count, f"{row['defect']:.1e}", *law(worst), *law(row["invariants"]["energy"])]


def is_kept(name: str, row: dict[str, Any]) -> bool:
    """Whether a method keeps an invariant to round-off; Kahan's keeps quotients, not Casimirs."""
    if name == "energy":
        return False
    return "Euler" not in row["problem"] or "/" in name


def law(measured: dict[str, float] | None) -> list[str]:
    if measured is None:
        return ["", "", ""]
    return [f"{measured['largest']:.1e}", f"{measured['exponent']:.2f}", f"{ratio(measured):+.1f}"]


def ratio(measured: dict[str, float]) -> float:
    error = measured["standard_error"]
    return measured["slope"] / error if error > 0 else 0.0


def findings(rows: dict[str, Any]) -> str:
    """Every law that a bias of more than three standard errors breaks, in words."""
    lines = [
        f"- `{row['integrator']}` on the {row['problem']}: {name} has a bias of {ratio(law):+.1f} "
        f"standard errors, {law['slope'] * row['h']:+.0e} a step."
        for row in rows.values()
        for name, law in row["invariants"].items()
        if abs(ratio(law)) > 3
    ]
    clock = max(row["clock"] for row in rows.values())
    return (
        f"The largest difference of a saved time from $t_0 + kh$ in all runs: {clock:.0e} s.\n\n"
        "Biases of more than three standard errors, which among so many numbers chance would "
        "rarely give:\n\n" + ("\n".join(lines) if lines else "- none.") + "\n"
    )


def compensated() -> str:
    results = json.loads((RESULTS / "compensated.json").read_text())["results"]
    rows = results["rows"]
    body = [(k, f"{v['momentum']:.1e}", f"{v['defect']:.1e}") for k, v in rows.items()]
    plain = rows["as it is"]["momentum"]
    return COMPENSATED.format(
        **{key: results[key] for key in ("steps", "starts", "h")},
        table=table(["sums", "momentum error", "group defect"], body),
        gain=plain / rows["compensated"]["momentum"],
        part=plain / rows["momentum compensated"]["momentum"],
    )
