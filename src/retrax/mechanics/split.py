"""Systems whose kinetic energy moves them by a step of its own, between two kicks."""

import abc
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates, Element
from retrax.numerics.newton import NewtonStatus


class Drift(NamedTuple):
    r"""Where a drift ends: the configuration, and by how much the momentum has changed.

    `change` is the momentum after less the momentum before, written so that nothing cancels;
    `move` is the increment $h\xi$ on the group, or its largest parts; `in_chart` says whether the
    solution found is the right one.
    """

    g: Element
    change: Coordinates
    move: Coordinates
    status: NewtonStatus
    in_chart: Bool[Array, ""]


class AbstractSplitSystem(AbstractGroupSystem):
    r"""A system that offers `LieVerlet` the kick and the drift of its own discrete Lagrangian,

    $$ L_d(g_k, g_{k+1}) = T_d(g_k, g_{k+1}; h) - \tfrac h2V(g_k) - \tfrac h2V(g_{k+1}). \tag{1} $$

    The system chooses the discrete kinetic energy $T_d$, symmetric in its two arguments, and solves
    the equation of the drift as its structure allows, one chain or node at a time, where a dense
    Newton iteration in all velocities would take the cube of their number.
    """

    @abc.abstractmethod
    def kick(self, g: Element, t: Float[Array, ""]) -> Coordinates:
        r"""Return $-dV(g) + f(g, t)$: the rate at which momentum is given to the system."""

    @abc.abstractmethod
    def drift(self, g: Element, mu: Coordinates, h: Float[Array, ""]) -> Drift:
        r"""Solve $\mu = -D_1T_d(g, g_1)$ for $g_1$; the momentum there is $D_2T_d(g, g_1)$.

        Both derivatives are left-trivialised. Damping acts here, half at each end. The system is
        the one at the time at which the drift ends: supports that move are there already.
        """

    @property
    def feedback(self) -> bool:
        """Whether loads act that depend on the velocity: those of `load`."""
        return False

    def load(self, g: Element, xi: Coordinates, t: Float[Array, ""]) -> Coordinates:
        r"""Return loads $f(g, \xi, t)$ that depend on the velocity, beside those of `kick`."""
        return jnp.zeros_like(xi)

    def check_split(self) -> None:
        """Reject, with `BadInput`, what this splitting cannot treat."""

    def check_step(self, state: State, h: float) -> None:
        """Reject a step size at which the splitting is unstable; warn of one that is too long."""

    def hardest(self, states: State) -> int | None:
        """Find which of many states allows the shortest step; `None` if each must be looked at."""
        return None

    def why_not(self, state: State, h: float) -> str | None:
        """Explain in a sentence a drift whose `in_chart` is false, if there is more to say."""
        return None
