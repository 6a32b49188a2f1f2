"""Write a mechanism down: bodies, joints, wheels, and what acts between them."""

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float

from retrax.contact.together import Together
from retrax.errors import BadInput
from retrax.groups.power import Power
from retrax.groups.product import Product
from retrax.groups.so2 import SO2
from retrax.groups.so3 import SO3
from retrax.groups.translation import Translation
from retrax.mechanics.actuated import Actuated
from retrax.mechanics.contact import AbstractContacts, require_contacts
from retrax.mechanics.functions import Force, arguments, as_pytree, check_energy
from retrax.mechanics.mechanical import Potential
from retrax.mechanics.shape import Shape, shapes_of
from retrax.mechanisms.body import GROUND, Body
from retrax.mechanisms.body_inertia import body_inertia
from retrax.mechanisms.couplings import AbstractCoupling, Free
from retrax.mechanisms.elements import AbstractDamper, AbstractSpring, Acting, Outside
from retrax.mechanisms.frames import Frame, Limits
from retrax.mechanisms.joined import Connection, Joints
from retrax.mechanisms.joints import AbstractJoint, Revolute
from retrax.mechanisms.laws import Several
from retrax.mechanisms.measures import Coordinate
from retrax.mechanisms.motors import Motor, MotorMatrix
from retrax.mechanisms.parts import Element, instead, name_of
from retrax.mechanisms.pose import Place
from retrax.mechanisms.rolling import Rolling, Touching, WheelHeight
from retrax.mechanisms.springs import AbstractBetweenPoints, single
from retrax.mechanisms.stacks import in_rows
from retrax.mechanisms.stops import JointLimits, Stops, read_limits, stops_of
from retrax.mechanisms.system import MechanismSystem
from retrax.mechanisms.wheels import AbstractWheel, plane_of
from retrax.mechanisms.written import local, naming, require_name, rotation, vector
from retrax.numerics.checks import (
    ArrayLike,
    finite64,
    host_float64,
    positive64,
    quote,
    require_double_precision,
    require_finite,
    require_flag,
    require_function,
    require_instance,
    require_output,
)
from retrax.numerics.evaluate import as_jax
from retrax.numerics.meant import explain_keywords


class _Given(NamedTuple):
    """A body with its numbers and its place."""

    body: Body
    mass: Float[Array, ""]
    inertia: Float[Array, "turns turns"]
    place: Place
    shapes: tuple[Shape, ...]


# So many names of bodies and joints are told in one line.
_TOLD = 6


