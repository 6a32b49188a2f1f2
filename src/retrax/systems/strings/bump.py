r"""The bump that smears a contact over a lattice: a cardinal B-spline.

$$
\begin{aligned}
B_5(y) &= \tfrac1{120}\bigl[(3-|y|)_+^5 - 6\,(2-|y|)_+^5 + 15\,(1-|y|)_+^5\bigr]      &&\text{(1)}\\
B_3(y) &= \tfrac16\bigl[(2-|y|)_+^3 - 4\,(1-|y|)_+^3\bigr]                              &&\text{(2)}
\end{aligned}
$$

Both are even, not negative, and of bounded support, and over the integers $\sum_iB(y-i) = 1$ and
$\sum_iB(y-i)\,i = y$: a rigid motion and a straight line are read off exactly. $B_5$ has four
continuous derivatives, $B_3$ two.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

# Half the support of the spline of each degree, in knots.
HALF_SUPPORT = {3: 2, 5: 3}


def bump(y: Float[Array, "*shape"], degree: int) -> Float[Array, "*shape"]:
    """The B-spline of degree 5 or 3 at distances `y` in knots."""
    d = jnp.abs(y)
    if degree == 5:
        return (_power(3 - d, 5) - 6 * _power(2 - d, 5) + 15 * _power(1 - d, 5)) / 120  # (1)
    return (_power(2 - d, 3) - 4 * _power(1 - d, 3)) / 6  # (2)


def _power(x: Float[Array, "*shape"], exponent: int) -> Float[Array, "*shape"]:
    """A power of the positive part."""
    return jnp.maximum(x, 0.0) ** exponent
