"""A joint that closes a loop, drawn where its bodies do not meet yet."""

import numpy as np

from retrax.importing.placement import Placement
from retrax.mechanisms.joints import AbstractJoint, Coordinates
from retrax.mechanisms.laws import AbstractLaw
from retrax.mechanisms.pose import Place


class Closed(AbstractJoint):
    """A joint between two bodies that stand, when it is closed, otherwise than they are drawn.

    **Arguments:** `joint`: written for the first body as drawn and the second where it then stands;
    `moved`: takes the second body from where it is drawn to there.
    """

    def __init__(self, joint: AbstractJoint, moved: Placement):
        self.joint, self.moved = joint, moved
        self._write(joint.bodies[0], joint.bodies[1], joint.name)
        self.at = None if joint.at is None else moved.inverse().point(joint.at)

    @property
    def kind(self) -> str:
        return self.joint.kind

    def law(self, *places: Place) -> AbstractLaw:
        return self.joint.law(places[0], self._there(places[1]))

    def coordinates(self, *places: Place) -> Coordinates:
        return self.joint.coordinates(places[0], self._there(places[1]))

    def _there(self, place: Place) -> tuple[np.ndarray, np.ndarray]:
        stands = self.moved.then(Placement(*place))
        return stands.R, stands.x
