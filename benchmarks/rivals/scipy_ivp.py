"""SciPy: `solve_ivp` with its explicit and implicit methods."""

from scipy.integrate import solve_ivp

from benchmarks.methods import Call, Method, tolerances
from benchmarks.problems import Problem
from benchmarks.rivals.quaternion import attitude, field, initial

# Radau needs minutes where the others need seconds: it runs on the short problem only.
LONG = ("DOP853", "RK45", "LSODA")
SHORT = (*LONG, "Radau")
_LONG_TIME = 100.0


def methods(problem: Problem) -> list[Method]:
    names = SHORT if problem.end < _LONG_TIME else LONG
    return [_method(problem, name) for name in names]


def _method(problem: Problem, name: str) -> Method:
    y0 = initial(problem)

    def right_hand_side(t, y):
        return field(problem, y.tolist())

    def prepare(tolerance: float) -> Call:
        def call():
            run = solve_ivp(
                right_hand_side, (0, problem.end), y0, method=name,
                rtol=tolerance, atol=tolerance, t_eval=[problem.end],
            )  # fmt: skip
            return attitude(run.y[:, -1])

        return call

    # Below 1e-13 solve_ivp raises the tolerance to 100 eps and says so.
    return Method("SciPy", name, "tolerance", tolerances(1e-13), prepare)
