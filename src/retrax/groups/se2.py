"""Rigid motions of the plane."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from retrax.groups.base import AbstractLieGroup, HostElement
from retrax.groups.so2 import SO2, Rotation
from retrax.numerics.series import cosc, cotc, sinc, sinc3

Vector = Float[Array, "2"]
Motion = tuple[Rotation, Vector]
Twist = Float[Array, "3"]

_SO2 = SO2()


class SE2(AbstractLieGroup):
    r"""Rigid motions $y \mapsto Ry + r$ of the plane, pairs `(R, r)`; $\xi = (\omega, v_1, v_2)$.

    With $J$ the quarter turn and the functions $s, c, s_3, \kappa$ of `numerics/series.py`,
    $$
    \begin{aligned}
    \exp\xi &= (e^{\omega J},\ (s + \omega c J) v)                              &&\text{(1)}\\
    \mathrm{ad}_\xi\,\eta &= (0,\ J(\omega\,\eta_v - \eta_\omega v)), \qquad
        \mathrm{ad}_\xi^3 = -\omega^2\,\mathrm{ad}_\xi                          &&\text{(2)}\\
    \mathrm{dexp}_\xi &= 1 - c\,\mathrm{ad}_\xi + s_3\,\mathrm{ad}_\xi^2, \qquad
        \mathrm{dexp}_\xi^{-1} = 1 + \tfrac12\mathrm{ad}_\xi + \kappa\,\mathrm{ad}_\xi^2
                                                                                &&\text{(3)}\\
    \mathrm{cay}\,\xi &= (\mathrm{cay}\,\omega,\ A^{-1}v), \quad
        A = 1 - \tfrac\omega2 J                                                 &&\text{(4)}\\
    \mathrm{dcay}_\xi\,\eta &= (\mathrm{dcay}_\omega\,\eta_\omega,\
        A^{-T}(\eta_v + \tfrac12\,\eta_\omega J A^{-1}v))                       &&\text{(5)}
    \end{aligned}
    $$

    References: [KobilarovMarsden2011], [IserlesMuntheKaasNorsettZanna2000].
    """

    dim: ClassVar[int] = 3
    name: ClassVar[str] = "SE(2)"
    has_cayley: ClassVar[bool] = True

    def identity(self) -> Motion:
        return jnp.eye(2), jnp.zeros(2)

    def compose(self, g: Motion, k: Motion) -> Motion:
        return g[0] @ k[0], g[1] + g[0] @ k[1]

    def inverse(self, g: Motion) -> Motion:
        return g[0].T, -(g[0].T @ g[1])

    def hat(self, xi: Twist) -> Float[Array, "3 3"]:
        top = jnp.concatenate([_SO2.hat(xi[:1]), xi[1:, None]], axis=1)
        return jnp.concatenate([top, jnp.zeros((1, 3))])

    def vee(self, x: Float[Array, "3 3"]) -> Twist:
        return jnp.stack([x[1, 0], x[0, 2], x[1, 2]])

    def expm1(self, xi: Twist) -> Motion:
        w, v = xi[0], xi[1:]
        return _SO2.expm1(xi[:1]), sinc(w * w) * v + w * cosc(w * w) * _turn(v)  # (1)

    def angle_squared(self, xi: Twist) -> Float[Array, ""]:
        return xi[:1] @ xi[:1]

    def log(self, g: Motion) -> Twist:
        angle, r = _SO2.log(g[0]), g[1]
        w = angle[0]
        v = (1 - w * w * cotc(w * w)) * r - w / 2 * _turn(r)
        return jnp.concatenate([angle, v])

    def advance(self, g: Motion, delta: Motion) -> Motion:
        return _SO2.advance(g[0], delta[0]), g[1] + g[0] @ delta[1]

    def tangent(self, g: Motion, xi: Twist) -> Motion:
        return _SO2.tangent(g[0], xi[:1]), g[0] @ xi[1:]

    def Ad(self, g: Motion, xi: Twist | None = None) -> Float[Array, "3 3"] | Twist:
        if xi is None:
            return jax.vmap(lambda e: self.Ad(g, e), out_axes=1)(jnp.eye(3))
        return jnp.concatenate([xi[:1], g[0] @ xi[1:] - xi[0] * _turn(g[1])])

    def coAd(self, g: Motion, mu: Twist | None = None) -> Float[Array, "3 3"] | Twist:
        if mu is None:
            return self.Ad(g).T
        return _join(mu[0] - mu[1:] @ _turn(g[1]), g[0].T @ mu[1:])

    def coAdm1(self, delta: Motion, mu: Twist) -> Twist:
        return _join(-mu[1:] @ _turn(delta[1]), delta[0].T @ mu[1:])

    def ad(self, xi: Twist, eta: Twist | None = None) -> Float[Array, "3 3"] | Twist:
        if eta is None:
            return jax.vmap(lambda e: self.ad(xi, e), out_axes=1)(jnp.eye(3))
        return _join(jnp.zeros_like(eta[0]), _turn(xi[0] * eta[1:] - eta[0] * xi[1:]))  # (2)

    def coad(self, xi: Twist, mu: Twist | None = None) -> Float[Array, "3 3"] | Twist:
        if mu is None:
            return self.ad(xi).T
        f = _turn(mu[1:])
        return _join(f @ xi[1:], -xi[0] * f)

    def dexp(self, xi: Twist, eta: Twist) -> Twist:
        w2, turned = xi[0] * xi[0], self.ad(xi, eta)
        return eta - cosc(w2) * turned + sinc3(w2) * self.ad(xi, turned)  # (3)

    def dexp_inv(self, xi: Twist, eta: Twist) -> Twist:
        turned = self.ad(xi, eta)
        return eta + turned / 2 + cotc(xi[0] * xi[0]) * self.ad(xi, turned)  # (3)

    def dexp_dual(self, xi: Twist, mu: Twist) -> Twist:
        w2, turned = xi[0] * xi[0], self.coad(xi, mu)
        return mu - cosc(w2) * turned + sinc3(w2) * self.coad(xi, turned)

    def dexp_inv_dual(self, xi: Twist, mu: Twist) -> Twist:
        turned = self.coad(xi, mu)
        return mu + turned / 2 + cotc(xi[0] * xi[0]) * self.coad(xi, turned)

    def caym1(self, xi: Twist) -> Motion:
        return _SO2.caym1(xi[:1]), _untilt(xi[0], xi[1:])  # (4)

    def cay_inv(self, g: Motion) -> Twist:
        w = _SO2.cay_inv(g[0])
        return jnp.concatenate([w, _tilt(-w[0], g[1])])

    def dcay(self, xi: Twist, eta: Twist) -> Twist:
        w, v = xi[0], xi[1:]
        shift = eta[1:] + eta[0] / 2 * _turn(_untilt(w, v))
        return jnp.concatenate([_SO2.dcay(xi[:1], eta[:1]), _untilt(-w, shift)])  # (5)

    def dcay_inv(self, xi: Twist, eta: Twist) -> Twist:
        shift = _tilt(xi[0], eta[1:] - eta[0] / 2 * _turn(xi[1:]))
        return jnp.concatenate([_SO2.dcay_inv(xi[:1], eta[:1]), shift])

    def dcay_dual(self, xi: Twist, mu: Twist) -> Twist:
        w, v = xi[0], xi[1:]
        f = _untilt(w, mu[1:])
        return _join(_SO2.dcay(xi[:1], mu[:1])[0] + f @ _turn(_untilt(w, v)) / 2, f)

    def dcay_inv_dual(self, xi: Twist, mu: Twist) -> Twist:
        f = _tilt(-xi[0], mu[1:])
        return _join(_SO2.dcay_inv(xi[:1], mu[:1])[0] - f @ _turn(xi[1:]) / 2, f)

    def defect(self, g: Motion) -> Float[Array, ""]:
        return _SO2.defect(g[0])

    def project(self, g: Motion) -> Motion:
        return _SO2.project(g[0]), g[1]

    def fill_in(self, g: Motion) -> Motion:
        return _SO2.fill_in(g[0]), g[1]

    def angles(self) -> np.ndarray:
        return np.arange(self.dim) < 1

    def random(self, key: Key[Array, ""]) -> Motion:
        turn, shift = jax.random.split(key)
        return _SO2.random(turn), jax.random.normal(shift, (2,))

    def check_membership(self, name: str, g: HostElement) -> None:
        _SO2.check_membership(f"{name}[0]", g[0])


def _turn(y: Vector) -> Vector:
    """Return J y, a quarter turn."""
    return jnp.stack([-y[1], y[0]])


def _tilt(w: Float[Array, ""], y: Vector) -> Vector:
    """Return (1 + w J / 2) y."""
    return y + w / 2 * _turn(y)


def _untilt(w: Float[Array, ""], y: Vector) -> Vector:
    """Return (1 - w J / 2)^-1 y."""
    return 4 / (4 + w * w) * _tilt(w, y)


def _join(turn: Float[Array, ""], shift: Vector) -> Twist:
    return jnp.stack([turn, shift[0], shift[1]])
