"""Ensembles on a GPU: whole calls of `rx.ensemble`, their kernels, and what the card could do.

    python -m benchmarks.gpu

Needs only jax, numpy, xarray, equinox, jaxtyping, llvmlite and retrax. A call is timed on the wall,
from states on the card to a dataset on the host, the first call left out; `seconds` of the dataset
is what the kernel took in it, with the copy to the host. What the card does at most is measured on
it: bandwidth by a copy, arithmetic by long chains of fused multiply-adds.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import retrax as rx
from benchmarks.counts import step_cost
from benchmarks.results import save
from retrax.engine.backends.gpu_kernels import GPUFunction
from retrax.engine.passes.live import live
from retrax.engine.trace.scalarise import scalarise
from retrax.systems.catalogue import CASES
from retrax_papers.bench.problems import W2

RUNS = 3
MILLION = 2**20


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


def fp64_rate(rounds: int = 2**16, chain: int = 64, threads: int = 2**20) -> float:
    """Floating-point operations per second of fused multiply-adds, one after the other."""

    def chained(x, a):
        def some(_, x):
            for _ in range(chain):
                x = x * a + a
            return x

        return lax.fori_loop(0, rounds, some, x)

    run = GPUFunction(live(scalarise(chained, jnp.zeros(()), jnp.zeros(()))), [1, 1])
    arrays = [jnp.zeros(threads), jnp.full(threads, 1e-3)]
    return 2 * rounds * chain * threads / wall_seconds(lambda: run(arrays))


class Ensemble(NamedTuple):
    """What is run: a name, who moves and how, from where; how many elements a member has.

    `own` says that every member has its own system.
    """

    name: str
    system: Any
    integrator: Any
    states: Any
    h: float
    steps: int
    elements: int = 1
    own: bool = False


def pendulums(name: str, integrator: Any, steps: int, members: int = MILLION) -> Ensemble:
    """Pendulums of W2, from its potential, with random velocities."""
    velocity = np.random.default_rng(2).normal(size=(members, 3))
    momentum = jnp.asarray(velocity * W2.inertia)
    states = rx.State(jnp.tile(jnp.eye(3), (members, 1, 1)), momentum, jnp.zeros(members))
    return Ensemble(name, W2.system(), integrator, states, 0.01, steps)


def tops(steps: int, members: int = MILLION) -> Ensemble:
    """Euler's tops with random momenta on the sphere."""
    top = rx.systems.EulerTop([3.0, 2.0, 1.0])
    m = np.random.default_rng(3).normal(size=(members, 3))
    states = top.as_state(jnp.asarray(m / np.linalg.norm(m, axis=1, keepdims=True)))
    return Ensemble("Euler tops, Kahan", top, rx.Kahan(), states, 0.5, steps)


def bodies(integrator: Any, steps: int, members: int = MILLION) -> Ensemble:
    """Suslov bodies, each with an inertia of its own."""
    factors = 0.3 * np.random.default_rng(3).normal(size=(members, 3, 3))
    inertias = np.diag([1.0, 2.0, 2.5]) + 0.3 * factors @ factors.transpose(0, 2, 1)
    made = jax.vmap(lambda inertia: rx.systems.Suslov(inertia, physical=False))(inertias)
    start = jax.jit(
        jax.vmap(lambda body: body.state(jnp.eye(3), velocity=jnp.array([0.7, 0.4, 0.0])))
    )(made)
    name = "Suslov bodies with inertias of their own, HamelMidpoint"
    return Ensemble(name, made, integrator, start, 0.05, steps, own=True)


def chains(case: str, name: str, steps: int, members: int = 50_000) -> Ensemble:
    """Rods or string pendulums of 20 elements, with momenta that differ by a percent."""
    system, state, h, _ = CASES[case].make()
    factors = np.linspace(0.99, 1.01, members)[:, None]
    copies = jax.tree.map(lambda x: np.repeat(np.asarray(x)[None], members, axis=0), state)
    states = jax.device_put(rx.State(copies.g, copies.momentum * factors, copies.t))
    return Ensemble(name, system, rx.LieVerlet(), states, h, steps, 20)


