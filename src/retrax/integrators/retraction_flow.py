"""First-order flows stepped by a retraction."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.integrators.base import StepInfo, explicit_step, step_info
from retrax.integrators.lifted import AbstractLifted
from retrax.mechanics.flow import GroupFlow
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates, Element
from retrax.numerics.newton import newton


class RetractionFlow(AbstractLifted):
    r"""The map $D_s(g, x) = (g\,\tau(-s x),\ g\,\tau((1-s)x))$ applied to $\dot g = g\,\hat\xi(g)$.

    $$ \xi = \xi(g), \quad g = g_k\,\tau(-s\,h\xi)^{-1}, \quad g_{k+1} = g\,\tau((1-s)\,h\xi).
       \tag{1} $$

    On a vector space this is Euler's method for $s = 0$, the backward one for $s = 1$ and the
    implicit midpoint rule for $s = \tfrac12$, which alone is symmetric and of order 2.

    **Arguments:**

    - `retraction`: the map $\tau$.
    - `s`: where the base point lies in the step, from 0 to 1.

    References: [BarberoLinanMartinDeDiego2023].
    """

    kept: ClassVar[frozenset[str]] = frozenset({"group"})

    def check(self, system: AbstractGroupSystem) -> None:
        self.retraction.check(system.group)
        if not isinstance(system, GroupFlow):
            raise BadInput(
                f"RetractionFlow needs a flow of first order, GroupFlow(group, field), got the "
                f"{system.name}; use CotangentLift or TangentLift."
            )

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        group, tau, s, mu = system.group, self.retraction, self.s, state.momentum

        def displace(g: Element, x: Coordinates) -> Element:
            return group.advance(g, tau.minus_identity(group, x))

        def rebase(xi: Coordinates) -> Element:
            return group.advance(state.g, tau.adjoint.minus_identity(group, s * h * xi))

        def mismatch(xi: Coordinates) -> Coordinates:
            return xi - system.velocity(rebase(xi), mu)  # (1)

        guess = system.velocity(state.g, mu)
        if s == 0:
            move = h * guess
            return State(displace(state.g, move), mu, state.t + h), explicit_step(
                move, tau.covers(group, move)
            )
        xi, status = newton(mismatch, guess, jnp.max(jnp.abs(guess)))
        g1 = displace(rebase(xi), (1 - s) * h * xi)  # (1)
        covered = self.covers(group, h * xi)
        return State(g1, mu, state.t + h), step_info(status, h * xi, covered)
