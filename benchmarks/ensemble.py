"""Many free bodies (W3): `rx.ensemble` against the C SIMD kernel and against plain `vmap`.

python -m benchmarks.ensemble
"""

from typing import Any

import jax
import numpy as np
from jax import lax

import retrax as rx
from benchmarks import kernels
from benchmarks.problems import W1, free_bodies
from benchmarks.timing import cpu_seconds, paired, save, spread

MEMBERS, STEPS, H = 10_000, 1000, 0.01
SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
# All sizes take about this many body-steps, so that each is measured equally long.
WORK = 10_000_000
# Plain vmap is slow: fewer steps, time per body and step.
VMAP_STEPS = 50
AGREEMENT = 1e-10


def attitudes(runs: Any) -> np.ndarray:
    """R of every member at the end, (members, 3, 3), of the dataset that `rx.ensemble` returns."""
    g = runs["g"]
    return np.asarray(g.isel(time=-1) if "time" in g.dims else g)


def run(system: Any, states: rx.State, steps: int, backend: str = "native"):
    """A call of `rx.ensemble` that keeps the last states."""
    return lambda: rx.ensemble(
        system, rx.LieVerlet(), states, h=H, steps=steps, save_every=None, backend=backend
    )


def plain_vmap(system: Any, states: rx.State, steps: int):
    """What a JAX user writes first: `vmap` of the step inside `lax.scan`."""
    step = jax.vmap(lambda state: rx.LieVerlet().step(system, state, H)[0])

    @jax.jit
    def loop(states):
        return lax.scan(lambda s, _: (step(s), None), states, None, length=steps)[0]

    return lambda: jax.block_until_ready(loop(states))


def disagreement(members: int = 100, steps: int = 100) -> float:
    """The largest difference between attitudes by retrax and by the C kernel."""
    system, states, packed = free_bodies(members)
    theirs = kernels.ensemble(packed, W1.inertia, H, steps, newton=0)[:9].T.reshape(-1, 3, 3)
    return float(np.max(np.abs(attitudes(run(system, states, steps)()) - theirs)))


def against_c(pairs: int = 5) -> dict[str, Any]:
    """10,000 bodies, 1000 steps: against C with two Newton iterations, and until it converges."""
    system, states, packed = free_bodies(MEMBERS)
    ours, rows = run(system, states, STEPS), {}
    for name, newton in (("two iterations", 2), ("until converged", 0)):

        def c(newton=newton):
            return kernels.ensemble(packed, W1.inertia, H, STEPS, newton=newton)

        result = paired(ours, c, pairs)
        result["ns"] = result["seconds"] / MEMBERS / STEPS * 1e9
        result["c_ns"] = result["base_seconds"] / MEMBERS / STEPS * 1e9
        print(
            f"C, {name}: {result['c_ns']:.2f} ns per body, step and core; retrax "
            f"{result['ns']:.2f}; ratio {spread(result)}"
        )
        rows[name] = result
    return rows


def against_vmap(pairs: int = 3) -> dict[str, Any]:
    """The same bodies by `vmap` for fewer steps, against the native back end for as many."""
    system, states, _ = free_bodies(MEMBERS)
    result = paired(plain_vmap(system, states, VMAP_STEPS), run(system, states, VMAP_STEPS), pairs)
    result["vmap_ns"] = result["seconds"] / MEMBERS / VMAP_STEPS * 1e9
    print(f"plain vmap: {result['vmap_ns']:.0f} ns per body and step; ratio {spread(result)}")
    return result


def against_size() -> list[dict[str, Any]]:
    """The cost per body and step from a hundred members to a million, beside C."""
    rows = []
    for members in SIZES:
        system, states, packed = free_bodies(members)
        steps = max(WORK // members, 10)
        seconds = cpu_seconds(run(system, states, steps))
        c = cpu_seconds(lambda p=packed, n=steps: kernels.ensemble(p, W1.inertia, H, n))
        scale = 1e9 / members / steps
        rows.append({"members": members, "steps": steps, "ns": seconds * scale, "c_ns": c * scale})
        print(f"{members:>9} members: retrax {rows[-1]['ns']:.2f} ns, C {rows[-1]['c_ns']:.2f}")
    return rows


def main() -> None:
    difference = disagreement()
    if not difference < AGREEMENT:
        raise AssertionError(f"C and retrax differ by {difference:.1e} after 100 steps.")
    results = {
        "members": MEMBERS,
        "steps": STEPS,
        "h": H,
        "difference": difference,
        "c": against_c(),
        "vmap": against_vmap(),
        "sizes": against_size(),
    }
    save("ensemble", results)


if __name__ == "__main__":
    main()
