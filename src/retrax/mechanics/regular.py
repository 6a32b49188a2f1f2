r"""Regular energies: those whose Legendre transform can be inverted.

A Lagrangian is regular where $\partial^2L/\partial\xi^2$ is invertible. Along a direction
in which it vanishes there is no momentum for a velocity to be found from, as for a spherical
pendulum that is written on SO(3) without the energy of its spin.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup
from retrax.numerics.jax_hints import compiled_once
from retrax.numerics.known import require_each

# A matrix is singular where its smallest eigenvalue is this part of its largest, in size.
_SINGULAR = 1e-13
_PLACES = 2


def require_regular(group: AbstractLieGroup, lagrangian: Callable[..., Any]) -> None:
    """Refuse a Lagrangian that is degenerate at the identity and at random places.

    Places at which it has no second derivatives are left out.
    """

    @compiled_once
    @jax.vmap
    def hessians(g, xi):
        return _hessian(lagrangian, g, xi)

    keys = jax.random.split(jax.random.key(11), _PLACES)
    places = [group.identity(), *(group.random(key) for key in keys)]
    g = jax.tree.map(lambda *xs: jnp.stack(xs), *places)
    xi = np.random.default_rng(11).normal(size=(len(places), group.dim))
    require_each(_require_invertible, hessians(g, xi))


def _hessian(lagrangian: Callable[..., Any], g: Any, xi: Any) -> Any:
    return jax.jacfwd(jax.grad(lambda xi: jnp.asarray(lagrangian(g, xi))))(xi)


def degenerate_direction(hessian: np.ndarray) -> np.ndarray | None:
    """A unit vector along which a symmetric matrix vanishes, or `None` where it is invertible."""
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
