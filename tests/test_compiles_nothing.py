"""XLA compiles nothing where nothing is differentiated: each script in a process of its own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COUNT = """
import traceback
import jax.monitoring
compiled = []

def heard(event, duration, **_):
    if event.endswith("backend_compile_duration"):
        frames = [f for f in traceback.extract_stack() if "retrax" in f.filename]
        compiled.append(f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "outside")

jax.monitoring.register_event_duration_secs_listener(heard)
"""
CASES = """
from retrax.systems.catalogue import CASES
for case in CASES.values():
    case.make()
"""
LOOKED_AT = """
import numpy as np
import retrax as rx

def lagrangian(g, xi):
    first, second = g[0], g[1]
    w, v = xi[:3], xi[3:]
    arm = first @ np.array([0.1, 0.2, 1.0]) + second @ np.array([0.3, -0.1, 0.7])
    turning = w @ (np.array([1.0, 1.7, 2.3]) * w) + v @ (np.array([0.8, 0.9, 1.1]) * v)
    return turning / 2 + 0.2 * (first @ w) @ (second @ v) - 9.81 * arm[2]

pendulum = rx.LagrangianSystem(rx.Power(rx.SO3(), 2), lagrangian)
start = pendulum.state(np.stack([np.eye(3)] * 2), velocity=[0.3, 0.1, -0.2, 0.5, 0.2, 0.1])
run = rx.simulate(pendulum, rx.LieVerlet(), start, h=0.01, steps=100)
assert "spatial momentum" in run.summary()
sleigh = rx.systems.ChaplyginSleigh(mass=1.5, inertia=0.8, arm=0.6)
start = sleigh.state((np.eye(2), np.zeros(2)), velocity=[1.25, -0.6, 0.0])
run = rx.simulate(sleigh, "lagrange-d-alembert", start, h=0.01, steps=100)
run.summary(), run.measures(), run.along(lambda state: state.g[1]), run.final
run.save("run.nc")
again = rx.load("run.nc")
again.summary()
again.report("run.html")
rx.simulate(again.system, again.integrator, again.final, h=0.01, steps=10).summary()
"""
CHECKED = """
import retrax as rx
rx.testing.check_group(rx.SE3())
rx.testing.check_retraction(rx.Cayley(), rx.SO3())
rx.testing.check_space(rx.Sphere(3))
rx.testing.check_system(rx.systems.HeavyTop([1.0, 1.7, 2.3], 1.0, [0.1, 0.2, 0.9]))
rx.testing.check_integrator(rx.LieVerlet())
"""


def ten_lines() -> str:
    """The first program of the README."""
    found = re.search(r"## Ten lines\s+```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert found
    return found[1]


@pytest.mark.parametrize(
    "script",
    [ten_lines(), CASES, LOOKED_AT, CHECKED],
    ids=["README", "ready systems", "summary, save, load, report", "checks"],
)
def test_nothing_is_compiled_by_xla(script, tmp_path):
    text = COUNT + script + "\nassert not compiled, sorted(set(compiled))\n"
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_page_is_written_without_matplotlib_and_a_file_without_xarray(tmp_path):
    text = (
        ten_lines() + "\nimport sys\nassert not {'matplotlib', 'xarray', 'pandas'} & {*sys.modules}"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
