"""What there is to draw of a run: what its system told, or else what its group is."""

import json
from typing import TYPE_CHECKING, Any

from retrax.show.bodies import Body, bodies
from retrax.show.rods import rod_bodies
from retrax.show.strings import string_bodies

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory


def told(run: "Trajectory") -> dict[str, Any]:
    """What the system said about its picture."""
    return json.loads(run.provenance.get("drawing", "{}"))


def drawn_bodies(run: "Trajectory") -> list[Body]:
    """The bodies and points to draw."""
    said = told(run)
    if "string" in said:
        return string_bodies(run, said)
    return rod_bodies(run, said) if "rods" in said else bodies(run)
