"""Read a URDF: the links and joints of a robot, in XML."""

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np

from retrax.errors import BadInput
from retrax.importing.geometry import Files, origin, shape, weight
from retrax.importing.robot import (
    Coupling,
    Edge,
    Freedom,
    FreedomKind,
    Link,
    Robot,
    freedom,
)
from retrax.importing.solid import Solid, together
from retrax.importing.transmissions import drives
from retrax.importing.unread import list_unsupported, table
from retrax.importing.xml_file import number, numbers, only, read_xml, text
from retrax.mechanisms.frames import Limits
from retrax.numerics.checks import require_direction

_UNDERSTOOD = table(
    robot=("name version", "link joint material transmission"),
    link=("name", "inertial visual collision"),
    inertial=("", "origin mass inertia"),
    origin=("xyz rpy", ""),
    mass=("value", ""),
    inertia=("ixx ixy ixz iyy iyz izz", ""),
    visual=("name", "origin geometry material"),
    collision=("name", "origin geometry"),
    geometry=("", "box cylinder sphere mesh"),
    box=("size", ""),
    cylinder=("radius length", ""),
    sphere=("radius", ""),
    mesh=("filename scale", ""),
    material=("name", "color"),
    color=("rgba", ""),
    joint=("name type", "origin parent child axis dynamics limit mimic"),
    parent=("link", ""),
    child=("link", ""),
    axis=("xyz", ""),
    dynamics=("damping friction", ""),
    limit=("lower upper effort velocity", ""),
    mimic=("joint multiplier offset", ""),
)
_FREEDOMS: dict[str, FreedomKind | None] = {
    "fixed": None,
    "revolute": "hinge",
    "continuous": "hinge",
    "prismatic": "slide",
    "planar": "planar",
    "floating": "free",
}
# Moments of inertia are as exact as the digits of a file.
_ROUNDING = 1e-9
# Less than that, in kg m^2, is zero that was rounded.
_NOTHING = 1e-20


def read_urdf(
    path: Path,
    files: Files,
    density: float | None,
    cut: Collection[str],
    motors: Collection[str] | None,
) -> Robot:
    """Return what a URDF describes.

    **Arguments:** `files`: where meshes are; `density`: of links without `<inertial>`, or `None`;
    `cut`: names of joints that close loops; `motors`: names of joints to drive, or `None` for those
    with a transmission.
    """
    root = read_xml(path, "robot")
    unread = list_unsupported(root, _UNDERSTOOD, "transmission")
    doubtful: list[str] = []
    colours = {m.get("name", ""): _colour(m, {}) for m in root.findall("material")}
    links = [_link(element, files, density, colours, doubtful) for element in root.findall("link")]
    _unique("link", [link.name for link in links])
    elements = root.findall("joint")
    names = [text(element, "name", "a joint") for element in elements]
    _unique("joint", names)
    edges = {name: _edge(element, name) for name, element in zip(names, elements, strict=True)}
    if strangers := [name for name in cut if name not in edges]:
        raise BadInput(f"loops names the joint {strangers[0]!r}, which the file does not have.")
    limits = {
        name: found for name, e in zip(names, elements, strict=True) if (found := _limits(e, name))
    }
    unread += _rubbing(elements)
    wanted, notes = drives(root, motors, limits)
    return Robot(
        path.name,
        {link.name: link for link in links},
        [edge for name, edge in edges.items() if name not in cut],
        [edges[name] for name in cut],
        [c for e, name in zip(elements, names, strict=True) if (c := _coupling(e, name, names))],
        wanted,
        limits,
        unread + notes,
        doubtful,
    )


def _unique(what: str, names: list[str]) -> None:
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise BadInput(f"the file has two {what}s of the name {twice[0]!r}.")


def _link(
    element: Element,
    files: Files,
    density: float | None,
    colours: dict[str, str],
    doubtful: list[str],
) -> Link:
    name = text(element, "name", "a link")
    where = f"link {name!r}"
    shapes = [
        shape(visual, where, files, _paint(visual, colours)) for visual in element.findall("visual")
    ]
    solid = _solid(element, where, files, density, doubtful)
    return Link(name, solid, tuple(s for s in shapes if s is not None))


def _solid(
    element: Element, where: str, files: Files, density: float | None, doubtful: list[str]
) -> Solid | None:
    inertial = only(element, "inertial", where)
    if inertial is None:
        return None if density is None else together(_weights(element, where, files, density))
    said = only(inertial, "mass", where)
    if said is None:
        raise BadInput(f"<inertial> of {where} has no <mass>.")
    mass = number(said, "value", where)
    if mass < 0:
        raise BadInput(f"{where} has the mass {mass:g} kg; a mass is not negative.")
    tensor = only(inertial, "inertia", where)
    if tensor is None:
        found = together(_weights(element, where, files, 1.0))
        if found is None and mass > 0:
            raise BadInput(
                f"{where} has a mass and no <inertia>, nor a shape from which it could be found."
            )
        return None if found is None or mass == 0 else found.weighing(mass)
    J = _tensor(tensor, where, mass, doubtful)
    if mass == 0 and not np.any(J):
        return None
    place = origin(inertial, where)
    return Solid(mass, place.x, place.R @ J @ place.R.T)


