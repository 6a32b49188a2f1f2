"""What the page on choosing an integrator says is what was measured."""

import importlib.util
import re
from pathlib import Path

import retrax as rx
from retrax.systems.integrators import TOUCHING

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/choosing-an-integrator.md").read_text()
BENCHMARKS = (ROOT / "docs/benchmarks.md").read_text()


def test_every_integrator_is_in_the_table():
    classes = {type(integrator).__name__ for integrator in (rx.INTEGRATORS | TOUCHING).values()}
    assert not {name for name in classes | {"Adaptive"} if f"| `{name}(" not in PAGE}


def test_the_winners_are_those_of_the_benchmarks():
    spec = importlib.util.spec_from_file_location("b", ROOT / "docs/hooks/benchmarks.py")
    assert spec and spec.loader
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    fastest = hook.fastest()
    assert [float(error) for error in fastest] == [1e-3, 1e-6, 1e-9, 1e-11]
    winners = [methods["retrax, loop alone"][0] for methods in fastest.values()]
    assert winners[1:] == [f"Collocation(gauss({s}))" for s in (4, 8, 8)]
    assert min(f["retrax"][1] - f["retrax, loop alone"][1] for f in fastest.values()) > 200
    assert all(f["heyoka"][1] < f["retrax, loop alone"][1] for f in fastest.values())


def _loops() -> dict[str, list[float | None]]:
    """Ratios to C of the compiled loops, at 1e-3, 1e-6, 1e-9 and 1e-11 rad."""
    part = BENCHMARKS.split("### One 3D pendulum, T = 30")[1].split("###")[0]
    rows = re.findall(r"^\| retrax \| (.*), loop alone \| (.*) \|$", part, re.M)
    ratios = {}
    for method, cells in rows:
        found = [re.search(r"ms, (\S+) \[", cell) for cell in cells.split(" | ")]
        ratios[method] = [float(match[1]) if match else None for match in found]
    return ratios


def test_what_is_said_of_small_steps():
    loops = _loops()
    eighth = loops["Composition(LieVerlet(), order=8)"]
    for column in (1, 2, 3):
        reached = [ratios[column] for ratios in loops.values() if ratios[column] is not None]
        assert eighth[column] == min(reached)
    coarse = [ratios[0] for ratios in loops.values()]
    assert max(coarse) / min(coarse) < 2
    assert loops["LieVerlet()"][3] is None


def test_what_is_said_of_ensembles():
    part = BENCHMARKS.split("## 10,000 pendulums")[1]
    times = dict(re.findall(r"^\| retrax \| `(.*?)` \| .*? \| (\d+) \|$", part, re.M))
    ratio = int(times["Collocation(gauss(8))"]) / int(times["Composition(LieVerlet(), order=8)"])
    assert 1.7 < ratio < 2.3
