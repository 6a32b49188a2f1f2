"""A body in a circular orbit, turned by the gradient of gravity."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup
from retrax.mechanics.functions import Function
from retrax.mechanics.remembered import Drawing, told
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, ArrayLike, Coordinates, Element
from retrax.numerics.checks import positive64, quote
from retrax.numerics.evaluate import evaluate
from retrax.systems.rigid_body import FreeRigidBody
from retrax.systems.wheeled_body import WheeledBody


class OrbitingBody(AbstractGroupSystem):
    r"""A free body on a circular orbit of rate $n$, seen from axes that go round with it.

    The orbiting axes: $e_1$ points away from the Earth, $e_2$ forwards along the orbit, $e_3$ along
    its normal. The configuration is $Q$, body axes to **orbiting** axes, and with wheels their
    angles. The body turns at $\omega + nQ^Te_3$ against the stars if it turns at $\omega$ against
    these axes. With $L_0$ the Lagrangian of the body and $I$ its inertia with wheels locked,

    $$
    \begin{aligned}
    L(Q, \omega) &= L_0(\omega + nQ^Te_3) - V(Q), \qquad
       V = \tfrac32n^2\,e_1\cdot QIQ^Te_1                                        &&\text{(1)}\\
    \mu &= I(\omega + nQ^Te_3), \qquad
       \tau = 3n^2\,\gamma\times I\gamma, \quad \gamma = Q^Te_1                  &&\text{(2)}
    \end{aligned}
    $$

    $\mu$ being the angular momentum against the stars, in body axes, and $\tau$ the torque of the
    gradient. Seen from these axes nothing depends on time: the energy is Jacobi's integral, and a
    body at rest with its principal axes along them stays at rest. With the moments $I_1, I_2, I_3$
    about $e_1, e_2, e_3$ it librates in the plane of the orbit at
    $n\sqrt{3(I_2 - I_1)/I_3}$.

    **Arguments:**

    - `body`: a `FreeRigidBody` or a `WheeledBody`.
    - `rate`: $n$ in rad/s; $\sqrt{GM/r^3}$, about 1.1e-3 close to the Earth.

    **Invariants:** Jacobi's integral $\tfrac12\mu\cdot I^{-1}\mu - n\,e_3\cdot Q\mu + V$, as the
    energy; the momentum of each wheel.

    References: [MarsdenRatiu1999].
    """

    body: FreeRigidBody | WheeledBody
    rate: Float[Array, ""]
    force: Function | None = None

    symmetry: ClassVar[tuple[tuple[float, ...], ...] | None] = None
    units: ClassVar[dict[str, str]] = {
        "gravity torque": "N m",
        "velocity against the stars": "rad/s",
    }

    def __init__(self, body: FreeRigidBody | WheeledBody, rate: ArrayLike):
        if not isinstance(body, FreeRigidBody | WheeledBody):
            raise BadInput(
                f"body = {quote(body)} must be a FreeRigidBody or a WheeledBody: what is to go "
                "round the Earth."
            )
        self.body = body
        self.rate = positive64("rate", rate)

    @property
    def name(self) -> str:
        return "body in orbit"

    @property
    def group(self) -> AbstractLieGroup:
        return self.body.group

    @property
    def drawing(self) -> Drawing | None:
        """What a picture needs: the inertia, and the axes of wheels, if there are some."""
        if isinstance(self.body, WheeledBody):
            return self.body.drawing
        inertia = self.body.inertia
        J = evaluate(jnp.diag, inertia) if inertia.ndim == 1 else inertia
        return told("wheels", inertia=(J, 2), axes=(np.zeros((0, 3)), 2))

    def attitude(self, g: Element) -> Float[Array, "3 3"]:
        """Return $Q$, body axes to orbiting axes."""
        return g[0] if isinstance(self.body, WheeledBody) else g

    def apply_locked_inertia(self, x: Float[Array, "3"]) -> Float[Array, "3"]:
        """Return $I x$, with the wheels locked."""
        inertia = self.body.inertia
        return inertia * x if inertia.ndim == 1 else inertia @ x

    def frame_velocity(self, g: Element) -> Coordinates:
        """Return $n Q^Te_3$, how the axes go round, as a velocity of the body."""
        turning = self.rate * self.attitude(g)[2]
        return jnp.concatenate([turning, jnp.zeros(self.group.dim - 3)])

    def momentum(self, g: Element, xi: Coordinates) -> Coordinates:
        return self.body.momentum(g, xi + self.frame_velocity(g))

    def velocity(self, g: Element, mu: Coordinates) -> Coordinates:
        return self.body.velocity(g, mu) - self.frame_velocity(g)

    def potential_energy(self, g: Element) -> Float[Array, ""]:
        """Return $V$ of (1)."""
        gamma = self.attitude(g)[0]
        return 1.5 * self.rate**2 * (gamma @ self.apply_locked_inertia(gamma))

    def differential(self, g: Element, xi: Coordinates, mu: Coordinates) -> Coordinates:
        def lagrangian(k: Element) -> Float[Array, ""]:
            return mu @ self.frame_velocity(k) - self.potential_energy(k)  # (1), mu being dL/dxi

        return self.group.cotangent(g, jax.grad(lagrangian)(g))

    def hamiltonian_energy(self, g: Element, mu: Coordinates) -> Float[Array, ""]:
        turning = mu @ self.body.velocity(g, mu) / 2
        return turning - mu @ self.frame_velocity(g) + self.potential_energy(g)

    def observables(self, state: State) -> dict[str, Float[Array, "..."]]:
        gamma = self.attitude(state.g)[0]
        torque = 3 * self.rate**2 * jnp.cross(gamma, self.apply_locked_inertia(gamma))  # (2)
        speed = self.body.velocity(state.g, state.momentum)[:3]
        return {"gravity torque": torque, "velocity against the stars": speed}
