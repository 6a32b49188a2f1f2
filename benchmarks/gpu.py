"""Ensembles of 3D pendulums on a GPU, and how far that is from what the card can do.

    python -m benchmarks.gpu

Needs only jax, numpy, equinox, jaxtyping and retrax. Bandwidth and arithmetic rate are measured on
the card itself, by a copy and by a long chain of multiply-adds.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import retrax as rx
from benchmarks.counts import step_cost
from benchmarks.problems import W2
from benchmarks.timing import save

H = 0.01
SIZES = (2**14, 2**20)
# Body-steps of a timed run: a second or so, so that the call itself does not matter.
WORK = 2**33
RUNS = 5


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
    """Floating-point operations per second of `chain` multiply-adds on each of 2^24 doubles."""
    x, a, b = jnp.zeros(2**24), jnp.asarray(0.999), jnp.asarray(1e-3)

    @jax.jit
    def chained(x, a, b):
        for _ in range(chain):
            x = x * a + b
        return x

    return 2 * chain * x.size / wall_seconds(lambda: chained(x, a, b).block_until_ready())


def pendulums(members: int) -> tuple[Any, rx.State]:
    """The pendulum of W2 from its potential, at `members` random velocities."""
    system = W2.system()
    velocity = np.random.default_rng(2).normal(size=(members, 3))
    momentum = jnp.asarray(velocity * W2.inertia)
    return system, rx.State(jnp.tile(jnp.eye(3), (members, 1, 1)), momentum, jnp.zeros(members))


def run(members: int, steps: int, backend: str) -> Callable[[], Any]:
    system, states = pendulums(members)
    return lambda: rx.ensemble(
        system, rx.LieVerlet(), states, h=H, steps=steps, save_every=None, backend=backend
    )


def disagreement(members: int = 1024, steps: int = 100) -> float:
    """The largest difference between the last attitudes by Pallas and by XLA."""
    pallas, xla = (np.asarray(run(members, steps, b)()["g"]) for b in ("pallas", "xla"))
    return float(np.max(np.abs(pallas - xla)))


def newton_iterations(steps: int = 100) -> float:
    """The mean number of iterations in a step of one pendulum."""
    single = rx.simulate(
        W2.system(), rx.LieVerlet(), W2.start(), h=H, steps=steps, backend="xla", progress=False
    )
    return float(np.sum(single.info.iterations)) / steps


def roofline(rate: float, steps: int, card: dict[str, float], cost: dict[str, Any]) -> dict:
    """Body-steps per second that the card's memory and arithmetic would allow, and our share."""
    bytes_per_step = 8 * (2 * cost["numbers"] + cost["parameters"]) / steps
    by_memory = card["bandwidth"] / bytes_per_step
    by_arithmetic = card["fp64_rate"] / cost["flops"]
    return {
        "bytes_per_body_step": bytes_per_step,
        "flops_per_body_step": cost["flops"],
        "limit_by_memory": by_memory,
        "limit_by_arithmetic": by_arithmetic,
        "share": rate / min(by_memory, by_arithmetic),
    }


def main() -> None:
    device = jax.devices()[0]
    if device.platform != "gpu":
        raise SystemExit(f"this needs a GPU, and JAX sees only {device.device_kind}.")
    card = {"bandwidth": bandwidth(), "fp64_rate": fp64_rate()}
    print(f"{device.device_kind}: {card['bandwidth']:.3g} B/s, {card['fp64_rate']:.3g} flop/s")
    difference = disagreement()
    cost = step_cost(W2.system(), rx.LieVerlet(), W2.start(), newton_iterations())
    rows = []
    for members in SIZES:
        steps = WORK // members
        seconds = wall_seconds(run(members, steps, "pallas"))
        rate = members * steps / seconds
        rows.append(
            {
                "members": members,
                "steps": steps,
                "seconds": seconds,
                "body_steps_per_second": rate,
                **roofline(rate, steps, card, cost),
            }
        )
        print(f"{members} members: {rate:.3g} body-steps/s, {rows[-1]['share']:.0%} of the limit")
    save(
        "gpu",
        {
            "device": device.device_kind,
            "card": card,
            "difference": difference,
            "cost": cost,
            "rows": rows,
        },
    )


if __name__ == "__main__":
    main()
