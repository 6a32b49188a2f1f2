"""Mutants that no test can notice, with the reason: they compute the same numbers."""

from mutants import Mutant

_BEYOND = "JAX takes the last entry for an index beyond the end, and that is the one meant"
_SQUARE = "the matrix is square"
_UNUSED = "put where a division by zero would be, in a result that is not taken"
_VECTORS = "the product of two vectors"
_EQUAL = "the lists are of equal length by construction"
_GUESS = "where Newton's iteration starts, not where it ends"
_WEIGHT = "the weight of an equation that is solved to round-off"
_ALEMBERT = "retrax.integrators.lagrange_d_alembert"
_GRADIENT = "retrax.integrators.hamel_midpoint"

# (module, line of the source as it is on the page, change): why it does not matter.
EXPLAINED: dict[tuple[str, str, str], str] = {
    (
        "retrax.numerics.newton",
        "terms = scale + ",
        "jnp.sum(jnp.abs(jacobian), axis=0) @ jnp.abs(x) -> "
        "jnp.abs(x) @ jnp.sum(jnp.abs(jacobian), axis=0)",
    ): _VECTORS,
    ("retrax.numerics.tridiagonal", "nothing, none = jnp.zeros_like(q[0])", "0 -> 1"): (
        "only the shape of `q[0]` is used"
    ),
    ("retrax.groups.so2", "half = jnp.sin(xi[0] / 2)", "0 -> 1"): _BEYOND,
    ("retrax.groups.so2", "_matrix(-2 * half * half, jnp.sin(xi[0]))", "0 -> 1"): _BEYOND,
    ("retrax.groups.so2", "g[0, 0] * g[1, 1] - g[0, 1]", "1 -> 2"): _BEYOND,
    ("retrax.groups.so3", "t2, along, across = xi @ xi", "xi @ mu -> mu @ xi"): _VECTORS,
    ("retrax.groups.se2", "jnp.stack([x[1, 0], x[0, 2], x[1, 2]])", "2 -> 3"): _BEYOND,
    ("retrax.groups.se2", "return _SO2.expm1(xi[:1])", "1 -> 2"): (
        "`SO2.expm1` reads the first entry only"
    ),
    ("retrax.groups.se2", "jnp.stack([-y[1], y[0]])", "1 -> 2"): _BEYOND,
    ("retrax.groups.se3", "_SO3.vee(x[:3, :3]), x[:3, 3]", "3 -> 4"): _BEYOND,
    ("retrax.numerics.series", "for k in range(13)", "13 -> 14"): (
        "one more term, which is below 1e-18 where the series is used"
    ),
    ("retrax.numerics.series", "near = jnp.where(small, c, 1.0)", "1.0 -> 1.1"): _UNUSED,
    ("retrax.numerics.small_matrices", "return jnp.ones_like(A), A[0, 0]", "0 -> 1"): _BEYOND,
    ("retrax.numerics.small_matrices", "if A.shape[0] == 2", "0 -> 1"): _SQUARE,
    ("retrax.numerics.small_matrices", "return adjugate, A[0, 0] * A[1, 1]", "1 -> 2"): _BEYOND,
    ("retrax.numerics.small_matrices", "for _ in range(A.shape[0] - 1)", "0 -> 1"): _SQUARE,
    ("retrax.numerics.small_matrices", "return x, determinant * A[0, 0]", "0 -> 1"): _BEYOND,
    ("retrax.numerics.small_matrices", "for i in range(1, A.shape[0])", "0 -> 1"): _SQUARE,
    ("retrax.integrators.lifted", "if self.s == 1", "1 -> 2"): (
        "without the short cut the end is reached by a move of zero"
    ),
    (
        _ALEMBERT,
        "half = midpoint_velocity(",
        "h / 2 * system.multipliers(state) -> h / 2 / system.multipliers(state)",
    ): _GUESS,
    (_ALEMBERT, "half = midpoint_velocity(", "2 -> 3"): _GUESS,
    (
        _ALEMBERT,
        "weight = jnp.where(pace > 0",
        "jnp.max(jnp.abs(state.momentum)) / jnp.where(pace > 0, pace, 1) -> "
        "jnp.max(jnp.abs(state.momentum)) * jnp.where(pace > 0, pace, 1)",
    ): _WEIGHT,
    (_ALEMBERT, "weight = jnp.where(pace > 0", "1 -> 2"): _WEIGHT,
    (_GRADIENT, "+ middle @ xi", "middle @ xi -> xi @ middle"): _VECTORS,
    (_GRADIENT, "twice_kinetic = p @ xi", "p @ xi -> xi @ p"): _VECTORS,
    (
        _GRADIENT,
        "twice_kinetic = state.momentum @ speed",
        "state.momentum @ speed -> speed @ state.momentum",
    ): _VECTORS,
    (_GRADIENT, "share = jnp.where(moving", "1.0 -> 1.1"): _UNUSED,
    (_GRADIENT, "share = jnp.where(moving", "0.0 -> 1.0"): (
        "a share of the momentum of a body at rest, which is zero"
    ),
    (_GRADIENT, "cancelling = jnp.abs(before)", "1.0 -> 1.1"): _UNUSED,
    ("retrax.integrators.rkmk", "self.tableau.c, strict=True", "True -> False"): _EQUAL,
    ("retrax.integrators.rkmk", "zip(u_rates, mu_rates, strict=True)", "True -> False"): _EQUAL,
    ("retrax.integrators.rkmk", "zip(weights, rates, strict=True)", "True -> False"): _EQUAL,
}


def explanation(mutant: Mutant, line: str) -> str | None:
    """Why a survivor is the same program, or `None` where it is not known to be."""
    for (module, text, change), reason in EXPLAINED.items():
        if mutant.module == module and mutant.change == change and text in line:
            return reason
    return None
