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
the symmetries are the null space of the rates at a few random states. The rates of each state are
measured by the largest of that state: forces may differ by many powers of ten between states, and
what is small beside the largest of them all need not vanish. What is found must then hold in as
many other states. Under a constraint $A(g, t)\,\xi = c(g, t)$ the reaction $A^T\lambda$ adds to the
rates, and only a horizontal symmetry has a conserved momentum: one with also, at random times,

$$ A(g, t)\,\mathrm{Ad}_{g^{-1}}\eta = 0, \qquad A(g, t)\,\zeta = 0. \tag{3} $$

The rows of contacts count among $A$, for they may push: normals, and with friction the slip.
"""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from retrax.errors import BadInput
from retrax.mechanics.contact import AbstractContacts
from retrax.mechanics.reactions import admissible, drift_of_constraint
from retrax.mechanics.state import State
from retrax.numerics.checks import host_float64, is_traced, require_finite
from retrax.numerics.evaluate import Beside, Evaluated
from retrax.numerics.fingerprint import Fingerprint
from retrax.numerics.known import read_numbers
from retrax.numerics.reuse import Reused, signature_of
from retrax.numerics.small_matrices import null_space

if TYPE_CHECKING:
    from retrax.groups.base import AbstractLieGroup, Element
    from retrax.mechanics.constraints import AbstractConstraint
    from retrax.mechanics.system import AbstractGroupSystem

# Generators of symmetries, one a row, as hashable data.
Generators = tuple[tuple[float, ...], ...]

# Rates below this, relative to the largest rate of any generator in the same state, count as zero.
_TOLERANCE = 1e-9
# Forces below this part of |mu||xi| are measured by that: they may be nothing but rounding errors.
_FAINT = 1e-4
# What the null space of some states may miss by in others.
_ELSEWHERE = 1e-7
_SAMPLES_PER_DIMENSION = 3
_TINY = float(np.finfo(float).tiny)


class Symmetries(NamedTuple):
    """Generators of the symmetries in space and in the body, one per row.

    `motions` are those of an action that is neither, of which the system itself knows the momenta:
    `AbstractGroupSystem.momenta_of`.
    """

    space: np.ndarray
    body: np.ndarray
    motions: np.ndarray = np.zeros((0, 0))

    @classmethod
    def none(cls, dim: int) -> "Symmetries":
        """Return no generators at all."""
        return cls(np.zeros((0, dim)), np.zeros((0, dim)))

    def momenta(self, group: "AbstractLieGroup", state: State) -> dict[str, Float[Array, ""]]:
        spatial = group.coAd(group.inverse(state.g), state.momentum)
        both = (("spatial", self.space, spatial), ("body", self.body, state.momentum))
        return {
            f"{kind} momentum {axis_or_components(row, 'e')}": jnp.asarray(row) @ mu
            for kind, rows, mu in both
            for row in rows
        }


def find_symmetries(system: "AbstractGroupSystem") -> Symmetries:
    """Find the null spaces of the rates (1) and (2) at random states; check declared ones.

    Of systems alike in every number and in all that their functions read they are found once.

    **Raises:** `BadInput` where a declared generator is not a symmetry.
    """
    if is_traced(system):
        return _find(system)
    numbers = tuple([np.asarray(x).tobytes() for x in jax.tree.leaves(system)])
    return _find_once(*signature_of(system), numbers, Beside(system))


@Reused
def _find_once(
    tree: Hashable, avals: tuple, identity: Fingerprint, numbers: tuple, system: Beside
) -> Symmetries:
    found = _find(system.it)
    for generators in found:
        generators.setflags(write=False)
    return found


def _find(system: "AbstractGroupSystem") -> Symmetries:
    found, elsewhere = read_numbers(_rates(system, seed=2)), read_numbers(_rates(system, seed=4))
    if found is None or elsewhere is None:
        return _declared_only(system)
    # Of the members of a vmap these are the symmetries that all of them have.
    space, body = _measure(system, found.values[0])
    other_space, other_body = _measure(system, elsewhere.values[0])
    if system.symmetry is None:
        rows = _null_space(space), _null_space(body)
        return Symmetries(_holding(rows[0], other_space), _holding(rows[1], other_body))
    declared = np.asarray(system.symmetry, dtype=float).reshape(-1, system.group.dim)
    for row in declared:
        rate = float(np.max(np.abs(space @ row)))
        if rate > _TOLERANCE:
            raise BadInput(
                f"symmetry = {row.tolist()} is not a symmetry of {system.name}: moving the system "
                f"along it changes the momentum at {rate:.2g} of the rate of the direction in "
                "which it changes fastest; it must be zero in every state."
            )
    return Symmetries(declared, _holding(_null_space(body), other_body))


def _declared_only(system: "AbstractGroupSystem") -> Symmetries:
    """Return the declared symmetries, where `jax.jit` hides the numbers to look at."""
    if system.symmetry is None:
        raise BadInput(
            f"jax.jit hides the numbers in which to find the symmetries of the {system.name}: "
            "declare them with symmetry=..., or look for invariants outside of jax.jit."
        )
    dim = system.group.dim
    rows = np.asarray(system.symmetry, dtype=float).reshape(-1, dim)
    return Symmetries(rows, np.zeros((0, dim)))


def left_invariant(system: "AbstractGroupSystem") -> bool:
    """Tell whether no force, of the energies or from outside, depends on where the system is."""
    return float(np.max(np.abs(np.asarray(_rates(system).space)))) <= _TOLERANCE


def turns_with_the_motion(system: "AbstractGroupSystem") -> bool:
    r"""Tell whether admissible $\xi$ stay so along $g\exp(\epsilon\xi)$ at times $t + \epsilon$.

    True for constraints that are left-invariant, $A$ constant, or right-invariant,
    $A(g) = A(1)\,\mathrm{Ad}_g$.
    """
    constraint = system.constraint
    if constraint is None or constraint.distribution is not None:
        return True
    return float(_turning(system, constraint, 3)) <= _TOLERANCE


@Evaluated
def _turning(
    system: "AbstractGroupSystem", constraint: "AbstractConstraint", seed: int | Int[Array, ""]
) -> Float[Array, ""]:
    """Return the fastest turn of the constraint away from the motion, in random states."""
    group = system.group

    def rate(key: Key[Array, ""]) -> Float[Array, " k"]:
        keys = jax.random.split(key, 3)
        g, mu = group.random(keys[0]), jax.random.normal(keys[1], (group.dim,), jnp.float64)
        t = jax.random.uniform(keys[2], (), jnp.float64)
        mu = admissible(system, constraint, g, mu, t)[0]
        xi = system.at_time(t).velocity(g, mu)
        return drift_of_constraint(system, constraint, g, xi, t)

    samples = jax.random.split(jax.random.key(seed), _SAMPLES_PER_DIMENSION)
    return jnp.max(jnp.abs(jax.vmap(rate)(samples)))


def read_generators(group: "AbstractLieGroup", symmetry: object) -> Generators | None:
    """Return declared generators as hashable rows."""
    if symmetry is None:
        return None
    given = host_float64("symmetry", symmetry)
    require_finite("symmetry", given)
    rows = np.atleast_2d(given)
    if rows.ndim != 2 or rows.shape[1] != group.dim:
        raise BadInput(
            f"symmetry has shape {given.shape}, but each row is a generator of {group.name} "
            f"with {group.dim} components."
        )
    return tuple(tuple(float(x) for x in row) for row in rows)


class _Rates(NamedTuple):
    """Rates (1), (2) and their companions (3) in random states; the size of |mu||xi| there."""

    space: jax.Array | np.ndarray
    body: jax.Array | np.ndarray
    across_space: jax.Array | np.ndarray
    across_body: jax.Array | np.ndarray
    size: jax.Array | np.ndarray


def _measure(system: "AbstractGroupSystem", rates: _Rates) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows whose null spaces are the symmetries in space and in the body."""
    *found, size = (np.asarray(x) for x in rates)
    in_space, in_body, across_space, across_body = (x.reshape(-1, system.group.dim) for x in found)
    least = np.maximum(_FAINT * size.reshape(-1, 1), _TINY)

    def relative(rows: np.ndarray) -> np.ndarray:
        known = np.isfinite(rows).all(axis=1)  # an energy may be singular at a random state
        largest = np.max(np.abs(rows[known]), axis=1, keepdims=True)
        return rows[known] / np.maximum(largest, least[known])

    space, body = relative(in_space), relative(in_body)
    if not across_body.size:
        return space, body
    crossing = max(float(np.max(np.abs(across_body))), _TINY)
    return (
        np.concatenate([space, across_space / crossing]),
        np.concatenate([body, across_body / crossing]),
    )