def _weights(element: Element, where: str, files: Files, density: float) -> list[Solid]:
    shapes = element.findall("collision") or element.findall("visual")
    return [weight(found, where, files, density) for found in shapes]


def _tensor(element: Element, where: str, mass: float, doubtful: list[str]) -> np.ndarray:
    xx, yy, zz = (number(element, name, where) for name in ("ixx", "iyy", "izz"))
    xy, xz, yz = (number(element, name, where, 0.0) for name in ("ixy", "ixz", "iyz"))
    J = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    moments = np.linalg.eigvalsh(J)
    told = ", ".join(f"{x:.4g}" for x in moments)
    size = float(np.max(np.abs(moments)))
    if moments[0] < -_ROUNDING * size - _NOTHING:
        raise BadInput(f"{where} has principal moments of inertia {told}; none may be negative.")
    if size < _NOTHING:
        return np.zeros((3, 3))
    if mass == 0:
        doubtful.append(f"the inertia of {where}, which has no mass")
    if moments[0] + moments[1] < moments[2] * (1 - 1e-3):
        doubtful.append(
            f"the inertia of {where}, which no rigid body has (principal moments {told}: the "
            "largest exceeds the sum of the others)"
        )
    return J


def _edge(element: Element, name: str) -> Edge:
    where = f"joint {name!r}"
    ends = [only(element, tag, where) for tag in ("parent", "child")]
    if None in ends:
        raise BadInput(f"{where} needs a <parent> and a <child>.")
    parent, child = (text(end, "link", where) for end in ends if end is not None)
    if parent == child:
        raise BadInput(f"{where} has the link {parent!r} as <parent> and as <child>.")
    kind = text(element, "type", where)
    if kind not in _FREEDOMS:
        raise BadInput(
            f"{where} is of the type {kind!r}, which URDF does not have; it has "
            f"{', '.join(_FREEDOMS)}."
        )
    found = _FREEDOMS[kind]
    freedoms = () if found is None else (_freedom(element, name, where, found),)
    return Edge(parent, child, origin(element, where), freedoms)


def _freedom(element: Element, name: str, where: str, kind: FreedomKind) -> Freedom:
    said = only(element, "axis", where)
    axis = np.eye(3)[0] if said is None else numbers(said, "xyz", where, 3)
    length = require_direction(f"axis of {where}", axis)
    dynamics = only(element, "dynamics", where)
    damping = 0.0 if dynamics is None else number(dynamics, "damping", where, 0.0)
    if damping < 0:
        raise BadInput(f"{where} has the damping {damping:g}; it is not negative.")
    return freedom(kind, name, axis / length, damping=damping)


def _limits(element: Element, name: str) -> Limits | None:
    found = only(element, "limit", f"joint {name!r}")
    if found is None:
        return None
    where = f"joint {name!r}"
    said = {key: number(found, key, where) for key in Limits._fields if found.get(key) is not None}
    if element.get("type") == "continuous":  # goes round
        said = {key: value for key, value in said.items() if key not in ("lower", "upper")}
    found = Limits(**said)
    if found.lower is not None and found.upper is not None and found.lower > found.upper:
        raise BadInput(
            f"{where} has the limits lower = {found.lower:g} and upper = {found.upper:g}; the "
            "lower is the smaller one."
        )
    for what, value in (("effort", found.effort), ("velocity", found.velocity)):
        if value is not None and value < 0:
            raise BadInput(f"{where} has the {what} {value:g} in <limit>; it is not negative.")
    return found if said else None


def _coupling(element: Element, name: str, names: list[str]) -> Coupling | None:
    found = only(element, "mimic", f"joint {name!r}")
    if found is None:
        return None
    where = f"joint {name!r}"
    leader = text(found, "joint", where)
    if leader not in names or leader == name:
        raise BadInput(f"{where} mimics {leader!r}, which is not another joint of the file.")
    ratio, offset = number(found, "multiplier", where, 1.0), number(found, "offset", where, 0.0)
    return Coupling(name, leader, (offset, ratio))


def _rubbing(joints: list[Element]) -> list[str]:
    rough = [
        joint.get("name", "")
        for joint in joints
        for dynamics in joint.findall("dynamics")
        if number(dynamics, "friction", f"joint {joint.get('name')!r}", 0.0) != 0
    ]
    return [f"dry friction of the joints {', '.join(rough)}"] if rough else []


def _paint(visual: Element, colours: dict[str, str]) -> str:
    material = visual.find("material")
    return "" if material is None else _colour(material, colours)


def _colour(material: Element, colours: dict[str, str]) -> str:
    """Return `#rrggbb`, its own or that of the material of the same name."""
    said = material.find("color")
    if said is None:
        return colours.get(material.get("name", ""), "")
    rgba = numbers(said, "rgba", f"material {material.get('name')!r}", 4)
    return "#" + "".join(f"{round(255 * min(max(x, 0.0), 1.0)):02x}" for x in rgba[:3])
