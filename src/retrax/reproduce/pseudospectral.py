r"""The paper on geometric pseudospectral methods, measured on its 3D pendulum.

$J = \mathrm{diag}(1, 2.8, 2)$, arm $e_3$, $\omega_0 = (0.5, -0.5, 0.4)$, $h = 0.05$ s for 30 s, and
what the paper does not look at: converged iterations, long times, a symplectic method.
"""

from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from retrax.analysis.symplecticity import symplecticity
from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.collocation import Collocation
from retrax.integrators.galerkin_variational import GalerkinVariational
from retrax.integrators.magnus import Magnus
from retrax.integrators.plain_collocation import PlainCollocation
from retrax.mechanics.state import State
from retrax.numerics.nodes import gauss, lobatto, radau
from retrax.reproduce.printed_pseudospectral import LoosePlainGauss, PrintedAlgorithm
from retrax.reproduce.pseudospectral_reference import REFERENCE
from retrax.reproduce.report import Reproduction
from retrax.simulate.simulate import simulate
from retrax.systems.heavy_body import Pendulum3D

TITLE = "Geometric Pseudospectral Method on Lie Group with application to 3D Pendulum"
SHORT: dict[str, AbstractIntegrator] = {
    "geometric Gauss": Collocation(gauss(2)),
    "plain Gauss": PlainCollocation(gauss(2)),
    "geometric Radau": Collocation(radau(2)),
    "plain Radau": PlainCollocation(radau(2)),
    "geometric Lobatto": Collocation(lobatto(3)),
    "plain Lobatto": PlainCollocation(lobatto(3)),
    "centred Gauss": Collocation(gauss(2), centred=True),
    "spatial Gauss": Collocation(gauss(2), form="spatial"),
    "SE(3) Gauss": Collocation(gauss(2), form="se3"),
    "Magnus": Magnus(4),
    "variational Gauss": GalerkinVariational(gauss(2)),
    "plain Gauss, stopped at 1e-10": LoosePlainGauss(1e-10),
}
LONG: dict[str, AbstractIntegrator] = {
    "geometric Gauss": Collocation(gauss(2)),
    "centred Gauss": Collocation(gauss(2), centred=True),
    "variational Gauss": GalerkinVariational(gauss(2)),
    "plain Gauss": PlainCollocation(gauss(2)),
}
PRINTED: dict[str, AbstractIntegrator] = {
    "as printed": PrintedAlgorithm(),
    "velocity corrected": PrintedAlgorithm(corrected_velocity=True),
    "both corrected": PrintedAlgorithm(corrected_velocity=True, corrected_sign=True),
}
SIZES = (0.2, 0.1, 0.05)
CHAOTIC = (2.0, -3.0, 1.0)
# Where the linear parts of the long runs are compared: a coarse step, so that they can be seen.
LONG_STEP = 0.1


class Short(NamedTuple):
    """One method for 30 s; the arrays are along time."""

    error: float
    energy: float
    momentum: float
    group: float
    t: np.ndarray
    velocity: np.ndarray
    energies: np.ndarray
    momenta: np.ndarray
    defects: np.ndarray

    def numbers(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in self._fields[:4]}


class Long(NamedTuple):
    """The energy of a long run: its largest error, its slope per second, and samples of it."""

    largest: float
    slope: float
    t: np.ndarray
    errors: np.ndarray


class Measured(NamedTuple):
    """Everything that was measured."""

    short: dict[str, Short]
    long: dict[str, Long]
    chaotic: dict[str, Long]
    printed: dict[str, list[float]]
    printed_one: tuple[float, float]
    convergence: dict[int, list[tuple[float, float]]]
    spectral: list[tuple[int, float]]
    defects: dict[str, float]
    printed_energy: tuple[float, float]


def reproduce(folder: Path, steps: int = 100_000) -> Reproduction:
    """Measure everything, draw the figures into `folder`, and say what was found.

    **Arguments:** `steps`: of the long runs.
    """
    from retrax.reproduce.pseudospectral_figures import draw
    from retrax.reproduce.pseudospectral_findings import findings

    measured = measure(steps)
    numbers = {
        "30 s": {name: one.numbers() for name, one in measured.short.items()},
        "long runs": {name: [one.largest, one.slope] for name, one in measured.long.items()},
        "chaotic": {name: [one.largest, one.slope] for name, one in measured.chaotic.items()},
        "printed, t = 10": measured.printed,
        "printed, t = 1": measured.printed_one,
        "errors at t = 10": {f"s = {s}": dict(rows) for s, rows in measured.convergence.items()},
        "h = 1": dict(measured.spectral),
        "symplectic defects": measured.defects,
        "printed energy": measured.printed_energy,
    }
    figures = draw(folder, measured)
    return Reproduction("pseudospectral", TITLE, tuple(findings(measured)), numbers, tuple(figures))


