"""Which joints of a URDF have motors."""

from collections.abc import Collection, Mapping
from xml.etree.ElementTree import Element

from retrax.errors import BadInput
from retrax.importing.robot import Drive
from retrax.importing.xml_file import text
from retrax.mechanisms.frames import Limits
from retrax.numerics.checks import quote

_READ = ("type", "joint", "actuator", "hardwareInterface", "mechanicalReduction")


def drives(
    root: Element, motors: Collection[str] | None, limits: Mapping[str, Limits]
) -> tuple[list[Drive], list[str]]:
    """Return the motors, and what of the transmissions was not understood.

    **Arguments:** `motors`: names of joints, or `None` for those with a transmission.
    """
    found: dict[str, Drive] = {}
    notes: list[str] = []
    for element in root.findall("transmission"):
        name = element.get("name", "")
        joints = [
            text(joint, "name", f"transmission {name!r}") for joint in element.findall("joint")
        ]
        odd = sorted({e.tag for e in element.iter() if e.tag not in ("transmission", *_READ)})
        if odd:
            notes.append(f"<{'>, <'.join(odd)}> in the transmission {name!r}")
        if len(joints) != 1 or len(element.findall("actuator")) != 1:
            notes.append(f"the transmission {name!r}, which couples several joints or motors")
            continue
        found[joints[0]] = Drive(joints[0], joints[0])
    if motors is not None:
        if not isinstance(motors, Collection) or not all(isinstance(x, str) for x in motors):
            raise BadInput(f"motors = {quote(motors)} must be a list of names of joints.")
        found = {name: found.get(name, Drive(name, name)) for name in motors}
    moving = {
        joint.get("name")
        for joint in root.findall("joint")
        if joint.get("type") in ("revolute", "continuous", "prismatic")
    }
    for name in [name for name in found if name not in moving]:
        if motors is not None:
            raise BadInput(
                f"motors names {name!r}, which is not a revolute, continuous or prismatic joint of "
                "the file."
            )
        notes.append(f"the transmission of {name!r}, which is not a joint that a motor can drive")
        del found[name]
    idle = [name for name in found if limits.get(name, Limits()).effort == 0]
    if idle:
        notes.append(f"the effort 0 in <limit> of {', '.join(idle)}: the motor there has no bounds")
    return [_limit(drive, limits) for drive in found.values()], notes


def _limit(drive: Drive, limits: Mapping[str, Limits]) -> Drive:
    effort = limits.get(drive.joint, Limits()).effort
    return drive._replace(limit=(-effort, effort)) if effort else drive
