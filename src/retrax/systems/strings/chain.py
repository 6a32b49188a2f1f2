r"""The string: a chain of elastic elements with consistent masses.

Of $N$ elements, element $a$ joins the nodes $a-1$ and $a$; node 0 is the pivot, at rest in the
origin. With $u = l/N$, $m = \mu u$, $\kappa = EA/u$ and $x_a = r_a - r_{a-1}$,

$$
\begin{aligned}
T_{aa} &= \tfrac23m, \quad T_{NN} = \tfrac13m, \quad T_{a,a-1} = \tfrac16m
       &&\text{(1) masses}\\
V_a &= \tfrac\kappa2(|x_a| - u)^2, \qquad t_a = \kappa\bigl(1 - u/|x_a|\bigr)\,x_a
       &&\text{(2) energy and tension}\\
f_a &= t_{a+1} - t_a + w_a\,g\,e_3, \qquad w_a = m, \quad w_N = \tfrac12m
       &&\text{(3) force on a node}
\end{aligned}
$$

and $M_b$ is added to $T$ and to $w$ at the node that carries body $b$. A slack string has
$\max(|x_a| - u, 0)$ in place of $|x_a| - u$. Gravity acts along $+e_3$: $e_3$ points down.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Nodes = Float[Array, "n 3"]
Scalar = Float[Array, ""]


class Masses(NamedTuple):
    """The mass matrix (1) by its diagonal and the entries below it, and the weights (3)."""

    diagonal: Float[Array, " n"]
    below: Float[Array, " n"]
    weights: Float[Array, " n"]


def masses(n: int, m: Any, nodes: tuple[int, ...] = (), bodies: Any = None) -> Masses:
    """(1) and the weights of (3), from the mass `m` of an element and those of the `bodies`."""
    end = np.arange(1, n + 1) == n
    diagonal = m * np.where(end, 1 / 3, 2 / 3)
    weights = m * np.where(end, 1 / 2, 1.0)
    if bodies is not None:
        carried = bodies @ jnp.asarray(carriers(n, nodes).T)
        diagonal, weights = diagonal + carried, weights + carried
    return Masses(diagonal, m * np.where(np.arange(n) > 0, 1 / 6, 0.0), weights)


def carriers(n: int, nodes: tuple[int, ...]) -> Float[np.ndarray, "n b"]:
    """One column for each body, with a 1 at the node that carries it."""
    return (np.arange(1, n + 1)[:, None] == np.array(nodes)[None, :]).astype(float)


def spans(r: Nodes) -> Nodes:
    """The vectors $x_a$ along the elements."""
    return r - jnp.concatenate([jnp.zeros_like(r[:1]), r[:-1]])


def lengths(x: Nodes) -> Float[Array, " n"]:
    """$|x_a|$; a derivative there exists also where nodes coincide."""
    squared = jnp.sum(x * x, axis=1)
    return jnp.sqrt(jnp.where(squared > 0, squared, 1e-300))


def stretch(x: Nodes, u: Scalar, slack: bool) -> Float[Array, " n"]:
    """$1 - u/|x_a|$: the tension is $\\kappa$ times it along $x_a$."""
    s = 1 - u / lengths(x)
    return jnp.maximum(s, 0.0) if slack else s


def pull(r: Nodes, u: Scalar, kappa: Scalar, slack: bool) -> Nodes:
    """The elastic forces on the nodes, $t_{a+1} - t_a$ of (3)."""
    x = spans(r)
    t = (kappa * stretch(x, u, slack))[:, None] * x  # (2)
    return jnp.concatenate([t[1:], jnp.zeros_like(t[:1])]) - t


def elastic_energies(r: Nodes, u: Scalar, kappa: Scalar, slack: bool) -> Float[Array, " n"]:
    """The elastic energy $V_a$ of every element."""
    longer = lengths(spans(r)) - u
    return kappa / 2 * (jnp.maximum(longer, 0.0) if slack else longer) ** 2
