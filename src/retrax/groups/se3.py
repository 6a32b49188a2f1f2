"""Rigid motions of three-dimensional space."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from retrax.groups.base import AbstractLieGroup, HostElement
from retrax.groups.so3 import SO3, Rotation, Vector
from retrax.numerics.series import cosc, cotc, d_cosc, d_cotc, d_sinc3, sinc3
from retrax.numerics.small_matrices import cross

Motion = tuple[Rotation, Vector]
Twist = Float[Array, "6"]

_SO3 = SO3()


class SE3(AbstractLieGroup):
    r"""Rigid motions $y \mapsto Ry + r$, stored as pairs `(R, r)`; $\xi = (\omega, v)$.

    With $J_\omega = 1 + a\hat\omega + b\hat\omega^2$ the tangent map of $SO(3)$ (its $a, b$ are
    functions of $\theta^2 = |\omega|^2$, a dash is the derivative), that of $SE(3)$ is
    $$
    \begin{aligned}
    \exp\xi &= (\exp\hat\omega,\ V v), \quad
        V = 1 + c\,\hat\omega + s_3\,\hat\omega^2                              &&\text{(1)}\\
    \mathrm{dexp}_\xi &= \begin{pmatrix} J & 0\\ Q & J\end{pmatrix}, \quad
        Q = \tfrac{d}{d\epsilon} J_{\omega + \epsilon v}
          = a\hat v + b(\hat\omega\hat v + \hat v\hat\omega)
          + 2(\omega\cdot v)(a'\hat\omega + b'\hat\omega^2)                    &&\text{(2)}\\
    \mathrm{cay}\,\xi &= (\mathrm{cay}\,\hat\omega,\ A^{-1}v), \quad
        A = 1 - \tfrac12\hat\omega                                             &&\text{(3)}\\
    \mathrm{dcay}_\xi\,\eta &= (\mathrm{dcay}_\omega\,\eta_\omega,\
        A^{-T}(\eta_v + \tfrac12\,\eta_\omega\times A^{-1}v))                  &&\text{(4)}
    \end{aligned}
    $$
    and (2) holds for the inverses with the $a, b$ of $\mathrm{dexp}^{-1}$. The transpose of (2)
    is (2) at $-\xi$ with the two blocks exchanged.

    References: [KobilarovMarsden2011] (Cayley), [MullerTerze2014] (dexp on SE(3)).
    """

    dim: ClassVar[int] = 6
    name: ClassVar[str] = "SE(3)"
    has_cayley: ClassVar[bool] = True

    def identity(self) -> Motion:
        return jnp.eye(3), jnp.zeros(3)

    def compose(self, g: Motion, k: Motion) -> Motion:
        return g[0] @ k[0], g[1] + g[0] @ k[1]

    def inverse(self, g: Motion) -> Motion:
        return g[0].T, -(g[0].T @ g[1])

    def hat(self, xi: Twist) -> Float[Array, "4 4"]:
        top = jnp.concatenate([_SO3.hat(xi[:3]), xi[3:, None]], axis=1)
        return jnp.concatenate([top, jnp.zeros((1, 4))])

    def vee(self, x: Float[Array, "4 4"]) -> Twist:
        return jnp.concatenate([_SO3.vee(x[:3, :3]), x[:3, 3]])

    def expm1(self, xi: Twist) -> Motion:
        w, v = xi[:3], xi[3:]
        return _SO3.expm1(w), _SO3.dexp(-w, v)  # (1)

    def angle_squared(self, xi: Twist) -> Float[Array, ""]:
        return xi[:3] @ xi[:3]

    def log(self, g: Motion) -> Twist:
        w = _SO3.log(g[0])
        return jnp.concatenate([w, _SO3.dexp_inv(-w, g[1])])

    def advance(self, g: Motion, delta: Motion) -> Motion:
        return _SO3.advance(g[0], delta[0]), g[1] + g[0] @ delta[1]

    def tangent(self, g: Motion, xi: Twist) -> Motion:
        return _SO3.tangent(g[0], xi[:3]), g[0] @ xi[3:]

    def cotangent(self, g: Motion, a: Motion) -> Twist:
        return jnp.concatenate([_SO3.cotangent(g[0], a[0]), g[0].T @ a[1]])

    def Ad(self, g: Motion, xi: Twist | None = None) -> Float[Array, "6 6"] | Twist:
        if xi is None:
            return jax.vmap(lambda e: self.Ad(g, e), out_axes=1)(jnp.eye(6))
        w = g[0] @ xi[:3]
        return jnp.concatenate([w, cross(g[1], w) + g[0] @ xi[3:]])

    def coAd(self, g: Motion, mu: Twist | None = None) -> Float[Array, "6 6"] | Twist:
        if mu is None:
            return self.Ad(g).T
        m, f = mu[:3], mu[3:]
        return jnp.concatenate([g[0].T @ (m + cross(f, g[1])), g[0].T @ f])

    def coAdm1(self, delta: Motion, mu: Twist) -> Twist:
        turn, f = delta[0].T, mu[3:]
        torque = cross(f, delta[1])
        return jnp.concatenate([torque + turn @ (mu[:3] + torque), turn @ f])

    def ad(self, xi: Twist, eta: Twist | None = None) -> Float[Array, "6 6"] | Twist:
        if eta is None:
            return jax.vmap(lambda e: self.ad(xi, e), out_axes=1)(jnp.eye(6))
        w, v = xi[:3], xi[3:]
        return jnp.concatenate([cross(w, eta[:3]), cross(w, eta[3:]) + cross(v, eta[:3])])

    def coad(self, xi: Twist, mu: Twist | None = None) -> Float[Array, "6 6"] | Twist:
        if mu is None:
            return self.ad(xi).T
        w, v, m, f = xi[:3], xi[3:], mu[:3], mu[3:]
        return jnp.concatenate([cross(m, w) + cross(f, v), cross(f, w)])

    def dexp(self, xi: Twist, eta: Twist) -> Twist:
        t2 = xi[:3] @ xi[:3]
        return _blocks(xi, eta, -cosc(t2), sinc3(t2), -d_cosc(t2), d_sinc3(t2))

    def dexp_inv(self, xi: Twist, eta: Twist) -> Twist:
        t2 = xi[:3] @ xi[:3]
        return _blocks(xi, eta, 0.5, cotc(t2), 0.0, d_cotc(t2))

    def dexp_dual(self, xi: Twist, mu: Twist) -> Twist:
        return _exchange(self.dexp(-xi, _exchange(mu)))

    def dexp_inv_dual(self, xi: Twist, mu: Twist) -> Twist:
        return _exchange(self.dexp_inv(-xi, _exchange(mu)))

    def caym1(self, xi: Twist) -> Motion:
        return _SO3.caym1(xi[:3]), _untilt(xi[:3], xi[3:])  # (3)

    def cay_inv(self, g: Motion) -> Twist:
        w = _SO3.cay_inv(g[0])
        return jnp.concatenate([w, g[1] - cross(w, g[1]) / 2])

    def dcay(self, xi: Twist, eta: Twist) -> Twist:
        w, v, turn, shift = xi[:3], xi[3:], eta[:3], eta[3:]
        shift = _untilt(-w, shift + cross(turn, _untilt(w, v)) / 2)
        return jnp.concatenate([_SO3.dcay(w, turn), shift])  # (4)

    def dcay_inv(self, xi: Twist, eta: Twist) -> Twist:
        w, v, turn = xi[:3], xi[3:], eta[:3]
        shift = eta[3:] - cross(turn, v) / 2
        return jnp.concatenate([_SO3.dcay_inv(w, turn), shift + cross(w, shift) / 2])

    def dcay_dual(self, xi: Twist, mu: Twist) -> Twist:
        w, v = xi[:3], xi[3:]
        f = _untilt(w, mu[3:])
        return jnp.concatenate([_SO3.dcay_dual(w, mu[:3]) + cross(_untilt(w, v), f) / 2, f])

    def dcay_inv_dual(self, xi: Twist, mu: Twist) -> Twist:
        w, v, f = xi[:3], xi[3:], mu[3:]
        f = f - cross(w, f) / 2
        return jnp.concatenate([_SO3.dcay_inv_dual(w, mu[:3]) - cross(v, f) / 2, f])

    def defect(self, g: Motion) -> Float[Array, ""]:
        return _SO3.defect(g[0])

    def project(self, g: Motion) -> Motion:
        return _SO3.project(g[0]), g[1]

    def fill_in(self, g: Motion) -> Motion:
        return _SO3.fill_in(g[0]), g[1]

    def angles(self) -> np.ndarray:
        return np.arange(self.dim) < 3

    def random(self, key: Key[Array, ""]) -> Motion:
        turn, shift = jax.random.split(key)
        return _SO3.random(turn), jax.random.normal(shift, (3,))

    def check_membership(self, name: str, g: HostElement) -> None:
        _SO3.check_membership(f"{name}[0]", g[0])


def _blocks(xi: Twist, eta: Twist, a, b, da, db) -> Twist:
    """Return (2), with the coefficients of J and their derivatives, applied to `eta`."""
    w, v, turn, shift = xi[:3], xi[3:], eta[:3], eta[3:]
    w_turn, w_shift, v_turn = cross(w, turn), cross(w, shift), cross(v, turn)
    ww_turn, slope = cross(w, w_turn), 2 * (w @ v)
    J_turn = turn + a * w_turn + b * ww_turn
    J_shift = shift + a * w_shift + b * cross(w, w_shift)
    Q_turn = a * v_turn + b * (cross(w, v_turn) + cross(v, w_turn))
    return jnp.concatenate([J_turn, J_shift + Q_turn + slope * (da * w_turn + db * ww_turn)])


def _exchange(mu: Twist) -> Twist:
    return jnp.concatenate([mu[3:], mu[:3]])


def _untilt(w: Vector, y: Vector) -> Vector:
    """Return (1 - hat(w)/2)^-1 y."""
    return 4 / (4 + w @ w) * _SO3.dcay_inv(w, y)