def _holding(generators: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return the generators whose rates vanish in other states too."""
    worst = np.max(np.abs(rates @ generators.T), axis=0, initial=0.0)
    return generators[worst <= _ELSEWHERE]


def _rates(system: "AbstractGroupSystem", seed: int = 2) -> _Rates:
    return _rates_from(system, seed)


@Evaluated
def _rates_from(system: "AbstractGroupSystem", seed: int | Int[Array, ""]) -> _Rates:
    """Return the rates in random states."""
    group, constraint = system.group, system.constraint
    samples = _SAMPLES_PER_DIMENSION * group.dim

    def rates(key: Key[Array, ""]) -> _Rates:
        keys = jax.random.split(key, 3)
        g = group.random(keys[0])
        x = jax.random.normal(keys[1], (group.dim,), jnp.float64)
        t = jax.random.uniform(keys[2], (), jnp.float64)
        if constraint is None:
            rows, (xi, mu) = jnp.zeros((0, group.dim)), system.at_time(t).motion(g, x)
        else:
            rows, (mu, _) = constraint.rows(g, t), admissible(system, constraint, g, x, t)
            xi = system.at_time(t).velocity(g, mu)
        force = system.total_force(g, xi, mu, t)
        if isinstance(system.contact, AbstractContacts):
            rows = jnp.concatenate([rows, pushes(system.contact, g)])
        return _Rates(
            group.coAd(group.inverse(g), force),  # (1)
            group.coad(xi, mu) + force,  # (2)
            rows @ group.Ad(group.inverse(g)),  # (3)
            rows,
            jnp.max(jnp.abs(mu)) * jnp.max(jnp.abs(xi)),
        )

    return jax.vmap(rates)(jax.random.split(jax.random.key(seed), samples))


def pushes(contact: AbstractContacts, g: "Element") -> Float[Array, "rows dim"]:
    """Return the rows along which contacts may push and rub."""
    rubs = jnp.where(contact.friction > 0, 1.0, 0.0)[:, None]
    weights = jnp.concatenate([jnp.ones_like(rubs), rubs, rubs], axis=1)
    rows = contact.look(g).rows
    return (weights[:, :, None] * rows).reshape(-1, rows.shape[2])


def _null_space(rates: np.ndarray) -> np.ndarray:
    return null_space(rates, _TOLERANCE * np.sqrt(len(rates)))


def axis_or_components(row: Sequence[float] | np.ndarray, letter: str) -> str:
    """Return the name of a vector: `e3` for an axis and the letter `e`, else its components."""
    nonzero = np.flatnonzero(row)
    if len(nonzero) == 1 and row[nonzero[0]] == 1:
        return f"{letter}{nonzero[0] + 1}"
    return "(" + ", ".join(f"{x:.4g}" for x in row) + ")"
