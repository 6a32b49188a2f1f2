r"""The runs of the paper on geometric pseudospectral methods, on its 3D pendulum.

$J = \mathrm{diag}(1, 2.8, 2)$, arm $e_3$, $\omega_0 = (0.5, -0.5, 0.4)$, $h = 0.05$ s for 30 s, and
what lies beyond the paper: converged iterations, long times, a symplectic method.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from retrax.analysis.symplecticity import symplecticity
from retrax.groups.so3 import SO3
from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.collocation import Collocation, PlainCollocation
from retrax.integrators.galerkin_variational import GalerkinVariational
from retrax.integrators.magnus import Magnus
from retrax.mechanics.state import State
from retrax.numerics.nodes import gauss, lobatto, radau
from retrax.run.simulate import simulate
from retrax.show.style import extremes
from retrax.systems.rigid_body import Pendulum3D
from retrax.trajectory.observe import drift
from retrax.trajectory.trajectory import Trajectory
from retrax_papers.pseudospectral.printed import LoosePlainGauss, PrintedAlgorithm
from retrax_papers.report import Kept, kept

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

# The pendulum at three times, to eighteen digits: Taylor series of order 40 and 44 in 66-digit
# arithmetic, in rotation matrices with the angular velocity and in quaternions with the momentum,
# which agree to 4e-55; g = 9.81 m/s^2.
REFERENCE: dict[float, tuple[np.ndarray, np.ndarray]] = {
    1.0: (
        np.array(
            [
                [0.875362122621310835, -0.412434215724828233, -0.252268055804453810],
                [0.407988348032556565, 0.910123219725690675, -0.072258098409850704],
                [0.259396727330123945, -0.039670424948417425, 0.964955747811698000],
            ]
        ),
        np.array([-0.266767870093943024, 0.176357320660559579, 0.460533029656644652]),
    ),
    10.0: (
        np.array(
            [
                [-0.663251766376693119, 0.744479484775183701, -0.076468236196956381],
                [-0.745264753360342574, -0.666357144907965223, -0.023422272068541731],
                [-0.068392556590203899, 0.041454217867209333, 0.996796873000750188],
            ]
        ),
        np.array([0.366433618071884895, -0.493218275473233954, 0.442572651375597419]),
    ),
    30.0: (
        np.array(
            [
                [0.815117439570648590, 0.572913778267893119, 0.085751748545422918],
                [-0.550067862067051474, 0.811890125649262284, -0.195601050595870610],
                [-0.181683534831236915, 0.112268546548142764, 0.976927257592495586],
            ]
        ),
        np.array([0.012437556988043805, -0.366527836274035993, 0.469573566016283681]),
    ),
}


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


def energy_along(system: Pendulum3D, run: Trajectory) -> np.ndarray:
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


class Commuting(NamedTuple):
    """The largest defects of the diagrams (1), (2), (3) of `commuting`.

    `right` is (3), `left` is (3) with the map of the other side.
    """

    samples: int
    action: float
    translation: float
    right: float
    left: float


def commuting(samples: int = 25, seed: int = 0) -> Commuting:
    r"""The defects of three diagrams over random rotations, coordinates and points of the sphere.

    $G = SO(3)$ acts on $S^2$ by $\Phi_g(y) = gy$; $\Phi_y(g) = gy$, $L_g(k) = gk$, and
    $B_g(u) = \log(g\exp u)$. The paper's Figs. 1 to 3 say

    $$
    \begin{aligned}
    \Phi_y \circ L_g &= \Phi_g \circ \Phi_y                                 &&\text{(1)}\\
    \exp \circ B_g &= L_g \circ \exp                                        &&\text{(2)}\\
    \xi \times (\exp(\hat u)\,y) &= \tfrac{d}{d\epsilon}\Big|_0
        \exp\bigl(\hat u + \epsilon\,\widehat{d\exp^{-1}_u\xi}\bigr)\,y     &&\text{(3)}
    \end{aligned}
    $$

    with the right-trivialised $d\exp$ in (3). Exponentials, logarithms and derivatives are those of
    general matrices, so that nothing of the group is taken for granted but $d\exp^{-1}$.
    """
    from scipy.linalg import expm, expm_frechet, logm

    draw = np.random.default_rng(seed).normal(size=(4, samples, 3))
    # The group's own dexp is the left-trivialised one: at -u it is the right-trivialised one.
    inverse = jax.jit(jax.vmap(SO3().dexp_inv))
    u, xi = jnp.asarray(draw[1]), jnp.asarray(draw[2])
    sides = np.asarray(inverse(-u, xi)), np.asarray(inverse(u, xi))
    found = []
    for n, (w, u, xi, y) in enumerate(zip(*draw, strict=True)):
        g, k, y = expm(_hat(w)), expm(_hat(u)), y / np.linalg.norm(y)
        moved = [expm_frechet(_hat(u), _hat(side[n]), compute_expm=False) @ y for side in sides]
        action = (g @ k) @ y - g @ (k @ y)  # (1)
        translation = expm(np.real(logm(g @ k))) - g @ k  # (2)
        related = [np.cross(xi, k @ y) - one for one in moved]  # (3)
        found.append([np.max(np.abs(x)) for x in (action, translation, *related)])
    worst = np.max(found, axis=0)
    return Commuting(samples, *(float(x) for x in worst))


def _hat(x: np.ndarray) -> np.ndarray:
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])
