"""The baseline: collocation of the matrices, blind to the group."""

from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.integrators.base import AbstractIntegrator, StepInfo
from retrax.integrators.collocation_step import lie_step
from retrax.integrators.forms import Flow
from retrax.integrators.phase_spaces import Embedded
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics import nodes as node_families
from retrax.spaces.base import Point


class PlainCollocation(AbstractIntegrator):
    r"""Collocation of the entries of $(g, \mu)$, with $\dot g = g\,\hat\xi$.

    The same step as `Collocation`, on the space of all matrices and momenta, where the exponential
    map is addition. With Gauss' nodes it conserves all quadratic first integrals: $gg^T$, so that
    rotations stay rotations, and, where the energy is a quadratic function of the entries of $g$
    and $\mu$, as that of a pendulum is, energy and momenta too. Other nodes leave the group.

    **Arguments:** `nodes`: `gauss(s)`, `radau(s)`, `lobatto(s)`, ... or a list of numbers from 0
    to 1.

    References: [HairerLubichWanner2006] II.1 and IV.2.
    """

    nodes: node_families.Nodes = eqx.field(static=True)
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)
    needs_momentum: ClassVar[bool] = False

    def __init__(self, nodes: node_families.Nodes | Sequence[float] | Any):
        self.nodes = node_families.nodes(nodes)
        self.order = self.nodes.order
        exact = {"group"} if self.nodes.is_gauss else set()
        self.preserves = frozenset(exact | ({"symmetric"} if self.nodes.symmetric else set()))

    def __repr__(self) -> str:
        return f"PlainCollocation({self.nodes!r})"

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        end = lie_step(_embedded(system, state), state.t, h, self.nodes)
        g, mu = end.y
        move = h * system.velocity_at(state)
        return State(g, mu, state.t + h), end.info._replace(increment=jnp.max(jnp.abs(move)))


def _embedded(system: AbstractGroupSystem, state: State) -> Flow:
    """The system as a flow on the vector space of the entries of configuration and momentum."""
    start = (state.g, state.momentum)

    def generator(t: Float[Array, ""], y: Point) -> Float[Array, " n"]:
        g, mu = y
        now = system.vector_field(g, mu, t)
        rates = (system.configuration_space.tangent(g, now.velocity), now.momentum_rate)
        return jnp.concatenate([leaf.reshape(-1) for leaf in jax.tree.leaves(rates)])

    n = sum(leaf.size for leaf in jax.tree.leaves(state.g))
    return Flow(Embedded(n + state.momentum.size), generator, start, lambda y: y, n)
