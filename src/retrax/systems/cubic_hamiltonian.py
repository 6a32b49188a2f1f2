"""Canonical systems with a cubic Hamiltonian."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.mechanics.functions import as_pytree
from retrax.mechanics.quadratic_field import AbstractQuadraticField, require_quadratic
from retrax.mechanics.remembered import Drawing, told
from retrax.numerics.checks import (
    MOST_ROWS,
    require_double_precision,
    require_instance,
    require_output,
    require_whole,
)
from retrax.numerics.small_matrices import determinant, solve

Point = Float[Array, " n"]


class CubicHamiltonian(AbstractQuadraticField):
    r"""$\dot q = \partial H/\partial p$, $\dot p = -\partial H/\partial q$ with $H$ of degree 3.

    A point is $z = (q, p)$.

    Steps of Kahan's method conserve, exactly, a modified energy and a measure,

    $$
    \begin{aligned}
    \tilde H &= H + \tfrac h3\,\nabla H\cdot\bigl(1 - \tfrac h2f'\bigr)^{-1}f       &&\text{(1)}\\
    d\mu &= dz\,/\det\bigl(1 - \tfrac h2f'\bigr)                                      &&\text{(2)}
    \end{aligned}
    $$

    **Arguments:**

    - `hamiltonian`: `hamiltonian(z)`, written in JAX.
    - `dim`: the number of coordinates, $q$ and $p$ together.

    **Raises:** `BadInput` if the Hamiltonian is not of degree 3.

    References: [CelledoniMcLachlanOwrenQuispel2013].
    """

    hamiltonian: Callable[[Point], Float[Array, ""]]
    dim: int = eqx.field(static=True)
    title: str = eqx.field(static=True)

    def __init__(
        self, hamiltonian: Callable[[Point], Float[Array, ""]], dim: int, *, name: str | None = None
    ):
        require_double_precision()
        dim = require_whole("dim", dim, 2, MOST_ROWS)
        if dim % 2:
            raise BadInput(f"dim = {dim} must be an even number: as many momenta as positions.")
        if name is not None:
            require_instance("name", name, str, "a text")
        layout = (jax.ShapeDtypeStruct((dim,), jnp.float64),)
        require_output("hamiltonian", hamiltonian, layout, ())
        function = as_pytree(hamiltonian)
        self.hamiltonian, self.dim = function, dim
        self.title = f"cubic Hamiltonian system on R^{dim}" if name is None else name
        require_quadratic("the gradient of the hamiltonian", self.field, dim)

    @property
    def name(self) -> str:
        return self.title

    @property
    def drawing(self) -> Drawing | None:
        """What a picture needs: that the numbers are positions, then momenta."""
        return told("field", canonical=(True, 0))

    def field(self, x: Point) -> Point:
        slope = jax.grad(self.hamiltonian)(x)
        half = self.dim // 2
        return jnp.concatenate([slope[half:], -slope[:half]])

    def hamiltonian_energy(self, g: Point, mu: Point) -> Float[Array, ""]:
        return jnp.asarray(self.hamiltonian(g))

    def modified_energy(self, z: Point, h: Float[Array, ""] | float) -> Float[Array, ""]:
        r"""Return $\tilde H$ of (1)."""
        matrix = jnp.eye(self.dim) - h / 2 * self.jacobian(z)
        rate = solve(matrix, self.field(z))
        return self.hamiltonian(z) + h / 3 * jax.grad(self.hamiltonian)(z) @ rate

    def density(self, z: Point, h: Float[Array, ""] | float) -> Float[Array, ""]:
        """Return the density of the measure (2)."""
        return 1 / determinant(jnp.eye(self.dim) - h / 2 * self.jacobian(z))

    def exact_integrals(
        self, x: Point, h: Float[Array, ""], kept: tuple = ()
    ) -> dict[str, Float[Array, ""]]:
        linear = super().exact_integrals(x, h, kept)
        return {"modified energy": self.modified_energy(x, h), **linear}


def henon_heiles() -> CubicHamiltonian:
    r"""Return Hénon and Heiles' $H = \tfrac12|p|^2 + \tfrac12|q|^2 + q_1^2q_2 - \tfrac13q_2^3$."""
    return CubicHamiltonian(_henon_heiles, 4, name="Henon-Heiles system")


def _henon_heiles(z: Float[Array, "4"]) -> Float[Array, ""]:
    x, y = z[0], z[1]
    return z @ z / 2 + x * x * y - y * y * y / 3
