"""Load a MJCF with MuJoCo's own compiler."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from retrax.errors import BadInput, RetraxError
from retrax.importing.build import build
from retrax.importing.mjcf import read_model
from retrax.mechanisms.mechanism import Mechanism
from retrax.numerics.checks import reason


def load_mjcf(path: str | Path) -> Mechanism:
    """Return the mechanism that a MJCF describes, drawn as the model's `qpos0` says.

    MuJoCo compiles the file, so that defaults, includes, meshes and inertias mean what they mean
    there. Coordinates of joints count from `qpos0`. Several joints of one body become one: two
    hinges a universal joint, two slides and a hinge a planar one; each keeps its name and its
    coordinate. Equalities are exact where MuJoCo's give way. `armature` becomes a rotor that
    follows its joint. Inputs are torques or forces at joints: controls times gear and gain.

    What a mechanism does not have, contacts first of all, is named in a warning.

    **Arguments:** `path`: the file.

    **Raises:** `BadInput` for a file that MuJoCo rejects, and for joints that cannot be combined.
    """
    if find_spec("mujoco") is None:
        raise RetraxError("MJCF is read by MuJoCo: pip install 'retrax[mjcf]'.")
    file = Path(path)
    if not file.is_file():
        raise BadInput(f"{str(path)!r} is not a file.")
    try:
        model = import_module("mujoco").MjModel.from_xml_path(str(file))
    except ValueError as cause:
        raise BadInput(f"MuJoCo rejects {str(path)!r}: {reason(cause)}.") from cause
    return build(read_model(model, file.name), model.opt.gravity, floating=False)
