"""Euler's top as a quadratic field, and what Kahan's method conserves on it exactly."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.so3 import SO3
from retrax.mechanics.mechanical import checked_inertia
from retrax.mechanics.quadratic_field import AbstractQuadraticField
from retrax.mechanics.remembered import Drawing, told
from retrax.mechanics.state import State
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import require_shape

Vector = Float[Array, "3"]
Scalar = Float[Array, ""]


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

    **Arguments:** `inertia`: the principal moments (kg m^2); `physical`: whether to insist that a
    body can have them.

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
        """Moments 3, 2, 1 from (1, 1, 1): system, state, h, steps."""
        top = cls([3.0, 2.0, 1.0])
        return top, top.at([1.0, 1.0, 1.0]), 0.1, 10_000

    @property
    def name(self) -> str:
        return "Euler top"

    @property
    def drawing(self) -> Drawing | None:
        """What a picture needs: that the three numbers are a vector of space."""
        return told("field", vectors=(["m"], 1))

    @property
    def rates(self) -> Vector:
        """The three constants $a_i$ of (1)."""
        w = 1 / self.inertia
        return jnp.roll(w, -2) - jnp.roll(w, -1)

    def field(self, x: Vector) -> Vector:
        x1, x2, x3 = x[0], x[1], x[2]
        return self.rates * jnp.stack([x2 * x3, x3 * x1, x1 * x2])  # (1)

    def scaled(self, x: Vector, h: Scalar) -> tuple[Vector, Float[Array, "3 3"]]:
        a, zero = h * self.rates, jnp.zeros(())
        x1, x2, x3 = x[0], x[1], x[2]
        slope = jnp.stack([zero, x3, x2, x3, zero, x1, x2, x1, zero]).reshape(3, 3)
        return a * jnp.stack([x2 * x3, x3 * x1, x1 * x2]), (a / 2)[:, None] * slope

    def hamiltonian_energy(self, g: Vector, mu: Vector) -> Scalar:
        return g @ (g / self.inertia) / 2

    def casimir(self, m: Vector) -> Scalar:
        r"""$C = |m|^2/2$."""
        return m @ m / 2

    def radial_level(self, m: Vector) -> Scalar:
        """The function, quadratic in `m`, that a radial projection restores: $C$."""
        return self.casimir(m)

    def further_invariants(self, state: State) -> dict[str, Scalar]:
        casimir = self.casimir(state.g)
        return {"C": casimir, "H/C": self.energy(state) / casimir}

    def exact_integrals(self, x: Vector, h: Scalar, kept: tuple = ()) -> dict[str, Scalar]:
        ratios = self.casimir(x) / self.denominators(x, h)
        found = {f"C/B{k + 1}": ratios[k] for k in range(3)}
        return {**found, **super().exact_integrals(x, h, kept)}

    def denominators(self, m: Vector, h: ArrayLike) -> Vector:
        r"""$B_1, B_2, B_3$ of (2)."""
        return 1 - (jnp.asarray(h) / 2) ** 2 * self._pairs * m * m

    def growth(self, m: Vector, h: ArrayLike) -> Scalar:
        r"""$\lambda(m)$ of (3): the factor of $H$, $C$ and $B_k$ in one step."""
        e, f = jnp.asarray(h) / 2, self.field(m)
        a1, a2, a3 = self.rates[0], self.rates[1], self.rates[2]
        x, y = m[0] * m[1] * m[2], m + e * f
        delta = 1 - e**2 * jnp.sum(self._pairs * m * m) - 2 * e**3 * a1 * a2 * a3 * x
        return 1 - 4 * e**3 * a1 * a2 * a3 * y[0] * y[1] * y[2] / delta**2

    def modified_casimir(self, m: Vector, h: ArrayLike, axis: int = 2) -> Scalar:
        r"""$\tilde C = C/B_k = C + O(h^2)$, without poles unless $I_k$ is the middle moment."""
        return self.casimir(m) / self.denominators(m, h)[axis]

    def modified_hamiltonian(self, m: Vector, h: ArrayLike, axis: int = 2) -> Scalar:
        r"""$\tilde H = H/B_k$."""
        return self.hamiltonian_energy(m, m) / self.denominators(m, h)[axis]

    def volume_density(self, m: Vector) -> Scalar:
        """The density $1/C^2$ of the volume that steps of every size leave invariant."""
        return 1 / self.casimir(m) ** 2

    def modified_bracket(self, m: Vector, h: ArrayLike, axis: int = 2) -> Float[Array, "3 3"]:
        r"""The Poisson tensor $B_k^2\,\widehat{\nabla\tilde C}$ that Kahan's steps preserve."""
        gradient = jax.grad(lambda m: self.modified_casimir(m, h, axis))(m)
        return self.denominators(m, h)[axis] ** 2 * SO3().hat(gradient)

    def safe_step_bound(self, m: Vector) -> Scalar:
        r"""Steps below $2/(|m_2|\sqrt{a_1a_3})$, $I_2$ the middle moment, never meet a pole.

        Infinite where two moments coincide.
        """
        return 2 / jnp.sqrt(jnp.sum(jnp.maximum(self._pairs, 0.0) * m * m))

    def relative_error(self, start: Vector, m: Vector, h: ArrayLike) -> Scalar:
        r"""$(H - H_0)/H_0 = (C - C_0)/C_0$ at `m`, from the constancy of $C/B_k$ alone.

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
