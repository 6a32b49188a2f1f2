"""The midpoint rule for Hamel's equations."""

from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.integrators.hamel_step import (
    AbstractHamelMethod,
    HamelStep,
    hamel_step,
    momentum_scale,
    require_one_inertia,
)
from retrax.mechanics.mechanical import AbstractMechanicalSystem
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem


class HamelMidpoint(AbstractHamelMethod):
    r"""The midpoint rule for bodies of constant inertia, under a constraint or under none.

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

    Under a constraint $A(g, t)\,\xi = c(g, t)$ that is no `Distribution`, all of (1) holds with a
    reaction $\bar A^T\lambda$, $\bar A\,\xi = c$, and the velocity at the end of the step is
    admissible there. Then energy and constraint hold to round-off at every step ($c = 0$; otherwise
    the energy changes by the work $\lambda\cdot c$, exactly), and the increment of the group is
    admissible at the midpoint up to $O(h^2)$.

    **Arguments:** `retraction`: the map $\tau$.

    References: [BallZenkov2015] (Hamel's formalism, discretised).
    """

    def check(self, system: AbstractGroupSystem) -> None:
        super().check(system)
        if not require_one_inertia(self, system).free:
            raise BadInput(
                f"HamelMidpoint keeps the energy of systems without potential, but the "
                f"{system.name} has one; use DiscreteGradient."
            )

    def full_step(
        self, system: AbstractMechanicalSystem, state: State, h: Float[Array, ""]
    ) -> HamelStep:
        t = state.t + h / 2

        def forces(g, g1, xi, p):
            return h * system.total_force(g, xi, p, t)  # (1)

        return hamel_step(system, self.retraction, state, h, forces, momentum_scale(state))
