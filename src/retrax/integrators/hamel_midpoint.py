"""The midpoint rule for Hamel's equations."""

from typing import ClassVar

from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.retractions import AbstractRetraction, Exp
from retrax.integrators.base import AbstractIntegrator, StepInfo, step_info
from retrax.integrators.hamel_step import HamelStep, hamel_step, momentum_scale, require_frame
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem


class HamelMidpoint(AbstractIntegrator):
    r"""The midpoint rule for left-invariant systems under a `Distribution`, or under nothing.

    With $E$ a basis of the admissible velocities, $\xi = E u$ and $x = h\xi$,

    $$
    \begin{aligned}
    E^T(\mu_{k+1} - \mu_k) &= h\,E^T\bigl(\mathrm{ad}^*_\xi p + f(g, \xi, t + \tfrac h2)\bigr),
        \qquad p = \mathbb I\xi = \tfrac12(\mu_k + \mu_{k+1})                      &&\text{(1)}\\
    g &= g_k\,\tau(x/2), \qquad g_{k+1} = g\,\tau(x/2)                             &&\text{(2)}
    \end{aligned}
    $$

    one equation of the size of the distribution. The energy is conserved to round-off without a
    force, because $\langle\mathrm{ad}^*_\xi p, \xi\rangle = 0$; the increment of the group is
    admissible; the step is symmetric and of order 2, and with `Exp` exact where the body turns
    steadily. Momenta of horizontal symmetries are not kept.

    **Arguments:** `retraction`: the map $\tau$.

    References: [BallZenkov2015] (Hamel's formalism, discretised).
    """

    retraction: AbstractRetraction = Exp()

    order: ClassVar[int] = 2
    preserves: ClassVar[frozenset[str]] = frozenset({"group", "constraint", "energy", "symmetric"})

    def check(self, system: AbstractGroupSystem) -> None:
        self.retraction.check(system.group)
        if not require_frame(self, system).free:
            raise BadInput(
                f"HamelMidpoint keeps the energy of systems without potential, but the "
                f"{system.name} has one; use DiscreteGradient."
            )

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        done = self._step(system, state, h)
        covered = self.retraction.covers(system.group, h / 2 * done.xi)
        return done.state, step_info(done.status, h * done.xi, covered)

    def impulse(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> Float[Array, " k"]:
        r"""The impulse $\lambda$ of the reaction $A^T\lambda$ over one step."""
        return self._step(system, state, h).impulse

    def _step(self, system, state: State, h: Float[Array, ""]) -> HamelStep:
        t = state.t + h / 2

        def forces(g, g1, xi, p):
            return h * system.total_force(g, xi, p, t)  # (1)

        return hamel_step(system, self.retraction, state, h, forces, momentum_scale(state))