def measure(steps: int) -> Measured:
    """All numbers and curves."""
    system, state, _, _ = Pendulum3D.paper()
    wild = system.state(jnp.eye(3), velocity=CHAOTIC)
    short = {name: short_run(method) for name, method in SHORT.items()}
    start, later = short["geometric Gauss"], 20  # t = 1
    return Measured(
        short=short,
        long={name: long_run(method, state, steps) for name, method in LONG.items()},
        chaotic={name: long_run(method, wild, steps // 4, 0.05) for name, method in LONG.items()},
        printed={n: [end_error(m, 10.0, h)[0] for h in SIZES] for n, m in PRINTED.items()},
        printed_one=end_error(PRINTED["as printed"], 1.0, 0.0125)[1:],
        convergence={
            s: [(h, end_error(Collocation(gauss(s)), 10.0, h)[0]) for h in SIZES]
            for s in (1, 2, 3, 4)
        },
        spectral=[(s, end_error(Collocation(gauss(s)), 10.0, 1.0)[0]) for s in (4, 8, 12)],
        defects={
            name: symplecticity(system, SHORT[name], state, h=0.2)
            for name in ("geometric Gauss", "variational Gauss")
        },
        printed_energy=(printed_energy(start, 0), printed_energy(start, later)),
    )


def short_run(method: AbstractIntegrator) -> Short:
    """The paper's 30 s: what its figures show, and the error against the reference solution."""
    system, state, h, steps = Pendulum3D.paper()
    run = simulate(system, method, state, h=h, steps=steps, progress=False)
    kept = run.invariants()
    energies = kept["energy"] - kept["energy"][0]
    vertical = np.einsum("ni,ni->n", run.g[:, 2], run.momentum)
    momenta = vertical - vertical[0]
    defects = np.linalg.norm(np.einsum("nji,njk->nik", run.g, run.g) - np.eye(3), axis=(1, 2))
    R, omega = REFERENCE[30.0]
    error = max(np.max(np.abs(run.g[-1] - R)), np.max(np.abs(run.velocity[-1] - omega)))
    energy, momentum, group = (float(np.max(np.abs(x))) for x in (energies, momenta, defects))
    curves = (run.t, run.velocity, energies, momenta, defects)
    return Short(float(error), energy, momentum, group, *curves)


def long_run(method: AbstractIntegrator, state: State, steps: int, h: float = LONG_STEP) -> Long:
    """The energy over many steps."""
    system = Pendulum3D.paper()[0]
    every = max(steps // 2000, 1)
    run = simulate(system, method, state, h=h, steps=steps, save_every=every, progress=False)
    energy = run.invariants()["energy"]
    errors = energy - energy[0]
    slope = float(np.polyfit(run.t, errors, 1)[0])
    return Long(float(np.max(np.abs(errors))), slope, run.t, errors)


def end_error(method: AbstractIntegrator, time: float, h: float) -> tuple[float, float, float]:
    """The largest error of (R, omega) at `time`, that of R, and that of omega."""
    system, state, _, _ = Pendulum3D.paper()
    n = round(time / h)
    run = simulate(system, method, state, h=time / n, steps=n, save_every=n, progress=False)
    R, omega = REFERENCE[time]
    apart = float(np.max(np.abs(run.g[-1] - R))), float(np.max(np.abs(run.velocity[-1] - omega)))
    return max(apart), *apart


def printed_energy(run: Short, k: int) -> float:
    """The energy of (28) as printed, at record `k` of the run."""
    system, state, _, _ = Pendulum3D.paper()
    J, omega = np.asarray(system.inertia), run.velocity[k]
    potential = float(system.energy(state)) + run.energies[k] - omega @ (J * omega) / 2
    return float((J * omega) @ (J * (J * omega)) / 2 + potential)
