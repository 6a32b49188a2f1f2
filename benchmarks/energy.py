"""The energy over a long run: retrax, RK4, diffrax and MuJoCo with the same step.

python -m benchmarks.energy            # to results/energy.json
python -m benchmarks.energy --figure   # that to docs/assets/energy.svg
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib as mpl
import numpy as np

import retrax as rx
from benchmarks.results import RESULTS, save
from benchmarks.rivals.quaternion import initial
from retrax.integrators.base import AbstractIntegrator
from retrax.show.style import AMBER, BLUE, GREY, ORANGE, new_figure, style
from retrax_papers.bench.problems import W2

H, STEPS, EVERY, SAVED = 0.05, 2_000_000, 20, 200
FIGURE = Path(__file__).parent.parent / "docs" / "assets" / "energy.svg"
COLOURS = {"retrax": BLUE, "RK4": GREY, "diffrax": ORANGE, "MuJoCo": AMBER}


def moments() -> np.ndarray:
    """Numbers of steps at which the energy is looked at, spread evenly over their logarithms."""
    return EVERY * np.unique(np.geomspace(1, STEPS / EVERY, SAVED).round().astype(int))


def lengths() -> Iterator[int]:
    """How many steps lie between one moment and the next."""
    return map(int, np.diff(moments(), prepend=0))


def measured() -> dict[str, list[float]]:
    """The relative errors of the energy at `moments`, by library and method."""
    return {
        "retrax LieVerlet, order 2": _ours(rx.LieVerlet()),
        "retrax Composition, order 6": _ours(rx.Composition(rx.LieVerlet(), order=6)),
        "RK4 on rotation matrices": _ours(rx.RungeKutta("rk4")),
        "diffrax Dopri5, fixed steps": _of_quaternions(_diffrax()),
        "MuJoCo RK4": _of_quaternions(_mujoco()),
    }


def _ours(integrator: AbstractIntegrator) -> list[float]:
    run = rx.simulate(W2.system(), integrator, W2.start(), h=H, steps=STEPS, save_every=EVERY)
    energy = np.asarray(run.energy())[moments() // EVERY]
    return (energy / run.energy()[0] - 1).tolist()


def _of_quaternions(advance: Callable[[int], np.ndarray]) -> list[float]:
    first = _energy(initial(W2))
    return [_energy(advance(count)) / first - 1 for count in lengths()]


def _energy(state: np.ndarray) -> float:
    """The energy of a quaternion and an angular velocity."""
    q, omega = state[:4] / np.linalg.norm(state[:4]), state[4:]
    w, x, y, z = q
    down = np.array([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)])
    return float(np.array(W2.inertia) @ omega**2 / 2 - np.array(W2.weight) @ down)


def _diffrax() -> Callable[[int], np.ndarray]:
    import jax

    from benchmarks.rivals.diffrax_solvers import solution

    solve = jax.jit(solution(W2, "Dopri5", "steps", jax.numpy.stack))
    state = jax.numpy.asarray(initial(W2))

    def advance(count: int) -> np.ndarray:
        nonlocal state
        state = solve(state, count * H, H)
        return np.asarray(state)

    return advance


def _mujoco() -> Callable[[int], np.ndarray]:
    import mujoco

    from benchmarks.rivals.mujoco_body import model

    body = model(W2, "RK4", H)
    data = mujoco.MjData(body)
    data.qvel[:] = W2.velocity

    def advance(count: int) -> np.ndarray:
        mujoco.mj_step(body, data, count)
        return np.concatenate([data.qpos, data.qvel])

    return advance


def figure() -> None:
    """Draw what was measured."""
    record = json.loads((RESULTS / "energy.json").read_text())["results"]
    t = H * np.array(record["steps"])
    with style(), mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "retrax"}):
        drawn = new_figure(7.2, 3.6, f"3D pendulum, steps of {record['h']} s: error of the energy")
        axes = drawn.subplots()
        for name, errors in record["errors"].items():
            size = np.maximum(np.abs(errors), 1e-17)
            colour = next(c for key, c in COLOURS.items() if name.startswith(key))
            line = "--" if "Composition" in name else "-"
            axes.loglog(t, size, line, label=name, color=colour, linewidth=1.4)
        axes.set_xlabel("time (s)")
        axes.set_ylabel("relative error of the energy")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        drawn.savefig(FIGURE, metadata={"Date": None})


def main() -> None:
    if "--figure" not in sys.argv:
        save("energy", {"h": H, "steps": moments().tolist(), "errors": measured()})
    figure()
    print(f"The figure is {FIGURE.name}.")


if __name__ == "__main__":
    main()