def ensembles() -> list[Callable[[], Ensemble]]:
    """What is measured, made one at a time: together they would fill the host."""
    high = rx.Composition(rx.LieVerlet(), 8)
    return [
        lambda: pendulums("pendulums, LieVerlet", rx.LieVerlet(), 65_536),
        lambda: pendulums("pendulums, LieVerlet", rx.LieVerlet(), 4096),
        lambda: pendulums("pendulums, LieVerlet", rx.LieVerlet(), 65_536, 2**14),
        lambda: pendulums("pendulums, Composition of order 8", high, 4096),
        lambda: pendulums("pendulums, Collocation(gauss(4))", rx.Collocation(rx.gauss(4)), 2048),
        lambda: pendulums(
            "pendulums, GalerkinVariational(gauss(3))", rx.GalerkinVariational(rx.gauss(3)), 1024
        ),
        lambda: tops(400_000),
        lambda: bodies(rx.HamelMidpoint(), 4096),
        lambda: chains("rod", "rods of 20 elements, LieVerlet", 10_000),
        lambda: chains("string-pendulum", "string pendulums of 20 elements, LieVerlet", 10_000),
    ]


def disagreement(what: Ensemble, members: int = 512, steps: int = 100) -> float:
    """The largest difference between the last states on the card and by the native back end."""
    few = jax.tree.map(lambda x: x[:members], what.states)
    system = jax.tree.map(lambda x: x[:members], what.system) if what.own else what.system
    ours, native = (
        rx.ensemble(system, what.integrator, few, h=what.h, steps=steps, backend=backend)
        for backend in ("gpu", "native")
    )
    kinds = {name: variable.attrs.get("kind") for name, variable in ours.data_vars.items()}
    names = [name for name, kind in kinds.items() if name == "momentum" or kind == "configuration"]
    return float(max(np.max(np.abs(ours[n].values - native[n].values)) for n in names))


def timed(what: Ensemble) -> dict[str, Any]:
    """Element-steps per second of whole calls, and of the kernel in the last of them."""
    runs = None

    def call() -> None:
        nonlocal runs
        runs = rx.ensemble(what.system, what.integrator, what.states, h=what.h, steps=what.steps)

    seconds = wall_seconds(call)
    assert runs is not None and runs.attrs["provenance_backend"] == "gpu"
    members = len(what.states.t)
    work = members * what.steps * what.elements
    row = {
        "name": what.name,
        "members": members,
        "steps": what.steps,
        "seconds": seconds,
        "compile_seconds": runs.attrs["compile_seconds"],
        "rate": work / seconds,
        "kernel_rate": work / runs.attrs["seconds"],
        "iterations": float(np.nanmean(runs["iterations"].values)) / what.steps,
        "failed": int(np.sum(runs["failed_step"].values > 0)),
        "disagreement": disagreement(what),
    }
    print(
        f"{what.name}, {members:,} x {what.steps:,}: {row['rate']:.3g}/s, kernel "
        f"{row['kernel_rate']:.3g}/s, native within {row['disagreement']:.1e}",
        flush=True,
    )
    return row


_FIRST = """
import time, jax, jax.numpy as jnp, numpy as np, retrax as rx
from benchmarks.gpu import pendulums
what = pendulums("", rx.LieVerlet(), 4096)
jax.block_until_ready(what.states)
for _ in range(2):
    clock = time.perf_counter()
    runs = rx.ensemble(what.system, what.integrator, what.states, h=what.h, steps=what.steps)
    print(time.perf_counter() - clock, runs.attrs["seconds"])
"""


def first_calls() -> dict[str, float]:
    """Seconds of the first and the second call in a fresh process, beside the run itself."""
    done = subprocess.run(
        [sys.executable, "-c", _FIRST], capture_output=True, text=True, check=True
    )
    first, second = ([float(x) for x in line.split()] for line in done.stdout.splitlines())
    return {"first": first[0] - first[1], "second": second[0] - second[1]}


def main() -> None:
    device = jax.devices()[0]
    if device.platform != "gpu":
        raise SystemExit(f"This needs a GPU, and JAX sees only {device.device_kind}.")
    card = {"bandwidth": bandwidth(), "fp64_rate": fp64_rate()}
    print(f"{device.device_kind}: {card['bandwidth']:.3g} B/s, {card['fp64_rate']:.3g} flop/s")
    calls = first_calls()
    print(f"beside the run: {calls}", flush=True)
    rows = [timed(make()) for make in ensembles()]
    cost = step_cost(W2.system(), rx.LieVerlet(), W2.start(), rows[0]["iterations"])
    save(
        "gpu",
        {"device": device.device_kind, "card": card, "calls": calls, "rows": rows, "cost": cost},
    )


if __name__ == "__main__":
    main()
