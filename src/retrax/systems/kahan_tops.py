r"""Integrals of Kahan's map of tops, in closed form.

With $\epsilon = h/2$, $f$ the field and $x$ a point:

- two homogeneous quadratic functions of three variables and their field $\nabla H\times\nabla K$,
  of which Euler's top is one: (1);
- the gyrostat $\dot x = x\times(\mathbb I^{-1}x + \beta)$ with $\beta_i = 0$, $(i, j, k)$ cyclic
  and $a_i = 1/I_k - 1/I_j$: (2);
- Lagrange's top with $A = 1/I_1$, $D = 1/I_3$, the weight $\chi$, $\kappa = m_3(D - A)$,
  $w = \kappa m_\perp + \chi\gamma_\perp$, $v = m_\perp\cdot w$, $b = \chi m_3(2D - A)/A$: (3), (4);
- Clebsch's body with $2H = a|m|^2 + \sum_ib_ip_i^2$: (5).

$$
\begin{aligned}
&\frac HB,\quad \frac KB, \qquad B = 1 - \tfrac{\epsilon^2}6\,\mathrm{tr}\,f'(x)^2   &&\text{(1)}\\
F_i &= \frac{a_kx_j^2 - a_jx_k^2 + 2(\beta_jx_j + \beta_kx_k)
       - \epsilon^2(a_k\beta_k^2 - a_j\beta_j^2)\,x_i^2}
       {1 - \epsilon^2a_ja_k\,x_i^2}                                               &&\text{(2)}\\
\tilde H &= \tfrac A2\bigl(|m_\perp|^2 - \epsilon^2|w|^2\bigr) + \tfrac D2m_3^2
       + \chi\gamma_3                                                             &&\text{(3)}\\
G &= \frac{b\,\gamma_3 + (1 - \epsilon^2\kappa Dm_3)\,v}{b + \epsilon^2A\chi\,v}     &&\text{(4)}\\
J &= \frac{|p|^2}{1 + \epsilon^2a\bigl((b_1 - b_2)\,p_2^2 + (b_1 - b_3)\,p_3^2\bigr)}  &&\text{(5)}
\end{aligned}
$$

As $h \to 0$ they become $H$, $K$, $2H - |x|^2/I_i$, the energy of the top, a quotient of
combinations of its energy and $m\cdot\gamma$, and $|p|^2$.

References: [PetreraPfadlerSuris2011] (that there are as many); [HirotaKimura2000] (Euler's top).
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.mechanics.quadratic_field import AbstractQuadraticField

Scalar = Float[Array, ""]


def shared_denominator(field: AbstractQuadraticField, x: Float[Array, "3"], h: Scalar) -> Scalar:
    """Return $B$ of (1)."""
    slope = field.jacobian(x)
    return 1 - (h / 2) ** 2 / 6 * jnp.sum(slope * slope.T)


def gyrostat_integral(
    rates: Float[Array, "3"], rotor: Float[Array, "3"], x: Float[Array, "3"], h: Scalar, i: int
) -> Scalar:
    r"""Return $F_i$ of (2), from $1/I$ and $\beta$; an integral where $\beta_i = 0$."""
    e2, a = (h / 2) ** 2, jnp.roll(rates, -2) - jnp.roll(rates, -1)
    j, k = (i + 1) % 3, (i + 2) % 3
    form = a[k] * x[j] ** 2 - a[j] * x[k] ** 2 + 2 * (rotor[j] * x[j] + rotor[k] * x[k])
    top = form - e2 * (a[k] * rotor[k] ** 2 - a[j] * rotor[j] ** 2) * x[i] ** 2
    return top / (1 - e2 * a[j] * a[k] * x[i] ** 2)


def lagrange_integrals(
    across: Scalar, along: Scalar, weight: Scalar, x: Float[Array, "6"], h: Scalar
) -> dict[str, Scalar]:
    r"""Return $\tilde H$ and $G$ of (3), (4) from $A$, $D$, $\chi$; $m_3$ is one by itself."""
    e2, m, spin, gamma, up = (h / 2) ** 2, x[:2], x[2], x[3:5], x[5]
    kappa = spin * (along - across)
    w = kappa * m + weight * gamma
    v, b = m @ w, weight * spin * (2 * along - across) / across
    energy = across / 2 * (m @ m - e2 * w @ w) + along / 2 * spin**2 + weight * up
    below = b + e2 * across * weight * v
    top = b * up + (1 - e2 * kappa * along * spin) * v
    defined = below != 0  # without spin G is not defined
    ratio = jnp.where(defined, top / jnp.where(defined, below, 1.0), 0.0)
    return {"modified energy": energy, "G": ratio}


def clebsch_integral(rate: Scalar, b: Float[Array, "3"], p: Float[Array, "3"], h: Scalar) -> Scalar:
    r"""Return $J$ of (5), from $a$, $b$ and the impulse $p$."""
    below = 1 + (h / 2) ** 2 * rate * jnp.sum((b[0] - b) * p**2)
    return p @ p / below
