"""Quadratic vector fields on a vector space, their coefficients and their linear integrals."""

import abc
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from retrax.errors import BadInput
from retrax.groups.translation import Translation
from retrax.mechanics.flow import AbstractFlow
from retrax.mechanics.functions import Function, as_pytree
from retrax.mechanics.remembered import Drawing, told
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Generators, Symmetries, axis_or_components
from retrax.numerics.checks import (
    MOST_ROWS,
    ArrayLike,
    float64,
    host_finite64,
    host_float64,
    is_traced,
    quote,
    reason,
    require_double_precision,
    require_finite,
    require_output,
    require_whole,
)
from retrax.numerics.evaluate import evaluate
from retrax.numerics.known import require_each
from retrax.numerics.small_matrices import null_space

Point = Float[Array, " n"]
Matrix = Float[Array, "n n"]

# A function may miss its second Taylor polynomial by this much, relative to its terms.
_ROUNDING = 1e-11
_PAIRS = 24
_LARGEST_DIMENSION = 64
# Coefficients below this, relative to the largest, count as zero.
_NEGLIGIBLE = 1e-13


class Coefficients(NamedTuple):
    """The numbers of $f(x) = Q(x, x) + Bx + c$; `Q[i, j, k]` is symmetric in j and k."""

    Q: np.ndarray
    B: np.ndarray
    c: np.ndarray


class AbstractQuadraticField(AbstractFlow):
    r"""The flow of a quadratic field on $\mathbb R^n$, with $Q$ symmetric and bilinear,

    $$ \dot x = f(x) = Q(x, x) + Bx + c. \tag{1} $$

    The configuration of a state is the point $x$; its momentum carries nothing and stays zero.
    """

    dim: eqx.AbstractVar[int]
    has_momentum: ClassVar[bool] = False

    @abc.abstractmethod
    def field(self, x: Point) -> Point:
        """Return $f(x)$."""

    @property
    def group(self) -> Translation:
        return Translation(self.dim)

    @property
    def drawing(self) -> Drawing | None:
        """What a picture needs: that a point is not a place in space."""
        return told("field")

    def jacobian(self, x: Point) -> Matrix:
        """Return the matrix $f'(x)$."""
        return jax.jacfwd(self.field)(x)

    def scale(self, x: Point, h: Float[Array, ""]) -> tuple[Point, Matrix]:
        r"""Return $h\,f(x)$ and $\tfrac h2f'(x)$; some fields save a product in each entry."""
        return h * self.field(x), h / 2 * self.jacobian(x)

    def polarise(self, x: Point, y: Point) -> Point:
        r"""Return the form $Q(x, y) + \tfrac12B(x + y) + c = f(x) + \tfrac12f'(x)(y - x)$."""
        value, slope = jax.jvp(self.field, (x,), (y - x,))
        return value + slope / 2

    def coefficients(self) -> Coefficients:
        """Return $Q$, $B$ and $c$ of (1), from derivatives at the origin."""
        zero = jnp.zeros(self.dim)
        Q = jax.jacfwd(jax.jacfwd(self.field))(zero) / 2
        parts = (Q, self.jacobian(zero), self.field(zero))
        return Coefficients(*(np.asarray(part) for part in parts))

    def inside(self, x: Point) -> Bool[Array, ""]:
        """Tell whether the system makes sense at the point `x`."""
        return jnp.asarray(True)

    def kahan_integrals(self) -> tuple:
        """Return, as hashable data, the integrals of Kahan's map for the numbers of this field."""
        return tuple(("linear", row) for row in linear_integrals(self))

    def exact_integrals(
        self, x: Point, h: Float[Array, ""], kept: tuple = ()
    ) -> dict[str, Float[Array, ""]]:
        """Return what steps of size `h` of Kahan's method conserve to round-off, by name.

        `kept` is what `kahan_integrals` has found: the linear integrals of any field are there.
        """
        return linear_values([what for kind, what in kept if kind == "linear"], x)

    def at(self, x: ArrayLike, t: ArrayLike = 0.0) -> State:
        """Make the state at the point `x`."""
        return self.state(x, t=t)

    def check_state(self, state: State) -> None:
        super().check_state(state)
        if type(self).inside is AbstractQuadraticField.inside:  # every point is
            return

        def check(x: np.ndarray, inside: np.ndarray) -> None:
            if not inside:
                raise BadInput(f"x = {x.tolist()} is not a point of the {self.name}.")

        inside = evaluate(type(self).inside, self, state.g)
        require_each(check, state.g, inside, fine=lambda x, inside: inside)

    def as_state(self, start: object) -> State:
        """Return a state as it is, and points, one or many along leading axes, at time zero."""
        if isinstance(start, State):
            return start
        x = float64("state", start)
        if x.ndim == 1:
            return self.at(x)
        return State(x, jnp.zeros_like(x), jnp.zeros(x.shape[:-1]))

    def velocity(self, g: Point, mu: Point) -> Point:
        return self.field(g)

    def symmetries(self) -> Symmetries:
        """Return no symmetries: there is no momentum for them to conserve."""
        return Symmetries.none(self.dim)


