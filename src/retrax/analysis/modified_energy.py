"""The energy that a symplectic method really conserves."""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, PyTree

from retrax.errors import BadInput, StepFailed
from retrax.groups.base import AbstractLieGroup, Coordinates
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import require_instance, require_whole
from retrax.numerics.evaluate import evaluate
from retrax.run.prepare import prepare
from retrax.trajectory.trajectory import Trajectory

_NEEDED = ("symplectic", "symmetric")


class ModifiedEnergy(NamedTuple):
    """The modified energy along a run, beside the energy.

    **Attributes:**

    - `t`: the times; `energy`: the energy there; `modified`: the modified energy, equal to the
        energy at the start.
    - `spread`: the largest modified energy less the smallest; `energy_spread`: the same of the
        energy.
    - `error`: an estimate of the error of `modified`, from fewer steps and fewer nodes.
    """

    t: Float[np.ndarray, " time"]
    energy: Float[np.ndarray, " time"]
    modified: Float[np.ndarray, " time"]
    spread: float
    energy_spread: float
    error: float

    def __repr__(self) -> str:
        return (
            f"<modified energy at {len(self.t)} states: it varies by {self.spread:.2e} J (known to "
            f"{self.error:.1e} J), the energy by {self.energy_spread:.2e} J>"
        )


def modified_energy(
    run: Trajectory, *, samples: int = 100, reach: int = 8, nodes: int = 32
) -> ModifiedEnergy:
    r"""Find the energy that the steps of a symplectic method conserve along a run.

    A symmetric and symplectic step $\Phi_h$ is, up to exponentially small terms, the flow of a
    Hamiltonian $\tilde H = H + h^pH_p + \dots$ over the time $h$. Its vector field at a state $z$
    is read off the steps through it, with the weights $c_k$ of central differences,

    $$
    \begin{aligned}
    (g_k, \mu_k) &= \Phi_h^k(z), \quad k = -m, \dots, m                              &&\text{(1)}\\
    \tilde\xi &= \tfrac1h\sum_kc_k\log(g^{-1}g_k), \qquad
    \dot{\tilde\mu} = \tfrac1h\sum_kc_k\,\mu_k                                       &&\text{(2)}\\
    d\tilde H(\eta, \alpha) &= \langle\alpha, \tilde\xi\rangle
        + \langle\mathrm{ad}^*_{\tilde\xi}\mu - \dot{\tilde\mu}, \eta\rangle         &&\text{(3)}\\
    \tilde H(z_n) - \tilde H(z_0) &= \int_0^1d\tilde H\bigl(\eta, \mu_n - \mu_0\bigr)\,ds
        \quad\text{along } \bigl(g_0\exp s\eta,\ (1 - s)\mu_0 + s\mu_n\bigr),
        \quad g_n = g_0\exp\eta                                                      &&\text{(4)}
    \end{aligned}
    $$

    where (3) are Hamilton's equations in left trivialisation, solved for the differential. The path
    (4) is not the motion: that $\tilde H$ comes out the same at its end is the finding. A method
    that is not symplectic has no $\tilde H$, and (4) would depend on the path.

    **Arguments:**

    - `run`: with its system and its integrator; forces and constraints are refused.
    - `samples`: at how many of the saved states it is found, evenly spread over them.
    - `reach`: $m$ in (1); `nodes`: of the quadrature (4), a multiple of 4.

    **Raises:** `BadInput` if the system is not Hamiltonian or the method not symplectic and
    symmetric; `StepFailed` where a step on the path (4) fails.

    References: [EngleSkeelDrees2005], [HairerLubichWanner2006].
    """
    system, integrator = _require_hamiltonian(run)
    samples = min(require_whole("samples", samples, 2), len(run.t))
    reach, nodes = require_whole("reach", reach, 2, 20), require_whole("nodes", nodes, 4, 256)
    if nodes % 4:
        raise BadInput(f"nodes = {nodes} must be a multiple of 4, so that every other is a rule.")
    rows = np.unique(np.linspace(0, len(run.t) - 1, samples).round().astype(int))
    states = jax.tree.map(lambda x: np.asarray(x)[rows], run.states)
    places, weights, fewer = clenshaw_curtis(nodes)
    path = evaluate(_along_paths, system.group, states, places)
    h = float(run.h)

    def slopes_of(reaches: tuple[int, ...]) -> list[np.ndarray]:
        around = _steps_through(system, integrator, path.states, h, reach)
        found = [
            evaluate(_slope, system, path, around, central_weights(m, reach) / h) for m in reaches
        ]
        return [np.asarray(slope).reshape(len(rows), -1) for slope in found]

    slopes = run.as_it_was(lambda: slopes_of((reach, reach - 1)))
    energy = run.energy()[rows]
    modified = energy + slopes[0] @ weights  # (4), less the same of the energy itself
    others = (energy + slopes[1] @ weights, energy + slopes[0] @ fewer)
    error = max(float(np.max(np.abs(modified - other))) for other in others)
    return ModifiedEnergy(
        np.asarray(run.t)[rows],
        energy,
        modified,
        float(np.ptp(modified)),
        float(np.ptp(energy)),
        error,
    )


