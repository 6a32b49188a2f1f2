"""From links to bodies: the tree, welded links made one, and frames without mass left out."""

from typing import NamedTuple

from retrax.errors import BadInput
from retrax.importing.placement import HERE, Placement
from retrax.importing.robot import Edge, Freedom, Robot
from retrax.importing.solid import Solid, together
from retrax.mechanics.shape import Shape


class Part(NamedTuple):
    """Links that move as one.

    **Attributes:** `name`: of the first of them; `place`: of its frame, as drawn; `solid`: in that
    frame, `None` without mass; `shapes`: in that frame.
    """

    name: str
    place: Placement
    solid: Solid | None
    shapes: tuple[Shape, ...]


class Between(NamedTuple):
    """The freedoms between two parts, in space axes, as drawn; the first may be the ground."""

    parent: str | None
    child: str
    freedoms: tuple[Freedom, ...]


class Tree(NamedTuple):
    """The bodies of a robot.

    **Attributes:** `parts`: by name, parents first, without what is fixed to the ground; `between`:
    in the same order; `places`: of the frames of all links, as drawn; `carriers`: the name of the
    part that each link belongs to, `None` for what does not move; `unread`: what is left out.
    """

    parts: dict[str, Part]
    between: list[Between]
    places: dict[str, Placement]
    carriers: dict[str, str | None]
    unread: list[str]

    def body_of(self, link: str) -> str:
        """Return the name of the body that a link belongs to."""
        return body_name(self.carriers[link])


def body_name(part: str | None) -> str:
    """Return the name of a part in the mechanism, where "ground" means what does not move."""
    if part is None:
        return "ground"
    return "the link ground" if part == "ground" else part


def bodies_of(robot: Robot, floating: bool) -> Tree:
    """Return the bodies of a robot, its first link fixed to the ground unless `floating`."""
    root, order = _order(robot)
    places: dict[str, Placement] = {root: HERE}
    carriers: dict[str, str | None] = {root: root if floating else None}
    for edge in order:
        places[edge.child] = places[edge.parent].then(edge.origin)
        carriers[edge.child] = edge.child if edge.freedoms else carriers[edge.parent]
    parts = {
        name: _part(name, robot, places, carriers) for name in places if carriers[name] == name
    }
    between = [
        Between(
            carriers[edge.parent],
            edge.child,
            tuple(f.transform(places[edge.child]) for f in edge.freedoms),
        )
        for edge in order
        if edge.freedoms
    ]
    seen = [n for n, c in carriers.items() if c is None and robot.links[n].shapes]
    needed = {carriers[name] for loop in robot.loops for name in (loop.parent, loop.child)}
    parts, between, unread = _without_massless(parts, between, needed)
    if seen:
        unread.append(f"the look of {', '.join(map(repr, seen))}, which the ground carries")
    return Tree(parts, between, places, carriers, unread)


def _order(robot: Robot) -> tuple[str, list[Edge]]:
    """Return the first link, and all edges, parents before children."""
    if not robot.links:
        raise BadInput(f"{robot.name} has no links.")
    above: dict[str, Edge] = {}
    for edge in (*robot.edges, *robot.loops):
        for link in (edge.parent, edge.child):
            if link not in robot.links:
                raise BadInput(
                    f"a joint of {robot.name} joins {edge.parent!r} and {edge.child!r}, but there "
                    f"is no link {link!r}."
                )
    for edge in robot.edges:
        if edge.child in above:
            raise BadInput(
                f"{robot.name} has a loop: the link {edge.child!r} hangs on {edge.parent!r} and on "
                f"{above[edge.child].parent!r}. A tree has one parent a link: name the joint that "
                "closes the loop, loops=['its name']."
            )
        above[edge.child] = edge
    roots = [name for name in robot.links if name not in above]
    if not roots:
        raise BadInput(f"{robot.name} has a loop without beginning: every link has a parent.")
    if len(roots) > 1:
        raise BadInput(
            f"{robot.name} has {len(roots)} first links, {', '.join(map(repr, roots))}: nothing "
            "joins them to one another."
        )
    below: dict[str, list[Edge]] = {name: [] for name in robot.links}
    for edge in robot.edges:
        below[edge.parent].append(edge)
    order, waiting = [], list(reversed(below[roots[0]]))
    while waiting:
        edge = waiting.pop()
        order.append(edge)
        waiting += reversed(below[edge.child])
    if len(order) < len(robot.edges):
        lost = sorted(set(robot.links) - {roots[0]} - {edge.child for edge in order})
        raise BadInput(f"{robot.name} has a loop that nothing holds: {', '.join(map(repr, lost))}.")
    return roots[0], order


def _part(
    name: str, robot: Robot, places: dict[str, Placement], carriers: dict[str, str | None]
) -> Part:
    solids, shapes, back = [], [], places[name].inverse()
    for link, carrier in carriers.items():
        if carrier != name:
            continue
        place = back.then(places[link])
        solid = robot.links[link].solid
        solids += [] if solid is None else [solid.transform(place)]
        shapes += [s.turned(place.R).at(place.x) for s in robot.links[link].shapes]
    return Part(name, places[name], together(solids), tuple(shapes))


def _without_massless(
    parts: dict[str, Part], between: list[Between], needed: set[str | None]
) -> tuple[dict[str, Part], list[Between], list[str]]:
    """Join the freedoms on both sides of a part without mass, and leave the part out."""
    unread = []
    for name, part in list(parts.items()):
        if part.solid is not None:
            continue
        into = [b for b in between if b.child == name]
        onwards = [b for b in between if b.parent == name]
        if len(onwards) != 1 or not into or name in needed:
            why = "nothing heavy hangs on it" if not onwards else "it carries several others"
            why = "a loop is closed there" if name in needed else why
            why = "it is what floats" if not into else why
            raise BadInput(
                f"the link {name!r} moves and has no mass, and {why}: its motion is not known. "
                "Give it an <inertial> with mass and inertia, fix its joint, or pass density= if "
                "it has a shape."
            )
        (one,), (two,) = into, onwards
        joined = Between(one.parent, two.child, one.freedoms + two.freedoms)
        between = [joined if b is two else b for b in between if b is not one]
        if part.shapes:
            unread.append(f"the look of the link {name!r}, which has no mass and is left out")
        del parts[name]
    return parts, between, unread