class SparseQuadratic(eqx.Module):
    r"""$f_i(x) = \sum_{jk}Q_{ijk}x_jx_k + \sum_jB_{ij}x_j + c_i$, terms that are zero left out.

    Which terms there are belongs to the structure; their coefficients are an array.

    **Arguments:** `Q`: of shape (n, n, n), symmetric in its last two axes or not; `B`: (n, n);
    `c`: (n,). `B` and `c` may be `None`.
    """

    coefficients: Float[Array, " terms"]
    terms: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    dim: int = eqx.field(static=True)

    def __init__(self, Q: object, B: object = None, c: object = None):
        quadratic = host_float64("Q", Q)
        n = len(quadratic) if quadratic.ndim else 0
        if n == 0 or quadratic.shape != (n, n, n):
            raise BadInput(f"Q has shape {quadratic.shape}, but must have shape (n, n, n).")
        require_finite("Q", quadratic)
        linear = host_finite64("B", np.zeros((n, n)) if B is None else B, (n, n))
        constant = host_finite64("c", np.zeros(n) if c is None else c, (n,))
        # x_j x_k and x_k x_j are one term.
        folded = np.triu(quadratic + np.swapaxes(quadratic, 1, 2))
        folded[:, range(n), range(n)] /= 2
        parts = (constant, linear, folded)
        self.terms = tuple(tuple(map(int, at)) for part in parts for at in np.argwhere(part))
        values = [part[tuple(at)] for part in parts for at in np.argwhere(part)]
        self.coefficients = float64("coefficients", values)
        self.dim = n

    def __call__(self, x: Float[Array, " n"]) -> Float[Array, " n"]:
        if x.shape != (self.dim,):
            raise BadInput(f"x has shape {x.shape}, but must have shape {(self.dim,)}.")
        rows = [jnp.zeros(()) for _ in range(self.dim)]
        for number, (i, *factors) in enumerate(self.terms):
            term = self.coefficients[number]
            for j in factors:
                term = term * x[j]
            rows[i] = rows[i] + term
        return jnp.stack(rows)


class QuadraticField(AbstractQuadraticField):
    r"""A quadratic field from a function, or from its coefficients.

    **Arguments:**

    - `field`: `field(x)`, written in JAX, or the triple `(Q, B, c)` of
        $f_i = \sum_{jk}Q_{ijk}x_jx_k + \sum_jB_{ij}x_j + c_i$, of which `B` and `c` may be `None`.
    - `dim`: the number of coordinates; found by trial where only one number will do.

    **Raises:** `BadInput` where the function is not quadratic, with the size of the defect.
    """

    function: Function
    dim: int = eqx.field(static=True)
    has_energy: ClassVar[bool] = False

    def __init__(
        self,
        field: Callable[[Point], Point] | tuple[ArrayLike, ArrayLike | None, ArrayLike | None],
        dim: int | None = None,
    ):
        require_double_precision()
        given = field
        if isinstance(field, tuple) and 1 <= len(field) <= 3:
            given = SparseQuadratic(*field)
        if not callable(given):
            raise BadInput(f"field = {quote(field)} must be a function of JAX arrays or (Q, B, c).")
        function = as_pytree(given)
        self.function = function
        self.dim = _dimension(function, dim)
        require_quadratic("field", self.field, self.dim)

    @property
    def name(self) -> str:
        return f"quadratic field on {self.group.name}"

    def field(self, x: Point) -> Point:
        return jnp.asarray(self.function(x))


