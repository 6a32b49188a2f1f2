r"""Friction of one contact: the impulse across it that is nearest to the one that would hold it.

An impulse $q$ across a contact changes its slip by $Wq$, $W$ symmetric and positive definite, and
$\hat q$ would stop it. Coulomb's law lets $|q| \le r$ against the slip that is left,

$$ W(q - \hat q) = -\kappa q, \qquad \kappa \ge 0, \qquad \kappa(r - |q|) = 0: \tag{1} $$

the point of a disc nearest to $\hat q$ in the metric of $W$, and so unique. Beyond the disc

$$ q(\kappa) = (W + \kappa)^{-1}W\hat q, \qquad \frac1{|q(\kappa)|} = \frac1r, \tag{2} $$

whose left side is concave, so that Newton's method from a $\kappa$ that is too small comes up to
the solution without ever passing it.

References: [MoreSorensen1983].
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from retrax.numerics.small_matrices import determinant, solve

# Enough from the bounds below where the principal values of W are up to a thousand times apart;
# those of round rods differ by less than a factor of three.
_ITERATIONS = 10
# Where the disc is so much smaller than the impulse aimed at, friction opposes the slip itself.
_POINT = 1e-60

Across = Float[Array, "2"]


def rubbing(
    give: Float[Array, "2 2"], aim: Across, limit: Float[Array, ""]
) -> tuple[Across, Bool[Array, ""]]:
    r"""Return the impulse $q$ of (1), and whether the contact slips.

    **Arguments:** `give`: $W$; `aim`: $\hat q$; `limit`: $r \ge 0$.
    """
    far = jnp.sqrt(aim @ aim)
    slips = far > limit
    r = jnp.where(slips, jnp.maximum(limit, _POINT * far), 1.0)
    push = give @ aim
    # The largest principal value of W is less than the trace, the smallest more than det / trace.
    trace = give[0, 0] + give[1, 1]
    kappa = jnp.maximum(
        jnp.sqrt(push @ push) / r - trace, determinant(give) / trace * (far / r - 1)
    )
    kappa = jnp.where(slips, kappa, 0.0)
    q = aim
    for _ in range(_ITERATIONS):
        near = give + jnp.diag(jnp.stack([kappa, kappa]))
        q = solve(near, push)
        size = jnp.sqrt(q @ q)
        steep = jnp.where(slips, q @ solve(near, q), 1.0)
        kappa = kappa + size * size / steep * (size - r) / r  # (2)
    size = jnp.where(slips, jnp.sqrt(q @ q), 1.0)
    return jnp.where(slips, limit / size * q, aim), slips
