"""How a run was made, so that it can be made again."""

import datetime
import json
import platform
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import jax


def provenance(system: Any, integrator: Any, backend: str) -> dict[str, str]:
    """Names of what was run and versions of what ran it; for a body in gravity, where up is.

    A system that is more than its group tells says what there is to draw, and one that measures
    more than its invariants in what units, both in JSON.
    """
    upright = getattr(system, "e3_points_up", None)
    drawing = getattr(system, "drawing", None)
    return {
        "system": system.name,
        "group": system.configuration_space.name,
        "integrator": repr(integrator),
        "counted": integrator.counted,
        **({} if upright is None else {"up": "e3" if upright else "-e3"}),
        **({} if drawing is None else {"drawing": drawing}),
        **({"units": json.dumps(system.units)} if system.units else {}),
        "backend": backend,
        "device": jax.devices()[0].device_kind,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        **versions(),
    }


@lru_cache
def versions() -> dict[str, str]:
    """What a run depends on."""
    packages = ("retrax", "jax", "numpy", "llvmlite")
    return {"python": platform.python_version(), **{p: version(p) for p in packages}}
