"""Every integrator on every system it fits: 2 n steps are n steps, a new process, and n more.

    python tests/run/restart_matrix.py all native
    python tests/run/restart_matrix.py few xla

One process makes the runs: all 2 n steps at once, n steps with a checkpoint, n steps and a NetCDF
file. A second process takes up the checkpoint, and starts a new run from the last state in the
NetCDF file. Compared bit by bit: the resumed run with the one that was never stopped, at the same
commits and without any, and the states of the new run with theirs.
"""

import functools
import json
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import retrax as rx
from retrax.systems.catalogue import CASES
from retrax.systems.integrators import INTEGRATORS, TOUCHING

HALF, EVERY, SAVE_EVERY = 20, 8, 3
METHODS = INTEGRATORS | TOUCHING
# Each integrator class once, on systems that compile quickly; the rods and strings are in `all`.
FEW = {
    "heavy-top": ["lie-verlet", "cotangent-lift", "composition-4", "rkmk-4", "runge-kutta-4"],
    "free-rigid-body": ["tangent-lift", "magnus-4", "kahan-attitude", "taylor-4"],
    "group-flow": ["retraction-flow"],
    "suslov-paper": ["lagrange-d-alembert", "hamel-midpoint", "discrete-gradient"],
    "kharlamova": ["projected-lift", "adapted-lift"],
    "euler-top": ["kahan", "kahan-projected"],
    "pendulum3d": ["collocation-4", "galerkin-4", "plain-collocation-4"],
    "strings-in-contact": ["contact-dkd", "contact-midpoint"],
}


@functools.cache
def setting(case: str) -> tuple:
    return group_flow() if case == "group-flow" else CASES[case].make()


def group_flow() -> tuple:
    """A flow on SO(3): what it is made of cannot be stored."""

    def velocity(g):
        return jnp.stack([g[0, 1] + 0.4, 0.5 - g[2, 2] ** 2, 0.3 * g[1, 0]])

    flow = rx.GroupFlow(rx.SO3(), velocity)
    return flow, flow.at(rx.SO3().exp(jnp.array([0.7, -0.4, 0.2])), t=0.3), 0.05, 100


def pairs(which: str) -> Iterator[tuple[str, str]]:
    """The names of systems and integrators that go together, in no order."""
    chosen = [(case, name) for case in (*CASES, "group-flow") for name in METHODS]
    random.Random(0).shuffle(chosen)
    if which != "all":
        chosen = [(case, name) for case, names in FEW.items() for name in names]
    for case, name in chosen:
        (system, state, h, _), method = setting(case), METHODS[name]
        try:
            if system.has_momentum or not method.needs_momentum:
                method.check(system)
                method.check_step(system, state, h)
                yield case, name
        except rx.BadInput:
            continue


def run(case: str, name: str, backend: str, steps: int, state: Any = None, **keep: Any):
    system, begin, h, _ = setting(case)
    state = begin if state is None else state
    options = {"h": h, "steps": steps, "save_every": SAVE_EVERY, "backend": backend, **keep}
    return rx.simulate(system, METHODS[name], state, **options)


def make(folder: Path, case: str, name: str, backend: str, netcdf: bool) -> str | None:
    """What the first process leaves behind; the reason where a run cannot be made."""
    here = folder / case / f"{name}-{backend}"
    here.mkdir(parents=True)
    try:
        plain = run(case, name, backend, 2 * HALF)
    except rx.RetraxError as error:
        return str(error)
    whole = run(case, name, backend, 2 * HALF, checkpoint=here / "whole.zarr", every=EVERY)
    half = run(case, name, backend, HALF, checkpoint=here / "half.zarr", every=EVERY)
    np.savez(here / "plain.npz", *bits(plain))
    np.savez(here / "whole.npz", *bits(whole))
    if netcdf:
        half.save(here / "half.nc")
    return None


def take_up(folder: Path, case: str, name: str, backend: str) -> dict[str, bool]:
    """What the second process finds equal."""
    here = folder / case / f"{name}-{backend}"
    plain, whole = (list(np.load(here / f"{x}.npz").values()) for x in ("plain", "whole"))
    file = here / "half.nc"
    begin = rx.load(file if file.exists() else here / "half.zarr").final
    own = {"system": setting(case)[0]} if case == "group-flow" else {}
    resumed = bits(rx.resume(here / "half.zarr", steps=2 * HALF, **own))
    return {
        "resumed": equal(resumed, whole),
        "without commits": equal(resumed, plain),
        "final": _goes_on(case, name, backend, begin, plain),
    }


def _goes_on(case: str, name: str, backend: str, begin: Any, plain: list[np.ndarray]) -> bool:
    """Whether a new run from a state of the old one has the states of the old one."""
    try:
        after = run(case, name, backend, HALF, begin, save_every=HALF).final
    except rx.BadInput:  # a method that does not stay on its group may leave no state to start from
        return False
    leaves = jax.tree.leaves((after.g, after.momentum))
    return all(np.array_equal(a, b[-1]) for a, b in zip(leaves, plain, strict=False))


def bits(trajectory: rx.Trajectory) -> list[np.ndarray]:
    return [np.asarray(x) for x in jax.tree.leaves((trajectory.states, trajectory.info))]


def equal(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def matrix(which: str, backend: str, folder: Path, seconds: float = np.inf) -> dict[str, Any]:
    """Both processes; what was equal, pair by pair, and what could not run."""
    begun, made, refused, seen = time.monotonic(), [], {}, set()
    for case, name in pairs(which):
        if time.monotonic() - begun > seconds:
            break
        reason = make(folder, case, name, backend, netcdf=case not in seen)
        seen.add(case)
        if reason is None:
            made.append((case, name))
        else:
            refused[f"{case} {name}"] = reason
    (folder / "made.json").write_text(json.dumps(made))
    subprocess.run([sys.executable, __file__, "second", backend, folder], check=True)
    return {"found": json.loads((folder / "found.json").read_text()), "refused": refused}


def second(backend: str, folder: Path) -> None:
    found = {
        f"{case} {name}": take_up(folder, case, name, backend)
        for case, name in json.loads((folder / "made.json").read_text())
    }
    (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "second":
        second(sys.argv[2], Path(sys.argv[3]))
    else:
        limit = float(sys.argv[3]) if len(sys.argv) > 3 else np.inf
        with tempfile.TemporaryDirectory() as temporary:
            result = matrix(sys.argv[1], sys.argv[2], Path(temporary), limit)
        for pair, outcome in result["found"].items():
            print(pair, *(key for key, value in outcome.items() if value), sep=", ")
        for pair, reason in result["refused"].items():
            print("not run:", pair, reason)
