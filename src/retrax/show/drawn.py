"""What there is to draw of a run: what its system tells, or else what its group is."""

import contextlib
from collections.abc import Iterator

from retrax.errors import BadInput, RetraxError
from retrax.mechanics.remembered import Drawing
from retrax.numerics.checks import reason
from retrax.show.bodies import Body, bodies
from retrax.show.rods import rod_bodies
from retrax.show.strings import string_bodies
from retrax.trajectory.trajectory import Trajectory


def told(run: Trajectory) -> Drawing:
    """What the system of a run tells about its picture."""
    return getattr(run.system, "drawing", None) or {}


def e3_points_up(run: Trajectory) -> bool:
    """Whether up is along e3 in the picture of a run, or against it."""
    return getattr(run.system, "e3_points_up", True)


def unit_of(run: Trajectory, observable: str) -> str:
    """The unit of what the system of a run measures."""
    return "" if run.system is None else run.system.unit_of(observable)


@contextlib.contextmanager
def drawable() -> Iterator[None]:
    """Turn what a picture makes of a forged run into a sentence."""
    try:
        yield
    except (RetraxError, OSError, Warning):
        raise
    except Exception as cause:
        raise BadInput(
            "this run cannot be drawn: its states do not fit what it says of its group and its "
            f"drawing ({reason(cause)})."
        ) from cause


def drawn_bodies(run: Trajectory) -> list[Body]:
    """The bodies and points to draw."""
    said = told(run)
    if "string" in said:
        return string_bodies(run, said)
    return rod_bodies(run, said) if "rods" in said else bodies(run)
