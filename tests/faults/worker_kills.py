"""Kill Dask workers at random moments of one sweep, and compare it with the serial run.

    python tests/faults/worker_kills.py --kills 20

The kills fall at random between the blocks of the sweep and within them: while members run, while
results are written, while a worker that has been killed comes back. The sweep must end, and its
store must hold what the serial run holds, bit for bit.
"""

import argparse
import contextlib
import os
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import psutil
import xarray as xr

import retrax as rx

BLOCKS_PER_KILL, MEMBERS_PER_BLOCK = 16, 8
LONGEST = 900.0  # seconds; a sweep that takes longer hangs


def top(mass, spin):
    body = rx.MechanicalSystem(
        rx.SO3(),
        inertia=jnp.array([1.0, 1.7, 2.3]),
        potential=lambda R: mass * (0.4 * R[2, 0] - 0.3 * R[2, 1] + 1.1 * R[2, 2]),
    )
    tilt = rx.SO3().exp(jnp.array([0.7, -0.4, 0.2]))
    return body, body.state(tilt, velocity=spin * jnp.array([1.2, -0.5, 1.0]))


class Report(NamedTuple):
    kills: int
    blocks: int
    seconds: float
    equal: bool


def survive(kills: int, folder: Path, client=None, seed: int = 1) -> Report:
    """A serial sweep, and the same on workers of which `kills` are killed."""
    blocks = BLOCKS_PER_KILL * kills
    arguments = {
        "grid": {
            "mass": np.linspace(0.5, 1.5, blocks),
            "spin": np.linspace(1.0, 2.0, MEMBERS_PER_BLOCK),
        },
        **{"h": 0.02, "steps": 20_000, "save_every": 100, "chunk": MEMBERS_PER_BLOCK},
    }
    serial = rx.sweep(top, rx.LieVerlet(), store=folder / "a.zarr", client="serial", **arguments)
    killer = Killer(kills, blocks * MEMBERS_PER_BLOCK, seed)
    clock = time.monotonic()
    with killer:
        arguments |= {"client": client, "progress": killer}
        killed = rx.sweep(top, rx.LieVerlet(), store=folder / "b.zarr", **arguments)
    seconds = time.monotonic() - clock
    return Report(killer.done, blocks, seconds, xr.Dataset.equals(serial.load(), killed.load()))


class Killer:
    """A thread that kills a worker a moment after the progress of a sweep passes random marks."""

    def __init__(self, kills: int, total: int, seed: int):
        random = np.random.default_rng(seed)
        self._marks = sorted(random.uniform(0.0, 0.7 * total, kills))
        self._delays = random.uniform(0.0, 0.3, kills)
        self._progress, self._over = 0, threading.Event()
        self._thread = threading.Thread(target=self._kill_all)
        self.done = 0

    def __call__(self, done: int, total: int) -> None:
        self._progress = done

    def __enter__(self):
        self._deadline = threading.Timer(LONGEST, os._exit, [3])
        self._deadline.daemon = True
        self._deadline.start()
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._deadline.cancel()
        self._over.set()
        self._thread.join()

    def _kill_all(self) -> None:
        random = np.random.default_rng(0)
        for mark, delay in zip(self._marks, self._delays, strict=True):
            while self._progress < mark and not self._over.is_set():
                time.sleep(0.01)
            time.sleep(delay)
            while not self._over.is_set():
                workers = worker_processes()
                if workers:
                    with contextlib.suppress(ProcessLookupError):  # it is gone already
                        os.kill(int(random.choice(workers)), signal.SIGKILL)
                        self.done += 1
                        break
                time.sleep(0.05)


def worker_processes() -> list[int]:
    """The processes that Dask's nannies below this one have started to do the work."""
    found = []
    for child in psutil.Process().children(recursive=True):
        try:
            if "spawn_main" in " ".join(child.cmdline()):
                found.append(child.pid)
        except psutil.Error:
            continue
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = survive(chosen.kills, Path(folder), seed=chosen.seed)
    print(
        f"{report.kills} workers killed during {report.blocks} blocks in {report.seconds:.0f} s: "
        f"{'equal to the serial run bit for bit' if report.equal else 'NOT equal'}"
    )
    raise SystemExit(not report.equal or report.kills < chosen.kills)


if __name__ == "__main__":
    main()
