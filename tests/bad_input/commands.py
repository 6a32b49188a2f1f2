"""The command line and run files."""

import os
from typing import Any

from hypothesis import strategies as st
from typer.testing import CliRunner

import retrax as rx
from retrax.cli.main import app

from .entries import entry
from .files import folder, whole
from .runs import MAY_FAIL
from .values import JUNK

KIND = "run files and command line"


def _called(*words: str) -> str:
    """What the command prints; its refusal as the exception it stands for."""
    before = os.getcwd()
    os.chdir(folder())
    try:
        said = CliRunner().invoke(app, words)
    finally:
        os.chdir(before)
    if said.exception is not None and not isinstance(said.exception, SystemExit):
        raise said.exception
    if said.exit_code == 0:
        return said.output
    sentences = [line for line in said.stderr.strip().splitlines() if not line.startswith("Note")]
    if said.exit_code not in (1, 2) or len(sentences) != 1:
        raise RuntimeError(f"status {said.exit_code}: {said.stderr}")
    raise (rx.BadInput if said.exit_code == 2 else rx.StepFailed)(sentences[0])


WORDS = (
    "run", "report", "list", "init", "--h", "--steps", "--integrator", "--save-every", "-o",
    "--json", "heavy-top", "free-rigid-body", "lie-verlet", "rk4", "0.01", "5", "-3", "nan", "inf",
    "1e400", "0", "no/where/x.nc", ".", "whole.nc", "--help", "--unknown", "--backend", "xla", "",
    "case.toml", "two words", "\u2207", "--", "my.py:make",
)  # fmt: skip


def _command(words: Any) -> str:
    return _called(*words)


@st.composite
def _lines(draw: st.DrawFn) -> tuple[str, ...]:
    right = ["run", "free-rigid-body", "--h", "0.05", "--steps", "5", "--no-progress"]
    for _ in range(draw(st.integers(1, 3))):
        k, how = draw(st.integers(0, len(right) - 1)), draw(st.integers(0, 2))
        word = draw(st.sampled_from(WORDS) | st.text(max_size=6).filter(lambda s: "\0" not in s))
        right[k : k + (how != 0)] = [word] if how != 2 else []
        if not right:
            break
    safe = [w for w in right if w not in ("verify", "bench", "reproduce")]
    # A run of the usual length takes long, and its page too.
    return (*safe, "--steps", "5") if safe[:1] == ["run"] else tuple(safe) or ("run",)


@entry(
    "command line", _command, kind=KIND, refusals=MAY_FAIL, values={"words": _lines()}, weight=0.4
)
def _words():
    whole()
    return {"words": ("run", "free-rigid-body", "--steps", "5", "--no-progress")}


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, int | float):
        return repr(value)
    text = str(value).encode("unicode_escape").decode().replace("\\x", "\\u00").replace('"', "'")
    return f'"{text}"'


def _key(key: Any) -> str:
    return _value(str(key))


def _run_file(**given: Any) -> str:
    lines = [f"{_key(key)} = {_value(value)}" for key, value in given.items() if value is not None]
    (folder() / "case.toml").write_text("\n".join(lines), encoding="utf-8", errors="replace")
    return _called("run", "case.toml", "--no-progress")


ORDINARY = [v for v in JUNK if isinstance(v, str | int | float | list | dict | bool)]
FIELDS = st.sampled_from(ORDINARY) | st.text(max_size=6)
SYSTEM = {"name": "HeavyTop", "inertia": [1.2, 1.6, 0.8], "mass": 1.0, "arm": [0.0, 0.1, 0.6]}
STATE = {"g": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "velocity": [0.6, 0.2, 3.0]}


def _table(right: dict[str, Any]) -> st.SearchStrategy[Any]:
    one = st.tuples(st.sampled_from([*right, "unknown", "name"]), FIELDS)
    return FIELDS | one.map(lambda change: right | {change[0]: change[1]})


@entry(
    "run file", _run_file, kind=KIND, refusals=MAY_FAIL, pairs=False, weight=0.7,
    values={
        "system": _table(SYSTEM), "state": _table(STATE), "h": FIELDS,
        "steps": FIELDS.filter(lambda v: not (isinstance(v, int) and v > 1000)),
        "integrator": FIELDS | st.sampled_from(["rk4", "kahan", "rkmk-5"]),
        "save_every": FIELDS, "backend": FIELDS,
    },
)  # fmt: skip
def _file():
    return {
        "system": SYSTEM, "state": STATE, "integrator": "lie-verlet", "h": 0.01, "steps": 5,
        "save_every": 2, "backend": "native",
    }  # fmt: skip
