"""Bodies that touch, for `retrax run`, each with a start, a step and a number of steps."""

import numpy as np

from retrax.contact.contacts import Contacts
from retrax.contact.shapes import Ball, Box, Plane
from retrax.mechanisms.mechanism import Mechanism
from retrax.systems.case import Example


def bowling_ball() -> Example:
    """Return a bowling ball, thrown without spin: it slides, and rolls after 0.87 s."""
    mass, radius = 7.0, 0.108
    lane = Mechanism()
    lane.body("ball", mass=mass, inertia=[0.4 * mass * radius**2] * 3, at=[0, 0, radius])
    ball = Ball(radius, body="ball", name="ball")
    contact = Contacts([(ball, Plane(name="lane"))], friction=0.2)
    system = lane.system(contact=contact)
    start = system.assemble(velocities={"ball": [0.0, 0.0, 0.0, 6.0, 0.0, 0.0]})
    return system, start, 0.005, 600


def thrown_box() -> Example:
    """Return a box, thrown and spinning, that bounces, tumbles, slides and comes to rest."""
    mass, size = 1.3, np.array([0.3, 0.2, 0.1])
    room = Mechanism()
    room.body("box", mass=mass, inertia=mass / 12 * (np.sum(size**2) - size**2), at=[0, 0, 0.6])
    box = Box(size, body="box", name="box")
    contact = Contacts([(box, Plane(name="floor"))], friction=0.4, restitution=0.3)
    system = room.system(contact=contact)
    start = system.assemble(velocities={"box": [4.0, 7.0, 2.0, 1.5, 0.3, 1.0]})
    return system, start, 0.002, 1_500
