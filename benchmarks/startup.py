"""How long the first step waits: tracing and compiling, then the same from the cache on disk.

    python -m benchmarks.startup

Each case runs in two fresh processes that share an empty cache folder.
"""

import os
import subprocess
import sys
import tempfile
from typing import Any

from benchmarks.results import save

CASES = {
    "3D pendulum on SO(3), LieVerlet": "pendulum, rx.LieVerlet()",
    "3D pendulum on SO(3), order 8": "pendulum, rx.Composition(rx.LieVerlet(), order=8)",
    "rigid body on SE(3), LieVerlet": "vessel, rx.LieVerlet()",
    "rigid body on SE(3), order 8": "vessel, rx.Composition(rx.LieVerlet(), order=8)",
}
SCRIPT = """
import time
import jax.numpy as jnp
import retrax as rx

pendulum = rx.MechanicalSystem(rx.SO3(), [1.0, 2.8, 2.0], lambda R: -9.81 * R[2, 2])
vessel = rx.MechanicalSystem(
    rx.SE3(), [1.0, 2.0, 2.5, 3.0, 3.0, 3.0], lambda g: 9.81 * (3.0 * g[1][2] + g[0][2, 2])
)
system, integrator = {case}
state = system.state(system.group.identity(), velocity=[0.1] * system.group.dim)
start = time.process_time()
run = rx.simulate(system, integrator, state, h=0.01, steps=10, progress=False)
print(time.process_time() - start, run.compile_seconds)
"""


def start(case: str, cache: str) -> dict[str, float]:
    """Processor seconds of a first call, and the wall seconds of it spent before the first step."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(case=case)],
        env={**os.environ, "RETRAX_CACHE": cache}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    call, compile_wall = map(float, done.stdout.split())
    return {"call_seconds": call, "compile_wall_seconds": compile_wall}


def main() -> None:
    results: list[dict[str, Any]] = []
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as cache:
            first, second = start(case, cache), start(case, cache)
        results.append({"case": name, "first": first, "second": second})
        print(
            f"{name}: {first['call_seconds']:.2f} s, from the cache {second['call_seconds']:.2f} s"
        )
    save("startup", results)


if __name__ == "__main__":
    main()
