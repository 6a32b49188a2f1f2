"""What there is to draw of a run: what its system told, or else what its group is."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from retrax.errors import BadInput, RetraxError
from retrax.numerics.checks import reason, shown
from retrax.show.bodies import Body, bodies
from retrax.show.rods import rod_bodies
from retrax.show.strings import string_bodies
from retrax.trajectory.trajectory import Trajectory


def told(run: Trajectory) -> dict[str, Any]:
    """What the system said about its picture."""
    return said_of(run, "drawing")


def said_of(run: Trajectory, name: str) -> dict[str, Any]:
    """What a run tells in JSON under a name of its provenance."""
    try:
        said = json.loads(run.provenance.get(name, "{}"))
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise BadInput(f"the {name} of this run, {shown(run.provenance[name])}, is none.")
    return said


@contextlib.contextmanager
def drawable() -> Iterator[None]:
    """Turn what a picture makes of a file that is no run of retrax into a sentence."""
    try:
        yield
    except (RetraxError, OSError, Warning):
        raise
    except Exception as cause:
        raise BadInput(
            f"this run cannot be drawn: its states do not fit what it says of its group and its "
            f"drawing ({reason(cause)})."
        ) from cause


def drawn_bodies(run: Trajectory) -> list[Body]:
    """The bodies and points to draw."""
    said = told(run)
    if "string" in said:
        return string_bodies(run, said)
    return rod_bodies(run, said) if "rods" in said else bodies(run)
