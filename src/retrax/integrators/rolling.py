"""What integrators of two rods that roll on each other have in common."""

from abc import abstractmethod
from typing import Any

from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.integrators.base import AbstractIntegrator, StepInfo
from retrax.mechanics.state import State
from retrax.systems.rods.pair import RodsInContact


class AbstractRolling(AbstractIntegrator):
    """A step of two rods in contact that also knows the force between them."""

    @abstractmethod
    def step_and_force(
        self, system: RodsInContact, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo, Float[Array, "3"]]:
        """A step, and the contact force half-way through it."""

    def step(
        self, system: RodsInContact, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        new, info, _ = self.step_and_force(system, state, h)
        return new, info

    def check(self, system: Any) -> None:
        if not isinstance(system, RodsInContact):
            raise BadInput(
                f"{self!r} steps two rods in contact, but the {system.name} is none; use LieVerlet."
            )

    def check_step(self, system: Any, state: State, h: float) -> None:
        for rod, g in zip(system.rods, state.g[:2], strict=True):
            rod.require_stable(g, h, split=False)


def force(system: RodsInContact, g: Any, mu: Any, t: Any) -> Any:
    return system.total_force(g, system.mobile(mu), mu, t)


def along(lam: Float[Array, "3"], rows: Any) -> Any:
    """$A^T\\lambda$."""
    return lam[0] * rows[0] + lam[1] * rows[1] + lam[2] * rows[2]
