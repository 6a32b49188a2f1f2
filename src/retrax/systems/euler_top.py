"""Euler's top: its quadratic field, its exact motion, and its flow on the sphere of momenta.

The class `EulerTop` has what Kahan's method conserves on it exactly.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.so3 import SO3
from retrax.mechanics.flow import AbstractSpaceFlow
from retrax.mechanics.mechanical import checked_inertia
from retrax.mechanics.quadratic_field import AbstractQuadraticField
from retrax.mechanics.remembered import Drawing, told
from retrax.mechanics.state import State
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import (
    float64,
    host_float64,
    require_above_zero,
    require_finite,
    require_instance,
    require_shape,
)
from retrax.numerics.elliptic import complete, incomplete, jacobi
from retrax.numerics.evaluate import evaluate_in_jax
from retrax.spaces.sphere import Sphere

Vector = Float[Array, "3"]
Scalar = Float[Array, ""]


# Closer to the separatrix than this, relative to |m|^2, the period counts as infinite.
_SEPARATRIX = 1e-9
_SMALLEST, _LARGEST = 1e-70, 1e70
# Beyond this phase fewer than four digits after its decimal point are known.
_LAST_PHASE = 1e12


class EulerTop(AbstractQuadraticField):
    r"""The momenta of a free rigid body in its principal axes, $\dot m = m\times\mathbb I^{-1}m$.

    $$ \dot m_1 = a_1m_2m_3,\quad \dot m_2 = a_2m_3m_1,\quad \dot m_3 = a_3m_1m_2, \qquad
       a_1 = \tfrac1{I_3} - \tfrac1{I_2} \text{ and cyclic}, \tag{1} $$

    with the energy $H = \sum_i m_i^2/2I_i$ and the Casimir function $C = |m|^2/2$. Let
    $\epsilon = h/2$, $m^+$ the point one step of `Kahan` later, $\Delta = \det(1 - \epsilon f')$,

    $$
    \begin{aligned}
    B_1 &= 1 - \epsilon^2a_2a_3m_1^2 \text{ and cyclic}                             &&\text{(2)}\\
    \lambda &= 1 - 4\epsilon^3a_1a_2a_3\Delta^{-2}\textstyle\prod_i(m_i + \epsilon f_i)
                                                                                    &&\text{(3)}
    \end{aligned}
    $$

    Then $H$, $C$ and every $B_k$ are multiplied by the same $\lambda(m)$ in one step, and
    $\det D\Phi = \lambda^2$. So their ratios are integrals, $dm/C^2$ is an invariant volume, and a
    radial projection that restores $C$ restores $H$.

    **Arguments:** `inertia`: the principal moments (kg m^2); `physical`: whether to reject moments
    that no body can have.

    **Invariants:** $H$ as the energy; $C$; of Kahan's steps $H/C$ and $C/B_k$, to round-off.

    References: [HirotaKimura2000]; [PetreraPfadlerSuris2011].
    """

    inertia: Vector
    dim: ClassVar[int] = 3

    def __init__(self, inertia: ArrayLike, *, physical: bool = True):
        self.inertia = checked_inertia(SO3(), inertia, physical)
        require_shape("inertia", self.inertia, (3,))

    @classmethod
    def paper(cls) -> tuple["EulerTop", State, float, int]:
        """Return moments 3, 2, 1 from (1, 1, 1): system, state, h, steps."""
        top = cls([3.0, 2.0, 1.0])
        return top, top.at([1.0, 1.0, 1.0]), 0.1, 10_000

    @property
    def name(self) -> str:
        return "Euler top"

    @property
    def drawing(self) -> Drawing | None:
        """What a picture needs: that the three numbers form a vector in space."""
        return told("field", vectors=(["m"], 1))

    @property
    def rates(self) -> Vector:
        """The three constants $a_i$ of (1)."""
        w = 1 / self.inertia
        return jnp.roll(w, -2) - jnp.roll(w, -1)

    def field(self, x: Vector) -> Vector:
        x1, x2, x3 = x[0], x[1], x[2]
        return self.rates * jnp.stack([x2 * x3, x3 * x1, x1 * x2])  # (1)

    def scale(self, x: Vector, h: Scalar) -> tuple[Vector, Float[Array, "3 3"]]:
        a, zero = h * self.rates, jnp.zeros(())
        x1, x2, x3 = x[0], x[1], x[2]
        slope = jnp.stack([zero, x3, x2, x3, zero, x1, x2, x1, zero]).reshape(3, 3)
        return a * jnp.stack([x2 * x3, x3 * x1, x1 * x2]), (a / 2)[:, None] * slope

    def hamiltonian_energy(self, g: Vector, mu: Vector) -> Scalar:
        return g @ (g / self.inertia) / 2

    def casimir(self, m: Vector) -> Scalar:
        r"""Return $C = |m|^2/2$."""
        return m @ m / 2

    def radial_level(self, m: Vector) -> Scalar:
        """Return the function, quadratic in `m`, that a radial projection restores: $C$."""
        return self.casimir(m)

    def further_invariants(self, state: State) -> dict[str, Scalar]:
        casimir = self.casimir(state.g)
        return {"C": casimir, "H/C": self.energy(state) / casimir}

    def exact_integrals(self, x: Vector, h: Scalar, kept: tuple = ()) -> dict[str, Scalar]:
        ratios = self.casimir(x) / self.denominators(x, h)
        found = {f"C/B{k + 1}": ratios[k] for k in range(3)}
        return {**found, **super().exact_integrals(x, h, kept)}

    def denominators(self, m: Vector, h: ArrayLike) -> Vector:
        r"""Return $B_1, B_2, B_3$ of (2)."""
        return 1 - (jnp.asarray(h) / 2) ** 2 * self._pairs * m * m

    def growth(self, m: Vector, h: ArrayLike) -> Scalar:
        r"""Return $\lambda(m)$ of (3): the factor of $H$, $C$ and $B_k$ in one step."""
        e, f = jnp.asarray(h) / 2, self.field(m)
        a1, a2, a3 = self.rates[0], self.rates[1], self.rates[2]
        x, y = m[0] * m[1] * m[2], m + e * f
        delta = 1 - e**2 * jnp.sum(self._pairs * m * m) - 2 * e**3 * a1 * a2 * a3 * x
        return 1 - 4 * e**3 * a1 * a2 * a3 * y[0] * y[1] * y[2] / delta**2

    def modified_casimir(self, m: Vector, h: ArrayLike, axis: int = 2) -> Scalar:
        r"""Return $\tilde C = C/B_k = C + O(h^2)$, without poles unless $I_k$ is the middle one."""
        return self.casimir(m) / self.denominators(m, h)[axis]

    def modified_hamiltonian(self, m: Vector, h: ArrayLike, axis: int = 2) -> Scalar:
        r"""Return $\tilde H = H/B_k$."""
        return self.hamiltonian_energy(m, m) / self.denominators(m, h)[axis]

    def volume_density(self, m: Vector) -> Scalar:
        """Return the density $1/C^2$ of the volume that steps of every size leave invariant."""
        return 1 / self.casimir(m) ** 2

    def modified_bracket(self, m: Vector, h: ArrayLike, axis: int = 2) -> Float[Array, "3 3"]:
        r"""Return the Poisson tensor $B_k^2\,\widehat{\nabla\tilde C}$ that Kahan's steps keep."""
        gradient = jax.grad(lambda m: self.modified_casimir(m, h, axis))(m)
        return self.denominators(m, h)[axis] ** 2 * SO3().hat(gradient)

    def safe_step_bound(self, m: Vector) -> Scalar:
        r"""Return $2/(|m_2|\sqrt{a_1a_3})$, $I_2$ the middle moment: no pole below it.

        Infinite where two moments coincide.
        """
        return 2 / jnp.sqrt(jnp.sum(jnp.maximum(self._pairs, 0.0) * m * m))

    def relative_error(self, start: Vector, m: Vector, h: ArrayLike) -> Scalar:
        r"""Return $(H - H_0)/H_0 = (C - C_0)/C_0$ at `m`, from the constancy of $C/B_k$ alone.

        $$ \frac{B_k(m)}{B_k(m_0)} - 1
           = \frac{\epsilon^2a_ia_j(m_{0,k}^2 - m_k^2)}{1 - \epsilon^2a_ia_jm_{0,k}^2} $$

        with $k$ the middle axis: no subtraction of nearly equal numbers.
        """
        weight = (jnp.asarray(h) / 2) ** 2 * jnp.maximum(self._pairs, 0.0)
        change = jnp.sum(weight * (start - m) * (start + m))
        return change / (1 - jnp.sum(weight * start * start))

    @property
    def _pairs(self) -> Vector:
        """$a_2a_3$, $a_3a_1$, $a_1a_2$; only that of the middle moment is positive."""
        a = self.rates
        return jnp.roll(a, -1) * jnp.roll(a, -2)


def exact_momentum(top: EulerTop, start: ArrayLike, t: ArrayLike) -> np.ndarray:
    r"""Return the momenta at the times `t` of a top from `start` on, one row for each time.

    With $I_1 > I_2 > I_3$, $L = |m|^2$ and $2HI_2 > L$ the body turns about the axis 3,

    $$ m = \bigl(A_1\,\mathrm{cn},\ A_2\,\mathrm{sn},\ sA_3\,\mathrm{dn}\bigr)(\nu t + u_0\mid k^2),
       \tag{1} $$

    with $A_1^2 = I_1\frac{L - 2HI_3}{I_1 - I_3}$, $A_2^2 = I_2\frac{L - 2HI_3}{I_2 - I_3}$,
    $A_3^2 = I_3\frac{2HI_1 - L}{I_1 - I_3}$, $s$ the sign of $m_3$, $k^2 = -(A_2/A_3)^2a_3/a_2$ and
    $\nu = sa_2A_1A_3/A_2$. For $2HI_2 < L$ the axes 1 and 3 change their roles.

    **Raises:** `BadInput` if moments coincide, on the separatrix $2HI_2 = L$, and for times so late
    that the phase $\nu t$ is lost in rounding.
    """
    moments, m = _read_start(top, start)
    t = host_float64("t", t)
    require_finite("t", t)
    order = _order(moments, m)
    (i1, i2, i3), (m1, m2, m3) = moments[order], m[order]
    twice, length = float(np.sum(m * m / moments)), float(m @ m)
    across = (length - twice * i3) / (i1 - i3)
    A1, A2 = np.sqrt(i1 * across), np.sqrt(i2 * (length - twice * i3) / (i2 - i3))
    A3 = np.sqrt(i3 * (twice * i1 - length) / (i1 - i3))
    # The sign of a permutation of the axes turns every rate around.
    parity = np.linalg.det(np.eye(3)[order])
    a2, a3 = parity * (1 / i1 - 1 / i3), parity * (1 / i2 - 1 / i1)
    s = np.sign(m3)
    if A2 == 0:
        return np.broadcast_to(m, (*np.shape(t), 3)).copy()
    k2 = -((A2 / A3) ** 2) * a3 / a2
    nu = s * a2 * A1 * A3 / A2
    if np.any(np.abs(t) > _LAST_PHASE / abs(nu)):
        raise BadInput(
            f"t reaches {np.max(np.abs(t)):g} s, where the phase of the motion is lost in "
            f"rounding: it must stay within {_LAST_PHASE / abs(nu):g} s of the start."
        )
    modulus = jnp.asarray(k2)
    u0 = incomplete(jnp.asarray(np.arctan2(m2 / A2, m1 / A1)), modulus)
    sn, cn, dn = jacobi(jnp.asarray(nu * t) + u0, modulus)
    out = np.empty((*np.shape(t), 3))
    out[..., order[0]], out[..., order[1]], out[..., order[2]] = A1 * cn, A2 * sn, s * A3 * dn
    return out  # (1)


def period(top: EulerTop, start: ArrayLike) -> float:
    r"""Return the time $4K(k^2)/|\nu|$ after which the momenta return."""
    moments, m = _read_start(top, start)
    order = _order(moments, m)
    i1, i2, i3 = moments[order]
    twice, length = float(np.sum(m * m / moments)), float(m @ m)
    # A1 A3 / A2 and A2 / A3 of `exact_momentum`, written out.
    k2 = (i1 - i2) * (length - twice * i3) / ((i2 - i3) * (twice * i1 - length))
    nu = np.sqrt((i2 - i3) * (twice * i1 - length) / (i1 * i2 * i3))
    return float(4 * complete(jnp.asarray(k2)) / abs(nu))


def _read_start(top: EulerTop, start: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return the moments and the first momentum, which must not be too large to be squared."""
    require_instance("top", top, EulerTop, "an EulerTop")
    m = host_float64("start", start)
    require_shape("start", m, (3,))
    require_finite("start", m)
    size = float(np.max(np.abs(m)))
    if not _SMALLEST < size < _LARGEST:
        raise BadInput(
            f"start = {m.tolist()} must have a largest momentum from {_SMALLEST:g} to "
            f"{_LARGEST:g}: squares of others overflow or vanish."
        )
    return np.asarray(top.inertia, dtype=float), m


def _order(moments: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Return the axes in the order of (1): the body turns about the last one."""
    order = np.argsort(-moments)
    if not (np.diff(moments[order]) < 0).all():
        raise BadInput(f"inertia = {moments.tolist()} must have three different moments.")
    excess = float(np.sum(m * m / moments)) * moments[order[1]] - float(m @ m)
    if not abs(excess) > _SEPARATRIX * float(m @ m):
        raise BadInput(
            f"start = {m.tolist()} lies on the separatrix: 2 H I2 - |m|^2 = {excess:.3g}, but it "
            "must not vanish."
        )
    return order if excess > 0 else order[::-1]


class BodyOnSphere(AbstractSpaceFlow):
    r"""The direction $y = m/|m|$ of the momentum of a free rigid body, in its principal axes.

    $$ \dot m = m\times\mathbb I^{-1}m, \qquad
       \dot y = \xi\times y, \quad \xi = -|m|\,\mathbb I^{-1}y. \tag{1} $$

    **Arguments:**

    - `inertia`: the principal moments (kg m^2).
    - `length`: $|m|$ in kg m^2/s.

    **Invariants:** the energy $\tfrac12|m|^2\,y\cdot\mathbb I^{-1}y$; $|y| = 1$ by construction.

    References: [MarsdenRatiu1999].
    """

    inertia: Vector
    length: Scalar

    def __init__(self, inertia: ArrayLike, length: ArrayLike = 1.0):
        self.inertia = checked_inertia(SO3(), inertia, physical=False)
        require_shape("inertia", self.inertia, (3,))
        self.length = float64("length", length)
        require_shape("length", self.length, ())
        require_above_zero("length", self.length, "of the momentum must be positive")

    @classmethod
    def example(cls) -> tuple["BodyOnSphere", State, float, int]:
        """Return moments 2.3, 1.7, 1 far from every axis: system, state, h, steps."""
        body = cls([2.3, 1.7, 1.0], 2.0)
        return (
            body,
            body.at(evaluate_in_jax(Sphere.project, body.space, np.array([1.2, -0.8, 2.0]))),
            0.05,
            2_000,
        )

    @property
    def space(self) -> Sphere:
        return Sphere(3)

    @property
    def name(self) -> str:
        return "free body on the sphere"

    def generator(self, t: Scalar, y: Vector) -> Vector:
        return -self.length * y / self.inertia  # (1)

    def invariant_functions(self, y: Vector) -> dict[str, Scalar]:
        return {"energy": self.length**2 * (y @ (y / self.inertia)) / 2}

    def exact(self, start: ArrayLike, t: ArrayLike) -> np.ndarray:
        """Return the points at the times `t`, one row each, by Jacobi's elliptic functions."""
        length = float(self.length)
        top = EulerTop(self.inertia, physical=False)
        return exact_momentum(top, length * np.asarray(start, dtype=float), t) / length
