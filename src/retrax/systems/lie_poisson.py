"""Lie-Poisson equations with a quadratic energy, on the dual of any Lie algebra.

The functions make the known ones: gyrostats, tops, bodies in a fluid and in four dimensions.
"""

from functools import lru_cache

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup
from retrax.groups.matrix_group import MatrixGroup
from retrax.groups.se3 import SE3
from retrax.groups.so3 import SO3
from retrax.mechanics.mechanical import checked_inertia
from retrax.mechanics.quadratic_field import AbstractQuadraticField
from retrax.mechanics.remembered import Drawing, told
from retrax.mechanics.state import State
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import (
    finite64,
    float64,
    is_traced,
    require_finite,
    require_instance,
    require_shape,
)
from retrax.numerics.evaluate import evaluate, evaluate_in_jax
from retrax.numerics.known import require_each
from retrax.numerics.meant import explain_keywords
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
# The planes of four dimensions, in the order of the coordinates of so(4).
PLANES = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))


class LiePoisson(AbstractQuadraticField):
    r"""The Lie-Poisson (Euler-Poincaré) equations of $H(x) = \tfrac12x\cdot Ax + b\cdot x$.

    $$ \dot x_j = \sum_{ik}c_{ij}^k\,(Ax + b)_i\,x_k, \qquad [e_i, e_j] = \sum_kc_{ij}^ke_k.
       \tag{1} $$

    On $\mathfrak{so}(3)^*$ with $A = \mathbb I^{-1}$ and $b = 0$ this is Euler's top.

    **Arguments:**

    - `algebra`: a group, or the structure constants as an array with entries `c[i, j, k]`
        $= c_{ij}^k$.
    - `quadratic`: the symmetric matrix $A$, or its diagonal.
    - `linear`: the vector $b$, by default zero.
    - `name`: a name for the system.

    **Invariants:** the energy $H$, and the quadratic Casimir functions, found from the structure
    constants. Of Kahan's steps, to round-off: the linear integrals; on $\mathfrak{so}(3)^*$ the
    quotients $H/B$ and $C/B$ without a linear part, and $F_i$ if $A$ is diagonal and $b_i = 0$;
    of Lagrange's top $\tilde H$ and $G$. `systems/kahan_tops.py` has their formulas.

    References: [MarsdenRatiu1999] 13.
    """

    quadratic: Float[Array, "..."]
    linear: Float[Array, "..."] | None
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
        """What a picture needs: which coordinates form vectors in space."""
        for group, names in ((SO3(), ["m"]), (SE3(), ["m", "p"])):
            if self._on(group):
                return told("field", vectors=(names, 1))
        return told("field")

    def gradient(self, x: Point) -> Point:
        """Return $dH = Ax + b$."""
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
        r"""Return the quadratic Casimir functions $\tfrac12x\cdot Kx$ at `x`."""
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
        """Return whether this is the dual of the algebra of `group`, in its coordinates."""
        return self.dim == group.dim and self.terms == _terms_of(group)


@lru_cache(maxsize=8)
def _terms_of(group: AbstractLieGroup) -> tuple[Term, ...]:
    return _terms(structure_constants(group))


def _terms(constants: np.ndarray) -> tuple[Term, ...]:
    return tuple(
        (int(i), int(j), int(k), float(constants[i, j, k])) for i, j, k in np.argwhere(constants)
    )


def _brackets(algebra: AbstractLieGroup) -> Float[Array, "n n n"]:
    return jnp.stack([algebra.ad(e).T for e in jnp.eye(algebra.dim)])


