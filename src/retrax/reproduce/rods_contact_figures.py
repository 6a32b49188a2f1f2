"""Two crossed rods in space with the contact force, and the force along time."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
from mpl_toolkits.mplot3d import Axes3D

from retrax.show.style import BLUE, GREY, ORANGE, new_figure, style
from retrax.trajectory.files import written_whole
from retrax.trajectory.trajectory import Trajectory

_FRAMES = 60


def draw(folder: Path, run: Trajectory) -> tuple[Path, ...]:
    """A figure of the force, and an animation of the rods; returns their paths."""
    force = np.asarray(run.multipliers)
    return _history(folder / "contact-force.png", run, force), _animation(
        folder / "rods-in-contact.gif", run, force
    )


def _history(path: Path, run: Trajectory, force: np.ndarray) -> Path:
    parts = jax.jit(jax.vmap(run.system.contact_force))(run.g, force)
    with style():
        figure = new_figure(9.0, 4.6, "Two rods in rolling contact")
        above, below = figure.subplots(2, 1, sharex=True)
        above.plot(run.t, parts["pressure"], color=BLUE)
        above.set_ylabel("pressure N (N)")
        below.plot(run.t, parts["friction"], color=ORANGE)
        below.set_ylabel("friction needed")
        below.set_xlabel("t (s)")
        with written_whole(path) as temporary:
            figure.savefig(temporary, format="png", dpi=160)
    return path


def _animation(path: Path, run: Trajectory, force: np.ndarray) -> Path:
    from matplotlib.animation import FuncAnimation, PillowWriter

    chosen = np.linspace(0, len(run.t) - 1, min(_FRAMES, len(run.t))).astype(int)
    first, second = (np.asarray(run.g[k][1]) for k in (0, 1))
    strands = jax.jit(jax.vmap(run.system.strands))(run.g)
    middle = np.asarray(jax.vmap(lambda s: (s[0].point + s[1].point) / 2)(strands))
    tip = middle + 10 * force
    with style():
        figure = new_figure(5.0, 4.5, "Two rods in rolling contact, and the force on rod 1")
        axes: Any = figure.add_subplot(projection="3d")
        assert isinstance(axes, Axes3D)
        axes.set(xlim=(-1.2, 1.2), ylim=(-1.4, 1.0), zlim=(-0.5, 0.3))
        lines: list[Any] = [axes.plot([], [], [], color=c, linewidth=5)[0] for c in (BLUE, GREY)]
        arrow: Any = axes.plot([], [], [], color=ORANGE, linewidth=2)[0]

        def show(k):
            for line, rod in zip(lines, (first, second), strict=True):
                line.set_data_3d(*rod[k].T)
            arrow.set_data_3d(*np.stack([middle[k], tip[k]]).T)
            return [*lines, arrow]

        movie = FuncAnimation(figure, show, frames=list(chosen))
        movie.save(path, writer=PillowWriter(fps=15), dpi=80)
    return path
