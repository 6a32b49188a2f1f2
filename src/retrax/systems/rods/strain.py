r"""The strain of a segment of a rod, and the loads of the segment on the two nodes that it joins.

Nodes $(\Lambda_k, r_k)$ carry the frames of the cross-sections. For a segment of length $h$, with
$p = \Lambda_k^T\Lambda_{k+1}$, $q = \Lambda_k^T(r_{k+1} - r_k)$ and
$\eta = \mathrm{cay}^{-1}(p)$, the curvature is $\Omega = \eta/h$ and the stretch and shear are

$$
\begin{aligned}
\texttt{mid}:&\quad \Gamma = p^{-1/2} q/h, \quad p^{1/2} = \mathrm{cay}(x), \quad
  x = \frac{\eta}{1 + \sqrt{1 + |\eta|^2/4}}                                      &&\text{(1)}\\
\texttt{cay}:&\quad \Gamma = (1 - \tfrac12\hat\eta)\,q/h                          &&\text{(2)}\\
\texttt{left}:&\quad \Gamma = q/h                                                 &&\text{(3)}
\end{aligned}
$$

(1) sees the segment from the frame half-way between its ends and is of second order; (2) is the
Cayley map of $SE(3)$, of second order too, but under a tension $N$ at stretch $g$ it adds
$N g h^2/4$ to the bending stiffness; (3) is one-sided, of first order. With the stress resultants
$n = \partial V/\partial\Gamma$ and $m = \partial V/\partial\Omega$ per length,
$B = 1 + \tfrac12\hat\eta + \tfrac14\eta\eta^T$ (so that $B = pB^T$) and $c = n\times\Gamma$, the
force $f$ in space pulls node $k$ forward and node $k+1$ back, and the torques in the body are

$$
\begin{aligned}
\texttt{mid}:&\quad f = \Lambda_k\,\mathrm{cay}(x)\,n, &
  &B m - \tfrac h2(c + \tfrac12 x\times c), &
  &-B^Tm - \tfrac h2(c - \tfrac12 x\times c)                                      &&\text{(4)}\\
\texttt{cay}:&\quad f = \Lambda_k(n + \tfrac12\eta\times n), &
  &B m' + q\times\Lambda_k^Tf, & &-B^Tm', \quad m' = m - \tfrac12 q\times n        &&\text{(5)}\\
\texttt{left}:&\quad f = \Lambda_k\,n, & &B m + q\times n, & &-B^Tm.               &&\text{(6)}
\end{aligned}
$$

References: [SimoMarsdenKrishnaprasad1988] (the rod); [GayBalmazPutkaradze2012] (on $SE(3)$).
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.so3 import SO3
from retrax.numerics.small_matrices import cross

STRAINS = ("mid", "cay", "left")

Vector = Float[Array, "3"]
Rotation = Float[Array, "3 3"]


class Strain(NamedTuple):
    """Stretch and shear, curvature and twist; along the rod or of one segment."""

    stretch: Float[Array, "*n 3"]
    curvature: Float[Array, "*n 3"]


class Segment(NamedTuple):
    r"""What (1) to (6) have in common: strain, $q$, the turns $\eta$ and $x$, $4/(4 + |x|^2)$."""

    strain: Strain
    q: Vector
    eta: Vector
    x: Vector
    factor: Array


class Loads(NamedTuple):
    """Torques in the body on both nodes of a segment, and the force in the segment, in space."""

    torque_before: Float[Array, "*n 3"]
    torque_after: Float[Array, "*n 3"]
    force: Float[Array, "*n 3"]


def segment(kind: str, before: Rotation, after: Rotation, step: Vector, h: Array) -> Segment:
    """Return the segment between frames `before` and `after` that are `step` apart in space."""
    eta, q = SO3().cay_inv(before.T @ after), before.T @ step
    x, factor = jnp.zeros_like(eta), jnp.ones_like(h)
    if kind == "mid":
        # With s = sqrt(1 + |eta|^2/4), 4/(4 + |x|^2) is (1 + s)/2s: one quotient for both.
        s = jnp.sqrt(1 + eta @ eta / 4)
        quotient = 1 / (s * (1 + s))
        x, factor = (s * quotient) * eta, quotient * (1 + s) ** 2 / 2
        gamma = _turn(-x, factor, q)  # (1)
    elif kind == "cay":
        gamma = q - cross(eta, q) / 2  # (2)
    else:
        gamma = q  # (3)
    return Segment(Strain(gamma / h, eta / h), q, eta, x, factor)


def loads(kind: str, before: Rotation, seg: Segment, n: Vector, m: Vector, h: Array) -> Loads:
    """Return the loads of a segment with the stress resultants `n` and `m` on its nodes."""
    q, eta, x = seg.q, seg.eta, seg.x
    if kind == "mid":
        f = before @ _turn(x, seg.factor, n)  # (4)
        c = h / 2 * cross(n, seg.strain.stretch)
        tilt = cross(x, c) / 2
        forward, backward = _moments(eta, m)
        return Loads(forward - c - tilt, -backward - c + tilt, f)
    if kind == "cay":
        pull = n + cross(eta, n) / 2  # (5)
        forward, backward = _moments(eta, m - cross(q, n) / 2)
        return Loads(forward + cross(q, pull), -backward, before @ pull)
    forward, backward = _moments(eta, m)
    return Loads(forward + cross(q, n), -backward, before @ n)  # (6)


def _turn(x: Vector, factor: Array, v: Vector) -> Vector:
    """Return cay(x) v, where `factor` is 4 / (4 + |x|^2)."""
    across = cross(x, v)
    return v + factor * (across + cross(x, across) / 2)


def _moments(eta: Vector, m: Vector) -> tuple[Vector, Vector]:
    """Return B m and B^T m."""
    across, along = cross(eta, m) / 2, (eta @ m / 4) * eta
    return m + across + along, m - across + along
