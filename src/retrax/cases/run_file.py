"""Run files: a system, its start and how to run it, in TOML. A run file is data, never code.

The one exception is the key `file`, which names a function in the user's own Python file; that
file is run. Every path in a run file starts from the folder of the run file, and what it asks to
have written stays in that folder.
"""

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from retrax.cases.makers import choose, did_you_mean, locate_errors, require_type
from retrax.cases.names import default_integrator, make_integrator, make_system
from retrax.cases.python_file import load_setting
from retrax.cases.starts import make_state
from retrax.errors import BadInput
from retrax.files import as_path
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.actuated import Actuated
from retrax.mechanics.controls import AbstractControl
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import within
from retrax.systems.catalogue import CASES

# The keys that hold one value, and of what kind; the others are tables or names.
_PLAIN: dict[str, type] = {
    "case": str,
    "file": str,
    "h": float,
    "steps": int,
    "save_every": int,
    "backend": str,
    "output": str,
    "report": str,
    "checkpoint": str,
    "every": int,
}
# What is written, and where.
_WRITTEN = ("output", "report", "checkpoint")
_SOURCES = ("case", "file", "system")
KEYS = (*_PLAIN, "system", "state", "integrator")


@dataclasses.dataclass(frozen=True)
class RunFile:
    """What a run file asks for, as objects.

    **Attributes:**

    - `name`: what the run is called: the case, or the name of the file.
    - `system`, `state`: what moves and where it starts.
    - `integrator`: how a step is taken; `method`: what it is called in tables.
    - `h`, `steps`, `save_every`, `backend`: as `simulate` takes them; `save_every` may be `None`.
    - `output`, `report`: where the run and its page are to go, or `None`.
    - `checkpoint`, `every`: where the run is kept as it goes on, and the steps between commits.
    - `plant`, `control`: for a case with inputs, the system with them and what drives it.
    """

    name: str
    system: AbstractGroupSystem
    state: State
    integrator: AbstractIntegrator
    method: str
    h: Any
    steps: Any
    save_every: int | None = None
    backend: str = "auto"
    output: Path | None = None
    report: Path | None = None
    checkpoint: Path | None = None
    every: int | None = None
    plant: Actuated | None = None
    control: AbstractControl | None = None


def read(path: str | Path) -> RunFile:
    """Read a run file and make what it names.

    **Raises:** `BadInput`, one sentence with the file, the key, what is wrong with it and the
    closest key or name that is known.
    """
    path = as_path(path, "a run file")
    with locate_errors(str(path)):
        return _make(_tables(path), path)


def _tables(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file, with no key that a run file does not have."""
    if not path.is_file():
        raise BadInput("there is no such file.")
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except RecursionError as cause:
        raise BadInput("its brackets are nested too deeply: a run file has two levels.") from cause
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as cause:
        raise BadInput(f"this is not TOML: {cause}.") from cause
    for key in given:
        if key not in KEYS:
            raise BadInput(
                f"the key {key!r} is not known: the keys are {', '.join(KEYS)}."
                f"{did_you_mean(key, KEYS)}"
            )
    plain = {key: require_type(key, x, _PLAIN[key]) for key, x in given.items() if key in _PLAIN}
    for key in ("system", "state"):
        if key in given and not isinstance(given[key], Mapping):
            raise BadInput(f"{key} = {given[key]!r} must be a table: [{key}] and its keys below.")
    return given | plain


def _make(given: dict[str, Any], path: Path) -> RunFile:
    sources = [key for key in _SOURCES if key in given]
    if len(sources) != 1:
        found = f"{' and '.join(sources)} are given" if sources else "the run file has none of them"
        raise BadInput(f"exactly one of case, file and [system] says what moves, but {found}.")
    name, system, state, h, steps, method = _source(sources[0], given, path)
    driven = CASES[name].driven if sources[0] == "case" else None
    plant, control = (None, None) if driven is None else driven()[:2]
    if "state" in given:
        with locate_errors("[state]"):
            state = make_state(system, given["state"])
    if "integrator" in given:
        with locate_errors("integrator"):
            integrator = make_integrator(given["integrator"])
        named = isinstance(given["integrator"], str)
        method = given["integrator"] if named else repr(integrator)
    else:
        method = default_integrator(system) if method is None else method
        integrator = make_integrator(method)
    h, steps = given.get("h", h), given.get("steps", steps)
    for key, value in (("[state]", state), ("h", h), ("steps", steps)):
        if value is None:
            raise BadInput(f"{key} is missing, and a [system] does not bring one with it.")
    return RunFile(
        name=name,
        system=system,
        state=state,
        integrator=integrator,
        method=method,
        h=h,
        steps=steps,
        save_every=given.get("save_every"),
        backend=given.get("backend", "auto"),
        **{key: _output_path(key, given[key], path.parent) for key in _WRITTEN if key in given},
        every=given.get("every"),
        plant=plant,
        control=control,
    )


def _output_path(key: str, name: str, folder: Path) -> Path:
    """Return the path at which a run file asks to write: inside its folder."""
    asked = within(folder, name)
    if asked is None:
        raise BadInput(
            f"{key} = {name!r} leads out of the folder of the run file, and a file does not decide "
            f"what is written elsewhere: give --{key} on the command line."
        )
    return asked


def _source(source: str, given: dict[str, Any], path: Path) -> tuple[Any, ...]:
    """Return name and system, and what the source says of state, h, steps and integrator."""
    if source == "case":
        case = choose("case", given["case"], CASES)
        return case.name, *case.make(), case.integrator
    if source == "file":
        with locate_errors("file"):
            return path.stem, *load_setting(given["file"], path.parent), None
    with locate_errors("[system]"):
        return path.stem, make_system(given["system"]), None, None, None, None
