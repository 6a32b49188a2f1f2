"""Ensembles on a GPU: 3D pendulums, and how far that is from what the card can do; Suslov bodies;
Euler's tops by Kahan's method.

    python -m benchmarks.gpu

Needs only jax, numpy, equinox, jaxtyping and retrax. Bandwidth and arithmetic rate are measured on
the card itself, by a copy and by a long chain of multiply-adds. A run is timed on the wall, from
the states on the card to the last states on the host.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.counts import step_cost
from benchmarks.results import save
from retrax.bench.problems import W2
from retrax.engine.backends import make_members
from retrax.engine.progress import INTERVAL
from retrax.integrators.hamel_midpoint import HamelMidpoint
from retrax.integrators.kahan import Kahan
from retrax.integrators.lagrange_d_alembert import LagrangeDAlembert
from retrax.integrators.lie_verlet import LieVerlet
from retrax.mechanics.state import State
from retrax.systems.euler_top import EulerTop
from retrax.systems.suslov import Suslov

H = 0.01
SIZES = (2**14, 2**17, 2**20)
# Body-steps of a timed run: a second or so, so that the call itself does not matter.
WORK = 2**33
RUNS = 3


def wall_seconds(call: Callable[[], Any]) -> float:
    """The median time of a call on the wall, the first one left out."""
    call()
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def bandwidth() -> float:
    """Bytes per second, read and written, of `y = x + 1` on 2 GiB of doubles."""
    x = jnp.zeros(2**28)
    shift = jax.jit(lambda x: x + 1.0)
    return 2 * x.nbytes / wall_seconds(lambda: shift(x).block_until_ready())


def fp64_rate(chain: int = 512) -> float:
    """Floating-point operations per second of `chain` multiply-adds on each of 2^26 doubles."""
    x, a, b = jnp.zeros(2**26), jnp.asarray(0.999), jnp.asarray(1e-3)

    @jax.jit
    def chained(x, a, b):
        for _ in range(chain):
            x = x * a + b
        return x

    return 2 * chain * x.size / wall_seconds(lambda: chained(x, a, b).block_until_ready())


class Pendulums:
    """`members` pendulums of W2, from its potential, with random velocities, on their way."""

    def __init__(self, members: int, backend: str):
        velocity = np.random.default_rng(2).normal(size=(members, 3))
        momentum = jnp.asarray(velocity * W2.inertia)
        states = State(jnp.tile(jnp.eye(3), (members, 1, 1)), momentum, jnp.zeros(members))
        self.members = members
        self.runner = make_members(backend, W2.system(), LieVerlet(), states, H, None, True)
        numbers = sum(leaf[0].size for leaf in jax.tree.leaves(states))
        self.saved = np.empty((1, numbers, self.runner.columns))
        self.interval = np.empty((1, len(INTERVAL), self.runner.columns))

    def run(self, steps: int) -> np.ndarray:
        """The states after `steps` more steps, a column for each pendulum."""
        self.runner.run(self.saved, self.interval, steps)
        return self.saved[0, :, : self.members]

    def newton(self, steps: int) -> float:
        """Newton iterations in a step, the mean over the last run of `steps`."""
        iterations = self.interval[0, INTERVAL.index("iterations"), : self.members]
        return float(np.mean(iterations)) / steps

    def failed(self) -> int:
        return int(np.sum(~np.isnan(self.runner.failure[0, : self.members])))


def disagreement(backend: str, members: int = 1024, steps: int = 100) -> float:
    """The largest difference between the last states by `backend` and by XLA."""
    ours, xla = (Pendulums(members, b).run(steps) for b in (backend, "xla"))
    return float(np.max(np.abs(ours - xla)))


def timed(members: int, steps: int, backend: str, card: dict[str, float]) -> dict[str, Any]:
    """Body-steps per second, beside what the card's memory and arithmetic would allow."""
    pendulums = Pendulums(members, backend)
    seconds = wall_seconds(lambda: pendulums.run(steps))
    cost = step_cost(W2.system(), LieVerlet(), W2.start(), pendulums.newton(steps))
    # A body is read and written once in a run; all bodies share the parameters.
    moved = 8 * 2 * cost["numbers"] / steps
    by_memory, by_arithmetic = card["bandwidth"] / moved, card["fp64_rate"] / cost["flops"]
    rate = members * steps / seconds
    return {
        "members": members,
        "steps": steps,
        "seconds": seconds,
        "failed": pendulums.failed(),
        "body_steps_per_second": rate,
        "bytes_per_body_step": moved,
        "limit_by_memory": by_memory,
        "limit_by_arithmetic": by_arithmetic,
        "share": rate / min(by_memory, by_arithmetic),
        "cost": cost,
    }


