"""Lotka-Volterra equations: populations that feed on each other."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from retrax.mechanics.quadratic_field import AbstractQuadraticField
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import finite64, float64, require_finite, require_shape
from retrax.numerics.evaluate import evaluate_in_jax

Point = Float[Array, " n"]


class LotkaVolterra(AbstractQuadraticField):
    r"""$\dot x_i = x_i\,(r_i + \sum_jA_{ij}x_j)$ for populations $x_i > 0$.

    Kahan's method keeps the measure $dx\,dy/(xy)$ of two species without self-interaction exactly,
    $\det D\Phi = x^+y^+/(xy)$: closed orbits, no spirals. A step that leaves the positive
    populations stops the run.

    **Arguments:** `rates`: $r$; `interactions`: $A$.

    References: [SanzSerna1994].
    """

    rates: Point
    interactions: Float[Array, "n n"]

    def __init__(self, rates: ArrayLike, interactions: ArrayLike):
        self.rates = float64("rates", rates)
        self.interactions = float64("interactions", interactions)
        require_shape("rates", self.rates, (self.rates.size,))
        require_shape("interactions", self.interactions, (self.rates.size, self.rates.size))
        require_finite("rates", self.rates)
        require_finite("interactions", self.interactions)

    @classmethod
    def predator_prey(
        cls, a: float = 1.0, b: float = 1.0, c: float = 1.0, d: float = 1.0
    ) -> "LotkaVolterra":
        r"""Return $\dot x = x(a - by)$, $\dot y = y(cx - d)$."""
        given = {"a": a, "b": b, "c": c, "d": d}
        rate = {name: finite64(name, value) for name, value in given.items()}
        return cls(*evaluate_in_jax(_predator_prey, rate))

    @classmethod
    def cyclic(cls) -> "LotkaVolterra":
        r"""Return $\dot x_1 = x_1(x_2 - x_3)$ and cyclic: sum and product of the $x_i$ are kept."""
        return cls([0.0, 0.0, 0.0], [[0.0, 1.0, -1.0], [-1.0, 0.0, 1.0], [1.0, -1.0, 0.0]])

    @property
    def dim(self) -> int:
        return self.rates.shape[-1]

    @property
    def name(self) -> str:
        return "Lotka-Volterra system"

    def field(self, x: Point) -> Point:
        return x * (self.rates + self.interactions @ x)

    def inside(self, x: Point) -> Bool[Array, ""]:
        return jnp.all(x > 0)

    def density(self, x: Point) -> Float[Array, ""]:
        r"""Return the density $1/\prod_ix_i$ of the measure."""
        return 1 / jnp.prod(x)

    def hamiltonian_energy(self, g: Point, mu: Point) -> Float[Array, ""]:
        r"""Return $V = cx - d\ln x + by - a\ln y$ for two species without self-interaction;
        otherwise 0.

        With $r = (a, -d)$ and $A = \begin{pmatrix}0 & -b\\ c & 0\end{pmatrix}$.
        """
        if self.dim != 2:
            return jnp.zeros(())
        weights = jnp.stack([self.interactions[1, 0], -self.interactions[0, 1]])
        powers = jnp.stack([-self.rates[1], self.rates[0]])
        return weights @ g - powers @ jnp.log(g)


def _predator_prey(rate: dict[str, Float[Array, ""]]) -> tuple[Point, Float[Array, "2 2"]]:
    """Return growth and interactions of two species from the four rates."""
    zero = jnp.zeros(())
    rows = jnp.stack([jnp.stack([zero, -rate["b"]]), jnp.stack([rate["c"], zero])])
    return jnp.stack([rate["a"], -rate["d"]]), rows
