r"""The string: a chain of elastic elements with consistent masses, and its damping.

Element $a$ of $N$ joins the nodes $a-1$ and $a$; node 0 is the pivot, at rest in the origin.
With $u = l/N$, $m = \mu u$, $\kappa = EA/u$ and $x_a = r_a - r_{a-1}$,

$$
\begin{aligned}
T_{aa} &= \tfrac23m, \quad T_{NN} = \tfrac13m, \quad T_{a,a-1} = \tfrac16m
       &&\text{(1) masses}\\
V_a &= \tfrac\kappa2(|x_a| - u)^2, \qquad t_a = \kappa\bigl(1 - u/|x_a|\bigr)\,x_a
       &&\text{(2) energy and tension}\\
f_a &= t_{a+1} - t_a + w_a\,g\,e_3, \qquad w_a = m, \quad w_N = \tfrac12m
       &&\text{(3) force on a node}\\
d_a &= -c_a\dot r_a + q_{a+1} - q_a, \qquad
    q_a = \tfrac{EA_v}u\,(\hat x_a\cdot\dot x_a)\,\hat x_a
       &&\text{(4) damping}
\end{aligned}
$$

with $\hat x_a = x_a/|x_a|$. The node that carries body $b$ has $M_b$ added to $T$ and to $w$. A
slack string has $\max(|x_a| - u, 0)$ in place of $|x_a| - u$, and its slack elements have no $q_a$.
Gravity acts along $+e_3$: $e_3$ points down. In (4) each node feels drag, and the tension follows
the Kelvin-Voigt law $EA\,\epsilon + EA_v\,\dot\epsilon$; its viscous part is central, so it keeps
the angular momentum.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import float64, require_finite, require_shape
from retrax.numerics.frozen import Frozen
from retrax.numerics.known import require_each

Nodes = Float[Array, "n 3"]
Scalar = Float[Array, ""]


class Masses(NamedTuple):
    """The mass matrix (1) by its diagonal and the entries below it, and the weights (3)."""

    diagonal: Float[Array, " n"]
    below: Float[Array, " n"]
    weights: Float[Array, " n"]


def masses(
    n: int,
    m: Scalar,
    nodes: tuple[int, ...] = (),
    bodies: Float[Array, " b"] | None = None,
) -> Masses:
    """Return (1) and the weights of (3), from the mass `m` of an element and those of bodies."""
    end = np.arange(1, n + 1) == n
    diagonal = m * np.where(end, 1 / 3, 2 / 3)
    weights = m * np.where(end, 1 / 2, 1.0)
    if bodies is not None:
        carried = bodies @ jnp.asarray(carriers(n, nodes).T)
        diagonal, weights = diagonal + carried, weights + carried
    return Masses(diagonal, m * np.where(np.arange(n) > 0, 1 / 6, 0.0), weights)


def carriers(n: int, nodes: tuple[int, ...]) -> Float[np.ndarray, "n b"]:
    """Return one column for each body, with a 1 at the node that carries it."""
    return (np.arange(1, n + 1)[:, None] == np.array(nodes)[None, :]).astype(float)


def at_nodes(x: Float[Array, " n *k"], nodes: tuple[int, ...]) -> Float[Array, " b *k"]:
    """Return the rows of `x` that belong to the nodes with these numbers."""
    return jnp.stack([x[node - 1] for node in nodes])


def spans(r: Nodes) -> Nodes:
    """Return the vectors $x_a$ along the elements."""
    return r - jnp.concatenate([jnp.zeros_like(r[:1]), r[:-1]])


def lengths(x: Nodes) -> Float[Array, " n"]:
    """Return $|x_a|$, differentiable also where nodes coincide."""
    squared = jnp.sum(x * x, axis=1)
    return jnp.sqrt(jnp.where(squared > 0, squared, 1e-300))


def stretch(x: Nodes, u: Scalar, slack: bool) -> Float[Array, " n"]:
    """Return $1 - u/|x_a|$: the tension is $\\kappa$ times it along $x_a$."""
    s = 1 - u / lengths(x)
    return jnp.maximum(s, 0.0) if slack else s


def pull(r: Nodes, u: Scalar, kappa: Scalar, slack: bool) -> Nodes:
    """Return the elastic forces on the nodes, $t_{a+1} - t_a$ of (3)."""
    x = spans(r)
    t = (kappa * stretch(x, u, slack))[:, None] * x  # (2)
    return jnp.concatenate([t[1:], jnp.zeros_like(t[:1])]) - t


def elastic_energies(r: Nodes, u: Scalar, kappa: Scalar, slack: bool) -> Float[Array, " n"]:
    """Return the elastic energy $V_a$ of every element."""
    longer = lengths(spans(r)) - u
    return kappa / 2 * (jnp.maximum(longer, 0.0) if slack else longer) ** 2


def join(nodes: Nodes, bodies: Float[Array, "b 3"]) -> Float[Array, " dim"]:
    """Return coordinates from vectors of the nodes and of the bodies, in this order."""
    return jnp.concatenate([nodes.reshape(-1), bodies.reshape(-1)])


class StringDamping(Frozen):
    r"""Damping of a string by (4) of `strings/chain.py`: drag at its nodes, and viscosity.

    **Arguments:**

    - `drag`: $c_a$ in N s/m, one number for all nodes or one for each.
    - `viscosity`: $EA_v$ in N s.
    """

    drag: Float[Array, "..."] | None
    viscosity: Scalar | None

    def __init__(self, drag: ArrayLike | None = None, viscosity: ArrayLike | None = None):
        self.drag = _coefficient("drag", drag, "N s/m")
        self.viscosity = _coefficient("viscosity", viscosity, "N s")
        if viscosity is not None:
            require_shape("viscosity", self.viscosity, ())

    def on(self, elements: int) -> "StringDamping":
        """Return this damping with a drag coefficient for every node."""
        if self.drag is None or self.drag.ndim == 1:
            if self.drag is not None:
                require_shape("drag", self.drag, (elements,))
            return self
        return StringDamping(jnp.broadcast_to(self.drag, (elements,)), self.viscosity)


def _coefficient(name: str, value: ArrayLike | None, unit: str) -> Float[Array, "..."] | None:
    if value is None:
        return None
    array = float64(name, value)
    require_finite(name, array)
    if array.ndim > 1 or not array.size:
        raise BadInput(
            f"{name} has shape {array.shape}, but must be one number, or one number for each node."
        )

    def check(values: np.ndarray) -> None:
        if float(np.min(values)) < 0:
            raise BadInput(
                f"{name} = {float(np.min(values)):g} {unit} is negative, but damping takes energy "
                "out: it must be >= 0."
            )

    require_each(check, array)
    return array


def dashpots(r: Nodes, u: Scalar, viscosity: Scalar, slack: bool) -> Float[Array, "n 3 3"]:
    r"""Return the matrix $\eta\,\hat x_a\hat x_a^T$ of every element, $\eta = EA_v/u$."""
    x = spans(r)
    length = lengths(x)
    eta = viscosity / u * jnp.ones_like(length)
    if slack:
        eta = jnp.where(length > u, eta, 0.0)
    return jax.vmap(lambda x, s: s * (x[:, None] * x[None, :]))(x, eta / length**2)


def damping_forces(damping: StringDamping, r: Nodes, v: Nodes, u: Scalar, slack: bool) -> Nodes:
    """Return the forces (4) on nodes that move with the velocities `v`."""
    f = jnp.zeros_like(v)
    if damping.drag is not None:
        f = f - damping.drag[:, None] * v
    if damping.viscosity is not None:
        q = jax.vmap(jnp.matmul)(dashpots(r, u, damping.viscosity, slack), spans(v))
        f = f + (jnp.concatenate([q[1:], jnp.zeros_like(q[:1])]) - q)
    return f
