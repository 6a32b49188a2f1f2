"""Curves on the unit sphere: solid on the near side, faint on the far side."""

from typing import Any

import numpy as np
from jaxtyping import Float
from mpl_toolkits.mplot3d import Axes3D

from retrax.show.style import GREY

ELEVATION, AZIMUTH = 22.0, -55.0
# Points further apart than this (rad) are not joined: the way between them is unknown.
_FAR_APART = 0.7


def draw_sphere(axes: Axes3D, e3_up: bool = True) -> None:
    """Draw a faint unit sphere with the axes of space, seen from above; `e3_up`: above is e3."""
    ring = np.linspace(0, 2 * np.pi, 241)
    for latitude in np.radians([-60, -30, 0, 30, 60]):
        circle = np.stack(
            [
                np.cos(latitude) * np.cos(ring),
                np.cos(latitude) * np.sin(ring),
                0 * ring + np.sin(latitude),
            ]
        )
        _two_sided(axes, circle.T, e3_up, color=GREY, linewidth=0.4, alpha=0.5)
    for longitude in np.radians(np.arange(0, 180, 30)):
        arc = np.stack(
            [np.cos(ring) * np.cos(longitude), np.cos(ring) * np.sin(longitude), np.sin(ring)]
        )
        _two_sided(axes, arc.T, e3_up, color=GREY, linewidth=0.4, alpha=0.5)
    axes.view_init(elev=ELEVATION if e3_up else -ELEVATION, azim=AZIMUTH, roll=0 if e3_up else 180)
    limits = (-0.84, 0.84)  # what lies outside is drawn all the same; this fills the frame
    axes.set(xlim=limits, ylim=limits, zlim=limits, box_aspect=(1, 1, 1))
    axes.set_axis_off()
    for k, axis in enumerate(np.eye(3)):
        axes.plot(*zip(axis, 1.25 * axis, strict=True), color="#555555", linewidth=0.9)
        x, y, z = 1.36 * axis
        axes.text(x, y, z, f"$e_{k + 1}$", fontsize=9, ha="center", va="center")


def draw_path(
    axes: Axes3D, unit: Float[np.ndarray, "time 3"], colour: str, label: str, e3_up: bool = True
) -> None:
    """Draw the path of a unit vector, or dots if saved states are too far apart to join."""
    cosines = np.sum(unit[1:] * unit[:-1], axis=1)
    joined = not np.any(cosines < np.cos(_FAR_APART))
    look = {"linewidth": 0.8} if joined else {"linestyle": "none", "marker": ".", "markersize": 2.0}
    _two_sided(axes, unit, e3_up, color=colour, **look)
    axes.plot(*unit[0], marker="o", markersize=5, linestyle="none", color=colour, label=label)


def _two_sided(axes: Axes3D, curve: np.ndarray, e3_up: bool, **look: Any) -> None:
    azimuth, elevation = np.radians(AZIMUTH), np.radians(ELEVATION if e3_up else -ELEVATION)
    camera = np.array(
        [
            np.cos(elevation) * np.cos(azimuth),
            np.cos(elevation) * np.sin(azimuth),
            np.sin(elevation),
        ]
    )
    towards = curve @ camera
    alpha = look.pop("alpha", 1.0)
    # Both sides reach a little over the rim, so that no gap shows there.
    for side, opacity in ((towards > -0.02, alpha), (towards < 0.02, 0.22 * alpha)):
        axes.plot(*np.where(side[:, None], curve, np.nan).T, alpha=opacity, **look)
