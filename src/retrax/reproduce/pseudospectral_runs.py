r"""The runs of the paper on geometric pseudospectral methods, on its 3D pendulum.

$J = \mathrm{diag}(1, 2.8, 2)$, arm $e_3$, $\omega_0 = (0.5, -0.5, 0.4)$, $h = 0.05$ s for 30 s, and
what lies beyond the paper: converged iterations, long times, a symplectic method.
"""

from typing import Any, NamedTuple

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
from retrax.reproduce.report import Kept, kept
from retrax.show.downsample import extremes
from retrax.simulate.simulate import simulate
from retrax.systems.rigid_body import Pendulum3D
from retrax.trajectory.measure import drift

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
    "plain Gauss, stopped at 3.2e-11": LoosePlainGauss(3.2e-11),
}
# Whose distance from SO(3) grows to about 1e-13 in 30 s.
GROWING = "plain Gauss, stopped at 3.2e-11"
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
# Of a long run, on its curve.
_POINTS = 2000


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
    path: np.ndarray

    def kept(self, name: str) -> list[Kept]:
        """The rows of its invariants."""
        system, start, _, _ = Pendulum3D.paper()
        rows = {
            "energy": self.energies + float(system.energy(start)),
            "vertical momentum": self.momenta + float(start.g[2] @ start.momentum),
            "distance from SO(3)": self.defects,
        }
        return [kept(name, what, self.t, values) for what, values in rows.items()]

    def numbers(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in self._fields[:4]}


class Long(NamedTuple):
    """The energy of a long run: its largest error and its slope per second, over every step.

    `t` and `errors` are fewer points of it, the extremes among them.
    """

    largest: float
    slope: float
    t: np.ndarray
    errors: np.ndarray


def short_run(method: AbstractIntegrator) -> Short:
    """The paper's 30 s: what its figures show, and the error against the reference solution."""
    system, state, h, steps = Pendulum3D.paper()
    run = simulate(system, method, state, h=h, steps=steps, progress=False)
    energies = energy_along(system, run)
    vertical = np.einsum("ni,ni->n", run.g[:, 2], run.momentum)
    defects = np.linalg.norm(np.einsum("nji,njk->nik", run.g, run.g) - np.eye(3), axis=(1, 2))
    R, omega = REFERENCE[30.0]
    velocity = run.momentum / np.asarray(system.inertia)
    error = max(np.max(np.abs(run.g[-1] - R)), np.max(np.abs(velocity[-1] - omega)))
    errors = (energies - energies[0], vertical - vertical[0], defects)
    energy, momentum, group = (float(np.max(np.abs(x))) for x in errors)
    path = run.g @ np.asarray(system.arm)
    return Short(float(error), energy, momentum, group, run.t, velocity, *errors, path)


def long_run(method: AbstractIntegrator, state: State, steps: int, h: float = LONG_STEP) -> Long:
    """The energy over many steps."""
    system = Pendulum3D.paper()[0]
    run = simulate(system, method, state, h=h, steps=steps, progress=False)
    energy = energy_along(system, run)
    errors = energy - energy[0]
    drawn = extremes(errors, _POINTS)
    return Long(float(np.max(np.abs(errors))), drift(run.t, errors), run.t[drawn], errors[drawn])


def energy_along(system: Pendulum3D, run: Any) -> np.ndarray:
    r"""$\tfrac12\mu\cdot J^{-1}\mu - mg\,e_3\cdot R\chi$ along a run."""
    weight = float(system.mass * system.gravity)
    height = (run.g @ np.asarray(system.arm))[:, 2]
    return np.sum(run.momentum**2 / np.asarray(system.inertia), axis=1) / 2 - weight * height


def end_error(method: AbstractIntegrator, time: float, h: float) -> tuple[float, float, float]:
    """The largest error of (R, omega) at `time`, that of R, and that of omega."""
    system, state, _, _ = Pendulum3D.paper()
    n = round(time / h)
    run = simulate(system, method, state, h=time / n, steps=n, save_every=n, progress=False)
    R, omega = REFERENCE[time]
    velocity = run.momentum[-1] / np.asarray(system.inertia)
    apart = float(np.max(np.abs(run.g[-1] - R))), float(np.max(np.abs(velocity - omega)))
    return max(apart), *apart


def convergence(stages: tuple[int, ...]) -> dict[int, list[tuple[float, float]]]:
    """Pairs (h, error at t = 10) of the corrected method, for numbers of Gauss nodes."""
    return {s: [(h, end_error(Collocation(gauss(s)), 10.0, h)[0]) for h in SIZES] for s in stages}


def spectral(stages: tuple[int, ...]) -> list[tuple[int, float]]:
    """Pairs (nodes, error at t = 10) with steps of one second."""
    return [(s, end_error(Collocation(gauss(s)), 10.0, 1.0)[0]) for s in stages]


def symplectic_defects(names: tuple[str, ...]) -> dict[str, float]:
    """By how much one step of h = 0.2 changes the symplectic form."""
    system, state, _, _ = Pendulum3D.paper()
    return {name: symplecticity(system, SHORT[name], state, h=0.2) for name in names}


def chaotic_start() -> State:
    """A start from which the pendulum tumbles."""
    return Pendulum3D.paper()[0].state(jnp.eye(3), velocity=CHAOTIC)


def printed_energy(run: Short, k: int) -> float:
    """The energy of (28) as printed, at record `k` of the run."""
    system, state, _, _ = Pendulum3D.paper()
    J, omega = np.asarray(system.inertia), run.velocity[k]
    potential = float(system.energy(state)) + run.energies[k] - omega @ (J * omega) / 2
    return float((J * omega) @ (J * (J * omega)) / 2 + potential)
