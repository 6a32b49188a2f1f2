"""Error against processor time on the 3D pendulum (W2), for the figure of the report.

    python -m benchmarks.work_precision [library ...]

Without the `bench` extra it measures retrax and C only.
"""

import math
import statistics
import sys
from typing import Any

from benchmarks.methods import Method, walk
from benchmarks.ours import c_methods, loop_methods, retrax_methods
from benchmarks.results import save
from benchmarks.rivals.__main__ import RIVALS, modules
from retrax_papers.bench.problems import W2, reference
from retrax_papers.bench.timing import cpu_seconds, repetitions

# Nothing is gained below this error: round-off.
FLOOR = 1e-13
STRIDE, RUNS = 3, 3
# The longest run that is still timed, in seconds.
LONGEST = 0.5


def curve(method: Method) -> dict[str, Any]:
    """Settings, errors and seconds of a method, coarse to fine."""
    points = []
    for match in walk(method, reference(W2), STRIDE):
        if not math.isfinite(match.error):
            continue
        repeats = repetitions(match.call)
        seconds = statistics.median(cpu_seconds(match.call, repeats) for _ in range(RUNS))
        points.append({"setting": match.setting, "error": match.error, "seconds": seconds})
        if match.error < FLOOR or seconds > LONGEST:
            break
    print(f"{method.library} {method.name}: {len(points)} points", flush=True)
    return {"library": method.library, "method": method.name, "points": points}


def main() -> None:
    rivals = modules(sys.argv[1:] or list(RIVALS))
    theirs = [method for rival in rivals for method in rival.methods(W2)]
    methods = c_methods(W2) + loop_methods(W2) + retrax_methods(W2) + theirs
    save("work_precision", [curve(method) for method in methods])


if __name__ == "__main__":
    main()
