"""The picture of a run: that of its system, or else that of its group or space."""

from retrax.show.drawn import told
from retrax.show.pictures import craft, ground, lines, rigid, spaces
from retrax.show.pictures.things import Picture
from retrax.trajectory.trajectory import Trajectory

_TOLD = {
    "body": rigid.with_mass,
    "wheels": craft.spacecraft,
    "flyer": craft.flyer,
    "disk": ground.rolling_disk,
    "sleigh": ground.sleigh,
    "ball": ground.ball,
    "strings": lines.strings_in_contact,
    "field": spaces.field,
}


def picture(run: Trajectory) -> Picture:
    """Draw a run; every run has a picture."""
    said = told(run)
    if "string" in said:
        return lines.string_pendulum(run, said)
    if "rods" in said:
        return lines.rods(run, said)
    for kind, draw in _TOLD.items():
        if kind in said:
            return draw(run, said[kind])
    return rigid.of_group(run) or spaces.of_space(run) or spaces.bars(run)
