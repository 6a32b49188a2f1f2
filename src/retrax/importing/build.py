"""From what a file describes to a mechanism."""

from collections.abc import Sequence

import numpy as np

from retrax.errors import BadInput, warn
from retrax.importing.closed import Closed
from retrax.importing.compound import Combined, combine
from retrax.importing.followed import Follow
from retrax.importing.loops import Closing, closing_joint
from retrax.importing.robot import Coupling, Edge, Freedom, Robot
from retrax.importing.rotors import add_rotor
from retrax.importing.tree import Part, Tree, bodies_of, body_name
from retrax.mechanisms.frames import Frame
from retrax.mechanisms.joints import AbstractJoint, Fixed
from retrax.mechanisms.mechanism import Mechanism
from retrax.mechanisms.motors import Motor
from retrax.mechanisms.springs import TorsionDamper, TorsionSpring
from retrax.numerics.checks import ArrayLike

# A sentence names so many things of a kind.
_NAMED = 40


def build(
    robot: Robot, gravity: ArrayLike, floating: bool, closings: Sequence[Closing] = ()
) -> Mechanism:
    """Return the mechanism, and warn of what was not understood."""
    mechanism = Mechanism(gravity)
    tree = bodies_of(robot, floating)
    for part in tree.parts.values():
        _add_body(mechanism, part)
    _add_frames(mechanism, tree)
    freedoms = [f for between in tree.between for f in between.freedoms]
    for between in tree.between:
        bodies = body_name(between.parent), body_name(between.child)
        _add_joint(mechanism, bodies, combine(*bodies, between.freedoms))
    for edge in robot.loops:
        mechanism.join(_closing(edge, tree))
    for k, loop in enumerate(closings):
        mechanism.join(closing_joint(loop, tree, f"loop {k + 1}"))
    freedoms += [f for edge in robot.loops for f in edge.freedoms]
    for freedom in freedoms:
        _add_elements(mechanism, freedom, robot)
    for coupling in robot.couplings:
        mechanism.join(_follow(coupling))
    for drive in robot.drives:
        mechanism.add(Motor(drive.joint, drive.limit, drive.name))
    mechanism.limits.update(robot.limits)
    _warn(robot, tree)
    return mechanism


def _add_body(mechanism: Mechanism, part: Part) -> None:
    solid, place = part.solid, part.place
    assert solid is not None
    moments = np.linalg.eigvalsh(solid.inertia)
    if not moments[0] > 0:
        raise BadInput(
            f"the link {part.name!r} has the mass {solid.mass:g} kg and the principal moments of "
            f"inertia {', '.join(f'{m:.4g}' for m in moments)}; a body needs positive ones."
        )
    mechanism.body(
        body_name(part.name),
        solid.mass,
        solid.inertia,
        place.point(solid.centre),
        place.R,
        tuple(shape.at(-solid.centre) for shape in part.shapes) or None,
        physical=False,
    )


def _add_frames(mechanism: Mechanism, tree: Tree) -> None:
    """Keep where the frames of all links are, in the axes of their bodies."""
    for link, place in tree.places.items():
        carrier = tree.carriers[link]
        if carrier is not None and (carrier not in tree.parts or link == "ground"):
            continue  # left out, or called otherwise
        seen = place
        if carrier is not None:
            part = tree.parts[carrier]
            assert part.solid is not None
            seen = part.place.inverse().then(place)
            seen = seen._replace(x=seen.x - part.solid.centre)
        mechanism.frames[link] = Frame(body_name(carrier), seen.x, seen.R)


def _add_joint(mechanism: Mechanism, bodies: tuple[str, str], found: Combined) -> None:
    if found.joint is not None:
        mechanism.join(found.joint)
    for reading in found.readings:
        mechanism.read(reading.name, bodies, reading.coordinate)


def _closing(edge: Edge, tree: Tree) -> AbstractJoint:
    """Return the joint of a loop that the file itself closes."""
    bodies = tree.body_of(edge.parent), tree.body_of(edge.child)
    stands = tree.places[edge.parent].then(edge.origin)
    moved = stands.then(tree.places[edge.child].inverse())
    if not edge.freedoms:
        return Closed(Fixed(*bodies, stands.x), moved)
    joint = combine(*bodies, [f.transform(stands) for f in edge.freedoms]).joint
    if joint is None:
        raise BadInput(f"a joint that binds nothing cannot close the loop at {edge.child!r}.")
    return Closed(joint, moved)


def _add_elements(mechanism: Mechanism, freedom: Freedom, robot: Robot) -> None:
    lone = freedom.kind in ("hinge", "slide")
    acts = {
        "damping": freedom.damping,
        "stiffness": freedom.stiffness,
        "armature": freedom.armature,
    }
    if not lone:
        told = [f"{name} {value:g}" for name, value in acts.items() if value]
        if told:
            robot.unread.append(
                f"{' and '.join(told)} of the joint {freedom.name!r} ({freedom.kind})"
            )
        return
    if freedom.damping:
        mechanism.add(TorsionDamper(freedom.name, freedom.damping))
    if freedom.stiffness:
        mechanism.add(TorsionSpring(freedom.name, freedom.stiffness, freedom.rest))
    if freedom.armature:
        add_rotor(mechanism, freedom)


def _follow(coupling: Coupling) -> Follow:
    name = f"{coupling.follower} follows {coupling.leader}"
    return Follow(coupling.follower, coupling.leader, coupling.coefficients, name)


def _warn(robot: Robot, tree: Tree) -> None:
    """Name what was not understood, in one warning."""
    notes = [*robot.unread, *tree.unread]
    bounded = [name for name, limits in robot.limits.items() if limits.bounded]
    if bounded:
        notes.append(f"the limits of {_list_names(bounded)}, which act with system(limits=True)")
    said = [f"these parts do not act or are not read: {_list_names(notes, '; ')}"] if notes else []
    if robot.doubtful:
        said.append(f"taken as it is: {_list_names(robot.doubtful, '; ')}")
    if said:
        warn(f"{robot.name}: {'. And '.join(said)}.")


def _list_names(names: Sequence[str], between: str = ", ") -> str:
    more = len(names) - _NAMED
    return between.join(names[:_NAMED]) + (f"{between}and {more} more" if more > 0 else "")
