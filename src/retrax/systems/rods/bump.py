r"""The bump that spreads a contact over a few nodes: the B-spline of degree five.

$$ B(x) = \tfrac1{120}\left[(3-|x|)_+^5 - 6(2-|x|)_+^5 + 15(1-|x|)_+^5\right], \qquad
   \alpha_k(s) = \frac hW B\!\left(\frac{s - s^k}W\right). \tag{1} $$

Four times continuously differentiable, positive, one maximum, zero beyond $3W$. Where $W$ is a
whole multiple of the spacing $h$ the weights add up to one and reproduce straight lines,

$$ \sum\alpha_k = 1, \qquad \sum\alpha_k s^k = s, \tag{2} $$

as long as the support lies within the rod: then a rigid motion of the rods is one of the contact.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

SUPPORT = 3.0  # knots on either side


def bump(x: Float[Array, " n"]) -> Float[Array, " n"]:
    """$B$ of (1). The sign of $x$ is chosen so that second derivatives at 0 come out right."""
    distance = jnp.where(x < 0, -x, x)
    a, b, c = (jnp.maximum(knot - distance, 0.0) for knot in (3.0, 2.0, 1.0))
    return (a**5 - 6 * b**5 + 15 * c**5) / 120


def _slope(x: Float[Array, " n"]) -> Float[Array, " n"]:
    """$B'$."""
    distance = jnp.where(x < 0, -x, x)
    a, b, c = (jnp.maximum(knot - distance, 0.0) for knot in (3.0, 2.0, 1.0))
    rise = (a**4 - 6 * b**4 + 15 * c**4) / 24
    return jnp.where(x < 0, rise, -rise)


def _bend(x: Float[Array, " n"]) -> Float[Array, " n"]:
    """$B''$."""
    distance = jnp.where(x < 0, -x, x)
    a, b, c = (jnp.maximum(knot - distance, 0.0) for knot in (3.0, 2.0, 1.0))
    return (a**3 - 6 * b**3 + 15 * c**3) / 6


def weights(
    arc: Float[Array, " nodes"], s: Float[Array, ""], spacing: Array, width: Array
) -> Float[Array, " nodes"]:
    r"""$\alpha_k(s)$ of (1) at the nodes $s^k$."""
    return spacing / width * bump((s - arc) / width)


def slopes(
    arc: Float[Array, " nodes"], s: Float[Array, ""], spacing: Array, width: Array
) -> Float[Array, " nodes"]:
    r"""$\alpha_k'(s)$."""
    return spacing / (width * width) * _slope((s - arc) / width)


def bends(
    arc: Float[Array, " nodes"], s: Float[Array, ""], spacing: Array, width: Array
) -> Float[Array, " nodes"]:
    r"""$\alpha_k''(s)$."""
    return spacing / (width * width * width) * _bend((s - arc) / width)
