"""The report of the mutation tests: `results.json` to `docs/mutation.md`."""

from pathlib import Path

from bugs import BUGS
from checks import MODULES
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
sample is planted that a fixed seed chooses. `make test` plants the bugs listed at the end,
`make test-all` two mutants of each module that were killed before.

```
python tests/mutation/run.py --workers 2 --sample 12    # goes on where it stopped
python tests/mutation/run.py --sample 0 retrax.groups.so3   # all mutants of a module
python tests/mutation/run.py --survivors                # plants the survivors again
python tests/mutation/run.py --page                     # writes this page
```

This page is written by the last command; do not edit it.

"""


def write_page(results: dict[Mutant, str | None]) -> None:
    lines = ["| module | mutants | planted | killed | the same program | survived |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    survivors, same, total, killed = [], [], 0, 0
    for module in MODULES:
        text, found = source(module).splitlines(), mutants(module)
        planted = [m for m in found if m.changes_something and m in results]
        alive = [m for m in planted if results[m] is None]
        told = [(m, explanation(m, text[found[m].line - 1])) for m in alive]
        explained = [(m, why) for m, why in told if why]
        same += [f"- {_named(m)}: {why}." for m, why in explained]
        survivors += [f"- {_named(m)}" for m, why in told if not why]
        counts = (len(found), len(planted), len(planted) - len(alive), len(explained))
        total, killed = total + len(planted), killed + counts[2]
        cells = [f"`{module}`", *map(str, counts), str(len(alive) - len(explained))]
        lines.append("| " + " | ".join(cells) + " |")
    summary = (
        f"{total} mutants planted, {killed} killed, {len(same)} the same program, "
        f"{len(survivors)} survived.\n"
    )
    parts = [
        INTRODUCTION + summary, "\n".join(lines),
        "\n## The same program\n\nNo test can notice these: they compute the same numbers, or "
        "start and weigh an iteration otherwise that goes to round-off either way.\n",
        "\n".join(same) or "- none.",
        "\n## Survivors\n", "\n".join(survivors) or "- none.",
        "\n## Bugs that somebody thought of\n\nEvery run of the tests plants these the same way, "
        "and a check of `retrax.testing` or a closed form notices each.\n",
        "\n".join(f"- `{bug.module}`: {bug.name}" for bug in BUGS),
        "\n" + coverage(),
    ]  # fmt: skip
    (ROOT / "docs" / "mutation.md").write_text("\n".join(parts) + "\n")
    print("written: docs/mutation.md")


def _named(mutant: Mutant) -> str:
    where = f", `{mutant.place}`" if mutant.place else ""
    return f"`{mutant.module}`{where}: `{mutant.change}`"


def coverage() -> str:
    file = Path(__file__).parent / "coverage.md"
    return file.read_text().rstrip() if file.exists() else ""
