"""Runs that are taken up again from their checkpoint, and the functions that make their systems."""

import functools
import shutil
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import retrax as rx

from .entries import entry
from .files import PATHS, folder
from .runs import CALLED, MAY_FAIL, OTHERS, few, on_the_group, start, systems, top
from .values import wrong

KIND = "runs"
FRESH = "a checkpoint that nobody has resumed"


@functools.lru_cache
def stopped() -> Path:
    """A checkpoint of six steps, which nothing changes."""
    path = folder() / "stopped.zarr"
    rx.simulate(
        top(), rx.LieVerlet(), start(), h=0.01, steps=6, save_every=2, checkpoint=path,
        progress=False,
    )  # fmt: skip
    return path


def fresh() -> Path:
    path = folder() / "fresh.zarr"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(stopped(), path)
    return path


def _resumed(path: Any, **given: Any) -> rx.Trajectory:
    """Go on with a copy: a run that is resumed is longer afterwards."""
    return rx.resume(fresh() if path is FRESH else path, **given)


@entry(
    "resume", _resumed, kind=KIND, refusals=MAY_FAIL, sound=on_the_group, pairs=False, weight=0.3,
    values=few | {
        "path": PATHS | st.text(max_size=9),
        "integrator": wrong(None) | OTHERS,
        "system": wrong(None) | systems(),
        "progress": CALLED,
    },
)  # fmt: skip
def _resume():
    return {
        "path": FRESH, "steps": 9, "progress": False, "system": top(),
        "integrator": rx.LieVerlet(),
    }  # fmt: skip


def _checkpointed(**given: Any) -> rx.Trajectory:
    return rx.simulate(top(), rx.LieVerlet(), start(), h=0.01, steps=5, progress=False, **given)


@entry(
    "simulate (checkpoint)", _checkpointed, kind=KIND, refusals=(*MAY_FAIL, rx.CheckpointFailed),
    sound=on_the_group, pairs=False, weight=0.2, values={"checkpoint": PATHS},
)  # fmt: skip
def _checkpoint():
    path = folder() / "new.zarr"
    shutil.rmtree(path, ignore_errors=True)
    return {"checkpoint": path}


def make_top(mass: float) -> Any:
    return rx.systems.HeavyTop([1.2, 1.6, 0.8], mass, [0.0, 0.1, 0.6])


entry("factory", kind="helpers", weight=0.3)(lambda: {"function": make_top})
