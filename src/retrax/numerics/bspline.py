r"""Cardinal B-splines of degree five and three: the bumps that spread a contact over a few nodes.

$$
\begin{aligned}
B_5(x) &= \tfrac1{120}\bigl[(3-|x|)_+^5 - 6\,(2-|x|)_+^5 + 15\,(1-|x|)_+^5\bigr]   &&\text{(1)}\\
B_3(x) &= \tfrac16\bigl[(2-|x|)_+^3 - 4\,(1-|x|)_+^3\bigr]                           &&\text{(2)}\\
\alpha_k(s) &= \frac hW B_5\!\left(\frac{s - s^k}W\right)                            &&\text{(3)}
\end{aligned}
$$

Both are even and positive within their support and have one maximum; $B_5$ has four continuous
derivatives, $B_3$ two. Over the integers $\sum_kB(x-k) = 1$ and $\sum_kB(x-k)\,k = x$. So the
weights (3) of nodes $s^k$ with spacing $h$ satisfy, where $W$ is a whole multiple of $h$ and the
support lies between the first and the last node,

$$ \sum\alpha_k = 1, \qquad \sum\alpha_k s^k = s: \tag{4} $$

they reproduce rigid motions and straight lines exactly.
"""

from math import factorial

import jax.numpy as jnp
from jaxtyping import Array, Float

# Half the support of the spline of each degree, in knots; and that of degree five.
HALF_SUPPORT = {3: 2, 5: 3}
SUPPORT = 3.0

# The factors of the truncated powers in (1) and (2), the outermost knot first.
_FACTORS = {3: (1, -4), 5: (1, -6, 15)}


def bspline(
    x: Float[Array, "*shape"], degree: int = 5, derivative: int = 0
) -> Float[Array, "*shape"]:
    """Evaluate (1) or (2), or a derivative of it, at distances `x` in knots.

    At 0 the branch of the absolute value is that of positive `x`: `jnp.abs` has the slope 0
    there, which makes second derivatives wrong.
    """
    distance = jnp.where(x < 0, -x, x)
    power, knots = degree - derivative, range(HALF_SUPPORT[degree], 0, -1)
    terms = [
        factor * jnp.maximum(knot - distance, 0.0) ** power
        for factor, knot in zip(_FACTORS[degree], knots, strict=True)
    ]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    total = total / factorial(power)
    return total if derivative % 2 == 0 else jnp.where(x < 0, total, -total)


def weights(
    nodes: Float[Array, " n"], s: Float[Array, ""], spacing: Array, width: Array
) -> Float[Array, " n"]:
    r"""Return $\alpha_k(s)$ of (3) at the nodes $s^k$."""
    return spacing / width * bspline((s - nodes) / width)


def slopes(
    nodes: Float[Array, " n"], s: Float[Array, ""], spacing: Array, width: Array
) -> Float[Array, " n"]:
    r"""Return $\alpha_k'(s)$."""
    return spacing / (width * width) * bspline((s - nodes) / width, derivative=1)


def bends(
    nodes: Float[Array, " n"], s: Float[Array, ""], spacing: Array, width: Array
) -> Float[Array, " n"]:
    r"""Return $\alpha_k''(s)$."""
    return spacing / (width * width * width) * bspline((s - nodes) / width, derivative=2)
