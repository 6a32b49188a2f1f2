"""The runs of the paper on the elastic string pendulum, and what its figures cannot show.

Everything is done with `StringPendulum.paper()`: 20 elements, h = 1e-4 s, five seconds.
"""

import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.integrators.lie_verlet import LieVerlet
from retrax.mechanics.solids import elliptic_cylinder
from retrax.mechanics.state import State
from retrax.run.simulate import simulate
from retrax.systems.strings import drift
from retrax.systems.strings.drift import eliminate_undamped
from retrax.systems.strings.observe import angular_momentum
from retrax.systems.strings.string_pendulum import StringPendulum
from retrax.trajectory.trajectory import Trajectory
from retrax_papers.report import nearest

END, SAVED = 5.0, 0.01
SIZES = (4e-4, 2e-4, 1e-4)
TIMES = (0.1, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)
NUDGE = 1e-9
# When the fixed point counts as found, and when it is given up.
_TOLERANCE, _MOST = 1e-14, 3000
# When the two solvers are compared, in seconds.
LOOKED_AT = (0.2, 0.66, 1.7, 2.9, 4.2)


class Growth(NamedTuple):
    """How errors of the point of attachment grow: of the step, and of a nudge at the start.

    `swing` and `fine_swing` are the times at which the potential energy of the body is highest, at
    the step of the paper and at one eight times shorter.
    """

    t: np.ndarray
    step: np.ndarray
    turn: np.ndarray
    nudge: np.ndarray
    swing: list[float]
    fine_swing: list[float]

    def factor(self, what: str, first: float = 1.0, last: float = END) -> float:
        """By how much `step`, `turn` or `nudge` grows from one time to another."""
        values = getattr(self, what)
        return float(values[self.at(last)] / values[self.at(first)])

    def at(self, t: float) -> int:
        return nearest(self.t, t)


class Plateau(NamedTuple):
    """The energy deviation of a long run at one step size, its mean over the last fifth (`level`),
    and over the fifth before.

    Samples of every hundredth of a second: a mean needs no more, and no extreme is taken of them.
    """

    t: np.ndarray
    deviation: np.ndarray
    level: float
    before: float


def paper_run() -> Trajectory:
    """The five seconds of the paper."""
    system, start, h, _ = StringPendulum.paper()
    return followed(system, start, h)


def followed(system: StringPendulum, start: State, h: float, end: float = END) -> Trajectory:
    """A run by `LieVerlet`, saved every hundredth of a second."""
    return simulate(
        system, LieVerlet(), start, h=h, steps=round(end / h), save_every=round(SAVED / h),
        progress=False,
    )  # fmt: skip


def every_step() -> Trajectory:
    """The five seconds of the paper, saved at every step: what extremes are taken from."""
    system, start, h, _ = StringPendulum.paper()
    return simulate(system, LieVerlet(), start, h=h, steps=round(END / h), progress=False)


def peaks(t: np.ndarray, y: np.ndarray, apart: float) -> list[tuple[float, float]]:
    """Times and values of the maxima that nothing within `apart` seconds exceeds, ends excluded."""
    k = round(apart / (t[1] - t[0]))
    padded = np.pad(y, k, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * k + 1)
    highest = np.flatnonzero((y == np.max(windows, axis=1)) & (t > t[0]) & (t < t[-1] - apart))
    return [(float(t[i]), float(y[i])) for i in highest]


def compressed_from(run: Trajectory) -> float:
    """When an element of the string is first shorter than at rest by a thousandth."""
    strain = np.min(run.observables()["strain"], axis=1)
    return float(run.t[np.argmax(strain < -1e-3)])


def state_at(run: Trajectory, t: float) -> State:
    k = nearest(run.t, t)
    return jax.tree.map(lambda x: jnp.asarray(x[k]), run.states)


def growth(run: Trajectory) -> Growth:
    """Errors against steps eight times shorter, and the effect of a nudge of 1e-9 kg m/s."""
    system, start, _, _ = StringPendulum.paper()
    fine = followed(system, start, run.h / 8)
    nudged = State(start.g, start.momentum.at[-6].add(NUDGE), start.t)
    other = followed(system, nudged, run.h)

    def apart(a, b):
        return np.max(np.abs(a[:, -1] - b[:, -1]), axis=1)

    turn = np.linalg.norm(run.g[1] - fine.g[1], axis=(1, 2))
    swings = [
        [t for t, _ in peaks(one.t, one.observables()["gravity energy of the bodies"], 0.4)]
        for one in (run, fine)
    ]
    return Growth(run.t, apart(run.g[0], fine.g[0]), turn, apart(run.g[0], other.g[0]), *swings)


def plateau(h: float, seconds: float) -> Plateau:
    """The energy deviation of a long run, averaged over tenths of a second."""
    system, start, _, _ = StringPendulum.paper()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*more than half of the longest stable step")
        run = followed(system, start, h, seconds)
    energy = run.invariants()["energy"]
    deviation = energy - energy[0]
    last = run.t > 0.8 * seconds
    before = (run.t > 0.6 * seconds) & ~last
    return Plateau(run.t, deviation, float(deviation[last].mean()), float(deviation[before].mean()))


