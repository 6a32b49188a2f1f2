"""Rotations of n-dimensional space."""

from fractions import Fraction
from functools import cache
from itertools import combinations
from math import comb, factorial, pi
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from retrax.groups.base import AbstractLieGroup, Coordinates, Matrix
from retrax.groups.nearest import nearest_rotation
from retrax.numerics.checks import MOST_ROWS, require_whole
from retrax.numerics.matrix_functions import logm, phi1, phi1_short
from retrax.numerics.small_matrices import inverse, solve

Square = Float[Array, "n n"]

_LOG_STEPS = 3
_TAYLOR, _DEGREE = 60, 20


class SO(AbstractLieGroup):
    r"""Rotations of $\mathbb R^n$, stored as `(n, n)` arrays, $n \ge 2$.

    The coordinates of $\mathfrak{so}(n)$ are those of the planes $(i, j)$, $i < j$, in the order
    12, 13, ..., 23, ...: $\hat\xi_{ji} = \xi_{ij} = -\hat\xi_{ij}$. All maps act on $n\times n$
    matrices; no matrix with as many rows as there are planes is formed. With $X = \hat\xi$,
    $$
    \begin{aligned}
    [X, Y] &= XY - (XY)^T                                                          &&\text{(1)}\\
    \mathrm{dexp}^{-1}_\xi &= 1 + \tfrac12\mathrm{ad}_\xi
        + \kappa(-\mathrm{ad}_\xi^2)\,\mathrm{ad}_\xi^2, \qquad
        \kappa(\theta^2) = \frac{1 - \frac\theta2\cot\frac\theta2}{\theta^2}       &&\text{(2)}\\
    \exp\begin{pmatrix} X & Y\\ 0 & X\end{pmatrix} &=
        \begin{pmatrix} e^X & e^X\,\mathrm{dexp}_XY\\ 0 & e^X\end{pmatrix}         &&\text{(3)}
    \end{aligned}
    $$
    The eigenvalues of $-\mathrm{ad}_\xi^2$ are real, squares of sums and differences of the angles
    of rotation. In (2) $\kappa$ is a polynomial that is exact to round-off while no such sum
    exceeds $\sqrt2\pi$, which $|\xi| < \pi$ ensures; that is the chart of `Exp`.

    **Arguments:** `n`: the dimension of the space that is rotated. For $n = 3$ prefer `SO3`.

    References: [IserlesMuntheKaasNorsettZanna2000] (2), [Higham2008] (3).
    """

    n: int = eqx.field(static=True)
    has_cayley: ClassVar[bool] = True

    def __init__(self, n: int):
        self.n = require_whole("SO: n", n, 2, MOST_ROWS)

    def __repr__(self) -> str:
        return f"SO({self.n})"

    @property
    def dim(self) -> int:
        return comb(self.n, 2)

    @property
    def name(self) -> str:
        return f"SO({self.n})"

    def identity(self) -> Square:
        return jnp.eye(self.n)

    def compose(self, g: Square, k: Square) -> Square:
        return g @ k

    def inverse(self, g: Square) -> Square:
        return g.T

    def hat(self, xi: Coordinates) -> Square:
        zero = jnp.zeros_like(xi[0])
        entries = [[zero] * self.n for _ in range(self.n)]
        for k, (i, j) in enumerate(combinations(range(self.n), 2)):
            entries[i][j], entries[j][i] = -xi[k], xi[k]
        return jnp.stack([x for row in entries for x in row]).reshape(self.n, self.n)

    def vee(self, x: Square) -> Coordinates:
        return jnp.stack([x[j, i] for i, j in combinations(range(self.n), 2)])

    def expm1(self, xi: Coordinates) -> Square:
        x = self.hat(xi)
        return x @ phi1(x)

    def expm1_in_chart(self, xi: Coordinates) -> Square:
        r"""Return `expm1` for $|\xi| \le 4\pi$."""
        x = self.hat(xi)
        return x @ phi1_short(x)

    def angle_squared(self, xi: Coordinates) -> Float[Array, ""]:
        """Return the square of a generous bound of the sum of two angles of rotation."""
        return 4 * (xi @ xi)

    def log(self, g: Square) -> Coordinates:
        """Return coordinates of the principal logarithm; no angle of `g` may be half a turn."""
        return _log(self, g)

    def advance(self, g: Square, delta: Square) -> Square:
        half = (g.T @ g - jnp.eye(self.n)) / 2
        return g + g @ (delta - half - half @ delta)  # g (1 - half)(1 + delta)

    def tangent(self, g: Square, xi: Coordinates) -> Square:
        return g @ self.hat(xi)

    def cotangent(self, g: Square, a: Square) -> Coordinates:
        m = g.T @ a
        return self.vee(m - m.T)

    def Ad(self, g: Square, xi: Coordinates | None = None) -> Matrix | Coordinates:
        if xi is None:
            return jax.vmap(lambda e: self.Ad(g, e), out_axes=1)(jnp.eye(self.dim))
        return self.vee(g @ self.hat(xi) @ g.T)

    def coAd(self, g: Square, mu: Coordinates | None = None) -> Matrix | Coordinates:
        return self.Ad(g.T, mu)

    def coAdm1(self, delta: Square, mu: Coordinates) -> Coordinates:
        m = self.hat(mu)
        half = m @ delta + delta.T @ m @ delta / 2
        return self.vee(half - half.T)

    def ad(self, xi: Coordinates, eta: Coordinates | None = None) -> Matrix | Coordinates:
        if eta is None:
            return jax.vmap(lambda e: self.ad(xi, e), out_axes=1)(jnp.eye(self.dim))
        return self.vee(_bracket(self.hat(xi), self.hat(eta)))

    def coad(self, xi: Coordinates, mu: Coordinates | None = None) -> Matrix | Coordinates:
        return self.ad(-xi, mu)

    def dexp(self, xi: Coordinates, eta: Coordinates) -> Coordinates:
        x, y = self.hat(xi), self.hat(eta)
        n, zero = self.n, jnp.zeros((self.n, self.n))
        block = jnp.concatenate(
            [jnp.concatenate([x, y], axis=1), jnp.concatenate([zero, x], axis=1)]
        )
        both = block @ phi1(block)  # (3)
        return self.vee(both[:n, n:] + both[:n, :n].T @ both[:n, n:])

    def dexp_inv(self, xi: Coordinates, eta: Coordinates) -> Coordinates:
        x, y = self.hat(xi), self.hat(eta)
        turned = _bracket(x, y)
        twice = _bracket(x, turned)

        def horner(value, c):
            return c * twice - _bracket(x, _bracket(x, value)), None

        kappa = _kappa()
        value, _ = jax.lax.scan(horner, kappa[-1] * twice, jnp.asarray(kappa[-2::-1]))
        return self.vee(y + turned / 2 + value)  # (2)

    def dexp_dual(self, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return self.dexp(-xi, mu)

    def dexp_inv_dual(self, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return self.dexp_inv(-xi, mu)

    def caym1(self, xi: Coordinates) -> Square:
        x = self.hat(xi)
        return solve(self.identity() - x / 2, x)

    def cay_inv(self, g: Square) -> Coordinates:
        one = self.identity()
        return 2 * self.vee((g - one) @ inverse(g + one))

    def dcay(self, xi: Coordinates, eta: Coordinates) -> Coordinates:
        away = inverse(self.identity() + self.hat(xi) / 2)
        return self.vee(away @ self.hat(eta) @ away.T)

    def dcay_inv(self, xi: Coordinates, eta: Coordinates) -> Coordinates:
        near = self.identity() + self.hat(xi) / 2
        return self.vee(near @ self.hat(eta) @ near.T)

    def defect(self, g: Square) -> Float[Array, ""]:
        skew = jnp.max(jnp.abs(g.T @ g - jnp.eye(self.n)))
        return jnp.maximum(skew, jnp.abs(jnp.linalg.det(g) - 1))

    def project(self, g: Square) -> Square:
        """Return the nearest rotation. Reject a matrix with several equally near."""
        return nearest_rotation(g, self.n)

    def angles(self) -> np.ndarray:
        return np.ones(self.dim, bool)

    def random(self, key: Key[Array, ""]) -> Square:
        q, r = jnp.linalg.qr(jax.random.normal(key, (self.n, self.n)))
        q = q * jnp.sign(jnp.diagonal(r))[None, :]
        return q.at[:, 0].multiply(jnp.sign(jnp.linalg.det(q)))


def _bracket(x: Square, y: Square) -> Square:
    product = x @ y
    return product - product.T  # (1)


@cache
def _kappa() -> tuple[float, ...]:
    r"""Return coefficients of $\kappa(\theta^2)$, economised for $\theta^2 \le 2\pi^2$.

    Its Taylor coefficients are $|B_{2k+2}|/(2k+2)!$, its nearest pole is at twice that range.
    """
    bernoulli = [Fraction(1)]
    for m in range(1, 2 * _TAYLOR + 3):
        total = sum((comb(m + 1, k) * b for k, b in enumerate(bernoulli)), Fraction(0))
        bernoulli.append(-total / (m + 1))
    taylor = [float(abs(bernoulli[2 * k + 2]) / factorial(2 * k + 2)) for k in range(_TAYLOR)]
    exact = np.polynomial.Polynomial(taylor)
    short = np.polynomial.Chebyshev.interpolate(exact, _DEGREE, domain=[0.0, 2 * pi**2])
    return tuple(short.convert(kind=np.polynomial.Polynomial).coef.tolist())


@jax.custom_jvp
def _log(group: SO, g: Square) -> Coordinates:
    def better(_, xi):
        gap = g - group.identity() - group.expm1(xi)
        return xi + group.vee(group.exp(-xi) @ gap)

    return jax.lax.fori_loop(0, _LOG_STEPS, better, group.vee(logm(g)))


@_log.defjvp
def _log_jvp(primals, tangents):
    (group, g), (_, velocity) = primals, tangents
    xi = _log(group, g)
    slope = jax.vmap(lambda e: group.dexp(xi, e), out_axes=1)(jnp.eye(group.dim))
    return xi, jnp.linalg.solve(slope, group.vee(g.T @ velocity))
