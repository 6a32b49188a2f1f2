"""One trajectory (W1, W2): the native back end against hand-written C.

    python -m benchmarks.single

Per step, saving every 100th, and to an error of 1e-9 with order 8.
"""

from typing import Any

from benchmarks import kernels
from benchmarks.methods import matched
from benchmarks.ours import ORDERS, c_methods, disagreement, loop, simulation, verlet
from benchmarks.problems import W1, W2, Problem
from benchmarks.timing import paired, save, spread

H, SAVE_EVERY, TARGET = 0.01, 100, 1e-9
# Steps of order 2 in a timed run; a composition takes as many substeps.
SUBSTEPS = 200_000
AGREEMENT = 1e-10


def per_step(problem: Problem, order: int, pairs: int = 7) -> dict[str, Any]:
    """Whole call and loop alone against C, at h = 0.01; nanoseconds per step."""
    difference = disagreement(problem, order)
    if not difference < AGREEMENT:
        raise AssertionError(f"C and retrax differ by {difference:.1e} after 100 steps.")
    stages = 1 if order == 2 else len(kernels.fractions(order))
    steps = SUBSTEPS // stages // SAVE_EVERY * SAVE_EVERY
    arguments = (problem, verlet(order), H, steps, SAVE_EVERY)

    def c():
        return kernels.single(problem, H, steps, SAVE_EVERY, order)

    inside, whole = paired(loop(*arguments), c, pairs), paired(simulation(*arguments), c, pairs)
    newton = c()[1] / steps / stages
    row = {
        "problem": problem.name,
        "order": order,
        "stages": stages,
        "steps": steps,
        "difference": difference,
        "newton_per_substep": newton,
        "c_ns": inside["base_seconds"] / steps * 1e9,
        "loop_ns": inside["seconds"] / steps * 1e9,
        "loop": inside,
        "call": whole,
    }
    print(
        f"{problem.name}, order {order}: C {row['c_ns']:.0f} ns/step, retrax {row['loop_ns']:.0f}; "
        f"ratio {spread(inside)}, whole call {spread(whole)}; Newton {newton:.2f}"
    )
    return row


def to_error(problem: Problem, target: float, order: int = 8, pairs: int = 7) -> dict[str, Any]:
    """Order 8 to a given error at the end: the same number of steps in C and in retrax."""
    method = next(m for m in c_methods(problem) if m.name == f"order {order}")
    match = matched(method, problem.reference(), target)
    if match is None:
        raise AssertionError(f"C at order {order} does not reach {target:g}.")
    steps = int(match.setting)
    arguments = (problem, verlet(order), problem.end / steps, steps)
    inside = paired(loop(*arguments), match.call, pairs)
    whole = paired(simulation(*arguments), match.call, pairs)
    print(
        f"{problem.name} to {target:g} by order {order}, {steps} steps (error {match.error:.1e}): "
        f"ratio {spread(inside)}, whole call {spread(whole)}"
    )
    return {
        "problem": problem.name,
        "target": target,
        "order": order,
        "steps": steps,
        "error": match.error,
        "loop": inside,
        "call": whole,
    }


def call_overhead(problem: Problem) -> float:
    """Processor seconds of `rx.simulate` that do not depend on the number of steps."""
    from benchmarks.timing import cpu_seconds

    return cpu_seconds(simulation(problem, verlet(2), H, 1))


def main() -> None:
    results = {
        "h": H,
        "save_every": SAVE_EVERY,
        "per_step": [per_step(problem, order) for problem in (W1, W2) for order in ORDERS],
        "to_error": [to_error(W2, TARGET)],
        "call_overhead_seconds": call_overhead(W2),
    }
    print(
        f"a call of simulate costs {results['call_overhead_seconds'] * 1e3:.2f} ms before any step"
    )
    save("single", results)


if __name__ == "__main__":
    main()
