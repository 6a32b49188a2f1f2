"""What to cite for a run: the works that docstrings name, as BibTeX."""

import dataclasses
import re
from collections.abc import Iterator
from importlib.metadata import version
from importlib.resources import files

from retrax.errors import BadInput

_ENTRY = re.compile(r"^@\w+\{(\w+),\n.*?^\}", re.DOTALL | re.MULTILINE)
_REFERENCES = re.compile(r"References:(.*?)(?:\n\s*\n|\Z)", re.DOTALL)
_KEY = re.compile(r"\[(\w+\d{4})\]")
_SOFTWARE = """@software{{retrax,
  author  = {{{{The retrax authors}}}},
  title   = {{retrax: structure-preserving simulation of mechanical systems on Lie groups}},
  version = {{{version}}}
}}"""


def cite(*used: object) -> str:
    """Return the BibTeX of retrax and of the works behind what was used.

    ```python
    print(rx.cite(run))
    ```

    **Arguments:** `used`: runs, fits and plans; systems, integrators, groups, or their classes.

    **Raises:** `BadInput` for anything else, and for a run whose file holds neither its system nor
    its integrator.
    """
    keys = dict.fromkeys(
        key for thing in used for kind in _kinds(thing) for key in _reference_keys(kind)
    )
    entries = bibliography()
    cited = [entries[key] for key in sorted(keys) if key in entries]
    return "\n\n".join([_SOFTWARE.format(version=version("retrax")), *cited]) + "\n"


def bibliography() -> dict[str, str]:
    """Return all works that retrax names, by key, as BibTeX."""
    text = files("retrax").joinpath("references.bib").read_text(encoding="utf-8")
    return {match[1]: match[0] for match in _ENTRY.finditer(text)}


def _kinds(thing: object) -> list[type]:
    """Return the classes of retrax that a thing is made of."""
    found = list(dict.fromkeys(_classes(thing)))
    if not found:
        raise BadInput(
            f"{type(thing).__name__} names no works: give rx.cite a run, or a system and an "
            "integrator."
        )
    return found


def _classes(thing: object) -> Iterator[type]:
    if isinstance(thing, type):
        yield from (base for base in thing.__mro__ if base.__module__.startswith("retrax."))
        return
    if isinstance(thing, list | tuple):
        for part in thing:
            yield from _classes(part)
        return
    parts = [getattr(thing, name, None) for name in ("system", "integrator", "problem")]
    if dataclasses.is_dataclass(thing):
        parts += [getattr(thing, field.name, None) for field in dataclasses.fields(thing)]
        yield from _classes(type(thing))
    # A group may be a property, and a retraction brings its own works.
    parts += [getattr(thing, name, None) for name in ("group", "run")]
    for part in parts:
        if part is not None and part is not thing and not callable(part):
            yield from _classes(part)


def _reference_keys(kind: type) -> list[str]:
    """Return the keys in the references of a docstring."""
    return [key for part in _REFERENCES.findall(kind.__doc__ or "") for key in _KEY.findall(part)]
