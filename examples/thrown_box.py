r"""A box that is thrown, tumbles and comes to rest, and where its energy went.

A size, a friction and a restitution describe the contact; the step finds out which of the eight
corners hit, slip, stick and let go. Nothing overlaps, the box at rest does not move at all, and the
energy book closes: what friction and impacts took is what is missing.
"""

import sys

import numpy as np

import retrax as rx
from retrax.show.style import new_figure, style


def main(steps: int = 500):
    size, mass = np.array([0.3, 0.2, 0.1]), 1.3
    room = rx.Mechanism(gravity=[0, 0, -9.81])
    room.body("box", mass=mass, inertia=mass / 12 * (sum(size**2) - size**2), at=[0, 0, 0.6])
    box, floor = rx.Box(size, body="box", name="box"), rx.Plane(name="floor")
    system = room.system(contact=rx.Contacts([(box, floor)], friction=0.4, restitution=0.3))
    start = system.assemble(velocities={"box": [4.0, 7.0, 2.0, 1.5, 0.3, 1.0]})
    run = rx.simulate(system, rx.NonsmoothRattle(), start, h=0.002, steps=steps)

    figure = new_figure(7.5, 3.2, "A thrown box: height of its corners, and its energy book")
    heights, energies = figure.subplots(1, 2)
    turned, centre = (np.asarray(x)[:, 0] for x in run.g)
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, 8)
    corners = centre[:, 2, None] + (turned @ (signs * size[:, None] / 2))[:, 2]
    assert corners.min() > -1e-12
    heights.plot(run.t, corners, linewidth=0.8)
    heights.set(xlabel="t (s)", ylabel="height (m)")
    book = run.energy_book()
    energies.plot(run.t, -book.change, label="lost")
    energies.plot(run.t, book.friction_work, label="to friction")
    energies.plot(run.t, book.impact_loss, label="to impacts")
    energies.set(xlabel="t (s)", ylabel="energy (J)")
    energies.legend()
    assert np.max(np.abs(book.difference)) < 1e-5
    return figure


if __name__ == "__main__":
    with style():
        main().savefig(sys.argv[1] if len(sys.argv) > 1 else "thrown_box.png")
