r"""Tops, bodies in fluids and in four dimensions, as Lie-Poisson fields."""

import jax.numpy as jnp
import numpy as np

from retrax.errors import BadInput
from retrax.groups.matrix_group import MatrixGroup
from retrax.groups.se3 import SE3
from retrax.groups.so3 import SO3
from retrax.mechanics.mechanical import checked_inertia
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import finite64, float64, require_finite, require_shape
from retrax.systems.lie_poisson import LiePoisson

# The planes of four dimensions, in the order of the coordinates of so(4).
PLANES = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))


def zhukovski_volterra(inertia: ArrayLike, rotor: ArrayLike) -> LiePoisson:
    r"""A gyrostat, $\dot x = x\times(\mathbb I^{-1}x + \beta)$: a body with a rotor inside.

    **Arguments:** `inertia`: principal moments; `rotor`: the vector $\beta$.
    """
    moments = _three("inertia", checked_inertia(SO3(), inertia, physical=False))
    rates = _three("rotor", float64("rotor", rotor))
    return LiePoisson(SO3(), 1 / moments, rates, name="gyrostat")


def euler_poisson(inertia: ArrayLike, weight: ArrayLike) -> LiePoisson:
    r"""A heavy top seen from its own axes, with $\gamma$ the vertical there.

    $$ \dot m = m\times\omega + \gamma\times\chi, \qquad \dot\gamma = \gamma\times\omega $$

    **Arguments:** `inertia`: principal moments; `weight`: $\chi$, weight times arm, with the
    potential energy $\gamma\cdot\chi$.
    """
    moments = _three("inertia", checked_inertia(SO3(), inertia, physical=False))
    chi = _three("weight", float64("weight", weight))
    quadratic = jnp.concatenate([1 / moments, jnp.zeros(3)])
    linear = jnp.concatenate([jnp.zeros(3), chi])
    return LiePoisson(SE3(), quadratic, linear, name="Euler-Poisson top")


def lagrange_top(across: float, along: float, weight: float) -> LiePoisson:
    """Lagrange's top: the moments `across`, `across`, `along`, its weight on the third axis."""
    first, third = finite64("across", across), finite64("along", along)
    zero = jnp.zeros(())
    moments = jnp.stack([first, first, third])
    return euler_poisson(moments, jnp.stack([zero, zero, finite64("weight", weight)]))


def kirchhoff(a: ArrayLike, b: ArrayLike) -> LiePoisson:
    r"""A body in an ideal fluid, $H = \tfrac12\sum_i a_im_i^2 + \tfrac12\sum_i b_ip_i^2$.

    $$ \dot m = m\times\nabla_mH + p\times\nabla_pH, \qquad \dot p = p\times\nabla_mH $$
    """
    both = [_three("a", float64("a", a)), _three("b", float64("b", b))]
    return LiePoisson(SE3(), jnp.concatenate(both), name="Kirchhoff body")


def clebsch(a: ArrayLike, rho: float, sigma: float) -> LiePoisson:
    r"""Clebsch's integrable case of `kirchhoff`, $b_i = \rho + \sigma a_ja_k$.

    These are all solutions of
    $\tfrac{b_1 - b_2}{a_3} + \tfrac{b_2 - b_3}{a_1} + \tfrac{b_3 - b_1}{a_2} = 0$ unless all $a_i$
    are equal; then every $b$ is one.
    """
    rates = _three("a", float64("a", a))
    products = jnp.roll(rates, -1) * jnp.roll(rates, -2)
    b = finite64("rho", rho) + finite64("sigma", sigma) * products
    return LiePoisson(SE3(), jnp.concatenate([rates, b]), name="Clebsch body")


def four_dimensional_body(quadratic: ArrayLike) -> LiePoisson:
    """A free body in four dimensions, on the dual of so(4), from six numbers or a matrix.

    The coordinates are those of the planes 12, 13, 14, 23, 24, 34.
    """
    basis = np.zeros((6, 4, 4))
    for k, (i, j) in enumerate(PLANES):
        basis[k, i, j], basis[k, j, i] = -1.0, 1.0
    group = MatrixGroup(jnp.asarray(basis), name="SO(4)")
    return LiePoisson(group, quadratic, name="body in four dimensions")


def manakov(a: ArrayLike, b: ArrayLike) -> LiePoisson:
    r"""Manakov's integrable bodies, $H = \tfrac12\sum_{i<j}\frac{b_i-b_j}{a_i-a_j}x_{ij}^2$.

    **Arguments:** `a`: four different numbers; `b`: four numbers.
    """
    top, bottom = np.asarray(float64("b", b)), np.asarray(float64("a", a))
    for name, values in (("a", bottom), ("b", top)):
        require_shape(name, values, (4,))
        require_finite(name, values)
    if len(set(bottom.tolist())) < 4:
        raise BadInput(f"a = {bottom.tolist()} must be four different numbers.")
    rates = [(top[i] - top[j]) / (bottom[i] - bottom[j]) for i, j in PLANES]
    return four_dimensional_body(rates)


def _three(name: str, value):
    require_shape(name, value, (3,))
    return value
