"""How a run was made, so that it can be made again."""

import datetime
import platform
from importlib.metadata import version
from typing import Any

import jax


def provenance(system: Any, integrator: Any) -> dict[str, str]:
    """Names of what was run and versions of what ran it; for a body in gravity, where up is."""
    vertical = {True: {"up": "e3"}, False: {"up": "-e3"}}
    return {
        "system": system.name,
        "group": system.group.name,
        "integrator": repr(integrator),
        **vertical.get(getattr(system, "e3_points_up", None), {}),
        "device": jax.devices()[0].device_kind,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        **{package: version(package) for package in ("retrax", "jax", "numpy")},
    }
