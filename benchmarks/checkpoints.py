"""What a checkpoint costs: a heavy top, native, with a commit asked for every 1e5 steps.

    python benchmarks/checkpoints.py 20000000 5

Runs with and without a checkpoint take turns. The processor time of the whole process is compared,
that of the writing thread included, because on a busy machine it says more than the clock.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import retrax as rx
from retrax.store.checkpoint_read import read_record
from retrax.systems.catalogue import CASES


def measured(steps: int, save_every: int, path: Path | None) -> tuple[float, float]:
    """Seconds of the processor and of the clock."""
    system, state, h, _ = CASES["heavy-top"].make()
    keep = {} if path is None else {"checkpoint": path, "every": 100_000}
    processor, clock = time.process_time(), time.perf_counter()
    rx.simulate(system, rx.LieVerlet(), state, h=h, steps=steps, save_every=save_every, **keep)
    return time.process_time() - processor, time.perf_counter() - clock


def main(steps: int, turns: int, save_every: int = 1000) -> None:
    measured(1000, save_every, None)
    ratios, commits = [], []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(turns):
            path = Path(folder) / f"{turn}.zarr"
            plain = measured(steps, save_every, None)
            kept = measured(steps, save_every, path)
            ratios.append([a / b for a, b in zip(kept, plain, strict=True)])
            commits.append(read_record(path)[0]["commit"])
            print(
                f"plain {plain[0]:.3f} s, kept {kept[0]:.3f} s, {commits[-1]} commits", flush=True
            )
    processor, clock = (statistics.median(r) for r in zip(*ratios, strict=True))
    print(f"with a checkpoint / without: processor {processor:.3f}, clock {clock:.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *map(int, sys.argv[3:]))
