"""`retrax list`: the cases and the integrators, or all about one of them."""

import inspect
import json
import re
from collections.abc import Callable
from typing import Annotated, Any

import typer

from retrax.cases.descriptions import describe
from retrax.cases.makers import choose
from retrax.cases.names import METHODS, READY, SYSTEMS, fitting
from retrax.cli import options
from retrax.cli.options import AsJson
from retrax.cli.tables import print_lines, print_table
from retrax.integrators.base import VOCABULARY, AbstractIntegrator
from retrax.integrators.driven import Driven
from retrax.integrators.lie_verlet import LieVerlet
from retrax.systems.catalogue import CASES
from retrax.systems.driven_examples import DrivenExample


def list_(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A case, a system or an integrator to describe in full.",
            autocompletion=options.names,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the cases and the integrators, with the order of each and what it preserves.

    Example: retrax list heavy-top
    """
    if name is not None:
        told = details(name)
        if as_json:
            typer.echo(json.dumps(told, indent=2))
        else:
            print_details(told)
        return
    cases, integrators = _cases(), _integrators()
    if as_json:
        typer.echo(json.dumps({"cases": cases, "integrators": integrators}, indent=2))
        return
    rows = [
        [name, case["description"], case["integrator"], f"{case['h']:g} s", f"{case['steps']:,}"]
        for name, case in cases.items()
    ]
    print_table(["case", "what it is", "integrator", "h", "steps"], rows, "Cases")
    rows = [
        [name, str(claims["order"]), *_marks(claims["preserves"])]
        for name, claims in integrators.items()
    ]
    print_table(["integrator", "order", *VOCABULARY], rows, "Integrators")
    print_lines(*(f"{word}: {meaning}" for word, meaning in VOCABULARY.items()))
    print_lines("", "`retrax list NAME` describes one of them in full.")


def _marks(kept: list[str]) -> list[str]:
    return ["yes" if word in kept else "-" for word in VOCABULARY]


def _cases() -> dict[str, dict[str, Any]]:
    rows = {}
    for name, case in CASES.items():
        h, steps = case.length or case.make()[2:]
        rows[name] = {
            "description": case.description,
            "integrator": case.integrator,
            "h": h,
            "steps": steps,
        }
    return rows


def _integrators() -> dict[str, dict[str, Any]]:
    return {
        name: {
            "integrator": repr(integrator),
            "order": integrator.order,
            "preserves": [word for word in VOCABULARY if word in integrator.preserves],
        }
        for name, integrator in READY.items()
    }


def details(name: str) -> dict[str, Any]:
    """Return everything about the case, integrator or system called `name`, by headings."""
    choose("name", name, {**CASES, **METHODS, **SYSTEMS})
    if name in CASES:
        return _case(name)
    return _integrator(name) if name in METHODS else _system(name)


def print_details(told: dict[str, Any]) -> None:
    """Print what `details` found."""
    print_lines(f"{told['name']}: {told['description']}", "")
    for key, value in told.items():
        if isinstance(value, dict) and value:
            print_table([key, ""], [[k, f"{x}"] for k, x in value.items()])
        elif isinstance(value, list):
            print_lines(f"{key}: {', '.join(value) or 'none'}", "")
        elif key not in ("name", "description") and not isinstance(value, dict):
            print_lines(f"{key}: {value}")


def _case(name: str) -> dict[str, Any]:
    case = CASES[name]
    system, state, h, steps = case.make()
    described = describe(system) or {}
    driven = None if case.driven is None else case.driven()
    kept = list(system.invariants(state)) if driven is None else _conserved_momenta(driven)
    return {
        "name": name,
        "description": case.description,
        "kind": "case",
        "system": described.get("name", system.name),
        "space": system.configuration_space.name,
        "integrator": case.integrator,
        "h": h,
        "steps": steps,
        "parameters": {key: x for key, x in described.items() if key != "name"},
        **({} if driven is None else _inputs(driven)),
        "invariants": kept,
        "integrators": fitting(system),
    }


def _inputs(driven: DrivenExample) -> dict[str, Any]:
    """Return the number of inputs of a plant, and what drives them."""
    return {"inputs": driven.plant.count, "control": repr(driven.control)}


def _conserved_momenta(driven: DrivenExample) -> list[str]:
    """Return the momenta that no input changes."""
    plant, control, state, *_ = driven
    method = Driven(LieVerlet(), plant.actuators, control)
    return list(method.symmetries(plant.system).momenta(plant.group, state))


def _system(name: str) -> dict[str, Any]:
    make = SYSTEMS[name]
    return {
        "name": name,
        "description": _first_line(make),
        "kind": "system",
        "parameters": _parameters(make),
    }


def _integrator(name: str) -> dict[str, Any]:
    known: Any = METHODS[name]
    if not isinstance(known, AbstractIntegrator):
        return {
            "name": name,
            "description": _first_line(known),
            "kind": "integrator",
            "parameters": _parameters(known),
            "ready": [key for key, ready in READY.items() if isinstance(ready, known)],
        }
    return {
        "name": name,
        "description": _first_line(type(known)),
        "kind": "integrator",
        "integrator": repr(known),
        "order": known.order,
        "preserves": {word: VOCABULARY[word] for word in VOCABULARY if word in known.preserves},
    }


def _parameters(make: Callable[..., object]) -> dict[str, str]:
    """Return each parameter with its description, from the docstrings, and its default."""
    texts = [inspect.getdoc(one) or "" for one in getattr(make, "__mro__", [make])]
    found = {}
    for key, parameter in inspect.signature(make).parameters.items():
        entry = re.compile(rf"`{re.escape(key)}`(?:, `\w+`)*: (.*?)(?=\n\S|\n\n|\n- |$)", re.S)
        told = next((match[1] for text in texts if (match := entry.search(text))), "")
        needed = parameter.default is parameter.empty
        default = "" if needed else f" [default {parameter.default!r}]"
        found[key] = _readable(" ".join(told.split())) + default
    return found


def _first_line(thing: object) -> str:
    return _readable((inspect.getdoc(thing) or "").split("\n")[0])


def _readable(text: str) -> str:
    """Return a line of a docstring for a terminal, which cannot set formulas."""
    text = text.replace(r"\,", " ").replace(r"\cdot", " · ")
    return " ".join(re.sub(r"\\([A-Za-z]+)", r" \1", re.sub(r"[$`]|\*\*", "", text)).split())
