"""Lie-Poisson equations with a quadratic energy, on the dual of any Lie algebra."""

from functools import lru_cache
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup
from retrax.groups.se3 import SE3
from retrax.groups.so3 import SO3
from retrax.mechanics.quadratic_field import AbstractQuadraticField
from retrax.mechanics.remembered import Drawing, told
from retrax.mechanics.state import State
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import (
    float64,
    is_traced,
    require_finite,
    require_instance,
    require_shape,
)
from retrax.numerics.known import require_each
from retrax.numerics.small_matrices import null_space
from retrax.systems.kahan_tops import (
    clebsch_integral,
    gyrostat_integral,
    lagrange_integrals,
    shared_denominator,
)

Point = Float[Array, " n"]
# One nonzero structure constant: i, j, k and c_ij^k.
Term = tuple[int, int, int, float]

_ROUNDING = 1e-12


class LiePoisson(AbstractQuadraticField):
    r"""The Lie-Poisson (Euler-Poincaré) equations of $H(x) = \tfrac12x\cdot Ax + b\cdot x$.

    $$ \dot x_j = \sum_{ik}c_{ij}^k\,(Ax + b)_i\,x_k, \qquad [e_i, e_j] = \sum_kc_{ij}^ke_k.
       \tag{1} $$

    On $\mathfrak{so}(3)^*$ with $A = \mathbb I^{-1}$ and $b = 0$ this is Euler's top.

    **Arguments:**

    - `algebra`: a group, or the structure constants as an array with entries `c[i, j, k]`
        $= c_{ij}^k$.
    - `quadratic`: the symmetric matrix $A$, or its diagonal.
    - `linear`: the vector $b$; zero where not given.
    - `name`: what the system is called.

    **Invariants:** the energy $H$, and the quadratic Casimir functions, found from the structure
    constants. Of Kahan's steps, to round-off: the linear integrals; on $\mathfrak{so}(3)^*$ the
    quotients $H/B$ and $C/B$ without a linear part, and $F_i$ where $A$ is diagonal and $b_i = 0$;
    of Lagrange's top $\tilde H$ and $G$. They are written out in `systems/kahan_tops.py`.

    References: [MarsdenRatiu1999] 13.
    """

    quadratic: Float[Array, "..."]
    linear: Any
    terms: tuple[Term, ...] = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    title: str = eqx.field(static=True)

    def __init__(
        self,
        algebra: AbstractLieGroup | ArrayLike,
        quadratic: ArrayLike,
        linear: ArrayLike | None = None,
        *,
        name: str | None = None,
    ):
        constants = structure_constants(algebra)
        n = len(constants)
        self.dim = n
        self.terms = _terms(constants)
        self.quadratic = _symmetric(float64("quadratic", quadratic), n)
        self.linear = None if linear is None else float64("linear", linear)
        if self.linear is not None:
            require_shape("linear", self.linear, (n,))
            require_finite("linear", self.linear)
        if name is not None:
            require_instance("name", name, str, "a text")
        self.title = f"Lie-Poisson field on R^{n}" if name is None else name

    @property
    def name(self) -> str:
        return self.title

    @property
    def drawing(self) -> Drawing | None:
        """What a picture needs: which vectors of space the coordinates are."""
        for group, names in ((SO3(), ["m"]), (SE3(), ["m", "p"])):
            if self._on(group):
                return told("field", vectors=(names, 1))
        return told("field")

    def gradient(self, x: Point) -> Point:
        """$dH = Ax + b$."""
        A = self.quadratic
        slope = A * x if A.ndim == 1 else A @ x
        return slope if self.linear is None else slope + self.linear

    def field(self, x: Point) -> Point:
        slope = self.gradient(x)
        rows = [jnp.zeros(()) for _ in range(self.dim)]
        for i, j, k, c in self.terms:
            rows[j] = rows[j] + c * slope[i] * x[k]  # (1)
        return jnp.stack(rows)

    def hamiltonian_energy(self, g: Point, mu: Point) -> Float[Array, ""]:
        slope = self.gradient(g)
        return g @ (slope if self.linear is None else slope + self.linear) / 2

    def casimirs(self, x: Point) -> Float[Array, " casimirs"]:
        r"""The quadratic Casimir functions $\tfrac12x\cdot Kx$ at `x`."""
        forms = quadratic_casimirs(self.terms, self.dim)
        return jnp.stack([x @ jnp.asarray(K) @ x / 2 for K in forms]) if forms else jnp.zeros(0)

    def further_invariants(self, state: State) -> dict[str, Float[Array, ""]]:
        values = self.casimirs(state.g)
        return {f"Casimir {k + 1}": values[k] for k in range(len(values))}

    def kahan_integrals(self) -> tuple:
        found = super().kahan_integrals()
        if is_traced(self):
            return found
        A, b = np.asarray(self.quadratic), self.linear
        if self._on(SO3()) and b is not None and A.shape == (3,):
            rotor = np.asarray(b)
            return (*found, *(("gyrostat", i) for i in range(3) if rotor[i] == 0))
        if self._on(SE3()) and b is not None and A.shape == (6,):
            weight = np.asarray(b)
            round_ = A[0] == A[1] != 0 and not A[3:].any()
            if round_ and weight[5] != 0 and not weight[:5].any():
                return (*found, ("lagrange", ()))
        if self._on(SE3()) and b is None and A.shape == (6,) and A[0] == A[1] == A[2]:
            return (*found, ("clebsch", ()))
        return found

    def exact_integrals(
        self, x: Point, h: Float[Array, ""], kept: tuple = ()
    ) -> dict[str, Float[Array, ""]]:
        found = super().exact_integrals(x, h, kept)
        A, b = self.quadratic, self.linear
        if b is None and self._on(SO3()):
            below = shared_denominator(self, x, h)
            found |= {"H/B": self.hamiltonian_energy(x, x) / below, "C/B": x @ x / 2 / below}
        for kind, what in kept:
            if kind == "clebsch":
                found["J"] = clebsch_integral(A[0], A[3:], x[3:], h)
            elif b is None:
                continue
            elif kind == "gyrostat":
                found[f"F{what + 1}"] = gyrostat_integral(A, b, x, h, what)
            elif kind == "lagrange":
                found |= lagrange_integrals(A[0], A[2], b[5], x, h)
        return found

    def _on(self, group: AbstractLieGroup) -> bool:
        """Whether this is the dual of the algebra of `group`, in its coordinates."""
        return self.dim == group.dim and self.terms == _terms_of(group)


