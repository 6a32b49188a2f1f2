r"""Frames adapted to a distribution: Hamel's equations.

With a basis $E = (e_1, \dots, e_m)$ of the admissible velocities, $\xi = E u$, and the inertia
$\mathbb I$,

$$
\begin{aligned}
\mathbb I_d &= E^T\mathbb I E, \qquad M = \mathbb I E\,\mathbb I_d^{-1}, \ E^TM = 1 &&\text{(1)}\\
\bar\mu &= E^T\mu, \qquad u = \mathbb I_d^{-1}\bar\mu, \qquad \mu = M\bar\mu &&\text{(2)}\\
C_{ab}^c &= \langle M_c, [e_a, e_b]\rangle &&\text{(3)}\\
\dot{\bar\mu}_a &= -C_{ab}^c\,\bar\mu_c\,u^b + \langle f, e_a\rangle
    = \langle\mathrm{ad}^*_{Eu}M\bar\mu + f,\ e_a\rangle &&\text{(4)}
\end{aligned}
$$

The restricted energy is $\tfrac12\bar\mu^T\mathbb I_d^{-1}\bar\mu$: with the inverse of the block
of the inertia, which is not the block of its inverse.
"""

import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput, warn
from retrax.groups.base import AbstractLieGroup, Coordinates, require_group
from retrax.mechanics.constraints import (
    AbstractConstraint,
    AbstractDistribution,
    Distribution,
)
from retrax.mechanics.holonomic import Holonomic
from retrax.numerics.checks import ArrayLike, finite64, float64, quote, require_finite
from retrax.numerics.frozen import Frozen
from retrax.numerics.small_matrices import null_space, solve

# A bracket that leaves the distribution by less than this is taken to lie in it.
_CLOSED = 1e-10

Reduced = Float[Array, " m"]


class HamelFrame(Frozen):
    r"""The frame of a distribution under an inertia, and what equations (1) to (4) need.

    **Arguments:**

    - `group`: where the system moves.
    - `basis`: $e_1, \dots, e_m$, one a row.
    - `inertia`: the matrix $\mathbb I$.

    References: [BlochMarsdenZenkov2009].
    """

    group: AbstractLieGroup
    basis: Float[Array, "m dim"]
    inertia: Float[Array, "dim dim"]

    def __init__(self, group: AbstractLieGroup, basis: ArrayLike, inertia: ArrayLike):
        self.group = require_group(group)
        self.basis = float64("basis", basis)
        self.inertia = finite64("inertia", inertia, (group.dim, group.dim))
        if self.basis.ndim != 2 or self.basis.shape[1] != group.dim or not len(self.basis):
            raise BadInput(
                f"basis has shape {self.basis.shape}, but on {group.name} it has at least one row "
                f"of {group.dim} components."
            )
        require_finite("basis", self.basis)

    @classmethod
    def of(cls, system: Any) -> "HamelFrame":
        """Make the frame of a mechanical system whose inertia and distribution are constant."""
        if not getattr(system, "invariant_inertia", False):
            raise BadInput(
                f"system = {quote(system)} must have the same inertia everywhere, as a "
                "MechanicalSystem with numbers for its inertia has."
            )
        constraint = system.constraint
        allowed = None if constraint is None else constraint.distribution
        if constraint is not None and allowed is None:
            raise BadInput(
                f"the constraint of the {system.name} must be a Distribution: the admissible "
                "velocities need one basis for all configurations."
            )
        inertia = system.inertia_at(system.group.identity())
        matrix = jnp.diag(inertia) if inertia.ndim == 1 else inertia
        basis = jnp.eye(system.group.dim) if allowed is None else allowed.basis
        return cls(system.group, basis, matrix)

    def restricted_inertia(self) -> Float[Array, "m m"]:
        return self.basis @ self.inertia @ self.basis.T  # (1)

    def covectors(self) -> Float[Array, "m dim"]:
        r"""Return $M^T$: covectors dual to the basis that vanish on its $\mathbb I$-complement."""
        return solve(self.restricted_inertia(), self.basis @ self.inertia)  # (1)

    def adapted_basis(self) -> Float[Array, "dim dim"]:
        r"""Return the basis, then one of its $\mathbb I$-orthogonal complement, in rows."""
        normals = _annihilator(np.asarray(self.basis))
        return jnp.concatenate([self.basis, solve(self.inertia, jnp.asarray(normals).T).T])

    def structure(self) -> Float[Array, "m m m"]:
        r"""Return $C_{ab}^c$ as an array indexed `[a, b, c]`."""
        brackets = jnp.stack(
            [jnp.stack([self.group.ad(a, b) for b in self.basis]) for a in self.basis]
        )
        return brackets @ self.covectors().T  # (3)

    def quasivelocity(self, mb: Reduced) -> Reduced:
        return solve(self.restricted_inertia(), mb)  # (2)

    def momentum(self, mb: Reduced) -> Coordinates:
        return self.inertia @ (self.quasivelocity(mb) @ self.basis)  # (2)

    def energy(self, mb: Reduced) -> Float[Array, ""]:
        r"""Return $\tfrac12\bar\mu^T\mathbb I_d^{-1}\bar\mu$."""
        return mb @ self.quasivelocity(mb) / 2

    def rate(self, mb: Reduced, force: Coordinates | None = None) -> Reduced:
        r"""Return $\dot{\bar\mu}$ under a body force."""
        turned = self.group.coad(self.quasivelocity(mb) @ self.basis, self.momentum(mb))
        return self.basis @ (turned if force is None else turned + force)  # (4)


def leaves_itself_by(group: AbstractLieGroup, distribution: AbstractDistribution) -> float:
    r"""Return $\max|A[e_a, e_b]|$, relative to the basis: zero if it spans a subalgebra."""
    basis, normals = np.asarray(distribution.basis), np.asarray(distribution.annihilator)
    unit = basis / np.linalg.norm(basis, axis=1, keepdims=True)
    normals = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    brackets = [
        group.ad(jnp.asarray(a), jnp.asarray(b)) for a, b in itertools.combinations(unit, 2)
    ]
    return max((float(np.max(np.abs(normals @ np.asarray(b)))) for b in brackets), default=0.0)


def is_subalgebra(group: AbstractLieGroup, distribution: AbstractDistribution) -> bool:
    """Tell whether brackets of admissible velocities are admissible, as holonomic ones are."""
    return leaves_itself_by(group, distribution) <= _CLOSED


def check_constraint(group: AbstractLieGroup, constraint: object) -> AbstractConstraint | None:
    """Return a constraint if it fits the group; warn of a holonomic one."""
    if constraint is None:
        return None
    if not isinstance(constraint, AbstractConstraint):
        raise BadInput(
            f"constraint = {quote(constraint)} is not a constraint; pass a Distribution(rows), a "
            "VelocityConstraint(A, c) or a Holonomic(phi)."
        )
    constraint.check(group)
    if isinstance(constraint, Holonomic):
        return constraint.on(group)
    allowed = constraint.distribution
    if isinstance(allowed, Distribution) and is_subalgebra(group, allowed):
        warn(
            f"{allowed!r} is a subalgebra of {group.name}: the constraint is holonomic, and the "
            "motion stays in a subgroup; a system on that subgroup would need no constraint."
        )
    return constraint


def _annihilator(basis: np.ndarray) -> np.ndarray:
    return null_space(basis, 1e-10 * float(np.linalg.norm(basis)))
