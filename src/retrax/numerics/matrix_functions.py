r"""Functions of a dense matrix: $\varphi_1(A) = (e^A - 1)/A$ and the principal logarithm."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Matrix = Float[Array, "n n"]

_DEGREE = 18  # 1 / 19! is below round-off
_DOUBLINGS = 16
# At most pi/16 is left of 4 pi, and (pi/16)^11 / 12! is below round-off.
_SHORT_DEGREE, _SHORT_DOUBLINGS = 10, 6
_ROOTS, _ROOT_STEPS, _CLOSE = 40, 60, 0.25


def phi1(A: Matrix) -> Matrix:
    r"""Return $\varphi_1(A) = \sum_k A^k/(k+1)!$: $e^A - 1 = A\,\varphi_1(A)$ does not cancel.

    A Taylor polynomial at $Y = A/2^s$ with norm at most 1, then $s$ times
    $$ \varphi_1(2Y) = \varphi_1(Y) + \tfrac12 Y\varphi_1(Y)^2. \qquad\text{(1)} $$
    """
    one = jnp.eye(A.shape[0])
    size = jax.lax.stop_gradient(jnp.max(jnp.sum(jnp.abs(A), axis=1)))
    s = jnp.ceil(jnp.log2(jnp.maximum(size, 1.0)))
    Y = A * jnp.exp2(-s)

    def horner(k, P):
        return one + Y @ P / jnp.asarray(_DEGREE + 1 - k, P.dtype)

    def double(i, value):
        P, Y = value
        active = i < s
        half = jnp.where(active, P, 0.0)  # the branch not taken must stay finite
        return jnp.where(active, P + Y @ half @ half / 2, P), jnp.where(active, 2 * Y, Y)  # (1)

    P = jax.lax.fori_loop(0, _DEGREE, horner, one)
    return jax.lax.fori_loop(0, _DOUBLINGS, double, (P, Y))[0]


def phi1_short(A: Matrix) -> Matrix:
    r"""Return $\varphi_1(A)$ of a normal $A$, eigenvalues up to $4\pi$ in modulus, at half cost.

    The same polynomial and doublings as `phi1`, with numbers of them that do not depend on $A$.
    """
    one, Y = jnp.eye(A.shape[0]), A / 2**_SHORT_DOUBLINGS

    def horner(P, divisor):
        return one + Y @ P / divisor, None

    def double(P, half):
        return P + half * (Y @ P @ P), None  # (1)

    P, _ = jax.lax.scan(horner, one, jnp.asarray(range(_SHORT_DEGREE + 1, 1, -1), A.dtype))
    return jax.lax.scan(double, P, 2.0 ** jnp.arange(-1, _SHORT_DOUBLINGS - 1, dtype=A.dtype))[0]


def logm(A: Matrix) -> Matrix:
    r"""Return the principal logarithm of a matrix without eigenvalues on the half-axis $x \le 0$.

    Square roots until $A$ is near 1, then with $Z = (A-1)(A+1)^{-1}$
    $$ \log A = 2\,\mathrm{artanh} Z = 2\sum_j Z^{2j+1}/(2j+1). \qquad\text{(2)} $$
    It is not differentiable by JAX; it is where Newton's iteration for a group logarithm starts.

    References: [Higham2008] (inverse scaling and squaring).
    """
    one = jnp.eye(A.shape[0])

    def far(value):
        root, count = value
        return (jnp.max(jnp.abs(root - one)) > _CLOSE) & (count < _ROOTS)

    root, count = jax.lax.while_loop(far, lambda v: (_sqrtm(v[0]), v[1] + 1), (A, 0))
    Z = (root - one) @ jnp.linalg.inv(root + one)
    Z2, series = Z @ Z, one / 25
    for j in range(11, -1, -1):
        series = one / (2 * j + 1) + Z2 @ series
    return jnp.exp2(jnp.asarray(count, A.dtype)) * 2 * Z @ series  # (2)


def _sqrtm(A: Matrix) -> Matrix:
    """Return the principal square root, by the iteration of Denman and Beavers."""

    def moving(value):
        _, _, change, count = value
        return (change > 1e-15) & (count < _ROOT_STEPS)

    def step(value):
        X, Y, _, count = value
        better, Y = (X + jnp.linalg.inv(Y)) / 2, (Y + jnp.linalg.inv(X)) / 2
        change = jnp.max(jnp.abs(better - X)) / jnp.max(jnp.abs(better))
        return better, Y, change, count + 1

    start = (A, jnp.eye(A.shape[0]), jnp.asarray(jnp.inf), 0)
    return jax.lax.while_loop(moving, step, start)[0]
