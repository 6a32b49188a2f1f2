"""`rx.export`: a step as C, as an object, as WebAssembly or as an FMU."""

import os
from pathlib import Path

from retrax.cases.makers import choose
from retrax.errors import BadInput
from retrax.exporting.c_sources import MARK, header, sources
from retrax.exporting.fmu import VERSIONS, write_fmu
from retrax.exporting.model import StepModel
from retrax.exporting.names import identifier
from retrax.exporting.objects import machine_code
from retrax.exporting.wasm import script, wasm
from retrax.files import as_path, require_place, write_whole
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.actuated import Actuated
from retrax.mechanics.controls import AbstractControl
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import require_choice
from retrax.numerics.looks import looking
from retrax.numerics.meant import explain_keywords


@explain_keywords
@looking()
def export(
    system: AbstractGroupSystem | Actuated,
    integrator: AbstractIntegrator,
    path: str | os.PathLike[str],
    target: str | None = None,
    *,
    state: State | None = None,
    h: float | None = None,
    precision: str = "double",
    control: AbstractControl | None = None,
) -> Path:
    """Write one step of `integrator` on `system` for use outside of Python.

    What is written depends on how `path` ends. `top.c` is readable C99, with `top.h`,
    `top_main.c` and `CMakeLists.txt` beside it.

    **Arguments:**

    - `system`: the system; of an `Actuated` plant the inputs are part of the state.
    - `path`: the file; its name is that of structs and functions.
    - `target`: what to compile or to pack for, where there is a choice.
    - `state`: where the example and the defaults start; by default the identity, at rest.
    - `h`: the step that the example takes, by default 0.01; `top_step` takes any.
    - `precision`: `"double"` or `"float"`.
    - `control`: what drives a plant within the step: `Sampled`, `Feedback` or `Signal`. What it
        keeps is part of the state. Without it inputs are written from outside.

    **Returns:** the path.

    **Raises:** `BadInput` for a step that has no scalar program; the sentence says why.
    """
    place = as_path(path)
    require_place(place)
    require_choice("precision", precision, ("double", "float"))
    model = StepModel(system, integrator, state, h, identifier(place.stem), control)
    if place.suffix == ".c":
        _refuse_target(target, "C is for every machine")
        _write_sources(model, place, precision)
        return place
    if place.suffix == ".wasm":
        _refuse_target(target, "WebAssembly is for every machine")
        _write_wasm(model, place, precision)
        return place
    if place.suffix == ".o":
        _write_object(model, place, target, precision)
        return place
    if place.suffix == ".fmu":
        _write_fmu(model, place, "3" if target is None else target, precision)
        return place
    raise BadInput(
        f"path = {str(path)!r} ends in {place.suffix!r}, but a step is written to .c, .o, .wasm or "
        ".fmu."
    )


def _refuse_target(target: str | None, why: str) -> None:
    if target is not None:
        raise BadInput(f"target = {target!r}, but {why}; leave target out.")


def _write_wasm(model: StepModel, place: Path, precision: str) -> None:
    if precision != "double":
        raise BadInput("precision = 'float', but WebAssembly is written in double precision.")
    code, layout = wasm(model)
    with write_whole(place) as file:
        file.write_bytes(code)
    with write_whole(place.with_suffix(".mjs")) as file:
        file.write_text(script(model, layout), encoding="utf-8")


def _write_object(model: StepModel, place: Path, target: str | None, precision: str) -> None:
    if precision != "double":
        raise BadInput(
            "precision = 'float', but objects are in double precision; export C for single."
        )
    _require_name(model, place)
    code = machine_code(model, target)
    with write_whole(place) as file:
        file.write_bytes(code)
    with write_whole(place.with_suffix(".h")) as file:
        file.write_text(header(model, precision), encoding="utf-8")


def _write_fmu(model: StepModel, place: Path, target: str, precision: str) -> None:
    if precision != "double":
        raise BadInput("precision = 'float', but FMUs are in double precision.")
    _require_name(model, place)
    choose("target", target, VERSIONS)
    with write_whole(place) as file:
        write_fmu(model, file, target)


def _require_name(model: StepModel, place: Path) -> None:
    if place.stem != model.name:
        raise BadInput(
            f"path = {str(place)!r}: {place.stem!r} is no name in C; call it "
            f"{model.name}{place.suffix}."
        )


def _write_sources(model: StepModel, place: Path, precision: str) -> None:
    _require_name(model, place)
    written = sources(model, precision)
    lists = place.with_name("CMakeLists.txt")
    if lists.exists() and not lists.read_text(errors="replace").startswith(MARK):
        raise BadInput(
            f"{str(lists)!r} is there already and was not written by retrax; choose another folder."
        )
    for name, text in written.items():
        with write_whole(place.with_name(name)) as file:
            file.write_text(text, encoding="utf-8")
