r"""Symmetries of a system and the momenta they conserve.

Two kinds of motion of the whole system are looked at. Moving it in space, $g \mapsto
\exp(\epsilon\eta)g$, has the momentum map $\langle \mathrm{Ad}^*_{g^{-1}}\mu, \eta\rangle$;
relabelling the body, $g \mapsto g\exp(\epsilon\zeta)$, has $\langle\mu, \zeta\rangle$. By (2) of
`AbstractGroupSystem` they change at the rates

$$
\begin{aligned}
\langle dL + f,\ \mathrm{Ad}_{g^{-1}}\eta\rangle,                 &&\text{(1) space}\\
\langle \mathrm{ad}^*_\xi\mu + dL + f,\ \zeta\rangle,             &&\text{(2) body}
\end{aligned}
$$

both linear in the generator. A generator is a symmetry where its rate vanishes in every state, so
the symmetries are the null space of the rates at a few random states.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.mechanics.state import State

if TYPE_CHECKING:
    from retrax.groups.base import AbstractLieGroup
    from retrax.mechanics.system import AbstractGroupSystem

# Rates below this, relative to the largest rate of any generator, count as zero.
_TOLERANCE = 1e-9
_SAMPLES_PER_DIMENSION = 3


class Symmetries(NamedTuple):
    """Generators of the symmetries in space and in the body, one per row."""

    space: np.ndarray
    body: np.ndarray

    def momenta(self, group: "AbstractLieGroup", state: State) -> dict[str, Float[Array, ""]]:
        spatial = group.coAd(group.inverse(state.g), state.momentum)
        return {
            **{f"spatial momentum {_label(row)}": jnp.asarray(row) @ spatial for row in self.space},
            **{
                f"body momentum {_label(row)}": jnp.asarray(row) @ state.momentum
                for row in self.body
            },
        }


def find_symmetries(system: "AbstractGroupSystem") -> Symmetries:
    """The null spaces of the rates (1) and (2) at random states; declared ones are checked.

    **Raises:** `BadInput` where a declared spatial symmetry is none.
    """
    space, body = _rates(system)
    size = max(float(np.max(np.abs(space))), float(np.max(np.abs(body))), np.finfo(float).tiny)
    if system.symmetry is None:
        return Symmetries(_null_space(space, size), _null_space(body, size))
    declared = np.asarray(system.symmetry, dtype=float).reshape(-1, system.group.dim)
    for row in declared:
        rate = float(np.max(np.abs(space @ row)))
        if rate > _TOLERANCE * size:
            raise BadInput(
                f"symmetry = {row.tolist()} is not a symmetry of {system.name}: moving the system "
                f"along it changes the momentum at a rate of {rate:.2g} (largest rate of any "
                f"direction {size:.2g}); it must be zero in every state."
            )
    return Symmetries(declared, _null_space(body, size))


def declared(
    group: "AbstractLieGroup", symmetry: Any | None
) -> tuple[tuple[float, ...], ...] | None:
    """Declared generators as hashable rows."""
    if symmetry is None:
        return None
    rows = np.atleast_2d(np.asarray(symmetry, dtype=float))
    if rows.ndim != 2 or rows.shape[1] != group.dim:
        raise BadInput(
            f"symmetry has shape {np.shape(symmetry)}, but each row is a generator of {group.name} "
            f"with {group.dim} components."
        )
    return tuple(tuple(float(x) for x in row) for row in rows)


def _rates(system: "AbstractGroupSystem") -> tuple[np.ndarray, np.ndarray]:
    group = system.group
    samples = _SAMPLES_PER_DIMENSION * group.dim

    def rates(key):
        keys = jax.random.split(key, 3)
        g = group.random(keys[0])
        mu = jax.random.normal(keys[1], (group.dim,), jnp.float64)
        t = jax.random.uniform(keys[2], (), jnp.float64)
        xi = system.velocity(g, mu)
        force = system.total_force(g, xi, mu, t)
        return group.coAd(group.inverse(g), force), group.coad(xi, mu) + force  # (1), (2)

    space, body = jax.jit(jax.vmap(rates))(jax.random.split(jax.random.key(2), samples))
    return np.asarray(space), np.asarray(body)


def _null_space(rates: np.ndarray, size: float) -> np.ndarray:
    """A basis of the null space in reduced row echelon form: axes come out as axes."""
    _, singular, rows = np.linalg.svd(rates / size)
    basis = rows[np.sum(singular > _TOLERANCE * np.sqrt(len(rates))) :]
    pivot = 0
    for column in range(basis.shape[1]):
        if pivot == len(basis):
            break
        best = pivot + int(np.argmax(np.abs(basis[pivot:, column])))
        if abs(basis[best, column]) < 1e-6:
            continue
        basis[[pivot, best]] = basis[[best, pivot]]
        basis[pivot] /= basis[pivot, column]
        others = [i for i in range(len(basis)) if i != pivot]
        basis[others] -= np.outer(basis[others, column], basis[pivot])
        pivot += 1
    return np.where(np.abs(basis) < 1e-9, 0.0, basis)


def _label(row: np.ndarray) -> str:
    """`e3` for an axis, the components otherwise."""
    nonzero = np.flatnonzero(row)
    if len(nonzero) == 1 and row[nonzero[0]] == 1:
        return f"e{nonzero[0] + 1}"
    return "(" + ", ".join(f"{x:.4g}" for x in row) + ")"
