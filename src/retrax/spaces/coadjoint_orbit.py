"""Momenta under the coadjoint action."""

from collections.abc import Callable, Mapping
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from retrax.groups.base import AbstractLieGroup, Coordinates, require_group
from retrax.groups.se2 import SE2
from retrax.groups.se3 import SE3
from retrax.groups.so3 import SO3
from retrax.groups.so_n import SO
from retrax.numerics.checks import quote, require_instance, require_output
from retrax.numerics.small_matrices import cross
from retrax.spaces.base import AbstractHomogeneousSpace

Momentum = Float[Array, " dim"]
Casimir = Callable[[Momentum], Float[Array, ""]]

_RANK = 1e-10


class CoadjointOrbit(AbstractHomogeneousSpace):
    r"""Momenta $\mu \in \mathfrak g^*$ moved by $\mathrm{Ad}^*$: every orbit is symplectic.

    $$
    \begin{aligned}
    \mu &\mapsto \mathrm{Ad}^*_{\exp u}\mu, \qquad
        \dot\mu = \mathrm{ad}^*_\xi\mu                                             &&\text{(1)}\\
    \xi &= B(\mu)^+v \quad\text{for a tangent } v, \qquad
        B(\mu)\,\xi = \mathrm{ad}^*_\xi\mu                                         &&\text{(2)}
    \end{aligned}
    $$

    with the plain transposes $\mathrm{Ad}^*$, $\mathrm{ad}^*$ of the library, so the action is from
    the right. A Lie-Poisson equation is (1) with $\xi = \partial H/\partial\mu$. Whatever the step,
    a run stays on its orbit: the Casimir functions are among the invariants of every flow.

    **Arguments:**

    - `group`: the group $G$.
    - `casimirs`: functions of $\mu$ by name that label the orbits; those of `SO3`, `SE2`, `SE3` and
        `SO(n)` are known.

    References: [MarsdenRatiu1999]; [EngoFaltinsen2001].
    """

    group: AbstractLieGroup
    casimirs: tuple[tuple[str, Casimir], ...] = eqx.field(static=True)
    side: ClassVar[int] = -1

    def __init__(self, group: AbstractLieGroup, casimirs: Mapping[str, Casimir] | None = None):
        self.group = require_group(group)
        given = known_casimirs(group) if casimirs is None else casimirs
        require_instance("casimirs", given, Mapping, "a dictionary of functions by name")
        covector = jax.ShapeDtypeStruct((group.dim,), jnp.float64)
        for name, function in given.items():
            require_output(f"casimirs[{quote(name)}]", function, (covector,), ())
        self.casimirs = tuple(given.items())

    def __repr__(self) -> str:
        return f"CoadjointOrbit({self.group!r})"

    @property
    def name(self) -> str:
        return f"coadjoint orbit of {self.group.name}"

    @property
    def dimension(self) -> int:
        """Of the largest orbits: the rank of the Poisson tensor at a generic momentum."""
        generic = jnp.asarray(np.cos(1.0 + np.arange(self.group.dim)))
        return int(np.linalg.matrix_rank(np.asarray(self.poisson(generic)), tol=_RANK))

    def poisson(self, mu: Momentum) -> Float[Array, "dim dim"]:
        r"""Return the matrix $B(\mu)$ of (2), the Poisson tensor."""
        return jax.vmap(lambda e: self.group.coad(e, mu), out_axes=1)(jnp.eye(self.group.dim))

    def move(self, y: Momentum, u: Coordinates) -> Momentum:
        return y + self.group.coAdm1(self.group.expm1_in_chart(u), y)  # (1)

    def tangent(self, y: Momentum, xi: Coordinates) -> Momentum:
        return self.group.coad(xi, y)

    def defect(self, y: Momentum) -> Float[Array, ""]:
        """Return zero: every momentum lies on an orbit."""
        return jnp.zeros(())

    def project(self, y: Momentum) -> Momentum:
        return y

    def random(self, key: Key[Array, ""]) -> Momentum:
        return jax.random.normal(key, (self.group.dim,))

    def lift(self, y: Momentum, v: Momentum) -> Coordinates:
        if isinstance(self.group, SO3):
            return cross(v, y) / (y @ y)  # (2)
        return jnp.linalg.pinv(self.poisson(y), rtol=_RANK) @ v  # (2)

    def orbit_invariants(self, y: Momentum) -> dict[str, Float[Array, ""]]:
        return {name: function(y) for name, function in self.casimirs}


def known_casimirs(group: AbstractLieGroup) -> dict[str, Casimir]:
    """Return the Casimir functions of well-known groups, by name; empty for others."""
    if isinstance(group, SO3):
        return {"|mu|": _length}
    if isinstance(group, SE3):
        return {"|p|": _impulse, "m.p": _pitch}
    if isinstance(group, SE2):
        return {"|p|": _plane_impulse}
    if isinstance(group, SO):
        return {"|mu|": _length}
    return {}


def _length(mu: Momentum) -> Float[Array, ""]:
    return jnp.sqrt(mu @ mu)


def _impulse(mu: Momentum) -> Float[Array, ""]:
    return _length(mu[3:])


def _pitch(mu: Momentum) -> Float[Array, ""]:
    return mu[:3] @ mu[3:]


def _plane_impulse(mu: Momentum) -> Float[Array, ""]:
    return _length(mu[1:])
