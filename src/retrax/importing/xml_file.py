"""Read an XML file, and the numbers in it, without running or fetching anything."""

import math
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
from jaxtyping import Float

from retrax.errors import BadInput
from retrax.files import require_readable
from retrax.numerics.checks import quote, reason


class _NoDeclarations(ElementTree.TreeBuilder):
    """Builds a tree; a document type, which could define entities, ends it."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise BadInput("the file has a <!DOCTYPE>, which retrax does not read: remove it.")


def read_xml(path: Path, root: str) -> Element:
    """Return the tree of a file whose outermost element is `root`.

    **Raises:** `BadInput` for a file that cannot be read, is not XML, or is of another kind.
    """
    try:
        raw = require_readable(path).read_bytes()
    except OSError as cause:
        raise BadInput(f"{str(path)!r} cannot be read: {reason(cause)}.") from cause
    parser = ElementTree.XMLParser(target=_NoDeclarations())
    try:
        parser.feed(raw)
        tree = parser.close()
    except ElementTree.ParseError as cause:
        raise BadInput(f"{str(path)!r} is not XML: {cause}.") from cause
    except BadInput as cause:
        raise BadInput(f"{str(path)!r}: {cause}") from cause
    except (ValueError, LookupError) as cause:  # an encoding that Python does not know
        raise BadInput(f"{str(path)!r} is not XML: {reason(cause)}.") from cause
    if tree.tag != root:
        raise BadInput(f"{str(path)!r} begins with <{tree.tag}>, not with <{root}>.")
    return tree


def numbers(
    element: Element, name: str, where: str, count: int, default: Iterable[float] | None = None
) -> Float[np.ndarray, " count"]:
    """Return the numbers of an attribute.

    **Arguments:** `where`: what the element belongs to, for the sentence; `default`: taken where
    the attribute is missing; without one it must be there.
    """
    text = element.get(name)
    if text is None:
        if default is None:
            raise BadInput(f"<{element.tag}> of {where} has no {name}=.")
        return np.array(list(default), dtype=float)
    try:
        values = [float(word) for word in text.split()]
    except ValueError:
        values = []
    if len(values) != count or not all(map(math.isfinite, values)):
        many = "a finite number" if count == 1 else f"{count} finite numbers"
        raise BadInput(f"{name}={quote(text)} in <{element.tag}> of {where} must be {many}.")
    return np.array(values)


def number(element: Element, name: str, where: str, default: float | None = None) -> float:
    """Return the one number of an attribute."""
    return float(numbers(element, name, where, 1, None if default is None else [default])[0])


def text(element: Element, name: str, where: str) -> str:
    """Return an attribute that must be there."""
    value = element.get(name)
    if not value:
        raise BadInput(f"<{element.tag}> of {where} has no {name}=.")
    return value


def only(element: Element, tag: str, where: str) -> Element | None:
    """Return the one child of this tag, or nothing if there is none."""
    found = element.findall(tag)
    if len(found) > 1:
        raise BadInput(f"{where} has {len(found)} elements <{tag}>; it has one at most.")
    return found[0] if found else None
