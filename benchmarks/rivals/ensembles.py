"""W3: ensembles of free bodies at equal median error, for the libraries that run them."""

from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks import kernels
from benchmarks.methods import matched
from benchmarks.problems import W1, attitude_error, free_bodies
from benchmarks.rivals.quaternion import ensemble_initial
from benchmarks.timing import paired, spread

MEMBERS, STEPS, H = 10_000, 1000, 0.01
# MuJoCo would take minutes for all of them; the ratio is that per body.
FEWER = {"mujoco_body": 1000}


def reference(packed: np.ndarray) -> np.ndarray:
    """R of every body at the end, by order 8 in C at steps of 0.05."""
    end = STEPS * H
    steps = round(end / 0.05)
    velocities = packed[9:].T / np.array(W1.inertia)
    rows = [
        kernels.single(replace(W1, velocity=tuple(v)), end / steps, steps, order=8)[0][-1, :9]
        for v in velocities
    ]
    return np.reshape(rows, (-1, 3, 3))


def compare(rivals: list[ModuleType]) -> dict[str, Any]:
    """Each ensemble, to the median error of the C kernel at h = 0.01, against that kernel."""
    _, _, packed = free_bodies(MEMBERS)
    exact = reference(packed)

    def c():
        return kernels.ensemble(packed, W1.inertia, H, STEPS)

    target = float(np.median(attitude_error(c()[:9].T.reshape(-1, 3, 3), exact)))
    print(f"{MEMBERS} free bodies, T = {STEPS * H:g}, median error {target:.2e} rad")
    starts, rows = ensemble_initial(W1, packed), []
    for rival in rivals:
        if not hasattr(rival, "ensemble_methods"):
            continue
        members = FEWER.get(rival.__name__.rsplit(".", 1)[-1], MEMBERS)
        for method in rival.ensemble_methods(W1, starts[:, :members], STEPS * H):
            match = matched(method, exact[:members], target)
            row = {"library": method.library, "method": method.name, "members": members}
            if match is None:
                rows.append({**row, "reached": False})
                continue
            result = paired(match.call, c, pairs=5)
            for key in ("ratio", "ratio_min", "ratio_max"):
                result[key] *= MEMBERS / members
            print(f"  {method.library} {method.name}: ratio {spread(result)}")
            rows.append({**row, "reached": True, "error": match.error, **result})
    return {"members": MEMBERS, "steps": STEPS, "h": H, "target": target, "rows": rows}
