"""The arrays of several problems that are solved side by side, and the calls that work on them.

Rows are numbers; columns are stages of problems, all problems of the first stage first. There are
two of everything that belongs to an iterate: the one at hand and the one that is tried.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from retrax.engine.backends.sweeps import Rows
from retrax.engine.llvm.host import lanes
from retrax.planning.kernels import Programs
from retrax.planning.measure import Measured, counts, name_numbers, start
from retrax.planning.model import Sizes


def width(problems: int, stages: int) -> int:
    """Return how many of the problems are solved side by side: blocks fill the lanes."""
    side = lanes()
    return 1 if problems == 1 and stages >= side else -(-problems // side) * side


@contextmanager
def workspace(
    programs: Programs, sizes: Sizes, params: np.ndarray, stages: int, width: int
) -> Iterator["Workspace"]:
    """Lend a workspace, one that has been used before where there is one."""
    free = programs.rooms.setdefault((stages, width), [])
    try:
        work = free.pop()
    except IndexError:
        work = Workspace(programs, sizes, len(params), stages, width)
    work.params[...] = params
    for x in (*work.V, *work.nu):
        x[...] = 0.0
    yield work
    free.append(work)


class Workspace:
    """Arrays for `stages` stages of `width` problems.

    **Attributes:** `X`, `V`: states and stage variables of two iterates; `values`, `slopes`,
    `ends`: what was evaluated there; `dX`, `dV`: the step; `clock`, `limits`, `settings`, `theta`,
    `lengths`, `nu`: what goes with them.
    """

    def __init__(self, programs: Programs, sizes: Sizes, params: int, stages: int, width: int):
        s, N, P = sizes, stages, width
        n, q = s.state, s.sides
        half = n * (n + 1) // 2
        self.sizes, self.stages, self.width = s, N, P

        def two(rows: int, length: int) -> list[np.ndarray]:
            return [np.zeros((rows, length, P)) for _ in range(2)]

        self.X, self.V = two(s.node, N + 1), two(s.stage, N)
        self.values, self.slopes = two(s.values, N), two(s.slopes, N)
        self.ends = [np.zeros((1 + s.ends + n + s.ends * n + half, P)) for _ in range(2)]
        self._end_places = (1 + s.ends, 1 + s.ends + n, 1 + s.ends + n + s.ends * n)
        self.nu = [np.zeros((s.ends, P)) for _ in range(2)]
        self.clock = np.zeros((3, N, P))
        self.clock[2] = np.arange(N)[:, None]
        self.dX, self.dV = np.zeros((n, N + 1, P)), np.zeros((s.stage, N, P))
        self.gains = np.zeros((s.inputs * (n + q) + half + n * q, N, P))
        self.back = np.zeros((half + n * q + q * (q + 1) // 2 + 1, P))
        self.ahead = np.zeros((n + 3, P))
        self.limits = np.zeros((s.limits, P))
        self.settings, self.theta = np.zeros((3, P)), np.zeros((q, P))
        self.lengths = np.zeros((2, N, P))
        self.weights, self.scales = np.zeros(n + s.inputs), np.ones(n + s.path)
        self.sums = np.zeros((n + sum(counts(s)), P))
        self.upper, self.upper_sides = np.triu_indices(n), np.triu_indices(q)
        self.params = np.zeros(params)
        self.starts, self.way, self.hills = (np.zeros((k, P)) for k in (s.node, 3 * s.dim, s.dim))
        self.passing = np.zeros((3, N + 1, P))
        self.passing[2] = (np.arange(N + 1) / N)[:, None]
        self._bind(programs)

    def _bind(self, programs: Programs) -> None:
        N, P = self.stages, self.width
        side = lanes()
        few = 1 if P == 1 else side  # lanes where there is a column for each problem
        shared, none = Rows(self.params, 0, 1, 0), Rows(np.zeros(1), 0, 0, 0)

        def along(array: np.ndarray) -> Rows:
            return Rows(array, 0, N * P, P)

        def back(array: np.ndarray) -> Rows:
            return Rows(array, (N - 1) * P, N * P, -P)

        def each(array: np.ndarray) -> Rows:
            return Rows(array, 0, P, 0)

        def nodes(array: np.ndarray, first: int) -> Rows:
            return Rows(array, first * P, (N + 1) * P, P)

        start, way = each(self.starts), each(self.way)
        passing = Rows(self.passing, 0, (N + 1) * P, 0)
        self._aim = programs.aim.bind([shared, none, start, passing, way], 1, P, few)
        self._along = programs.along.bind(
            [
                *(shared, none, start, way, each(self.hills)),
                *(nodes(self.passing, 0), nodes(self.X[0], 0)),
            ],
            *(N + 1, P, few),
        )
        X, V, values, slopes = self.X, self.V, self.values, self.slopes
        self._evaluate, self._backward, self._forward, self._move = [], [], [], []
        self._measure = []
        for i in range(2):
            stage = programs.stage.bind(
                [
                    *(shared, none, nodes(X[i], 0), nodes(X[i], 1), along(V[i])),
                    *(along(self.clock), along(values[i]), along(slopes[i])),
                ],
                *(1, N * P, side),
            )
            last = programs.last.bind(
                [shared, none, nodes(X[i], N), each(self.nu[i]), each(self.ends[i])],
                *(1, P, few),
            )
            self._evaluate.append((stage, last))
            settings, limits = each(self.settings), each(self.limits)
            self._backward.append(
                programs.backward.bind(
                    [
                        *(Rows(self.weights, 0, 1, 0), each(self.back), back(values[i])),
                        *(back(slopes[i]), back(V[i]), limits, settings, back(self.gains)),
                    ],
                    *(N, P, few),
                )
            )
            self._forward.append(
                programs.forward.bind(
                    [
                        *(none, each(self.ahead), along(self.gains), along(values[i])),
                        *(along(slopes[i]), along(V[i]), limits, settings, each(self.theta)),
                        *(nodes(self.dX, 1), along(self.dV)),
                    ],
                    *(N, P, few),
                )
            )
            self._measure.append(
                programs.measure.bind(
                    [
                        *(Rows(self.scales, 0, 1, 0), each(self.sums), along(values[i])),
                        *(along(V[i]), limits, along(self.clock)),
                    ],
                    *(N, P, few),
                )
            )
            other = 1 - i
            self._move.append(
                programs.move.bind(
                    [
                        *(shared, none, nodes(X[i], 1), along(V[i]), nodes(self.dX, 1)),
                        *(along(self.dV), along(self.lengths), nodes(X[other], 1)),
                        along(V[other]),
                    ],
                    *(1, N * P, side),
                )
            )

    def aim(self, T: float, times: np.ndarray) -> np.ndarray:
        """Aim from the starts at the end; return how far each coordinate goes."""
        self.passing[0], self.passing[1] = T, times
        self._aim()
        a, b, c = np.split(self.way, 3)
        return np.maximum(np.abs(a + b + c), np.abs(a)).max(axis=1)

    def go_along(self) -> None:
        """Write the way, with its hills, into the first iterate."""
        self._along()

    def evaluate(self, which: int, h: np.ndarray) -> None:
        """Evaluate all stages and the end of an iterate with steps `h`."""
        self.clock[0] = h
        stage, last = self._evaluate[which]
        stage()
        last()

    def measure(self, which: int) -> Measured:
        """Sum up an iterate that has been evaluated."""
        start(self.sizes, self.sums)
        self._measure[which]()
        return name_numbers(self.sizes, self.sums.copy())

    def backward(self, which: int) -> None:
        self._backward[which]()

    def forward(self, which: int) -> None:
        self._forward[which]()

    def move(self, which: int, ahead: np.ndarray, duals: np.ndarray) -> None:
        """Make the other iterate from this one, so far along the step."""
        self.lengths[0], self.lengths[1] = ahead, duals
        self.X[1 - which][:, 0] = self.X[which][:, 0]
        self._move[which]()

    def guess_inputs(self, at: int, unit: np.ndarray) -> None:
        """Set the inputs that come nearest to a guessed motion, well within their bounds.

        `unit` is what counts as one, of each coordinate of the state.
        """
        s, m = self.sizes, self.sizes.inputs
        jacobian = self.slopes[at][: s.state * s.changes].reshape(s.state, s.changes, -1)
        B = (jacobian[:, s.state : s.state + m] / unit[:, None, None]).T
        c = (self.defects(at).reshape(s.state, -1) / unit[:, None]).T
        known = np.all(np.isfinite(np.concatenate([B.reshape(len(B), -1), c], axis=1)), axis=1)
        B, c = np.where(known[:, None, None], B, 0.0), np.where(known[:, None], c, 0.0)
        normal = np.einsum("kms,kns->kmn", B, B)
        size = np.trace(normal, axis1=1, axis2=2)
        normal += np.where(size > 0, 1e-12 * size, 1.0)[:, None, None] * np.eye(m)
        du = -np.linalg.solve(normal, np.einsum("kms,ks->km", B, c)[..., None])[..., 0]
        u = self.inputs(at)
        u += du.T.reshape(u.shape)
        if s.bounded:
            low, high = self.limits[:m, None], self.limits[m:, None]
            margin = np.where(np.isfinite(high - low), 0.1 * (high - low), 1e-2)
            np.clip(u, low + margin, high - margin, out=u)

    # What the numbers of an iterate are.

    def inputs(self, which: int) -> np.ndarray:
        return self.V[which][: self.sizes.inputs]

    def costates(self, which: int) -> np.ndarray:
        s = self.sizes
        return self.V[which][s.inputs : s.inputs + s.state]

    def bound_multipliers(self, which: int) -> np.ndarray:
        s = self.sizes
        first = s.inputs + s.state
        return self.V[which][first : first + s.limits]

    def slacks(self, which: int) -> np.ndarray:
        s = self.sizes
        first = s.inputs + s.state + s.limits
        return self.V[which][first : first + s.path]

    def path_multipliers(self, which: int) -> np.ndarray:
        return self.V[which][self.sizes.stage - self.sizes.path :]

    def defects(self, which: int) -> np.ndarray:
        return self.values[which][: self.sizes.state]

    def gradients(self, which: int) -> np.ndarray:
        s = self.sizes
        return self.values[which][s.state : s.state + s.changes]

    def path(self, which: int) -> np.ndarray:
        s = self.sizes
        return self.values[which][s.state + s.changes : s.values - 1]

    def costs(self, which: int) -> np.ndarray:
        return self.values[which][-1]

    def end(self, which: int) -> tuple[np.ndarray, ...]:
        """Return final cost, miss, gradient of cost, Jacobian of miss, numbers of the Hessian."""
        numbers, (a, b, d) = self.ends[which], self._end_places
        jacobian = numbers[b:d].reshape(self.sizes.ends, self.sizes.state, self.width)
        return numbers[0], numbers[1:a], numbers[a:b], jacobian, numbers[d:]

    def rooms(self, which: int) -> np.ndarray:
        """Return how far inputs are from their bounds, below and above; empty without bounds."""
        u, m = self.inputs(which), self.sizes.inputs
        if not self.sizes.bounded:
            return np.zeros((0, *u.shape[1:]))
        low, high = self.limits[:m, None], self.limits[m:, None]
        return np.concatenate([u - low, high - u])
