"""Jacobi's elliptic functions and the elliptic integral of the first kind, real, 0 <= m < 1."""

import jax.numpy as jnp
from jaxtyping import Array, Float

Scalar = Float[Array, "..."]

# Means of means: each doubles the number of digits. From m = 1 - 1e-12 it takes eight.
_MEANS = 9
# Each duplication divides the spread of the arguments by four; what is left is of the sixth order.
_DUPLICATIONS = 10


def jacobi(u: Scalar, m: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    r"""Return $\mathrm{sn}$, $\mathrm{cn}$ and $\mathrm{dn}$ of $(u \mid m)$, $m = k^2$.

    With the means $a_{n+1} = \tfrac12(a_n + b_n)$, $b_{n+1} = \sqrt{a_nb_n}$ from $1$ and
    $\sqrt{1 - m}$, and $c_{n+1} = \tfrac12(a_n - b_n)$, the amplitude comes from
    $\varphi_N = 2^Na_Nu$ by

    $$ \sin(2\varphi_{n-1} - \varphi_n) = \frac{c_n}{a_n}\sin\varphi_n. \tag{1} $$

    References: [DLMF2010] 22.20.
    """
    u, m = jnp.asarray(u), jnp.asarray(m)
    a, b, ratios = jnp.ones_like(m), jnp.sqrt(1 - m), []
    for _ in range(_MEANS):
        a, b, c = (a + b) / 2, jnp.sqrt(a * b), (a - b) / 2
        ratios.append(c / a)
    phi = 2**_MEANS * a * u
    for ratio in reversed(ratios):
        phi = (phi + jnp.arcsin(ratio * jnp.sin(phi))) / 2  # (1)
    sn = jnp.sin(phi)
    return sn, jnp.cos(phi), jnp.sqrt(1 - m * sn * sn)


def complete(m: Scalar) -> Scalar:
    r"""Return the complete integral $K(m) = \pi/2M(1, \sqrt{1-m})$ by means of means."""
    a, b = jnp.ones_like(jnp.asarray(m)), jnp.sqrt(1 - jnp.asarray(m))
    for _ in range(_MEANS):
        a, b = (a + b) / 2, jnp.sqrt(a * b)
    return jnp.pi / (2 * a)


def incomplete(phi: Scalar, m: Scalar) -> Scalar:
    r"""Return $F(\varphi\mid m) = \int_0^\varphi(1 - m\sin^2\theta)^{-1/2}d\theta$.

    References: [DLMF2010] 19.25.5 and 19.36.
    """
    turns = jnp.round(jnp.asarray(phi) / jnp.pi)
    s, c = jnp.sin(phi - turns * jnp.pi), jnp.cos(phi - turns * jnp.pi)
    return 2 * turns * complete(m) + s * _symmetric(c * c, 1 - m * s * s, jnp.ones_like(s))


def _symmetric(x: Scalar, y: Scalar, z: Scalar) -> Scalar:
    """Return Carlson's integral $R_F(x, y, z)$ by duplication."""
    for _ in range(_DUPLICATIONS):
        root = jnp.sqrt(x) * jnp.sqrt(y) + jnp.sqrt(y) * jnp.sqrt(z) + jnp.sqrt(z) * jnp.sqrt(x)
        x, y, z = (x + root) / 4, (y + root) / 4, (z + root) / 4
    mean = (x + y + z) / 3
    p, q = 1 - x / mean, 1 - y / mean
    second, third = -p * p - q * q - p * q, -p * q * (p + q)
    return (1 - second / 10 + third / 14 + second**2 / 24) / jnp.sqrt(mean)
