"""Kill a checkpointed run with `kill -9` again and again, and see that nothing is lost.

    python tests/faults/kills.py 100

A child process runs an asymmetric heavy top, commits as fast as the disk takes it, and is killed at
a random moment, while it makes the files too. After each kill what is committed must be there, no
less than before, and be the beginning of the run that nobody disturbed; then another child goes on.
When a run has been killed often enough it is taken to its end, and every bit of it compared.
"""

import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import retrax as rx
from retrax.store import checkpoint_write

STEPS, SAVE_EVERY, EVERY = 300_000, 20, 1_000
LIVES = 10  # kills of one run before it is taken to its end


def top():
    system = rx.systems.HeavyTop([1.0, 1.7, 2.3], 1.0, [0.4, -0.3, 1.1])
    return system, system.state(
        rx.SO3().exp(jnp.array([0.7, -0.4, 0.2])), velocity=[1.2, -0.5, 2.0]
    )


def run(path=None, progress=None):
    system, state = top()
    keep = {} if path is None else {"checkpoint": path, "every": EVERY}
    return rx.simulate(
        system,
        rx.LieVerlet(),
        state,
        h=0.01,
        steps=STEPS,
        save_every=SAVE_EVERY,
        backend="native",
        progress=progress,
        **keep,
    )


def live(path: Path) -> None:
    """The child: begin the run or go on with it, slowly, until killed."""
    checkpoint_write._PART = 1e9  # commits without a rest
    print("ready", flush=True)

    def slowly(done, total):
        time.sleep(0.003)

    if path.exists():
        rx.resume(path, progress=slowly)
    else:
        run(path, slowly)


def killed(path: Path, rng: random.Random) -> bool:
    """Start a child and kill it at a random moment; whether it was still running.

    Most are killed some time after their first commit, some in it, a few before it.
    """
    child = subprocess.Popen([sys.executable, __file__, "live", path], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    before = _commits(path)
    while rng.random() < 0.9999 and child.poll() is None and _commits(path) == before:
        time.sleep(0.001)
    time.sleep(rng.choice([0.0, 1.0]) * rng.uniform(0.0, 0.5))
    running = child.poll() is None
    child.kill()
    child.wait()
    child.stdout.close()
    return running


def _commits(path: Path) -> int:
    """When the commit record was last put in its place."""
    try:
        return (path / "zarr.json").stat().st_mtime_ns
    except OSError:
        return 0


def compare(found, wanted, rows: int) -> None:
    """The same bits: states, times, statistics."""
    for name in ("t", "g", "momentum"):
        assert np.array_equal(getattr(found, name), getattr(wanted, name)[:rows]), name
    for one, other in zip(found.info, wanted.info, strict=True):
        assert np.array_equal(one, other[:rows])


def survive(kills: int, folder: Path, seed: int = 0) -> dict[str, int]:
    """Kill so many times; what was seen."""
    rng, wanted = random.Random(seed), run()
    seen = {"kills": 0, "runs": 0, "kills before the first commit": 0}
    while seen["kills"] < kills:
        path, rows = folder / f"run{seen['runs']}.zarr", 0
        for _ in range(min(LIVES, kills - seen["kills"])):
            if not killed(path, rng):
                break
            seen["kills"] += 1
            if not path.exists():
                seen["kills before the first commit"] += 1
                continue
            found = rx.load(path)
            assert len(found) >= rows, "committed states are gone"
            rows = len(found)
            compare(found, wanted, rows)
        whole = rx.resume(path) if path.exists() else run(path)
        compare(whole, wanted, len(wanted))
        compare(rx.load(path), wanted, len(wanted))
        shutil.rmtree(path)
        assert not list(folder.glob("*.zarr")), "something was left over"
        seen["runs"] += 1
    return seen


if __name__ == "__main__":
    if sys.argv[1] == "live":
        live(Path(sys.argv[2]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            print(survive(int(sys.argv[1]), Path(temporary)))
