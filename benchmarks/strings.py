"""W5: a rigid body on a string of 20 elements, against C and against other libraries.

    python -m benchmarks.strings [library ...]

The other libraries lump the masses of the string at its nodes, so only times per step are compared.
A library that is not installed is left out, with a sentence.
"""

import importlib
import sys
from typing import Any

from benchmarks.results import save
from retrax_papers.bench import kernels, strings
from retrax_papers.bench.timing import paired, spread

RIVALS = {"exudyn": "exudyn_string", "mujoco": "mujoco_string"}
STEPS, PAIRS = 2000, 3


def against_rivals(names: list[str]) -> list[dict[str, Any]]:
    """Microseconds per step, and the ratio to C in the same run."""
    system, state, h = strings.problem(20)

    def c():
        return kernels.string_pendulum(system, state, h, STEPS)

    rows = []
    for name in names:
        try:
            rival = importlib.import_module(f"benchmarks.rivals.{RIVALS[name]}")
        except ImportError as reason:
            print(f"{name} is left out: {reason}.")
            continue
        for label, call in rival.runs(system, h, STEPS).items():
            timing = paired(call, c, PAIRS)
            rows.append({"method": label, "us": timing["seconds"] / STEPS * 1e6, "call": timing})
            print(f"{label}: {rows[-1]['us']:.3g} us a step, {spread(timing)} times C", flush=True)
    return rows


def main() -> None:
    measured = strings.measure()
    for row in measured["rows"]:
        ratio = spread(row["loop"])
        print(f"{row['elements']} elements: {row['ns']:.0f} ns a step, {ratio} times C")
    print(f"exponent of the growth from 20 to 2000 elements: {measured['exponent']:.3f}")
    save("strings", {**measured, "rivals": against_rivals(sys.argv[1:] or list(RIVALS))})


if __name__ == "__main__":
    main()
