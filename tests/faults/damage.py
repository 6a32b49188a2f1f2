"""Damage the files of a checkpoint, one at a time, and see that it is noticed or does not matter.

    python tests/faults/damage.py 5000

A file is cut short, emptied, removed, lengthened, overwritten in places, or replaced by another
file of the same checkpoint. To load the checkpoint must then either fail with a sentence that names
a file, or give every bit of what was committed.
"""

import random
import sys
import tempfile
from pathlib import Path
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

import retrax as rx
from retrax.store import checkpoint_format


def checkpoint(path: Path) -> rx.Trajectory:
    """A checkpoint with several chunks to each array, the last ones not full."""
    system = rx.systems.HeavyTop([1.0, 1.7, 2.3], 1.0, [0.4, -0.3, 1.1])
    state = system.state(rx.SO3().exp(jnp.array([0.7, -0.4, 0.2])), velocity=[1.2, -0.5, 2.0])
    with mock.patch.object(checkpoint_format, "_CHUNK_BYTES", 2**13):
        return rx.simulate(system, rx.LieVerlet(), state, h=0.01, steps=150, checkpoint=path)


def harm(file: Path, others: list[Path], rng: random.Random) -> str:
    """Damage a file somehow; how."""
    data = bytearray(file.read_bytes())
    kind = rng.choice(["flip", "flip", "cut", "empty", "lengthen", "garbage", "other", "remove"])
    if kind == "flip":
        for _ in range(rng.choice([1, 1, 3])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del data[rng.randrange(len(data)) :]
    elif kind == "empty":
        data.clear()
    elif kind == "lengthen":
        data += rng.randbytes(rng.randint(1, 100))
    elif kind == "garbage":
        first = rng.randrange(len(data))
        data[first : first + 64] = rng.randbytes(len(data[first : first + 64]))
    elif kind == "other":
        data = bytearray(rng.choice(others).read_bytes())
    if kind == "remove":
        file.unlink()
    else:
        file.write_bytes(data)
    return kind


def same(one: rx.Trajectory, other: rx.Trajectory) -> bool:
    return all(
        np.array_equal(a, b)
        for a, b in zip(
            jax.tree.leaves((one.t, one.states, one.info)),
            jax.tree.leaves((other.t, other.states, other.info)),
            strict=True,
        )
    )


def _refused(path: Path) -> bool:
    try:
        rx.resume(path)
    except rx.BadInput:
        return True
    return False


def torment(rounds: int, folder: Path, seed: int = 0) -> dict[str, int]:
    """Damage one file after the other; how often it was named, and how often it did not matter."""
    rng, path = random.Random(seed), folder / "run.zarr"
    wanted = checkpoint(path)
    files = sorted(file for file in path.rglob("*") if file.is_file() and file.name != ".lock")
    seen = {"files": len(files), "named": 0, "harmless": 0}
    for count in range(rounds):
        file = files[count % len(files)]
        whole = file.read_bytes()
        kind = harm(file, files, rng)
        try:
            found = rx.load(path)
        except rx.BadInput as error:
            sentence = str(error)
            assert str(path) in sentence and sentence.count("\n") == 0, sentence
            assert _refused(path), "resume took what load refused"
            seen["named"] += 1
        else:
            assert same(found, wanted), (file, kind)
            seen["harmless"] += 1
        file.write_bytes(whole)
    assert same(rx.load(path), wanted)
    return seen


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        print(torment(int(sys.argv[1]), Path(temporary)))
