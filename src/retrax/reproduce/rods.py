r"""The paper on elastic rods in perfect friction contact, measured.

Each part looks at one side of the paper and leaves its own findings, numbers and figures: the
strings of its one-dimensional model, two rods in space, and the estimate of how often contacts
hold without slip.
"""

from collections.abc import Callable
from pathlib import Path

from retrax.reproduce.report import Reproduction
from retrax.reproduce.rods_contact import contact
from retrax.reproduce.rods_friction import friction
from retrax.reproduce.rods_strings import strings

NAME, TITLE = "rods", "Dynamics of elastic rods in perfect friction contact"
PARTS: tuple[Callable[[Path], Reproduction], ...] = (strings, contact, friction)


def reproduce(folder: Path) -> Reproduction:
    """Measure everything, draw the figures into `folder`, and say what was found."""
    done = [part(folder) for part in PARTS]
    return Reproduction(
        NAME,
        TITLE,
        tuple(finding for part in done for finding in part.findings),
        {part.name: part.numbers for part in done},
        tuple(path for part in done for path in part.figures),
        tuple(path for part in done for path in part.files),
    )
