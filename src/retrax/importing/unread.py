"""What of an XML file is understood, as a table; what is not is counted and named."""

from collections import Counter
from xml.etree.ElementTree import Element

# Of each element: its attributes, and its children.
Understood = dict[str, tuple[frozenset[str], frozenset[str]]]


def table(**rows: tuple[str, str]) -> Understood:
    """Write such a table with names between spaces."""
    return {
        tag: (frozenset(attributes.split()), frozenset(children.split()))
        for tag, (attributes, children) in rows.items()
    }


def list_unsupported(root: Element, understood: Understood, elsewhere: str) -> list[str]:
    """Return a phrase for each kind of element and attribute outside the table.

    **Arguments:** `elsewhere`: an element that is looked through by somebody else.
    """
    found: Counter[str] = Counter()

    def look(element: Element) -> None:
        attributes, children = understood[element.tag]
        for name in element.keys():
            if name not in attributes:
                found[f"{name}= of <{element.tag}>"] += 1
        for child in element:
            if child.tag in children:
                if child.tag != elsewhere:
                    look(child)
            else:
                found[f"<{child.tag}> in <{element.tag}>"] += 1

    look(root)
    return [name if times == 1 else f"{name} ({times} times)" for name, times in found.items()]
