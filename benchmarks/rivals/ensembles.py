"""W3: ensembles of free bodies at equal median error, for the libraries that run them."""

from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks import ours
from benchmarks.methods import Method, matched
from benchmarks.rivals.quaternion import ensemble_initial
from retrax_papers.bench import kernels
from retrax_papers.bench.ensembles import MEMBERS, STEPS, H
from retrax_papers.bench.problems import W1, attitude_error, free_bodies
from retrax_papers.bench.timing import paired, spread

END = STEPS * H
# MuJoCo would take minutes for all of them; the ratio is that per body.
FEWER = {"mujoco_body": 1000}


def reference(packed: np.ndarray) -> np.ndarray:
    """R of every body at the end, by order 8 in C at steps of 0.05."""
    steps = round(END / 0.05)
    velocities = packed[9:].T / np.array(W1.inertia)
    rows = [
        kernels.single(replace(W1, velocity=tuple(v)), END / steps, steps, order=8)[0][-1, :9]
        for v in velocities
    ]
    return np.reshape(rows, (-1, 3, 3))


def methods(rivals: list[ModuleType], members: int) -> Iterator[tuple[Method, int]]:
    """Ours, then those of the rivals that run ensembles, and the number of bodies of each."""
    system, states, packed = free_bodies(members)
    yield from ((method, members) for method in ours.ensemble_methods(system, states, END))
    starts = ensemble_initial(W1, packed)
    for rival in rivals:
        if hasattr(rival, "ensemble_methods"):
            count = min(FEWER.get(rival.__name__.rsplit(".", 1)[-1], members), members)
            for method in rival.ensemble_methods(W1, starts[:, :count], END):
                yield method, count


def compare(rivals: list[ModuleType], members: int = MEMBERS) -> dict[str, Any]:
    """Each ensemble, to the median error of the C kernel at h = 0.01, against that kernel."""
    packed = free_bodies(members)[2]
    exact, rows = reference(packed), []

    def c():
        return kernels.ensemble(packed, W1.inertia, H, STEPS)

    target = float(np.median(attitude_error(ours.attitude(c()), exact)))
    print(f"{members} free bodies, T = {END:g}, median error {target:.2e} rad")
    for method, count in methods(rivals, members):
        row = {"library": method.library, "method": method.name, "members": count}
        match = matched(method, exact[:count], target)
        if match is None:
            print(f"  {method.library} {method.name} does not reach it", flush=True)
            rows.append({**row, "reached": False})
            continue
        timing = paired(match.call, c, pairs=5)
        for key in ("ratio", "ratio_min", "ratio_max"):
            timing[key] *= members / count
        print(
            f"  {method.library} {method.name}: ratio {spread(timing)}, {method.knob} "
            f"{match.setting:g}, error {match.error:.1e}",
            flush=True,
        )
        found = {"knob": method.knob, "setting": match.setting, "error": match.error}
        rows.append({**row, "reached": True, **found, **timing})
    return {"members": members, "steps": STEPS, "h": H, "target": target, "rows": rows}
