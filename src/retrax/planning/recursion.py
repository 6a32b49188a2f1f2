r"""Newton's step of a whole problem by Riccati's recursion, one stage at a time.

The value of the rest of the way is kept as a function of the change of the state and of
$\theta = (1, \delta h, \nu)$, whose last parts are found at the end of the sweep:

$$ V_k(x; \theta) = \tfrac12 x^T P x + x^T S\theta + \tfrac12\theta^T W\theta. \tag{1} $$

With $x_{k+1} = Ax + Bu + E\theta$ one stage takes $V_{k+1}$ to $V_k$, by the best
$u = Kx + k\theta$.
$B^T P B + R$ has a Cholesky factor where that is a minimum; its least pivot is carried along.
Inequalities $c - s = 0$, $s > 0$ have been eliminated with $\Sigma = z/s$.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from retrax.planning.model import Numbers, Sizes, apart, cut, symmetric, upper

# A product of matrices with more multiplications than this is a loop over rows.
_WRITTEN_OUT = 300


class Stage:
    """The linear equations and the quadratic cost of a stage, inequalities eliminated.

    **Attributes:** `A`, `B`, `E`: the step; `H`: the Hessian in (x, u, h), with what inequalities
    add; `slope`: the gradient, as a function of theta through the residuals; `C`, `s`, `z`, `gap`:
    the inequalities, bounds first, where they are not met yet.
    """

    def __init__(
        self, sizes: Sizes, values: Numbers, slopes: Numbers, own: Numbers, bounds: Numbers
    ):
        n, m, size = sizes.state, sizes.inputs, sizes.changes
        phi, _, c, _ = cut(values, n, size, sizes.path, 1)
        dphi, hessian, dc, dcost = cut(
            slopes, n * size, size * (size + 1) // 2, sizes.path * size, size
        )
        u, self.lam, limits, slack, z = cut(own, m, n, sizes.limits, sizes.path, sizes.path)
        J = dphi.reshape(n, size)
        self.A, self.B = J[:, :n], J[:, n : n + m]
        none = [jnp.zeros((n, sizes.ends))]
        step = [J[:, n + m :]] if sizes.free else []
        self.E = jnp.concatenate([phi[:, None], *step, *none], axis=1)
        self.H, self.dcost = symmetric(hessian, size), dcost
        parts = [(dc.reshape(sizes.path, size), slack, z, c - slack)]
        if sizes.bounded:
            low, high = cut(bounds, m, m)
            rows = np.zeros((2 * m, size))
            rows[:m, n : n + m], rows[m:, n : n + m] = np.eye(m), -np.eye(m)
            room = jnp.concatenate([u - low, high - u])
            parts.insert(0, (jnp.asarray(rows), room, limits, jnp.zeros(2 * m)))
        self.C, self.s, self.z, self.gap = (jnp.concatenate(x) for x in zip(*parts, strict=True))


def backward(
    sizes: Sizes,
    shared: Numbers,
    carried: Numbers,
    values: Numbers,
    slopes: Numbers,
    own: Numbers,
    bounds: Numbers,
    settings: Numbers,
) -> list[Numbers]:
    """Go from $V_{k+1}$ to $V_k$; write gains, and $P$ and $S$ of the end of the stage.

    **Arguments:** `shared`: what a shift adds to the diagonal of the Hessian, for each change of
    state and inputs; `carried`: P, S, W and the least pivot so far; `settings`: barrier, shift,
    share of the way to a bound.
    """
    n, m, q = sizes.state, sizes.inputs, sizes.sides
    stage = Stage(sizes, values, slopes, own, bounds)
    barrier, shift = settings[0], settings[1]
    counts = (n * (n + 1) // 2, n * q, q * (q + 1) // 2, 1)
    p, s, w, least = cut(carried, *counts)
    P, S, W = symmetric(p, n), s.reshape(n, q), symmetric(w, q)
    weight = stage.z / stage.s
    slope = stage.dcost - stage.C.T @ (barrier / stage.s - weight * stage.gap)
    H = stage.H + stage.C.T @ (weight[:, None] * stage.C)
    H = H + jnp.diag(jnp.concatenate([shift * shared, jnp.zeros(1)]))
    # Columns of the cost that go with theta: the gradient, and that of the step.
    first = [slope[:, None]] + ([H[:, -1:]] if sizes.free else [])
    side = jnp.concatenate([*first, jnp.zeros((sizes.changes, sizes.ends))], axis=1)
    A, B, E = stage.A, stage.B, stage.E
    PA, PB, PES = product(P, A), product(P, B), P @ E + S
    Qxx, Qux = H[:n, :n] + product(A.T, PA), H[n : n + m, :n] + product(PB.T, A)
    Quu = H[n : n + m, n : n + m] + product(B.T, PB)
    Qxt, Qut = side[:n] + product(A.T, PES), side[n : n + m] + product(B.T, PES)
    Qtt = W + E.T @ PES + S.T @ E  # most columns of E are zero
    if sizes.free:
        own_part = jnp.zeros((q, q))
        corner = jnp.array([[0.0, 1.0], [1.0, 0.0]]) * slope[-1]
        corner = corner + jnp.array([[0.0, 0.0], [0.0, 1.0]]) * H[-1, -1]
        Qtt = Qtt + own_part.at[:2, :2].set(corner)
    both = jnp.concatenate([Qux, Qut], axis=1)
    gains, pivot = _minus_solve(Quu, both, shared[n:])
    K, k = gains[:, :n], gains[:, n:]
    new = [
        upper(Qxx + product(Qux.T, K)),
        (Qxt + product(Qux.T, k)).ravel(),
        upper(Qtt + product(Qut.T, k)),
        jnp.minimum(least, pivot),
    ]
    return [jnp.concatenate(new), jnp.concatenate([gains.ravel(), p, s])]


def product(left: Float[Array, "i j"], right: Float[Array, "j k"]) -> Float[Array, "i k"]:
    """Multiply matrices, large ones row by row in a loop: LLVM takes long over long programs."""
    if left.size * right.shape[1] <= _WRITTEN_OUT:
        return left @ right
    return apart(lax.map(lambda row: row @ right, left))


def _minus_solve(
    matrix: Float[Array, "m m"], right: Float[Array, "m r"], scale: Numbers
) -> tuple[Float[Array, "m r"], Numbers]:
    """Return $-M^{-1}R$ by $LDL^T$, and the least pivot in units of `scale`."""
    m = matrix.shape[0]
    L: list[list[Array]] = [[jnp.zeros(())] * m for _ in range(m)]
    D: list[Array] = []
    for j in range(m):
        d = matrix[j, j]
        for k in range(j):
            d = d - L[j][k] * L[j][k] * D[k]
        D.append(d)
        for i in range(j + 1, m):
            x = matrix[i, j]
            for k in range(j):
                x = x - L[i][k] * L[j][k] * D[k]
            L[i][j] = x / d
    rows: list[Array] = []
    for i in range(m):
        row = -right[i]
        for k in range(i):
            row = row - L[i][k] * rows[k]
        rows.append(row)
    rows = [row / d for row, d in zip(rows, D, strict=True)]
    for i in reversed(range(m)):
        for k in range(i + 1, m):
            rows[i] = rows[i] - L[k][i] * rows[k]
    pivots = jnp.stack(D) / scale
    least = pivots[0]
    for k in range(1, m):
        least = jnp.minimum(least, pivots[k])
    return jnp.stack(rows), least[None]


def forward(
    sizes: Sizes,
    carried: Numbers,
    gains: Numbers,
    values: Numbers,
    slopes: Numbers,
    own: Numbers,
    bounds: Numbers,
    settings: Numbers,
    theta: Numbers,
) -> list[Numbers]:
    """Go along the way: changes of states, inputs, costates, slacks and multipliers.

    Carried are the change of the state, how far one may go before an inequality or its multiplier
    has lost its share, and the slope of cost and barrier along the step.
    """
    n, m, q = sizes.state, sizes.inputs, sizes.sides
    stage = Stage(sizes, values, slopes, own, bounds)
    barrier, share = settings[0], settings[2]
    x, room, slope = cut(carried, n, 2, 1)
    gain, p, s = cut(gains, m * (n + q), n * (n + 1) // 2, n * q)
    G = gain.reshape(m, n + q)
    u = G[:, :n] @ x + G[:, n:] @ theta
    ahead = stage.A @ x + stage.B @ u + stage.E @ theta
    lam = symmetric(p, n) @ ahead + s.reshape(n, q) @ theta
    dh = theta[1:2] if sizes.free else jnp.zeros(1)
    change = jnp.concatenate([x, u, dh])
    ds = stage.C @ change + stage.gap
    weight = stage.z / stage.s
    dz = barrier / stage.s - stage.z - weight * ds
    for k in range(ds.shape[0]):
        room = jnp.stack(
            [
                jnp.minimum(room[0], _share(stage.s[k], ds[k], share)),
                jnp.minimum(room[1], _share(stage.z[k], dz[k], share)),
            ]
        )
    slope = slope + stage.dcost @ change - barrier * jnp.sum(ds / stage.s)
    bounded = sizes.limits
    down = [u, lam - stage.lam, dz[:bounded], ds[bounded:], dz[bounded:]]
    return [jnp.concatenate([ahead, room, slope]), ahead, jnp.concatenate(down)]


def _share(value: Array, change: Array, share: Array) -> Array:
    """Return how far to go until a positive number has lost its share."""
    falls = change < 0
    return jnp.where(falls, -share * value / jnp.where(falls, change, -1.0), 1.0)