def structure_constants(algebra: AbstractLieGroup | ArrayLike) -> np.ndarray:
    """Return the array c[i, j, k] of a group's algebra; a given array must satisfy its laws."""
    if isinstance(algebra, AbstractLieGroup):
        brackets = evaluate(_brackets, algebra)
        c = np.round(brackets, 12)
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
    r"""Return symmetric matrices $K$ that span the quadratic Casimir functions $\tfrac12x\cdot Kx$.

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


def _symmetric(A: Float[Array, "..."], n: int) -> Float[Array, "..."]:
    """Check that `A` is the matrix or the diagonal of a quadratic form in n coordinates."""
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


@explain_keywords
def zhukovski_volterra(inertia: ArrayLike, rotor: ArrayLike) -> LiePoisson:
    r"""Return a gyrostat, $\dot x = x\times(\mathbb I^{-1}x + \beta)$: a body with a rotor inside.

    **Arguments:** `inertia`: principal moments; `rotor`: the vector $\beta$.
    """
    moments = _three("inertia", checked_inertia(SO3(), inertia, physical=False))
    rates = _three("rotor", float64("rotor", rotor))
    return LiePoisson(SO3(), evaluate_in_jax(lambda x: 1 / x, moments), rates, name="gyrostat")


@explain_keywords
def euler_poisson(inertia: ArrayLike, weight: ArrayLike) -> LiePoisson:
    r"""Return a heavy top seen from its own axes, with the vertical $\gamma$, which points **up**.

    $$ \dot m = m\times\omega + \gamma\times\chi, \qquad \dot\gamma = \gamma\times\omega $$

    **Arguments:** `inertia`: principal moments; `weight`: $\chi$, weight times arm, with the
    potential energy $\gamma\cdot\chi$.
    """
    moments = _three("inertia", checked_inertia(SO3(), inertia, physical=False))
    chi = _three("weight", float64("weight", weight))
    quadratic = jnp.concatenate([1 / moments, jnp.zeros(3)])
    linear = jnp.concatenate([jnp.zeros(3), chi])
    return LiePoisson(SE3(), quadratic, linear, name="Euler-Poisson top")


@explain_keywords
def lagrange_top(across: float, along: float, weight: float) -> LiePoisson:
    """Return Lagrange's top, an `euler_poisson` with two moments `across`, weight on axis 3."""
    first, third = finite64("across", across), finite64("along", along)
    zero = jnp.zeros(())
    moments = jnp.stack([first, first, third])
    return euler_poisson(moments, jnp.stack([zero, zero, finite64("weight", weight)]))


@explain_keywords
def kirchhoff(a: ArrayLike, b: ArrayLike) -> LiePoisson:
    r"""Return a body in an ideal fluid, $H = \tfrac12\sum_i a_im_i^2 + \tfrac12\sum_i b_ip_i^2$.

    $$ \dot m = m\times\nabla_mH + p\times\nabla_pH, \qquad \dot p = p\times\nabla_mH $$
    """
    both = [_three("a", float64("a", a)), _three("b", float64("b", b))]
    return LiePoisson(SE3(), jnp.concatenate(both), name="Kirchhoff body")


@explain_keywords
def clebsch(a: ArrayLike, rho: float, sigma: float) -> LiePoisson:
    r"""Return Clebsch's integrable case of `kirchhoff`, $b_i = \rho + \sigma a_ja_k$.

    These are all solutions of
    $\tfrac{b_1 - b_2}{a_3} + \tfrac{b_2 - b_3}{a_1} + \tfrac{b_3 - b_1}{a_2} = 0$ unless all $a_i$
    are equal; then every $b$ is one.
    """
    rates = _three("a", float64("a", a))
    both = evaluate_in_jax(_clebsch, rates, finite64("rho", rho), finite64("sigma", sigma))
    return LiePoisson(SE3(), both, name="Clebsch body")


def _clebsch(
    a: Float[Array, "3"], rho: Float[Array, ""], sigma: Float[Array, ""]
) -> Float[Array, "6"]:
    return jnp.concatenate([a, rho + sigma * (jnp.roll(a, -1) * jnp.roll(a, -2))])


@explain_keywords
def four_dimensional_body(quadratic: ArrayLike) -> LiePoisson:
    """Return a free body in four dimensions, on the dual of so(4), from six numbers or a matrix.

    The coordinates are those of the planes 12, 13, 14, 23, 24, 34.
    """
    basis = np.zeros((6, 4, 4))
    for k, (i, j) in enumerate(PLANES):
        basis[k, i, j], basis[k, j, i] = -1.0, 1.0
    group = MatrixGroup(jnp.asarray(basis), name="SO(4)")
    return LiePoisson(group, quadratic, name="body in four dimensions")


@explain_keywords
def manakov(a: ArrayLike, b: ArrayLike) -> LiePoisson:
    r"""Return Manakov's integrable bodies, $H = \tfrac12\sum_{i<j}\frac{b_i-b_j}{a_i-a_j}x_{ij}^2$.

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


def _three(name: str, value: Float[Array, "..."]) -> Float[Array, "3"]:
    """Check that `value` has three entries."""
    require_shape(name, value, (3,))
    return value
