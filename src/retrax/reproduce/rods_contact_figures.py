"""Two crossed rods in space with the contact force, and the force along time."""

from typing import Any

import jax
import numpy as np

from retrax.reproduce.drawings import Drawing, along_time, columns
from retrax.show.style import BLUE, GREEN, GREY, ORANGE, new_figure, style
from retrax.trajectory.trajectory import Trajectory

_SKETCHED = 2.0  # the time of the sketch, in seconds
_LONG = 10.0  # metres of arrow for a newton


def figure_1(run: Trajectory) -> Drawing:
    """The two rods at one moment, their centres of contact, and the force on the first."""
    k = int(np.argmin(np.abs(run.t - _SKETCHED)))
    now = jax.tree.map(lambda x: x[k], run.g)
    strands = run.system.strands(now)
    centres = np.stack([np.asarray(strand.point) for strand in strands])
    rods = [np.asarray(now[i][1]) for i in (0, 1)]
    middle, force = centres.mean(axis=0), np.asarray(run.multipliers[k])
    with style():
        figure = new_figure(7.5, 4.6, f"Two rods in contact (Fig. 1), at t = {run.t[k]:g} s")
        axes: Any = figure.add_subplot(projection="3d")
        for rod, colour, name in zip(rods, (BLUE, GREY), ("rod 1", "rod 2"), strict=True):
            axes.plot(*rod.T, color=colour, lw=6, alpha=0.6, solid_capstyle="round", label=name)
            axes.plot(*rod.T, ".", color=colour, ms=3)
        axes.plot(*centres.T, "o-", color=GREEN, ms=4, label="$r_1$, $r_2$ at the contact")
        arrow = np.stack([middle, middle + _LONG * force])
        axes.plot(*arrow.T, color=ORANGE, lw=2.2, label="$\\lambda$, the force on rod 1")
        axes.set(xlim=(-1.2, 1.2), ylim=(-1.4, 1.0), zlim=(-0.5, 0.3))
        axes.set(xlabel="x (m)", ylabel="y (m)", zlabel="z (m)")
        axes.set_box_aspect((2.4, 2.4, 1.0), zoom=1.2)
        axes.view_init(elev=18, azim=-60)
        axes.legend(loc="upper left")
    data = columns(
        rod=("rod", [1, 2], "1", "rod"),
        axis=("axis", np.array(["x", "y", "z"], dtype=object), "1", "axis of space"),
        position=(("rod", "node", "axis"), np.stack(rods), "m", "nodes of the centrelines"),
        centre=(("rod", "axis"), centres, "m", "centres of the discs in contact"),
        force=("axis", force, "N", "contact force on rod 1"),
    )
    return Drawing(
        "figure-1",
        "Fig. 1: two rods in contact, drawn from a run",
        "The line through the centres r1, r2 of the discs in contact passes through the point of "
        "contact; the arrow is the force on the first rod, 10 m for a newton.",
        figure,
        data,
    )


def force_drawing(run: Trajectory) -> Drawing:
    """Pressure and friction along time."""
    parts = jax.jit(jax.vmap(run.system.contact_force))(run.g, np.asarray(run.multipliers))
    pressure, friction = np.asarray(parts["pressure"]), np.asarray(parts["friction"])
    with style():
        figure = new_figure(9.0, 4.6, "Two rods in rolling contact")
        above, below = figure.subplots(2, 1, sharex=True)
        above.plot(run.t, pressure, color=BLUE)
        above.set_ylabel("pressure N (N)")
        below.plot(run.t, friction, color=ORANGE)
        below.set_ylabel("friction needed")
        below.set_xlabel("t (s)")
    curves = {"pressure": (pressure, "N"), "friction needed": (friction, "1")}
    return Drawing(
        "contact-force",
        "The contact force of two rods",
        "Beyond the paper: the pressure, and the coefficient of friction that rolling without slip "
        "needs. Rods of 20 elements, clamped, stretched by 1.2, pressed together and kicked.",
        figure,
        along_time(run.t, curves),
    )
