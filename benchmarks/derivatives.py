"""Gradients of runs: processor time against the run itself, and against XLA.

    PYTHONPATH=src:. python -m benchmarks.derivatives

All through `rx.simulate` and transformations of JAX, in one process, best of a few rounds.
"""

import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import retrax as rx
from retrax.integrators.base import AbstractIntegrator

MOMENTS = jnp.array([1.0, 2.8, 2.0])
BODY = rx.MechanicalSystem(rx.SO3(), MOMENTS, lambda R: -9.81 * R[2, 2])
SPIN = jnp.array([0.5, -0.5, 0.4])
ROUNDS = 5


def best(work: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """The least processor time of a few calls, all threads included."""
    times = []
    for _ in range(rounds):
        clock = time.process_time()
        jax.block_until_ready(work())
        times.append(time.process_time() - clock)
    return min(times)


def height(
    spin: jax.Array, steps: int, h: float, method: AbstractIntegrator, backend: str
) -> jax.Array:
    """The entry R33 at the end, from a spin of the pendulum hanging down."""
    start = BODY.state(jnp.eye(3), momentum=MOMENTS * spin)
    run = rx.simulate(BODY, method, start, h=h, steps=steps, save_every=steps, backend=backend)
    return run.final.g[2, 2]


def pendulum(steps: int) -> None:
    """The gradient of a run against the run."""
    start = BODY.state(np.eye(3), momentum=MOMENTS * SPIN)
    plain = partial(rx.simulate, BODY, rx.LieVerlet(), start, h=0.01, steps=steps, save_every=steps)
    gradient = jax.jit(
        jax.value_and_grad(
            partial(height, steps=steps, h=0.01, method=rx.LieVerlet(), backend="auto")
        )
    )
    clock = time.process_time()
    jax.block_until_ready(gradient(SPIN))
    first = time.process_time() - clock
    for _ in range(2):
        plain()
    both = [(best(plain, 1), best(lambda: gradient(SPIN), 1)) for _ in range(ROUNDS)]
    run, derivative = (min(times) for times in zip(*both, strict=True))
    print(
        f"pendulum, {steps} steps: run {run / steps * 1e6:.3f} us a step, value and gradient "
        f"{derivative / run:.2f} times that; first call {first:.2f} s"
    )


def memory(steps: int) -> None:
    """What a gradient allocates on the host beside its result."""
    gradient = jax.jit(
        jax.grad(partial(height, steps=steps, h=1e-3, method=rx.LieVerlet(), backend="auto"))
    )
    jax.block_until_ready(gradient(SPIN))
    tracemalloc.start()
    jax.block_until_ready(gradient(SPIN))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"pendulum, {steps} steps: gradient with {most / 1e6:.1f} MB")


def forward(method: AbstractIntegrator, steps: int) -> None:
    """All three derivatives of R33(10 s) by the spin."""
    by_spin = partial(height, steps=steps, h=10 / steps, method=method, backend="auto")
    best_known = rx.Collocation(rx.gauss(8))
    fine = partial(height, steps=160, h=10 / 160, method=best_known, backend="auto")
    derivative, exact = jax.jit(jax.jacfwd(by_spin)), jax.jit(jax.jacfwd(fine))(SPIN)
    error = float(jnp.max(jnp.abs(derivative(SPIN) - exact)))
    spent = best(lambda: derivative(SPIN), 50)
    print(f"R33(10 s), {method!r}, {steps} steps: error {error:.1e}, {spent * 1e3:.2f} ms")


def members(count: int, steps: int) -> None:
    """Gradients of many runs, against XLA."""
    spins = SPIN + 0.1 * jnp.asarray(np.random.default_rng(0).normal(size=(count, 3)))
    times = {}
    for backend in ("native", "xla"):
        one = partial(height, steps=steps, h=0.02, method=rx.LieVerlet(), backend=backend)
        gradients = jax.jit(jax.vmap(jax.grad(one)))
        jax.block_until_ready(gradients(spins))
        times[backend] = best(partial(gradients, spins), 2)
    print(
        f"{count} gradients of {steps} steps: {times['native']:.2f} s, XLA "
        f"{times['xla'] / times['native']:.0f} times that"
    )


def rod(elements: int, steps: int) -> None:
    """The gradient of a rod by its first velocities, against its run."""
    body = rx.systems.Rod.from_material(
        elements, 1.0, young=2e4, poisson=0.3, density=1000.0, radius=0.03
    )
    s = np.linspace(0.0, 1.0, body.nodes)[:, None]
    v = np.concatenate([0.4 * s, 0.5 * (1 - s**2), 0.3 * np.sin(5 * s)], axis=1)
    start, h = body.state(body.straight(), velocity=body.velocity_of(v=v)), 5e-4

    def tip(momentum: jax.Array) -> jax.Array:
        now = type(start)(start.g, momentum, start.t)
        run = rx.simulate(body, rx.LieVerlet(), now, h=h, steps=steps, save_every=steps)
        return jnp.sum(run.final.g[1][-1] ** 2)

    gradient = jax.jit(jax.value_and_grad(tip))
    jax.block_until_ready(gradient(start.momentum))
    plain = partial(rx.simulate, body, rx.LieVerlet(), start, h=h, steps=steps, save_every=steps)
    for _ in range(2):
        plain()
    both = [(best(plain, 1), best(lambda: gradient(start.momentum), 1)) for _ in range(ROUNDS)]
    run, derivative = (min(times) for times in zip(*both, strict=True))
    print(
        f"rod of {elements} elements: run {run / steps * 1e6:.1f} us a step, value and gradient "
        f"{derivative / run:.2f} times that"
    )


if __name__ == "__main__":
    for count in (10**4, 10**5, 10**6):
        pendulum(count)
    memory(10**6)
    forward(rx.Taylor(10), 60)
    forward(rx.Collocation(rx.gauss(6)), 18)
    rod(100, 1000)
    members(10_000, 100)
