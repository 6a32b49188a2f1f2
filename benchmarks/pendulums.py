"""Ten thousand 3D pendulums to the same median error: `rx.ensemble` and heyoka's batches.

    python -m benchmarks.pendulums

One process, processor time over all threads. heyoka steps eight pendulums abreast; retrax as
many as a vector register holds.
"""

import jax.numpy as jnp
import numpy as np

import retrax as rx
from benchmarks.methods import Method, matched, step_counts
from benchmarks.results import save
from benchmarks.rivals.quaternion import ensemble_initial
from retrax_papers.bench.problems import W2, verlet
from retrax_papers.bench.timing import cpu_seconds

MEMBERS, END, TARGET = 10_000, 30.0, 1e-9
RUNS = 3


def starts() -> tuple[rx.State, np.ndarray]:
    """Pendulums at rest position with random velocities about that of W2."""
    spread = np.random.default_rng(2).normal(scale=0.1, size=(MEMBERS, 3))
    velocity = np.array(W2.velocity) + spread
    g, momentum = np.tile(np.eye(3), (MEMBERS, 1, 1)), velocity * W2.inertia
    states = rx.State(jnp.asarray(g), jnp.asarray(momentum), jnp.zeros(MEMBERS))
    packed = np.concatenate([g.reshape(MEMBERS, 9), momentum], axis=1).T
    return states, ensemble_initial(W2, np.ascontiguousarray(packed))


def ours(states: rx.State) -> list[Method]:
    system = W2.system()

    def method(integrator, first: int) -> Method:
        def prepare(steps: float):
            n = int(steps)
            options = {"h": END / n, "steps": n, "save_every": n, "progress": False}
            return lambda: np.asarray(
                rx.ensemble(system, integrator, states, **options)["g"].isel(time=-1)
            )

        return Method("retrax", repr(integrator), "steps", step_counts(first, 3000), prepare)

    return [
        method(rx.Taylor(10), 100),
        method(rx.Collocation(rx.gauss(8)), 30),
        method(rx.GalerkinVariational(rx.gauss(8)), 30),
        method(verlet(8), 200),
    ]


def main() -> None:
    states, quaternions = starts()
    methods = ours(states)
    exact = methods[1].prepare(100)()
    try:
        from benchmarks.rivals import heyoka_taylor
    except ImportError:
        print("heyoka is not installed: retrax by itself.")
    else:
        methods += heyoka_taylor.ensemble_methods(W2, quaternions, END)
    rows = []
    for method in methods:
        match = matched(method, exact, TARGET)
        if match is None:
            continue
        seconds = min(cpu_seconds(match.call, 1) for _ in range(RUNS))
        row = {"library": method.library, "method": method.name, "setting": match.setting}
        rows.append({**row, "error": match.error, "microseconds": seconds / MEMBERS * 1e6})
        print(rows[-1], flush=True)
    save("pendulums", {"members": MEMBERS, "end": END, "target": TARGET, "rows": rows})


if __name__ == "__main__":
    main()
