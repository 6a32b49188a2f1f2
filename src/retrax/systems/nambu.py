"""Nambu systems of three dimensions with two quadratic Hamiltonians."""

from typing import ClassVar

from jaxtyping import Array, Float

from retrax.mechanics.quadratic_field import AbstractQuadraticField
from retrax.mechanics.state import State
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import float64, require_finite, require_shape
from retrax.numerics.small_matrices import cross
from retrax.systems.kahan_tops import shared_denominator

Vector = Float[Array, "3"]


class Nambu(AbstractQuadraticField):
    r"""$\dot x = \nabla H\times\nabla K$ with two quadratic functions.

    $H = \tfrac12x\cdot Mx + u\cdot x$ and $K = \tfrac12x\cdot Nx + v\cdot x$. Its motion is the
    intersection of two quadrics. For homogeneous ones, $u = v = 0$, Kahan's method has two rational
    integrals as well, $H/B$ and $K/B$ of `systems/kahan_tops.py`; for others none of degree 2.

    **Arguments:** `first`: $M$; `second`: $N$; `linear`: the pair $(u, v)$, by default zero.

    **Invariants:** the energy $H$, and $K$; of Kahan's steps $H/B$ and $K/B$, to round-off.

    References: [CelledoniMcLachlanOwrenQuispel2013].
    """

    first: Float[Array, "3 3"]
    second: Float[Array, "3 3"]
    linear: Float[Array, "2 3"] | None
    dim: ClassVar[int] = 3

    def __init__(
        self,
        first: ArrayLike,
        second: ArrayLike,
        linear: tuple[ArrayLike, ArrayLike] | None = None,
    ):
        M, N = float64("first", first), float64("second", second)
        for name, form in (("first", M), ("second", N)):
            require_shape(name, form, (3, 3))
            require_finite(name, form)
        self.first, self.second = (M + M.T) / 2, (N + N.T) / 2
        self.linear = None if linear is None else float64("linear", linear)
        if self.linear is not None:
            require_shape("linear", self.linear, (2, 3))
            require_finite("linear", self.linear)

    @property
    def name(self) -> str:
        return "Nambu system"

    def field(self, x: Vector) -> Vector:
        M, N = self.first @ x, self.second @ x
        if self.linear is not None:
            M, N = M + self.linear[0], N + self.linear[1]
        return cross(M, N)

    def hamiltonian_energy(self, g: Vector, mu: Vector) -> Float[Array, ""]:
        return self._value(self.first, 0, g)

    def further_invariants(self, state: State) -> dict[str, Float[Array, ""]]:
        return {"K": self._value(self.second, 1, state.g)}

    def exact_integrals(
        self, x: Vector, h: Float[Array, ""], kept: tuple = ()
    ) -> dict[str, Float[Array, ""]]:
        linear = super().exact_integrals(x, h, kept)
        if self.linear is not None:
            return linear
        below = shared_denominator(self, x, h)
        first, second = (self._value(form, 0, x) for form in (self.first, self.second))
        return {"H/B": first / below, "K/B": second / below, **linear}

    def _value(self, form: Float[Array, "3 3"], which: int, x: Vector) -> Float[Array, ""]:
        value = x @ form @ x / 2
        return value if self.linear is None else value + self.linear[which] @ x
