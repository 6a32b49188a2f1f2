r"""The measurements of the paper on Kahan's integrator for the free rigid body.

Euler's top with $\mathbb I = (3, 2, 1)$ from $m = (1, 1, 1)$ unless something else is said, and
what is not in the copy of the paper at hand: symmetric tops, blow-up, predators and prey.
"""

import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from retrax.errors import StepFailed
from retrax.groups.so3 import SO3
from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.composition import Composition
from retrax.integrators.kahan import Kahan, RadialProjection, kahan_map, step_jacobian
from retrax.integrators.rkmk import RungeKutta
from retrax.run.ensemble import ensemble
from retrax.run.simulate import simulate
from retrax.show.style import extremes
from retrax.systems.euler_top import EulerTop, exact_momentum
from retrax.systems.lotka_volterra import LotkaVolterra
from retrax_papers.report import Kept
from retrax_papers.report import kept as kept_row

MOMENTS, START = (3.0, 2.0, 1.0), np.array([1.0, 1.0, 1.0])
# Where the structure is looked at, and with which steps.
POINT, SIZES = (1.0, 0.5, 2.0), (0.4, 0.2, 0.1, 0.05)
TOPS = {"3, 2, 1": MOMENTS, "3, 3, 1": (3.0, 3.0, 1.0), "3, 1, 1": (3.0, 1.0, 1.0)}
METHODS: dict[str, AbstractIntegrator] = {
    "Kahan": Kahan(),
    "Kahan, order 4, projected": RadialProjection(Composition(Kahan(), order=4)),
    "Kahan, order 6, projected": RadialProjection(Composition(Kahan(), order=6)),
    "explicit Euler": RungeKutta("euler"),
    "Runge-Kutta 4": RungeKutta("rk4"),
}
ORBITS: dict[str, tuple[AbstractIntegrator, float, int]] = {
    "Kahan": (Kahan(), 0.5, 2000),
    "explicit Euler": (RungeKutta("euler"), 0.1, 200),
    "Runge-Kutta 4": (RungeKutta("rk4"), 1.0, 1000),
}
PREY: dict[str, tuple[AbstractIntegrator, float, int]] = {
    "Kahan": (Kahan(), 0.1, 1000),
    "explicit Euler": (RungeKutta("euler"), 0.1, 200),
    "Runge-Kutta 4": (RungeKutta("rk4"), 0.9, 300),
}
# Of curves that are drawn.
_POINTS = 2000
# Four orbits about each of two axes, and two close to the separatrix, as directions.
_DIRECTIONS = ((0.95, 0.1, 0.3), (0.8, 0.1, 0.55), (0.3, 0.1, 0.95), (0.45, 0.15, 0.88))


class Structure(NamedTuple):
    """By how much one step from `POINT` misses three laws, for each of `SIZES`."""

    bracket: list[float]
    energy: list[float]
    casimir: list[float]


class LongRun(NamedTuple):
    """A long run: energy bounds at both ends of it, what the map conserves, and curves of both."""

    energy_first: tuple[float, float]
    energy_last: tuple[float, float]
    ratio: float
    casimir_over_b: float
    formula: float
    curves: dict[str, tuple[np.ndarray, np.ndarray]]
    kept: list[Kept]

    def numbers(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._fields[:5]}


class Boundary(NamedTuple):
    """Whether runs met a pole, over $h\\,m_2(0)$ and $h\\,m_1(0)$, and the sharp bound."""

    second: np.ndarray
    first: np.ndarray
    failed_step: np.ndarray
    bound: float


def structure(moments: tuple[float, ...]) -> Structure:
    """The defects of the Lie-Poisson bracket, of H and of C in one step."""
    top, m, hat = EulerTop(moments, physical=False), jnp.array(POINT), SO3().hat

    @jax.jit
    def defects(h):
        after, J = kahan_map(top, m, h), step_jacobian(top, m, h)
        bracket = jnp.max(jnp.abs(J @ hat(m) @ J.T - hat(after)))
        energy = top.hamiltonian_energy(after, m) - top.hamiltonian_energy(m, m)
        return bracket, jnp.abs(energy), jnp.abs(top.casimir(after) - top.casimir(m))

    rows = [[float(x) for x in defects(jnp.asarray(h))] for h in SIZES]
    return Structure(*([row[k] for row in rows] for k in range(3)))


