"""Which picture a run has: what its system told, or else what its group or space is."""

from retrax.show.drawn import told
from retrax.show.pictures import ground, rigid, rods, strings
from retrax.show.pictures.fields import bars, field
from retrax.show.pictures.spaces import of_space
from retrax.show.pictures.things import Picture
from retrax.trajectory.trajectory import Trajectory

_TOLD = {
    "body": rigid.with_mass,
    "disk": ground.rolling_disk,
    "sleigh": ground.sleigh,
    "ball": ground.ball,
    "strings": strings.strings_in_contact,
    "field": field,
}


def picture(run: Trajectory) -> Picture:
    """The picture of a run; there is one for every run."""
    said = told(run)
    if "string" in said:
        return strings.string_pendulum(run, said)
    if "rods" in said:
        return rods.rods(run, said)
    for kind, draw in _TOLD.items():
        if kind in said:
            return draw(run, said[kind])
    return rigid.of_group(run) or of_space(run) or bars(run)
