"""Mutants that no test can notice, with the reason: they compute the same numbers."""

# (module, line of the source as it is on the page, change): why it does not matter.
EXPLAINED: dict[tuple[str, str, str], str] = {
    (
        "retrax.numerics.newton",
        "terms = scale + ",
        "jnp.sum(jnp.abs(jacobian), axis=0) @ jnp.abs(x) -> "
        "jnp.abs(x) @ jnp.sum(jnp.abs(jacobian), axis=0)",
    ): "the product of two vectors",
    ("retrax.numerics.tridiagonal", "nothing, none = jnp.zeros_like(q[0])", "0 -> 1"): (
        "only the shape of `q[0]` is used"
    ),
}


def explanation(row: dict, line: str) -> str | None:
    """Why a survivor is the same program, or `None` where it is not known to be."""
    for (module, text, change), reason in EXPLAINED.items():
        if row["module"] == module and row["change"] == change and text in line:
            return reason
    return None