def measure(backend: str, sizes: tuple[int, ...] = SIZES, work: int = WORK) -> dict[str, Any]:
    """The card by itself, then ensembles of every size."""
    device = jax.devices()[0]
    card = {"bandwidth": bandwidth(), "fp64_rate": fp64_rate()}
    print(f"{device.device_kind}: {card['bandwidth']:.3g} B/s, {card['fp64_rate']:.3g} flop/s")
    difference, rows = disagreement(backend), []
    for members in sizes:
        rows.append(timed(members, work // members, backend, card))
        print(
            f"{members} members: {rows[-1]['body_steps_per_second']:.3g} body-steps/s, "
            f"{rows[-1]['share']:.0%} of the limit",
            flush=True,
        )
    return {
        "device": device.device_kind,
        "backend": backend,
        "card": card,
        "difference": difference,
        "rows": rows,
    }


def constrained(integrator: Any, members: int = 2**20, steps: int = 1000) -> dict[str, Any]:
    """Suslov bodies, each with an inertia of its own: the rate, and how the constraint is kept.

    Violation and energy are computed from the last momenta, for all members.
    """
    factors = 0.3 * np.random.default_rng(3).normal(size=(members, 3, 3))
    inertias = np.diag([1.0, 2.0, 2.5]) + 0.3 * factors @ factors.transpose(0, 2, 1)
    bodies = jax.vmap(lambda inertia: Suslov(inertia, physical=False))(jnp.asarray(inertias))
    start = jax.jit(
        jax.vmap(lambda body: body.state(jnp.eye(3), velocity=jnp.array([0.7, 0.4, 0.0])))
    )(bodies)
    runner = make_members("pallas", bodies, integrator, start, 0.05, None, False)
    saved = np.empty((1, 13, runner.columns))
    interval = np.empty((1, len(INTERVAL), runner.columns))
    seconds = wall_seconds(lambda: runner.run(saved, interval, steps))
    last = State(start.g, jnp.asarray(saved[0, 9:12, :members].T), start.t)
    violation, before, after = (
        jax.jit(jax.vmap(look))(bodies, state)
        for look, state in (
            (lambda body, s: body.constraint_violation(s), last),
            (lambda body, s: body.energy(s), start),
            (lambda body, s: body.energy(s), last),
        )
    )
    row = {
        "integrator": repr(integrator),
        "members": members,
        "steps": steps,
        "body_steps_per_second": members * steps / seconds,
        "violation": float(jnp.max(violation)),
        "energy_error": float(jnp.max(jnp.abs(after / before - 1))),
        "failed": int(np.sum(~np.isnan(runner.failure[0, :members]))),
    }
    print(
        f"Suslov, {integrator!r}: {row['body_steps_per_second']:.3g} body-steps/s, violation "
        f"{row['violation']:.1e}, energy {row['energy_error']:.1e}, failed {row['failed']}",
        flush=True,
    )
    return row


def momenta(side: int = 1000, steps: int = 10_000) -> dict[str, Any]:
    """A grid of momenta on the unit sphere, by Kahan's method: the rate, and how H/C is kept."""
    top = EulerTop([3.0, 2.0, 1.0])
    z, angle = np.meshgrid(
        np.linspace(-1, 1, side + 2)[1:-1], np.linspace(0, 2 * np.pi, side), indexing="ij"
    )
    across = np.sqrt(1 - z**2)
    m = np.stack([across * np.cos(angle), across * np.sin(angle), z], -1).reshape(-1, 3)
    start = top.as_state(m)
    runner = make_members("pallas", top, Kahan(), start, 0.5, None, True)
    saved = np.empty((1, 7, runner.columns))
    interval = np.empty((1, len(INTERVAL), runner.columns))
    seconds = wall_seconds(lambda: runner.run(saved, interval, steps))
    ends = saved[0, :3, : len(m)].T
    weights = 1 / np.asarray(top.inertia)
    kept = (ends**2 @ weights) / np.sum(ends**2, axis=1) - m**2 @ weights
    row = {
        "members": len(m),
        "steps": steps,
        "body_steps_per_second": len(m) * steps / seconds,
        "ratio_error": float(np.max(np.abs(kept))),
        "failed": int(np.sum(~np.isnan(runner.failure[0, : len(m)]))),
    }
    print(
        f"Euler tops: {row['body_steps_per_second']:.3g} body-steps/s, H/C within "
        f"{row['ratio_error']:.1e}, failed {row['failed']}",
        flush=True,
    )
    return row


def main() -> None:
    device = jax.devices()[0]
    if device.platform != "gpu":
        raise SystemExit(f"This needs a GPU, and JAX sees only {device.device_kind}.")
    results = measure("pallas")
    results["constrained"] = [constrained(m) for m in (HamelMidpoint(), LagrangeDAlembert())]
    results["momenta"] = momenta()
    save("gpu", results)


if __name__ == "__main__":
    main()
