r"""Linear integrals of a quadratic field, which Kahan's steps keep as well.

From $l\cdot f = 0$ everywhere follows $l\cdot Q(x, y) = 0$ for all $x, y$, $l\cdot B = 0$ and
$l\cdot c = 0$, so that the polarised field is orthogonal to $l$, too.
"""

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.numerics.checks import is_traced
from retrax.numerics.small_matrices import null_space

if TYPE_CHECKING:
    from retrax.mechanics.quadratic_field import AbstractQuadraticField

# Coefficients below this, relative to the largest, count as zero.
_ROUNDING = 1e-13


def linear_integrals(field: "AbstractQuadraticField") -> tuple[tuple[float, ...], ...]:
    """Vectors $l$ with $l\\cdot f = 0$ everywhere: $l\\cdot x$ stays, also in Kahan's steps."""
    if is_traced(field):
        return ()
    Q, B, c = field.coefficients()
    n = len(c)
    equations = np.concatenate([Q.reshape(n, -1), B, c[:, None]], axis=1).T
    size = float(np.max(np.abs(equations)))
    if not size > 0:
        return ()
    rows = null_space(equations / size, _ROUNDING * np.sqrt(equations.size))
    return tuple(tuple(float(v) for v in row) for row in rows)


def linear_values(rows: Any, x: Float[Array, " n"]) -> dict[str, Float[Array, ""]]:
    """The linear integrals at a point, by name."""
    return {f"linear integral {_label(row)}": jnp.array(row) @ x for row in rows}


def _label(row: tuple[float, ...]) -> str:
    """`x3` for a coordinate, the components otherwise."""
    nonzero = [k for k, v in enumerate(row) if v]
    if len(nonzero) == 1 and row[nonzero[0]] == 1:
        return f"x{nonzero[0] + 1}"
    return "(" + ", ".join(f"{v:.4g}" for v in row) + ")"