@lru_cache(maxsize=8)
def _terms_of(group: AbstractLieGroup) -> tuple[Term, ...]:
    return _terms(structure_constants(group))


def _terms(constants: np.ndarray) -> tuple[Term, ...]:
    return tuple(
        (int(i), int(j), int(k), float(constants[i, j, k])) for i, j, k in np.argwhere(constants)
    )


def structure_constants(algebra: AbstractLieGroup | ArrayLike) -> np.ndarray:
    """The array c[i, j, k] of a group's algebra, or one that is given, checked."""
    if isinstance(algebra, AbstractLieGroup):
        brackets = [np.asarray(algebra.ad(e)).T for e in jnp.eye(algebra.dim)]
        c = np.round(np.stack(brackets), 12)
    else:
        c = np.asarray(float64("algebra", algebra))
    n = len(c) if c.ndim else 0
    if n == 0 or c.shape != (n, n, n):
        raise BadInput(f"algebra has shape {c.shape}, but structure constants have (n, n, n).")
    require_finite("algebra", c)
    unit = c / (float(np.max(np.abs(c))) or 1.0)
    skew = float(np.max(np.abs(unit + np.swapaxes(unit, 0, 1))))
    twice = np.einsum("ijl,lkm->ijkm", unit, unit)
    jacobi = twice + np.transpose(twice, (1, 2, 0, 3)) + np.transpose(twice, (2, 0, 1, 3))
    jacobi = float(np.max(np.abs(jacobi)))
    for law, defect in (("antisymmetric", skew), ("a Lie bracket by Jacobi's identity", jacobi)):
        if not defect <= _ROUNDING:
            raise BadInput(
                f"algebra is not {law}: its structure constants break the law by {defect:.3g}, "
                f"allowed {_ROUNDING:.0e}."
            )
    return c


@lru_cache(maxsize=64)
def quadratic_casimirs(terms: tuple[Term, ...], dim: int) -> tuple[np.ndarray, ...]:
    r"""Symmetric matrices $K$ that span the quadratic Casimir functions $\tfrac12x\cdot Kx$.

    The null space of $K \mapsto \sum_{ikl}c_{ij}^k K_{il}x_lx_k$, whose coefficients must vanish.
    """
    pairs = [(p, q) for p in range(dim) for q in range(p, dim)]
    columns = []
    for p, q in pairs:
        K = np.zeros((dim, dim))
        K[p, q] = K[q, p] = 1.0
        rate = np.zeros((dim, dim, dim))
        for i, j, k, c in terms:
            rate[j, :, k] += c * K[i]
        columns.append((rate + np.swapaxes(rate, 1, 2)).ravel())
    forms = []
    for weights in null_space(np.stack(columns, axis=1), _ROUNDING):
        K = np.zeros((dim, dim))
        for (p, q), weight in zip(pairs, weights, strict=True):
            K[p, q] = K[q, p] = weight
        forms.append(K)
    return tuple(forms)


def _symmetric(A: Any, n: int) -> Any:
    """The matrix or diagonal of a quadratic form in n coordinates, checked."""
    if A.ndim != 1:
        require_shape("quadratic", A, (n, n))
    else:
        require_shape("quadratic", A, (n,))
    require_finite("quadratic", A)
    if A.ndim == 2:
        require_each(_require_symmetric, A)
    return A


def _require_symmetric(A: np.ndarray) -> None:
    defect = float(np.max(np.abs(A - A.T)))
    if defect > _ROUNDING * float(np.max(np.abs(A))):
        raise BadInput(
            f"quadratic is not symmetric: it differs from its transpose by {defect:.3g}."
        )
