"""The picture of a run: as its user draws it, that of its system, or that of its group or space."""

from retrax.show.drawn import drawing_data
from retrax.show.pictures import craft, ground, lines, mechanism, rigid, spaces
from retrax.show.pictures.own import Draw, draw_for_user
from retrax.show.pictures.things import Picture
from retrax.trajectory.trajectory import Trajectory

_TOLD = {
    "mechanism": mechanism.mechanism,
    "body": rigid.with_mass,
    "wheels": craft.spacecraft,
    "flyer": craft.flyer,
    "disk": ground.rolling_disk,
    "sleigh": ground.sleigh,
    "ball": ground.ball,
    "strings": lines.strings_in_contact,
    "field": spaces.field,
}


def picture(run: Trajectory, draw: Draw | None = None) -> Picture:
    """Draw a run; every run has a picture. What `draw` says goes before what the system says."""
    said = drawing_data(run)
    draw = said.get("shapes") or getattr(run.system, "draw", None) if draw is None else draw
    if draw is not None:
        return draw_for_user(run, draw, said.get("planes", ()))
    if "string" in said:
        return lines.string_pendulum(run, said)
    if "rods" in said:
        return lines.rods(run, said)
    for kind, usual in _TOLD.items():
        if kind in said:
            return usual(run, said[kind])
    return rigid.of_group(run) or spaces.of_space(run) or spaces.bars(run)
