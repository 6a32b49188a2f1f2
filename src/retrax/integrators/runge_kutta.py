"""The baseline: explicit Runge-Kutta on the matrices, blind to the group."""

from typing import ClassVar

import equinox as eqx
import jax
from jaxtyping import Array, Float

from retrax.integrators.base import AbstractIntegrator, StepInfo, explicit_step
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics import tableaus


class RungeKutta(AbstractIntegrator):
    r"""An explicit Runge-Kutta method for the entries of $(g, \mu)$, with $\dot g = g\,\hat\xi$.

    What people write first; here to be compared with. Nothing is preserved: rotation matrices
    leave the group at the order of the method.

    **Arguments:** `tableau`: a name (`"euler"`, `"midpoint"`, `"heun3"`, `"rk4"`, `"dopri5"`) or a
    `Tableau`.

    References: [HairerNorsettWanner1993].
    """

    tableau: tableaus.Tableau = eqx.field(static=True)
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)
    needs_momentum: ClassVar[bool] = False

    def __init__(self, tableau: str | tableaus.Tableau = "rk4"):
        self.tableau = tableaus.tableau(tableau)
        self.order = self.tableau.order
        self.preserves = frozenset()

    def __repr__(self) -> str:
        return f"RungeKutta({self.tableau.name!r})"

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        start = (state.g, state.momentum)

        def displaced(weights, rates):
            z = start
            for w, rate in zip(weights, rates, strict=True):
                z = jax.tree.map(lambda x, dx, w=w: x + h * w * dx, z, rate)
            return z

        rates, velocities, space = [], [], system.configuration_space
        for row, c in zip(self.tableau.a, self.tableau.c, strict=True):
            g, mu = displaced(row, rates)
            now = system.vector_field(g, mu, state.t + c * h)
            velocities.append(now.velocity)
            rates.append((space.tangent(g, now.velocity), now.momentum_rate))
        g, mu = displaced(self.tableau.b, rates)
        return State(g, mu, state.t + h), explicit_step(h * velocities[0])
