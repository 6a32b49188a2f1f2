"""Load a MJCF with MuJoCo's own compiler."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from retrax.errors import BadInput, RetraxError
from retrax.files import as_path, require_readable
from retrax.importing.build import build
from retrax.importing.flags import list_switched_off
from retrax.importing.mjcf import read_model
from retrax.mechanisms.mechanism import Mechanism
from retrax.numerics.checks import reason
from retrax.numerics.meant import explain_keywords


@explain_keywords
def load_mjcf(path: str | Path) -> Mechanism:
    """Return the mechanism that a MJCF describes, drawn as the model's `qpos0` says.

    MuJoCo compiles the file, so that defaults, includes, meshes and inertias mean what they mean
    there. Coordinates of joints count from `qpos0`. Several joints of one body become one: two
    hinges a universal joint, two slides and a hinge a planar one; each keeps its name and its
    coordinate. Equalities are exact where MuJoCo's give way. `armature` becomes a rotor that
    follows its joint. Inputs are torques or forces at joints: controls times gear and gain. What
    the flags of the file disable (gravity, springs, actuation and so on) does not act here either.

    What a mechanism does not have, contacts first of all, is named in a warning.

    **Arguments:** `path`: the file.

    **Raises:** `BadInput` for a file that MuJoCo rejects, and for joints that cannot be combined.
    """
    if find_spec("mujoco") is None:
        raise RetraxError("MJCF is read by MuJoCo: pip install 'retrax[mjcf]'.")
    file = as_path(path, "a MJCF")
    if not require_readable(file).is_file():
        raise BadInput(f"{str(path)!r} is not a file.")
    try:
        mujoco = import_module("mujoco")
        model = mujoco.MjModel.from_xml_path(str(file))
    except ValueError as cause:
        raise BadInput(f"MuJoCo rejects {str(path)!r}: {reason(cause)}.") from cause
    bits = {name: int(bit) for name, bit in mujoco.mjtDisableBit.__members__.items()}
    off = list_switched_off(model, bits)
    gravity = np.zeros(3) if off.gravity else model.opt.gravity
    return build(read_model(model, file.name, off), gravity, floating=False)
