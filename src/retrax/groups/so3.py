"""Rotations of three-dimensional space."""

from functools import partial
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from retrax.errors import BadInput
from retrax.groups.base import ALLOWED_DEFECT, AbstractLieGroup
from retrax.groups.nearest import nearest_rotation
from retrax.numerics.checks import ArrayLike, finite64, quote
from retrax.numerics.known import require_each
from retrax.numerics.series import atanc, cosc, cotc, d_cosc, d_sinc3, sinc, sinc3
from retrax.numerics.small_matrices import cross

Rotation = Float[Array, "3 3"]
Vector = Float[Array, "3"]

_ONE = np.eye(3)
# Quaternions from files and sensors have some six digits.
ALLOWED_LENGTH = 1e-5


class SO3(AbstractLieGroup):
    r"""Rotations, $SO(3) = \{R : R^T R = 1,\ \det R = 1\}$, stored as `(3, 3)` arrays.

    $\mathfrak{so}(3)$ is $\mathbb R^3$ by $\hat\omega v = \omega\times v$. With $x = \xi$,
    $\theta = |x|$ and the functions $s, c, s_3, \kappa$ of `numerics/series.py`,
    $$
    \begin{aligned}
    \exp\hat x &= 1 + s\,\hat x + c\,\hat x^2                                     &&\text{(1)}\\
    \mathrm{dexp}_x &= 1 - c\,\hat x + s_3\,\hat x^2,\qquad
    \mathrm{dexp}^{-1}_x = 1 + \tfrac12\hat x + \kappa\,\hat x^2                  &&\text{(2)}\\
    \mathrm{cay}(x) &= 1 + \tfrac{4}{4+\theta^2}(\hat x + \tfrac12\hat x^2)       &&\text{(3)}\\
    \mathrm{dcay}_x &= \tfrac{4}{4+\theta^2}(1 - \tfrac12\hat x),\qquad
    \mathrm{dcay}^{-1}_x = 1 + \tfrac12\hat x + \tfrac14 x x^T                    &&\text{(4)}
    \end{aligned}
    $$
    The dual maps change the sign of $x$. The Cayley chart covers angles below $\pi$.

    References: [IserlesMuntheKaasNorsettZanna2000] (1, 2), [KobilarovMarsden2011] (3, 4).
    """

    dim: ClassVar[int] = 3
    name: ClassVar[str] = "SO(3)"
    has_cayley: ClassVar[bool] = True

    def identity(self) -> Rotation:
        return jnp.eye(3)

    def compose(self, g: Rotation, k: Rotation) -> Rotation:
        return g @ k

    def inverse(self, g: Rotation) -> Rotation:
        return g.T

    def hat(self, xi: Vector) -> Rotation:
        x, y, z = xi[0], xi[1], xi[2]
        o = jnp.zeros_like(x)
        return jnp.stack([o, -z, y, z, o, -x, -y, x, o]).reshape(3, 3)

    def vee(self, x: Rotation) -> Vector:
        return jnp.stack([x[2, 1], x[0, 2], x[1, 0]])

    def expm1(self, xi: Vector) -> Rotation:
        x, t2 = self.hat(xi), xi @ xi
        return sinc(t2) * x + cosc(t2) * (x @ x)  # (1)

    def angle_squared(self, xi: Vector) -> Float[Array, ""]:
        return xi @ xi

    def log(self, g: Rotation) -> Vector:
        """Return twice the angle of the unit quaternion $q = (w, v)$ of $g$, along $v$."""
        q = self._quaternion(g)
        w, v = q[0], q[1:]
        return 2 * atanc(v @ v, w) * v

    def _quaternion(self, g: Rotation) -> Float[Array, "4"]:
        """Return $4qq^T$ is linear in $g$; its row with the largest diagonal entry gives $q$."""
        a, b, c = g[2, 1] - g[1, 2], g[0, 2] - g[2, 0], g[1, 0] - g[0, 1]
        d, e, f = g[0, 1] + g[1, 0], g[0, 2] + g[2, 0], g[1, 2] + g[2, 1]
        x, y, z = g[0, 0], g[1, 1], g[2, 2]
        diagonal = [1 + x + y + z, 1 + x - y - z, 1 - x + y - z, 1 - x - y + z]
        rows = [
            [diagonal[0], a, b, c],
            [a, diagonal[1], d, e],
            [b, d, diagonal[2], f],
            [c, e, f, diagonal[3]],
        ]
        largest, q = diagonal[0], jnp.stack(rows[0])
        for size, row in zip(diagonal[1:], rows[1:], strict=True):
            q = jnp.where(size > largest, jnp.stack(row), q)
            largest = jnp.maximum(size, largest)
        return jnp.where(q[0] < 0, -q, q) / jnp.sqrt(q @ q)

    def to_quaternion(self, g: ArrayLike, *, order: str) -> Float[Array, "4"]:
        r"""Return the unit quaternion $q = (w, v)$ of a rotation, with $w \ge 0$.

        For many rotations use `jax.vmap`, here and below.

        **Arguments:** `order`: `"wxyz"` with the real part first, or `"xyzw"` with it last.
        """
        first = _real_part_first(order)
        rotation = finite64("g", g, (3, 3))
        require_each(partial(self.check_membership, "g"), rotation)
        q = self._quaternion(rotation)
        return q if first else jnp.roll(q, -1)

    def from_quaternion(self, q: ArrayLike, *, order: str) -> Rotation:
        r"""Return the rotation of a unit quaternion; $q$ and $-q$ are one rotation.

        $$ R = 1 + \tfrac{2}{|q|^2}(w\hat v + \hat v^2) \tag{5} $$

        **Arguments:** `order`: `"wxyz"` with the real part first, or `"xyzw"` with it last.

        **Raises:** `BadInput` for a quaternion whose length is not 1 within `ALLOWED_LENGTH`; the
        length that is left is divided out.
        """
        first = _real_part_first(order)
        given = finite64("q", q, (4,))
        given = given if first else jnp.roll(given, 1)
        squared = given @ given
        require_each(_require_unit, squared)
        w, x = given[0], self.hat(given[1:])
        return jnp.eye(3) + 2 / squared * (w * x + x @ x)  # (5)

    def advance(self, g: Rotation, delta: Rotation) -> Rotation:
        half = (g.T @ g - jnp.eye(3)) / 2
        return g + g @ (delta - half - half @ delta)  # g (1 - half)(1 + delta)

    def tangent(self, g: Rotation, xi: Vector) -> Rotation:
        return g @ self.hat(xi)

    def cotangent(self, g: Rotation, a: Rotation) -> Vector:
        m = g.T @ a
        return self.vee(m - m.T)

    def Ad(self, g: Rotation, xi: Vector | None = None) -> Rotation | Vector:
        return g if xi is None else g @ xi

    def coAd(self, g: Rotation, mu: Vector | None = None) -> Rotation | Vector:
        return g.T if mu is None else g.T @ mu

    def coAdm1(self, delta: Rotation, mu: Vector) -> Vector:
        return delta.T @ mu

    def ad(self, xi: Vector, eta: Vector | None = None) -> Rotation | Vector:
        return self.hat(xi) if eta is None else cross(xi, eta)

    def coad(self, xi: Vector, mu: Vector | None = None) -> Rotation | Vector:
        return self.hat(-xi) if mu is None else cross(mu, xi)

    def dexp(self, xi: Vector, eta: Vector) -> Vector:
        t2, turned = xi @ xi, cross(xi, eta)
        return eta - cosc(t2) * turned + sinc3(t2) * cross(xi, turned)  # (2)

    def dexp_inv(self, xi: Vector, eta: Vector) -> Vector:
        turned = cross(xi, eta)
        return eta + turned / 2 + cotc(xi @ xi) * cross(xi, turned)  # (2)

    def dexp_dual(self, xi: Vector, mu: Vector) -> Vector:
        return self.dexp(-xi, mu)

    def dexp_inv_dual(self, xi: Vector, mu: Vector) -> Vector:
        return self.dexp_inv(-xi, mu)

    def dexp_gradient(self, xi: Vector, eta: Vector, mu: Vector) -> Vector:
        t2, along, across = xi @ xi, xi @ eta, xi @ mu
        pair, turned = mu @ eta, cross(eta, mu)
        slope = d_sinc3(t2) * (across * along - pair * t2) - d_cosc(t2) * (xi @ turned)
        bend = sinc3(t2) * (along * mu + across * eta - 2 * pair * xi)
        return bend - cosc(t2) * turned + 2 * slope * xi

    def caym1(self, xi: Vector) -> Rotation:
        x = self.hat(xi)
        return 4 / (4 + xi @ xi) * (x + x @ x / 2)  # (3)

    def cay_inv(self, g: Rotation) -> Vector:
        return 2 / (1 + g[0, 0] + g[1, 1] + g[2, 2]) * self.vee(g - g.T)

    def dcay(self, xi: Vector, eta: Vector) -> Vector:
        return 4 / (4 + xi @ xi) * (eta - cross(xi, eta) / 2)  # (4)

    def dcay_inv(self, xi: Vector, eta: Vector) -> Vector:
        return eta + cross(xi, eta) / 2 + (xi @ eta) / 4 * xi  # (4)

    def dcay_dual(self, xi: Vector, mu: Vector) -> Vector:
        return self.dcay(-xi, mu)

    def dcay_inv_dual(self, xi: Vector, mu: Vector) -> Vector:
        return self.dcay_inv(-xi, mu)

    def defect(self, g: Rotation) -> Float[Array, ""]:
        determinant = g[0] @ cross(g[1], g[2])
        skew = jnp.max(jnp.abs(g.T @ g - jnp.eye(3)))
        return jnp.maximum(skew, jnp.abs(determinant - 1))

    def project(self, g: Rotation) -> Rotation:
        """Return the nearest rotation. Reject a matrix with several equally near."""
        return nearest_rotation(g, 3)

    def fill_in(self, g: Rotation) -> Rotation:
        return jnp.stack([cross(g[1], g[2]), g[1], g[2]])

    def angles(self) -> np.ndarray:
        return np.ones(self.dim, bool)

    def random(self, key: Key[Array, ""]) -> Rotation:
        q = jax.random.normal(key, (4,))
        w, v = q[0], q[1:]
        x = self.hat(v)
        return jnp.eye(3) + 2 / (q @ q) * (w * x + x @ x)

    def check_membership(self, name: str, g: Float[np.ndarray, "3 3"]) -> None:
        skew = float(np.abs(g.T @ g - _ONE).max())
        if not skew <= ALLOWED_DEFECT:
            raise BadInput(
                f"{name} is not a rotation: max |R^T R - 1| = {skew:.2g}, allowed "
                f"{ALLOWED_DEFECT:.0e}; make it one with SO3().project({name})."
            )
        if np.linalg.det(g) < 0:
            raise BadInput(f"{name} is a reflection (det = -1), not a rotation.")


def _real_part_first(order: str) -> bool:
    if not isinstance(order, str) or order not in ("wxyz", "xyzw"):
        raise BadInput(
            f"order = {quote(order)} must be 'wxyz', with the real part of a quaternion first, or "
            "'xyzw', with it last."
        )
    return order == "wxyz"


def _require_unit(squared: np.ndarray) -> None:
    length = float(np.sqrt(squared))
    if not abs(length - 1) <= ALLOWED_LENGTH:
        raise BadInput(f"q has length {length:.6g}, but the quaternion of a rotation has length 1.")