class Mechanism:
    """Bodies and joints, written down where they stand in space.

    You can refer to a body or a joint by its name; `"ground"` is the fixed frame.

    **Arguments:** `gravity`: the acceleration of free fall in m/s^2, three numbers; two for a
    mechanism in the plane.

    **Attributes:** `limits`, `frames`: joint limits and link frames read from the imported file;
    such limits act with `system(limits=True)`. The name of a frame works as that of its body.
    """

    @explain_keywords
    def __init__(self, gravity: ArrayLike = (0.0, 0.0, -9.81)):
        require_double_precision()
        self.gravity = host_float64("gravity", gravity)
        if self.gravity.shape not in ((2,), (3,)):
            raise BadInput(
                f"gravity has shape {self.gravity.shape}, but it has three numbers, or two in the "
                "plane."
            )
        require_finite("gravity", self.gravity)
        self.d = len(self.gravity)
        self.ground = Body("ground", GROUND)
        self._bodies: dict[str, _Given] = {}
        self._connections: dict[str, Connection] = {}
        self._written: dict[int, str] = {}  # names of joints, by the identity of what users hold
        self._kept: list[object] = []  # so that no identity is used again
        self._contacts: list[Touching] = []
        self._springs: list[Acting] = []
        self._dampers: list[Acting] = []
        self._motors: list[tuple[Motor, Coordinate, tuple[int, int]]] = []
        self._readings: dict[str, Connection] = {}
        self.limits: dict[str, Limits] = {}
        self._stops: dict[str, Stops] = {}
        self.frames: dict[str, Frame] = {}

    def __repr__(self) -> str:
        where = "in space" if self.d == 3 else "in the plane"
        bodies, joints = (
            _count_names("body", self._bodies),
            _count_names("joint", self._connections),
        )
        return f"<mechanism {where}: {bodies}; {joints}>"

    @explain_keywords
    def body(
        self,
        name: str,
        mass: ArrayLike,
        inertia: ArrayLike,
        at: ArrayLike,
        turned: ArrayLike | None = None,
        shape: Shape | Sequence[Shape] | None = None,
        *,
        physical: bool = True,
    ) -> Body:
        """Add a body and return it.

        **Arguments:** `name`; `mass` in kg; `inertia` about the centre of mass in body axes: three
        principal moments or a matrix, one number in the plane; `at`: the centre of mass; `turned`:
        the rotation from body axes to space axes, the identity if not given; `shape`: how
        it looks, one or several shapes of `rx.draw` in body axes from its centre of mass;
        `physical`: whether to insist on an inertia that a body can have.
        """
        if require_name(name) is None or name == self.ground.name or name in self._bodies:
            why = "is that of the ground" if name == self.ground.name else "is there already"
            raise BadInput(f"the name {quote(name)} of this body {why}: choose another one.")
        place = rotation(f"turned of {name!r}", turned, self.d), vector(f"at of {name!r}", at)
        if len(place[1]) != self.d:
            raise BadInput(
                f"the body {name!r} is at {place[1].tolist()}, but this mechanism has {self.d} "
                "coordinates, as many as its gravity."
            )
        kg = positive64(f"mass of {name!r}", mass)
        moments = body_inertia(name, inertia, self.d, require_flag("physical", physical))
        body = Body(name, len(self._bodies))
        shapes = () if shape is None else shapes_of(f"shape of {name!r}", shape)
        self._bodies[name] = _Given(body, kg, moments, place, shapes)
        return body

    def join(self, *joints: AbstractJoint | AbstractCoupling) -> None:
        """Add joints, gears and racks; a gear or rack comes after its joints."""
        for joint in joints:
            if isinstance(joint, AbstractCoupling):
                self._couple(joint)
                continue
            if not isinstance(joint, AbstractJoint):
                raise BadInput(
                    f"{name_of(joint)} is not a joint such as rx.Revolute{instead(joint)}."
                )
            name = self._new_name(joint.name, "joint")
            pair = [self._find(body) for body in joint.bodies]
            if pair[0] is pair[1]:
                raise BadInput(f"the joint {name!r} joins {pair[0]!r} with itself.")
            places = [self._place(body) for body in pair]
            with naming(f"the joint {name!r}"):
                law, free = joint.law(*places), joint.coordinates(*places)
            at = local(places[1], joint.point(tuple(places)))
            bodies = tuple(body.index for body in pair)
            made = Connection(law, free, as_jax(at), bodies, name, joint.kind)
            self._connect(joint, made)
            if joint.stops is not None:
                self._stops[name], self.limits[name] = joint.stops, joint.stops.limits

    def roll(self, *wheels: AbstractWheel) -> None:
        """Add what rolls on a plane: wheels, balls, blades."""
        for wheel in wheels:
            if not isinstance(wheel, AbstractWheel):
                what = "a RollingWheel, a RollingBall or a KnifeEdge"
                raise BadInput(f"{name_of(wheel)} is not {what}{instead(wheel)}.")
            body = self._find(wheel.body)
            if body.index == GROUND:
                raise BadInput("the ground cannot roll: name a body that moves.")
            name = self._new_name(wheel.name, "wheel")
            plane = plane_of(wheel, name, self.gravity)
            place = self._place(body)
            with naming(f"{name!r}"):
                contact = wheel.contact(place, plane, self._axle(body))
                height = wheel.height(contact, plane)
            touching = Touching(contact, body.index, name, wheel.kind)
            self._contacts.append(touching)
            if height is not None:
                bodies = (body.index,) if isinstance(height, WheelHeight) else (GROUND, body.index)
                at = as_jax(local(place, place[1]))
                self._connect(wheel, Connection(height, (), at, bodies, name, wheel.kind))

    def add(self, *elements: Element) -> None:
        """Add springs, dampers and motors."""
        for element in elements:
            if not isinstance(element, Element):
                what = "a spring, a damper or a motor"
                raise BadInput(f"{name_of(element)} is not {what}{instead(element)}.")
            kind = type(element).__name__
            count = len(self._springs) + len(self._dampers) + len(self._motors) + 1
            name = element.name or f"{kind} {count}"
            if isinstance(element, AbstractBetweenPoints):
                pair = [self._find(body) for body in element.bodies]
                if pair[0] is pair[1]:
                    raise BadInput(f"{name!r} acts between {pair[0]!r} and itself.")
                made = element.element(*(self._place(body) for body in pair))
                self._act(made, tuple(body.index for body in pair), name)
                continue
            joint = self._joint(element.joint)
            coordinate = single(_free(joint), f"a {kind}")
            if isinstance(element, Motor):
                a, b = joint.bodies[:2]
                self._motors.append((element, coordinate, (a, b)))
            else:
                self._act(element.element(coordinate), joint.bodies[:2], name)

    @explain_keywords
    def read(
        self,
        name: str,
        bodies: tuple[Body | str, Body | str],
        coordinate: Callable[[Place, Place], Coordinate],
    ) -> None:
        """Name a coordinate between two bodies that is none of a joint, or one of several.

        Springs, dampers, motors and couplings can refer to it as to a joint.

        **Arguments:** `coordinate`: makes it from where the bodies stand.
        """
        if not isinstance(bodies, tuple | list) or len(bodies) != 2:
            raise BadInput(f"bodies = {quote(bodies)} must be two bodies.")
        make = require_function("coordinate", coordinate)
        pair = [self._find(body) for body in bodies]
        one, two = (self._place(body) for body in pair)
        indices = tuple(body.index for body in pair)
        at = as_jax(local(two, two[1]))
        free = (make(one, two),)
        name = self._new_name(require_name(name), "reading")
        self._readings[name] = Connection(Several(()), free, at, indices, name, "reading")

    @explain_keywords
    def system(
        self,
        potential: Potential | None = None,
        force: Force | None = None,
        *,
        contact: AbstractContacts | None = None,
        limits: bool | None = None,
    ) -> MechanismSystem:
        """Return the system that has been written down.

        **Arguments:** `potential`: a further potential energy, `potential(g)` or `potential(g, t)`
        of all rotations and centres of mass, `g = (R, x)` with a row for each body; `force`: a
        further force, `force(g, xi, t)`, a covector on the velocities of all bodies; `contact`:
        which shapes on its bodies may touch, such as `rx.Contacts`; `limits`: which limits of
        joints act: those written with the joints unless told, with `True` those that a file tells
        too, with `False` none.
        """
        if not self._bodies:
            raise BadInput(
                "this mechanism has no bodies that move: add some with mechanism.body(...); one "
                "that was loaded has only its base, which is free with floating=True."
            )
        given, n = list(self._bodies.values()), len(self._bodies)
        turn = SO3() if self.d == 3 else SO2()
        group = Power(Product(turn, Translation(self.d)), n)
        if potential is not None:
            potential = check_energy("potential", potential, arguments(group)[:1], ("g",))
        if force is not None:
            require_output("force", force, arguments(group), (group.dim,))
            force = as_pytree(require_function("force", force))
        rolling = Rolling(tuple(self._contacts), n) if self._contacts else None
        bound = tuple(self._connections.values())
        outside = Outside(tuple(self._dampers), force, n) if self._dampers or force else None
        return MechanismSystem(
            group=group,
            mass=in_rows(*(one.mass for one in given)),
            inertia=in_rows(*(one.inertia for one in given)),
            gravity=finite64("gravity", self.gravity, (self.d,)),
            constraint=Joints(bound, rolling, n, self.d) if bound or rolling else None,
            springs=tuple(self._springs),
            potential=potential,
            force=outside,
            reference=(
                finite64("turned", np.stack([one.place[0] for one in given]), (n, self.d, self.d)),
                finite64("at", np.stack([one.place[1] for one in given]), (n, self.d)),
            ),
            names=tuple(self._bodies),
            shapes=tuple(one.shapes for one in given),
            contact=self._touching(contact, limits),
        )

    def _touching(
        self, contact: AbstractContacts | None, limits: bool | None
    ) -> AbstractContacts | None:
        """Return what must not overlap, and joints that stop."""
        if contact is not None:
            require_contacts(contact)
        given = {} if limits is not None and not require_flag("limits", limits) else self._stops
        acting = (read_limits(self.limits) if limits else {}) | given
        found = []
        for name, stops in acting.items():
            joint = self._joint(name)
            found += stops_of(joint, single(_free(joint), "a limit"), stops)
        parts = [contact] if contact is not None else []
        parts += [JointLimits(found, len(self._bodies))] if found else []
        return Together(*parts) if len(parts) == 2 else parts[0] if parts else None

    @explain_keywords
    def plant(
        self,
        potential: Potential | None = None,
        force: Force | None = None,
        *,
        contact: AbstractContacts | None = None,
        limits: bool | None = None,
    ) -> Actuated:
        """Return the system with its motors as inputs, in the order in which they were added.

        **Arguments:** as those of `system`.
        """
        if not self._motors:
            raise BadInput("this mechanism has no motors: add some with add(rx.Motor(joint)).")
        motors, coordinates, bodies = zip(*self._motors, strict=True)
        matrix = MotorMatrix(coordinates, bodies, len(self._bodies))
        bounds = None
        if any(motor.bounds is not None for motor in motors):
            pairs = [motor.bounds or (-np.inf, np.inf) for motor in motors]
            lower, upper = np.transpose(pairs)
            bounds = (lower, upper)
        system = self.system(potential, force, contact=contact, limits=limits)
        return Actuated(system, matrix, bounds)

    def _place(self, body: Body) -> Place:
        if body.index == GROUND:
            return np.eye(self.d), np.zeros(self.d)
        return self._bodies[body.name].place

    def _find(self, body: Body | str) -> Body:
        """Return a body of this mechanism from itself or its name."""
        if isinstance(body, str):
            if body in self.frames:
                body = self.frames[body].body
            if body == self.ground.name:
                return self.ground
            if body not in self._bodies:
                known = ", ".join(map(repr, [self.ground.name, *self._bodies]))
                raise BadInput(f"there is no body {body!r}: this mechanism has {known}.")
            return self._bodies[body].body
        require_instance("a body", body, Body, "a body of a mechanism, or the name of one")
        own = self._bodies[body.name].body if body.name in self._bodies else None
        if body is not self.ground and body is not own:
            raise BadInput(f"{body!r} belongs to another mechanism.")
        return body

    def _joint(self, joint: object) -> Connection:
        """Return a joint of this mechanism from what the user wrote or its name."""
        name = joint if isinstance(joint, str) else self._written.get(id(joint))
        if name is None:
            raise BadInput(
                f"{quote(joint)} is not a joint of this mechanism: join it before anything that "
                "refers to it."
            )
        if name in self._readings:
            return self._readings[name]
        if name not in self._connections:
            known = ", ".join(map(repr, self._connections)) or "none"
            raise BadInput(f"there is no joint {name!r}: this mechanism has {known}.")
        return self._connections[name]

    def _couple(self, coupling: AbstractCoupling) -> None:
        name = self._new_name(coupling.name, "joint")
        first, second = (self._joint(joint) for joint in coupling.joints)
        if first is second:
            raise BadInput(f"{name!r} couples the joint {first.name!r} with itself.")
        law = coupling.law(_free(first), _free(second))
        bodies = (*first.bodies[:2], *second.bodies[:2])
        self._connect(coupling, Connection(law, (), second.at, bodies, name, coupling.kind))

    def _connect(self, written: object, made: Connection) -> None:
        self._connections[made.name] = made
        self._written[id(written)] = made.name
        self._kept.append(written)

    def _new_name(self, name: str | None, what: str) -> str:
        """Return a name for a joint, wheel or reading that no other has."""
        taken = {*self._connections, *self._readings, *(one.name for one in self._contacts)}
        if name is None:
            return next(x for k in count(len(taken) + 1) if (x := f"{what} {k}") not in taken)
        if name in taken:
            raise BadInput(f"there is a joint or wheel {name!r} already: choose another name.")
        return name

    def _act(
        self, element: AbstractSpring | AbstractDamper, bodies: tuple[int, ...], name: str
    ) -> None:
        acting = Acting(element, (bodies[0], bodies[1]), name)
        (self._springs if isinstance(element, AbstractSpring) else self._dampers).append(acting)

    def _axle(self, body: Body) -> np.ndarray | None:
        """Return the axis of the only Revolute joint of a body; `None` if there is not just one."""
        hinges = [
            w
            for w in self._kept
            if isinstance(w, Revolute) and any(self._find(b) is body for b in w.bodies)
        ]
        return hinges[0].axis if len(hinges) == 1 else None


def _free(joint: Connection) -> Free:
    return Free(joint.name, joint.kind, joint.coordinates)


def _count_names(what: str, names: Iterable[str]) -> str:
    """Tell how many there are, and the names of the first."""
    listed = list(names)
    if not listed:
        return f"no {what}"
    several = {"body": "bodies", "joint": "joints"}[what] if len(listed) > 1 else what
    told = ", ".join(listed[:_TOLD]) + (", ..." if len(listed) > _TOLD else "")
    return f"{len(listed)} {several} ({told})"