def readings(run: Trajectory) -> dict[str, float]:
    """How far the point of attachment is from reading A at half a second, by other readings."""
    k = nearest(run.t, 0.5)
    out = {}
    for name in ("B", "C"):
        system, start, h, _ = StringPendulum.paper(name)
        other = followed(system, start, h, 0.5)
        out[name] = float(np.linalg.norm(other.g[0][-1, -1] - run.g[0][k, -1]))
    return out


def fixed_point(scale: float) -> tuple[float, int]:
    """The rate and the iterations of the paper's solver for an arm of another length."""
    system, start, h, _ = StringPendulum.paper()
    arm = scale * np.asarray(system.arm[0])
    inertia = elliptic_cylinder(0.1, (0.06, 0.04), 0.1, arm)
    other = StringPendulum(1.0, 0.025, 40.0, 20, 0.1, arm, inertia, 9.81)
    spun = other.state(start.g, velocity=[*[0.0] * 57, 0.0, 0.2, -0.5, 3.0, -5.0, 4.0])
    return contraction(other), turn_by_fixed_point(other, spun, h)[1]


def solvers(system: StringPendulum, state: State, h: float) -> tuple[int, float]:
    """Iterations of the paper's solver at a state, and how far its turn is from Newton's."""
    x, count = turn_by_fixed_point(system, state, h)
    kicked = state.momentum + h / 2 * system.kick(state.g, state.t)
    move = system.drift(state.g, kicked, jnp.asarray(h)).move
    return count, float(np.max(np.abs(np.asarray(move)[-3:] - np.asarray(x))))


def naive_momentum() -> float:
    """The oscillation of J3 where velocities are read off differences of positions."""
    system, start, h, _ = StringPendulum.paper()
    run = simulate(system, LieVerlet(), start, h=h, steps=10_000, progress=False)
    r, R = run.g
    d = (r[1:] - r[:-1]) / h
    F = np.swapaxes(R[:-1], 1, 2) @ R[1:]
    skew = (F - np.swapaxes(F, 1, 2)) / 2
    omega = np.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]], axis=1) / h
    xi = np.concatenate([d.reshape(len(d), -1), omega], axis=1)

    @jax.jit
    @jax.vmap
    def momentum(r, R, xi):
        state = State((r, R), system.momentum((r, R), xi), jnp.zeros(()))
        return angular_momentum(system, state)[2]

    return float(np.ptp(momentum(r[:-1], R[:-1], xi))) / 2


def turn_by_fixed_point(
    system: StringPendulum, state: State, h: float
) -> tuple[Float[Array, "3"], int]:
    r"""The turn $x$ of the body in a step, and the number of iterations that it took.

    Given a turn, the string is solved for; given the string, the attitude equation with the whole
    inertia $J$ is solved for a new turn, from that of the present velocity until it moves by less
    than 1e-14. The rate is that of $-\alpha M^2J^{-1}\hat\rho^2$, whatever the step size.
    """
    gamma = _kicked(system, state, jnp.asarray(h))
    x = h * system.velocities(state.g, state.momentum)[1]
    for k in range(1, _MOST):
        new = _improve(system, state.g, gamma, x)
        moved = float(jnp.max(jnp.abs(new - x)))
        x = new
        if moved < _TOLERANCE:
            return x[0], k
    return x[0], _MOST


def contraction(system: StringPendulum) -> float:
    """The rate at which the fixed point is approached."""
    rho, M = np.asarray(system.arm[0]), float(system.mass[0])
    alpha = float(system.mass_matrix.columns[system.nodes[0] - 1, 0])
    share = alpha * M**2 * (rho @ rho * np.eye(3) - np.outer(rho, rho))
    rates = np.linalg.eigvals(np.linalg.solve(np.asarray(system.inertia[0]), share))
    return float(np.max(np.abs(rates)))


@jax.jit
def _kicked(system: StringPendulum, state: State, h: Float[Array, ""]) -> Any:
    mu = state.momentum + h / 2 * system.kick(state.g, state.t)
    p, pi = system.momenta(mu)
    _, R = system.parts(state.g)
    y = eliminate_undamped(system, p).y
    return h * (pi - drift.levers(system.bodies, R, system.carrier_rows(y)))


@jax.jit
def _improve(system: StringPendulum, g: Any, gamma: Any, x: Any) -> Any:
    _, R = system.parts(g)
    alpha = system.carrier_rows(system.mass_matrix.columns)
    string = drift.couple(alpha, drift.sweep_forces(system.bodies, R, x), True)
    given = gamma + drift.levers(system.bodies, R, string)
    return drift.turns(system.bodies, R, system.inertia, jnp.zeros((1, 1)), given)[0]