def error_runs() -> dict[str, list[tuple[float, float]]]:
    """Pairs (h, error of the momentum at t = 100) for every method."""
    top, out = EulerTop(MOMENTS), {}
    exact = exact_momentum(top, START, 100.0)
    for name, method in METHODS.items():
        out[name] = []
        for n in (250, 500, 1000, 2000, 4000):
            try:
                run = simulate(top, method, START, h=100 / n, steps=n, save_every=n, progress=False)
            except StepFailed:  # explicit Euler at coarse steps
                continue
            out[name].append((100 / n, float(np.max(np.abs(run.y[-1] - exact)))))
    return out


def long_run(h: float, steps: int) -> LongRun:
    """Kahan's method for a long time: bounded energy, exact integrals of the map."""
    top = EulerTop(MOMENTS)
    run = simulate(top, Kahan(), START, h=h, steps=steps, progress=False)
    kept, tenth = run.invariants(), max(steps // 10, 1)
    energy = kept["energy"]
    predict = jax.jit(jax.vmap(lambda m: top.relative_error(jnp.array(START), m, h)))
    missed = energy / energy[0] - 1 - np.asarray(predict(run.y))
    names = ("energy", "H/C", "C/B2")
    drawn = {name: extremes(kept[name], _POINTS) for name in names}
    return LongRun(
        energy_first=(float(energy[: tenth + 1].min()), float(energy[: tenth + 1].max())),
        energy_last=(float(energy[-tenth:].min()), float(energy[-tenth:].max())),
        ratio=float(np.ptp(kept["H/C"])),
        casimir_over_b=float(np.ptp(kept["C/B2"])),
        formula=float(np.max(np.abs(missed))),
        curves={name: (run.t[at], kept[name][at]) for name, at in drawn.items()},
        kept=[kept_row(f"Kahan, h = {h:g}", name, run.t, kept[name]) for name in names],
    )


def orbit_runs() -> dict[str, list[np.ndarray]]:
    """Orbits of four starts on the momentum sphere, by each method and exactly."""
    top = EulerTop(MOMENTS)
    starts = [np.array(d) / np.linalg.norm(d) for d in _DIRECTIONS]
    out = {
        name: [simulate(top, method, m, h=h, steps=n, progress=False).y for m in starts]
        for name, (method, h, n) in ORBITS.items()
    }
    times = np.linspace(0.0, 60.0, 2001)
    return {"exact": [exact_momentum(top, m, times) for m in starts], **out}


def prey_runs() -> dict[str, np.ndarray]:
    """Predators and prey from (2, 1)."""
    system = LotkaVolterra.predator_prey()
    return {
        name: simulate(system, method, np.array([2.0, 1.0]), h=h, steps=n, progress=False).y
        for name, (method, h, n) in PREY.items()
    }


def boundary(cells: int = 100, steps: int = 2000) -> Boundary:
    r"""Which starts meet a pole, with $h = 1$: $\Phi_h(sx) = s\,\Phi_{sh}(x)$ makes $h$ a scale."""
    top = EulerTop(MOMENTS)
    weight = float(np.sqrt(top.rates[0] * top.rates[2]))
    second, first = np.linspace(0.05, 12.0, cells), np.linspace(0.05, 12.0, cells)
    grid = np.stack([*np.meshgrid(first, second, indexing="ij"), np.full((cells, cells), 1.0)], -1)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* members failed")
        starts: Any = jnp.asarray(grid.reshape(-1, 3))
        runs = ensemble(top, Kahan(), starts, h=1.0, steps=steps, progress=False)
    failed = runs["failed_step"].values.reshape(cells, cells)
    return Boundary(second, first, failed, 2 / weight)


def pole() -> tuple[int, float]:
    """The step at which h = 7 meets a pole, and the determinant there."""
    top, m, h = EulerTop(MOMENTS), jnp.array(START), jnp.asarray(7.0)
    for k in range(1, 100):
        value = float(jnp.linalg.det(jnp.eye(3) - h / 2 * top.jacobian(m)))
        if value <= 0:
            return k, value
        m = kahan_map(top, m, h)
    return -1, float("nan")