def require_quadratic(name: str, f: Callable[[Point], Point], dim: int) -> None:
    """Reject a function that is not its second Taylor polynomial at random points."""

    def remainder(x: Point, d: Point) -> tuple[Float[Array, ""], Float[Array, ""]]:
        value, slope = jax.jvp(f, (x,), (d,))
        curvature = jax.jvp(lambda x: jax.jvp(f, (x,), (d,))[1], (x,), (d,))[1]
        there = f(x + d)
        terms = jnp.abs(there) + jnp.abs(value) + jnp.abs(slope) + jnp.abs(curvature)
        return jnp.max(jnp.abs(there - value - slope - curvature / 2)), jnp.max(terms)

    def largest(seed: int | Int[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        points = jax.random.normal(jax.random.key(seed), (2, _PAIRS, dim), jnp.float64)
        missed, terms = jax.vmap(remainder)(*points)
        return jnp.max(missed), jnp.max(terms)

    def check(defect: np.ndarray, terms: np.ndarray) -> None:
        if not defect <= _ROUNDING * max(float(terms), 1e-300):
            raise BadInput(
                f"{name} is not quadratic: its third derivative does not vanish, and at random "
                f"points it misses its second Taylor polynomial by {float(defect):.3g} (its terms "
                f"are up to {float(terms):.3g}), which must be zero."
            )

    require_each(check, *evaluate(largest, 5))


def _dimension(function: Function, dim: object) -> int:
    """Return the dimension given, or the only one in which the function maps a space to itself."""
    if dim is not None:
        dim = require_whole("dim", dim, 1, MOST_ROWS)
        require_output("field", function, (jax.ShapeDtypeStruct((dim,), jnp.float64),), (dim,))
        return dim
    tried = [_find_objection(function, n) for n in range(1, _LARGEST_DIMENSION + 1)]
    fitting = [n for n, error in enumerate(tried, 1) if error is None]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        found = f"the dimensions {fitting[:3]} and more"
        raise BadInput(f"field maps a space to itself in {found}: give one as dim.")
    # A function that never comes to its end has an error in it, whatever its dimension; a dimension
    # that does not fit raises the same in most of them, so that the rarest tells most.
    kinds = [type(error) for error in tried]
    if BadInput not in kinds:
        n, cause = min(enumerate(tried, 1), key=lambda one: kinds.count(type(one[1])))
        told = "nothing" if cause is None else reason(cause)
        raise BadInput(
            f"field cannot be evaluated in any dimension up to {_LARGEST_DIMENSION}: in dimension "
            f"{n} it raised {told}."
        ) from cause
    raise BadInput(
        f"field maps no space to itself in dimensions up to {_LARGEST_DIMENSION}: give dim."
    )


def _find_objection(function: Function, n: int) -> Exception | None:
    """Return why the function is not a field in n dimensions: what it raised, or what is wrong."""
    try:
        out = jax.eval_shape(
            lambda x: jnp.asarray(function(x)), jax.ShapeDtypeStruct((n,), jnp.float64)
        )
    except Exception as cause:
        return cause
    fits = out.shape == (n,) and out.dtype == jnp.float64
    return None if fits else BadInput(f"field returns {out.dtype} of shape {out.shape}.")


def linear_integrals(field: AbstractQuadraticField) -> Generators:
    r"""Return vectors $l$ with $l\cdot f = 0$ everywhere: $l\cdot x$ stays, also in Kahan's steps.

    For then $l\cdot Q(x, y) = 0$ for all $x, y$, $l\cdot B = 0$ and $l\cdot c = 0$, so that the
    polarised field is orthogonal to $l$, too.
    """
    if is_traced(field):
        return ()
    Q, B, c = field.coefficients()
    n = len(c)
    equations = np.concatenate([Q.reshape(n, -1), B, c[:, None]], axis=1).T
    size = float(np.max(np.abs(equations)))
    if not size > 0:
        return ()
    rows = null_space(equations / size, _NEGLIGIBLE * np.sqrt(equations.size))
    return tuple(tuple(float(v) for v in row) for row in rows)


def linear_values(rows: Sequence[tuple[float, ...]], x: Point) -> dict[str, Float[Array, ""]]:
    """Return the linear integrals at a point, by name."""
    return {f"linear integral {axis_or_components(row, 'x')}": jnp.array(row) @ x for row in rows}
