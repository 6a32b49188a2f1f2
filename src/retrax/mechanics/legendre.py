r"""The Legendre transform, inverted, and the energies for which that is possible.

A Lagrangian is regular where $\partial^2L/\partial\xi^2$ is invertible. Along a direction
in which it vanishes no momentum tells the velocity, as for a spherical pendulum that is written on
SO(3) without the energy of its spin.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup, Coordinates, Element
from retrax.numerics.evaluate import evaluate
from retrax.numerics.known import require_each
from retrax.numerics.newton import newton
from retrax.numerics.small_matrices import solve

# A matrix is singular where its smallest eigenvalue is this part of its largest, in size.
_SINGULAR = 1e-13
_PLACES = 2


def invert(
    fibre_derivative: Callable[[Coordinates], Coordinates], target: Coordinates
) -> Coordinates:
    r"""Return the $x$ with $DF(x) = $ `target`, for $DF$ the fibre derivative of $L$ or of $H$.

    The guess $x_0 = D^2F(0)^{-1}(\texttt{target} - DF(0))$ is the answer itself where the energy is
    quadratic. Where Newton's method does not converge the result is NaN, which stops a run.
    """
    zero = jnp.zeros_like(target)
    at_rest = fibre_derivative(zero)
    guess = solve(jax.jacfwd(fibre_derivative)(zero), target - at_rest)
    scale = jnp.maximum(jnp.max(jnp.abs(target)), jnp.max(jnp.abs(at_rest)))
    x, status = newton(lambda x: fibre_derivative(x) - target, guess, scale)
    return jnp.where(status.converged, x, jnp.nan)


def require_regular(
    group: AbstractLieGroup, lagrangian: Callable[[Element, Coordinates], Array]
) -> None:
    """Reject a Lagrangian that is degenerate at the identity and at random places.

    Places at which it has no second derivatives do not count.
    """

    def hessian(g: Element, xi: Coordinates) -> Float[Array, "dim dim"]:
        return jax.jacfwd(jax.grad(lambda xi: jnp.asarray(lagrangian(g, xi))))(xi)

    def hessians(group: AbstractLieGroup) -> Float[Array, "place dim dim"]:
        keys = jax.random.split(jax.random.key(11), _PLACES)
        places = [group.identity(), *(group.random(key) for key in keys)]
        g = jax.tree.map(lambda *xs: jnp.stack(xs), *places)
        xi = np.random.default_rng(11).normal(size=(len(places), group.dim))
        return jax.vmap(hessian)(g, xi)

    require_each(_require_invertible, evaluate(hessians, group))


def degenerate_direction(hessian: np.ndarray) -> np.ndarray | None:
    """Return a vector along which a symmetric matrix vanishes, or `None` if it is invertible."""
    values, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
    sizes = np.abs(values)
    least = int(np.argmin(sizes))
    if sizes[least] > _SINGULAR * np.max(sizes):
        return None
    vector = vectors[:, least]
    return vector / vector[np.argmax(np.abs(vector))]


def _require_invertible(hessians: np.ndarray) -> None:
    known = [h for h in hessians if np.isfinite(h).all()]
    found = [vector for h in known if (vector := degenerate_direction(h)) is not None]
    if known and len(found) == len(known):
        text = np.array2string(np.round(found[0], 6) + 0.0, separator=", ")
        raise BadInput(
            f"lagrangian is degenerate: d2L/dxi2 vanishes along xi = {text}, at the identity and "
            "at random places, so no momentum has a velocity; give that direction a kinetic "
            "energy, or choose a group without it."
        )
