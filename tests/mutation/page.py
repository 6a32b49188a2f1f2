"""The report of the mutation tests: `results.jsonl` to `docs/mutation.md`."""

from collections import defaultdict
from pathlib import Path

from checks import WATCHED
from explained import explanation
from mutants import Mutant, mutants, source

ROOT = Path(__file__).parents[2]

INTRODUCTION = """# Mutation testing

Do the tests notice when the numerical core computes something else? `tests/mutation/run.py` makes
one small change after another in the running program (a *mutant*), runs the checks that look at
that module, and writes down whether one of them fails (the mutant is *killed*). Changes: `+` and
`-` exchanged, `*` and `/`, a term dropped, a sign dropped, a comparison turned round, a number one
larger or a tenth larger, a transpose dropped, the factors of a product of matrices exchanged, the
arguments of a cross product exchanged, `&` and `|`. Messages, annotations, default values and
`check` methods, which compute nothing, are left alone.

The checks are those of `retrax.testing` (the laws of groups and retractions; order, symplectic
form, momentum, symmetry and energy of integrators) and, for what these pass, the test files of the
module. `tests/mutation/checks.py` says which. Of a module with more mutants than the sample, a
sample is planted that a fixed seed chooses.

```
python tests/mutation/run.py --workers 2 --sample 12    # goes on where it stopped
python tests/mutation/run.py --sample 0 retrax.groups.so3   # all mutants of a module
python tests/mutation/run.py --survivors                # plants the survivors again
python tests/mutation/run.py --page                     # writes this page
```

This page is written by the last command; do not edit it.

"""


def write_page(rows: list[dict]) -> None:
    by_module = defaultdict(list)
    now = {mutant for module in WATCHED for mutant in mutants(module) if mutant.changes_something}
    for row in rows:
        if Mutant(*(row[field] for field in Mutant._fields)) in now:
            by_module[row["module"]].append(row)
    lines = ["| module | mutants | planted | killed | the same program | survived |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    survivors, same = [], []
    for module in [m for m in WATCHED if m in by_module]:
        text = source(module).splitlines()
        planted = sorted(by_module[module], key=lambda row: row["number"])
        alive = [row for row in planted if row["noticed"] is None]
        told = [(row, explanation(row, text[row["line"] - 1])) for row in alive]
        explained = [(row, why) for row, why in told if why]
        same += [f"- {_named(row)}: {why}." for row, why in explained]
        survivors += [f"- {_named(row)}" for row, why in told if not why]
        counts = (len(mutants(module)), len(planted), len(planted) - len(alive), len(explained))
        cells = [f"`{module}`", *map(str, counts), str(len(alive) - len(explained))]
        lines.append("| " + " | ".join(cells) + " |")
    total = [row for rows in by_module.values() for row in rows]
    killed = sum(row["noticed"] is not None for row in total)
    summary = (
        f"{len(total)} mutants planted, {killed} killed, {len(same)} the same program, "
        f"{len(survivors)} survived.\n"
    )
    parts = [
        INTRODUCTION + summary, "\n".join(lines),
        "\n## The same program\n\nNo test can notice these: they compute the same numbers, or "
        "start and weigh an iteration otherwise that goes to round-off either way.\n",
        "\n".join(same) or "- none.",
        "\n## Survivors\n", "\n".join(survivors) or "- none.",
        "\n" + coverage(),
    ]  # fmt: skip
    (ROOT / "docs" / "mutation.md").write_text("\n".join(parts) + "\n")
    print("written: docs/mutation.md")


def _named(row: dict) -> str:
    return f"`{row['module']}`, line {row['line']}: `{row['change']}`"


def coverage() -> str:
    file = Path(__file__).parent / "coverage.md"
    return file.read_text().rstrip() if file.exists() else ""