class _Path(NamedTuple):
    """States along the paths (4) to all samples, and the direction of the path at each."""

    states: State
    eta: Float[Array, "point dim"]
    alpha: Float[Array, "point dim"]


def _require_hamiltonian(run: object) -> tuple[AbstractGroupSystem, AbstractIntegrator]:
    run = require_instance("run", run, Trajectory, "a run, as simulate returns it")
    system, method = run.system, run.integrator
    if system is None or method is None or run.lacking is not None:
        raise BadInput("this run has no system and no integrator to take further steps with.")
    if system.constraint is not None or not (system.has_momentum and system.conservative):
        raise BadInput(
            f"the {system.name} is not Hamiltonian: a constraint, a force or a flow of first order "
            "has no modified energy."
        )
    missing = [word for word in _NEEDED if word not in method.preserves]
    if missing:
        raise BadInput(
            f"{method!r} is not {' and not '.join(missing)}: only methods that are both conserve a "
            "modified energy that can be read off their steps, such as LieVerlet()."
        )
    return system, method


def clenshaw_curtis(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the nodes on [0, 1] of a rule that is nested, its weights, and those of half of it."""

    def weights(n: int) -> np.ndarray:
        k = np.arange(0, n // 2 + 1)
        moments = 2 / (1 - 4.0 * k**2) * np.where((k == 0) | (k == n // 2), 0.5, 1.0)
        angle = np.pi * np.arange(n + 1) / n
        found = 2 / n * (np.cos(2 * np.outer(angle, k)) @ moments)
        found[[0, -1]] /= 2
        return found / 2

    half = np.zeros(n + 1)
    half[::2] = weights(n // 2)
    return (1 - np.cos(np.pi * np.arange(n + 1) / n)) / 2, weights(n), half


def central_weights(m: int, reach: int) -> Float[np.ndarray, " step"]:
    r"""Return $c_{-reach}, \dots, c_{reach}$ of (2), the last ones zero if `m` is less."""
    found = np.zeros(2 * reach + 1)
    ratio = 1.0
    for k in range(1, m + 1):
        ratio *= (m + 1 - k) / (m + k)
        found[reach + k] = -((-1) ** k) * ratio / k
        found[reach - k] = -found[reach + k]
    return found


def _along_paths(group: AbstractLieGroup, states: State, places: Array) -> _Path:
    first = jax.tree.map(lambda x: x[0], states)
    back = group.inverse(first.g)

    def to(state: State) -> _Path:
        eta = group.log(group.compose(back, state.g))
        alpha = state.momentum - first.momentum

        def at(s: Array) -> _Path:
            g = group.compose(first.g, group.exp(s * eta))
            return _Path(State(g, first.momentum + s * alpha, state.t), eta, alpha)

        return jax.vmap(at)(places)

    paths = jax.vmap(to)(states)
    return jax.tree.map(lambda x: x.reshape(x.shape[0] * x.shape[1], *x.shape[2:]), paths)


def _steps_through(
    system: AbstractGroupSystem, integrator: AbstractIntegrator, states: State, h: float, reach: int
) -> PyTree:
    """Return (1): configurations and momenta, point by point and from -m to m."""
    forth, back = (prepare(system, integrator, h=size) for size in (h, -h))
    found = []
    for k in range(len(states.t)):
        start = jax.tree.map(lambda x, k=k: np.asarray(x[k]), states)
        try:
            after, before = forth(start, reach).states, back(start, reach).states
        except StepFailed as failure:
            raise StepFailed(
                "a step failed on the way from the start of the run to one of its states, where "
                f"the motion does not go: {failure}"
            ) from failure
        parts = zip(
            jax.tree.leaves((before.g, before.momentum)),
            jax.tree.leaves((after.g, after.momentum)),
            strict=True,
        )
        found.append([np.concatenate([x[:0:-1], y]) for x, y in parts])
    leaves = [np.stack(column) for column in zip(*found, strict=True)]
    return jax.tree.unflatten(jax.tree.structure((states.g, states.momentum)), leaves)


def _slope(
    system: AbstractGroupSystem, path: _Path, around: PyTree, weights: Array
) -> Float[Array, " point"]:
    """Return (3) less the same of the energy itself, along the path."""
    group = system.group

    def one(point: _Path, near: PyTree) -> Array:
        z, (g, mu) = point.states, near
        back = group.inverse(z.g)
        logs = jax.vmap(lambda k: group.log(group.compose(back, k)))(g)
        velocity = weights @ logs  # (2)
        rate = weights @ (mu - z.momentum[None, :])
        exact = system.vector_field(z.g, z.momentum, z.t)
        return _differential(group, point, velocity, rate) - _differential(group, point, *exact)

    return jax.vmap(one)(path, around)


def _differential(
    group: AbstractLieGroup, point: _Path, velocity: Coordinates, rate: Coordinates
) -> Float[Array, ""]:
    """Return (3) in the direction of the path."""
    turned = group.coad(velocity, point.states.momentum) - rate
    return point.alpha @ velocity + turned @ point.eta
