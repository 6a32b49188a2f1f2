r"""Mass, centre of mass and inertia of what moves as one, and of homogeneous shapes.

A surface of triangles with corners $a, b, c$ is a sum of tetrahedra from the origin, with signs:

$$ V = \sum\tfrac16 d,\qquad Vs = \sum\tfrac d{24}(a + b + c),\qquad
   \int xx^T = \sum\tfrac d{120}\bigl(aa^T + bb^T + cc^T + (a+b+c)(a+b+c)^T\bigr),\tag{1} $$

with $d = a\cdot(b\times c)$.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from retrax.errors import BadInput
from retrax.importing.placement import Matrix, Placement, Vector
from retrax.mechanics import solids


class Solid(NamedTuple):
    """What resists motion, in some frame.

    **Attributes:** `mass`; `centre`: of mass; `inertia`: about the centre, in axes of the frame.
    """

    mass: float
    centre: Vector
    inertia: Matrix

    def transform(self, at: Placement) -> "Solid":
        """Return the solid in the frame in which its own is at `at`."""
        return Solid(self.mass, at.point(self.centre), at.R @ self.inertia @ at.R.T)

    def weighing(self, mass: float) -> "Solid":
        """Return one of the same shape with another mass."""
        return Solid(mass, self.centre, self.inertia * (mass / self.mass))


def together(parts: Sequence[Solid]) -> Solid | None:
    """Return several solids as one, by the theorem of parallel axes; nothing for no mass."""
    mass = sum(part.mass for part in parts)
    if not mass > 0:
        return None
    centre = sum((part.mass * part.centre for part in parts), np.zeros(3)) / mass
    inertia = np.zeros((3, 3))
    for part in parts:
        arm = part.centre - centre
        inertia += part.inertia + part.mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return Solid(mass, centre, inertia)


def box(edges: Vector, density: float) -> Solid:
    """Return a solid block about the origin."""
    mass = density * float(np.prod(edges))
    return Solid(mass, np.zeros(3), solids.box(mass, edges))


def cylinder(radius: float, length: float, density: float) -> Solid:
    """Return a solid cylinder about the origin along e3."""
    mass = density * float(np.pi * radius**2 * length)
    return Solid(mass, np.zeros(3), solids.cylinder(mass, radius, length))


def sphere(radius: float, density: float) -> Solid:
    """Return a solid ball about the origin."""
    mass = density * float(4 / 3 * np.pi * radius**3)
    return Solid(mass, np.zeros(3), solids.sphere(mass, radius))


def integrate_surface(
    corners: Float[np.ndarray, "n 3"], triangles: Int[np.ndarray, "m 3"], density: float, name: str
) -> Solid:
    """Return what a closed surface encloses, by (1).

    **Raises:** `BadInput` for a surface with a hole, or turned inside out in parts.
    """
    _, same = np.unique(corners, axis=0, return_inverse=True)
    faces = same.reshape(-1)[triangles]
    faces = faces[np.all(faces != np.roll(faces, 1, axis=1), axis=1)]
    sides = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    there, back = (np.sort(s @ [len(corners), 1]) for s in (sides, sides[:, ::-1]))
    if not np.array_equal(there, back):
        raise BadInput(
            f"the mesh {name} is not closed, so it has no volume and no inertia: give the link an "
            "<inertial> with mass and inertia."
        )
    a, b, c = corners[triangles].transpose(1, 0, 2)
    d = np.einsum("ni,ni->n", a, np.cross(b, c))
    volume, s = float(np.sum(d)) / 6, a + b + c
    if volume < 0:  # its triangles are listed clockwise
        d, volume = -d, -volume
    if not volume > 0:
        raise BadInput(f"the mesh {name} encloses no volume.")
    centre = d @ s / 24 / volume
    second = sum(np.einsum("n,ni,nj->ij", d, x, x) for x in (a, b, c, s)) / 120
    second = second - volume * np.outer(centre, centre)
    inertia = density * (np.trace(second) * np.eye(3) - second)
    return Solid(density * volume, centre, inertia)
