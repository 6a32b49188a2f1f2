"""Write a mechanism down: bodies, joints, wheels, and what acts between them."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from retrax.errors import BadInput
from retrax.groups.power import Power
from retrax.groups.product import Product
from retrax.groups.so2 import SO2
from retrax.groups.so3 import SO3
from retrax.groups.translation import Translation
from retrax.mechanisms.joined import GROUND, Connection, Joints
from retrax.mechanisms.joints import AbstractJoint, Place, vector
from retrax.mechanisms.system import MechanismSystem
from retrax.numerics.checks import ArrayLike, as_float, host_float64


class Body(NamedTuple):
    """A body of a mechanism, or its ground. `Mechanism.body` makes them."""

    name: str
    index: int
    d: int


class Mechanism:
    """Bodies and joints, written down where they stand in space.

    **Arguments:** `gravity`: the acceleration of free fall, three numbers; two for a mechanism in
    the plane.
    """

    def __init__(self, gravity: ArrayLike = (0.0, 0.0, -9.81)):
        self.gravity = host_float64("gravity", gravity)
        if self.gravity.shape not in ((2,), (3,)):
            raise BadInput(f"gravity has shape {self.gravity.shape}; it has three numbers, or two in the plane.")
        self.d = len(self.gravity)
        self.ground = Body("ground", GROUND, self.d)
        self._bodies: list[tuple[Body, float, np.ndarray, Place]] = []
        self._joints: list[AbstractJoint] = []

    def body(
        self,
        name: str,
        mass: float,
        inertia: ArrayLike,
        at: ArrayLike,
        turned: ArrayLike | None = None,
    ) -> Body:
        """Add a body and return it.

        **Arguments:** `name`; `mass` in kg; `inertia` about the centre of mass in body axes: three
        principal moments or a matrix, one number in the plane; `at`: the centre of mass; `turned`:
        the rotation from body axes to space axes, the identity if not given.
        """
        moments = host_float64("inertia", inertia)
        turns = 3 if self.d == 3 else 1
        J = np.diag(moments) if moments.ndim == 1 else moments.reshape(turns, turns)
        R = np.eye(self.d) if turned is None else host_float64("turned", turned)
        body = Body(name, len(self._bodies), self.d)
        self._bodies.append((body, as_float(mass), J, (R, vector("at", at, self.d))))
        return body

    def join(self, *joints: AbstractJoint) -> None:
        """Add joints."""
        self._joints += joints

    def _place(self, body: Body) -> Place:
        return (np.eye(self.d), np.zeros(self.d)) if body.index == GROUND else self._bodies[body.index][3]

    def system(self) -> MechanismSystem:
        """Return the system that has been written down."""
        n, turn = len(self._bodies), SO3() if self.d == 3 else SO2()
        connections = tuple(
            Connection(
                joint.law(*map(self._place, joint.bodies)),
                tuple(b.index for b in joint.bodies),
                joint.name or f"joint {k + 1}",
            )
            for k, joint in enumerate(self._joints)
        )
        places = [place for *_, place in self._bodies]
        reference = tuple(jnp.asarray(np.stack(part)) for part in zip(*places, strict=True))
        return MechanismSystem(
            group=Power(Product(turn, Translation(self.d)), n),
            mass=jnp.array([mass for _, mass, _, _ in self._bodies]),
            inertia=jnp.asarray(np.stack([J for _, _, J, _ in self._bodies])),
            gravity=jnp.asarray(self.gravity),
            constraint=Joints(connections, None, n, self.d) if connections else None,
            force=None,
            reference=reference,
            names=tuple(body.name for body, *_ in self._bodies),
        )
