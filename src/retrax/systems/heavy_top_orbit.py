"""The heavy top on the coadjoint orbits of the rigid motions."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.groups.se3 import SE3
from retrax.groups.so3 import SO3
from retrax.mechanics.flow import AbstractSpaceFlow
from retrax.mechanics.mechanical import checked_inertia
from retrax.mechanics.state import State
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import float64, require_finite, require_shape
from retrax.numerics.evaluate import evaluate
from retrax.spaces.coadjoint_orbit import CoadjointOrbit

Vector = Float[Array, "3"]
Scalar = Float[Array, ""]
Momentum = Float[Array, "6"]


class HeavyTopOrbit(AbstractSpaceFlow):
    r"""A heavy top seen from its own axes, $\mu = (\Pi, \Gamma)$: $\Gamma = R^Te_3$ points **up**.

    $$
    \begin{aligned}
    H &= \tfrac12\Pi\cdot\mathbb I^{-1}\Pi + \Gamma\cdot\chi, \qquad
        \xi = \partial H/\partial\mu = (\mathbb I^{-1}\Pi, \chi)                   &&\text{(1)}\\
    \dot\mu &= \mathrm{ad}^*_\xi\mu: \quad
        \dot\Pi = \Pi\times\Omega + \Gamma\times\chi, \quad
        \dot\Gamma = \Gamma\times\Omega, \quad \Omega = \mathbb I^{-1}\Pi          &&\text{(2)}
    \end{aligned}
    $$

    The orbits are $|\Gamma| = 1$, $\Pi\cdot\Gamma$ constant: a run stays on them at any step size,
    so the vertical angular momentum is exact.

    **Arguments:**

    - `inertia`: the principal moments about the fixed point (kg m^2).
    - `weight`: $\chi$, mass times gravity times arm, in body axes (N m).

    **Invariants:** the energy; $|\Gamma|$ and $\Pi\cdot\Gamma$ (called `|p|` and `m.p`) to
    round-off.

    References: [MarsdenRatiu1999]; [EngoFaltinsen2001].
    """

    inertia: Vector
    weight: Vector

    def __init__(self, inertia: ArrayLike, weight: ArrayLike):
        self.inertia = checked_inertia(SO3(), inertia, physical=False)
        require_shape("inertia", self.inertia, (3,))
        self.weight = float64("weight", weight)
        require_shape("weight", self.weight, (3,))
        require_finite("weight", self.weight)

    @classmethod
    def example(cls) -> tuple["HeavyTopOrbit", State, float, int]:
        """Return the asymmetric top of the case `heavy-top`: system, state, h, steps."""
        top = cls([1.2, 1.6, 0.8], [0.0, 0.0, 9.81 * 0.6])
        spin = np.asarray(top.inertia) * np.array([0.6, 0.2, 8.0])
        upright = evaluate(SO3.exp, SO3(), np.array([1.0, 0.0, 0.0]))[2]
        return top, top.at(np.concatenate([spin, upright])), 0.005, 20_000

    @property
    def space(self) -> CoadjointOrbit:
        return CoadjointOrbit(SE3())

    @property
    def name(self) -> str:
        return "heavy top on a coadjoint orbit"

    def generator(self, t: Scalar, y: Momentum) -> Momentum:
        return jnp.concatenate([y[:3] / self.inertia, self.weight])  # (1)

    def invariant_functions(self, y: Momentum) -> dict[str, Scalar]:
        return {"energy": y[:3] @ (y[:3] / self.inertia) / 2 + y[3:] @ self.weight}
