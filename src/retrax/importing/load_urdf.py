"""Load a URDF."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from retrax.errors import BadInput
from retrax.files import as_path
from retrax.importing.build import build
from retrax.importing.geometry import Files
from retrax.importing.loops import Loop, split_loops
from retrax.importing.mesh_path import Packages
from retrax.importing.urdf import read_urdf
from retrax.mechanisms.mechanism import Mechanism
from retrax.numerics.checks import (
    ArrayLike,
    host_finite64,
    quote,
    require_flag,
    require_number,
)
from retrax.numerics.meant import explain_keywords


@explain_keywords
def load_urdf(
    path: str | Path,
    loops: Sequence[Loop] | None = None,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
    floating: bool = False,
    motors: Sequence[str] | None = None,
    density: float | None = None,
    meshes: bool = True,
    packages: Packages | None = None,
) -> Mechanism:
    """Return the mechanism that a URDF describes, drawn with all joints at zero.

    Links that are fixed to each other are one body, named after the first of them; its axes are
    those of that link, its origin the centre of mass. Every link stays in `mechanism.frames`, and
    its name works where a body is wanted. Limits are kept in `mechanism.limits`
    and act with `mechanism.system(limits=True)`.

    **Arguments:**

    - `path`: the file.
    - `loops`: what closes loops in the tree of a URDF. Each is the name of a joint of the file, or
        `(link, link, kind, at)`, with an axis behind where the kind has one. Kinds are `"fixed"`,
        `"spherical"`, `"revolute"`, `"prismatic"`, `"cylindrical"`, `"planar"`. `at` and the axis
        are in space axes, as drawn; for a loop that is not closed as drawn they have two rows: in
        the frames of both links.
    - `gravity`: in m/s^2, three numbers.
    - `floating`: whether the first link moves freely. Else it is the ground.
    - `motors`: the names of the joints that have one; if not given, those with a transmission. An
        input is the torque or force at the joint.
    - `density`: in kg/m^3, of links that have a shape and no `<inertial>`; if not given these weigh
        nothing.
    - `meshes`: whether files of meshes are read.
    - `packages`: folders of `package://` by name; others are looked for above the file.

    **Raises:** `BadInput` for a file that describes no mechanism.
    """
    file = as_path(path, "a URDF")
    gravity = host_finite64("gravity", gravity, (3,))
    cut, closings = split_loops(loops)
    if isinstance(motors, str):
        raise BadInput(f"motors = {quote(motors)} must be a list of names.")
    if density is not None:
        density = require_number("density", density, "> 0", "kg/m^3")
    known = {} if packages is None else packages
    folders = known.values() if isinstance(known, Mapping) else [None]
    if not all(isinstance(folder, str | Path) for folder in folders):
        raise BadInput(f"packages = {quote(packages)} must be folders by name, such as a dict.")
    files = Files(file, known, require_flag("meshes", meshes))
    robot = read_urdf(file, files, density, cut, motors)
    return build(robot, gravity, require_flag("floating", floating), closings)
