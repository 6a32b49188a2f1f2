"""Files: runs that are cut, changed, foreign or hostile. Reading one runs nothing."""

import functools
import tempfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from hypothesis import strategies as st

import retrax as rx

from .entries import entry
from .runs import start, top
from .values import JUNK

KIND = "files"


@functools.lru_cache
def folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="retrax-bad-input-"))


@functools.lru_cache
def whole() -> bytes:
    """The bytes of a good file."""
    run = rx.simulate(top(), rx.LieVerlet(), start(), h=0.01, steps=6, progress=False)
    return run.save(folder() / "whole.nc").read_bytes()


def _load(content: Any) -> Any:
    path = folder() / "changed.nc"
    if callable(content):
        path.write_bytes(whole())
        content(path)
    else:
        path.write_bytes(content)
    return rx.load(path)


VARIABLES = ("g", "momentum", "velocity", "time", "energy", "iterations", "residual")
ATTRIBUTES = ("format", "format_version", "configuration", "h", "steps", "completed", "save_every")
# What an attribute may hold instead; the last ones would do harm if anything were executed.
HARM = "__import__('os').system('touch " + "/tmp/retrax-was-here')"
CONTENTS: list[Any] = [
    "", "text", "[0]", "[[0, [1]]]", "[" * 3000, "{}", "null", "-1", 99, 10**9, -1, 0.5, np.nan,
    np.inf, b"bytes", np.zeros(3), np.zeros((2, 2)), HARM, "cos\nsystem\n(S'true'\ntR.",
    b"\x80\x04\x95\x1f\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.",
]  # fmt: skip


def _attribute(name: str, value: Any, path: Path) -> None:
    with h5py.File(path, "r+") as file:
        if name in file.attrs:
            del file.attrs[name]
        if value is not None:
            file.attrs[name] = value


def _variable(name: str, change: str, path: Path) -> None:
    with h5py.File(path, "r+") as file:
        values = file[name][...]
        if change == "not finite":
            file[name][...] = np.full(values.shape, np.nan)
            return
        del file[name]
        made = {
            "missing": None, "shorter": values[:-1], "text": np.array(b"text"), "scalar": 1.0,
            "complex": values.astype(complex), "whole": values.astype(int),
            "more axes": values[None], "empty": np.zeros((0, 3)),
        }[change]  # fmt: skip
        if made is not None:
            file[name] = made


CHANGES = (
    "missing", "shorter", "text", "scalar", "complex", "whole", "more axes", "empty", "not finite",
)  # fmt: skip


@st.composite
def _contents(draw: st.DrawFn) -> Any:
    how = draw(st.integers(0, 6))
    data = whole()
    if how == 0:
        return draw(st.binary(max_size=200))
    if how == 1:
        return data[: draw(st.integers(0, len(data)))]
    if how == 2:
        changed = bytearray(data)
        for _ in range(draw(st.integers(1, 4))):
            changed[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
        return bytes(changed)
    if how == 3:
        return draw(st.binary(max_size=100)) + data
    if how < 6:
        name = draw(st.sampled_from(ATTRIBUTES))
        value = draw(st.sampled_from([None, *CONTENTS]))
        return functools.partial(_attribute, name, value)
    name, change = draw(st.sampled_from(VARIABLES)), draw(st.sampled_from(CHANGES))
    return functools.partial(_variable, name, change)


def _same(run: rx.Trajectory) -> bool:
    """A file that was read is one: as many states as times, all numbers finite."""
    return len(run.t) == len(run.momentum) and isinstance(run.summary(), str)


@entry("load (content)", _load, kind=KIND, values={"content": _contents()}, sound=_same, weight=0.7)
def _content():
    return {"content": whole()}


PATHS = st.sampled_from([v for v in JUNK if not isinstance(v, Path)])


@entry("load", kind=KIND, values={"path": PATHS | st.text(max_size=20)}, sound=_same)
def _path():
    whole()
    return {"path": str(folder() / "whole.nc")}


def _save(path: Any) -> Any:
    whole()
    return rx.load(folder() / "whole.nc").save(path)


@entry("Trajectory.save", _save, kind=KIND, values={"path": PATHS}, weight=0.2)
def _saved():
    return {"path": folder() / "again.nc"}
