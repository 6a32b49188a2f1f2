"""SciPy: `solve_ivp` with all its methods, on equations in plain numbers, which it likes best."""

from scipy.integrate import solve_ivp

from benchmarks.methods import Call, Method, tolerances
from benchmarks.rivals.quaternion import attitude, field, initial
from retrax_papers.bench.problems import TimedProblem

METHODS = ("DOP853", "RK45", "RK23", "LSODA", "Radau", "BDF")


def methods(problem: TimedProblem) -> list[Method]:
    return [_method(problem, name) for name in METHODS]


def _method(problem: TimedProblem, name: str) -> Method:
    y0 = initial(problem)

    def right_hand_side(t, y):
        return field(problem, y.tolist())

    def prepare(tolerance: float) -> Call:
        def call():
            run = solve_ivp(
                right_hand_side, (0, problem.end), y0, method=name,
                rtol=tolerance, atol=tolerance, t_eval=[problem.end],
            )  # fmt: skip
            if not run.success:
                raise RuntimeError(run.message)
            return attitude(run.y[:, -1])

        return call

    # Below 1e-13 solve_ivp raises the tolerance to 100 eps and says so.
    return Method("SciPy", name, "tolerance", tolerances(1e-13), prepare)
