r"""A disk that rolls in circles, and the force that makes it.

A coin on its rim that stays upright may roll and turn, but not slide: two constraints on four
velocities. Both rates stay as they are, so that the track is a circle, and the multipliers are the
force of the ground that bends it, $m\,v\,\dot\theta$. `HamelMidpoint` is exact here at any step;
`LagrangeDAlembert` turns it into a circle of another size, by an amount that falls as $h^2$.
"""

import sys

import numpy as np

import retrax as rx
from retrax.show.style import new_figure, style


def main(steps: int = 60):
    disk = rx.systems.RollingDisk(mass=0.5, turning=0.01, rolling=0.02, radius=0.2)
    start = ((np.eye(2), np.zeros(2)), np.zeros(1))
    s0 = disk.state(start, velocity=[1.0, 0.8, 0.0, 4.0])  # turning, along, across, rolling
    figure = new_figure(7.5, 3.2, "Rolling disk, 20 steps a turn: track and force of the ground")
    track, force = figure.subplots(1, 2)
    methods = {"HamelMidpoint": rx.HamelMidpoint(), "LagrangeDAlembert": rx.LagrangeDAlembert()}
    for (label, method), look in zip(methods.items(), ("o-", ".--"), strict=True):
        run = rx.simulate(disk, method, s0, h=np.pi / 10, steps=steps)
        (_, place), _ = run.g
        track.plot(*place.T, look, markersize=3, label=label)
        force.plot(run.t, np.linalg.norm(run.multipliers, axis=1), look, markersize=3)
        assert np.max(run.constraint_violation()) < 1e-14
    track.set(xlabel="x (m)", ylabel="y (m)", aspect="equal")
    track.legend()
    force.set(xlabel="t (s)", ylabel="force of the ground (N)", ylim=(0.0, 0.6))
    return figure


if __name__ == "__main__":
    with style():
        main().savefig(sys.argv[1] if len(sys.argv) > 1 else "rolling_disk.png")
