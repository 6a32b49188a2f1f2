r"""A step of any integrator, with inputs."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.base import Coordinates, Element
from retrax.integrators.base import AbstractIntegrator, Memory, Refusal, StepInfo
from retrax.mechanics.actuated import Actuators, Law
from retrax.mechanics.controls import AbstractControl
from retrax.mechanics.functions import Function
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.frozen import Frozen


class Driven(AbstractIntegrator):
    r"""Steps of `integrator` with the inputs that `control` chooses.

    An input that is held gives half of its impulse at each end of a step of `LieVerlet`,

    $$
    \mu^+ = \mu_k + \tfrac h2\bigl(F(g_k) + B(g_k)u_k\bigr), \qquad
    \mu_{k+1} = \mathrm{Ad}^*_{\tau(h\xi)}\mu^+ + \tfrac h2\bigl(F(g_{k+1}) + B(g_{k+1})u_k\bigr),
    $$

    so that the balance of momentum is exact. `simulate(plant, integrator, ..., control=control)`
    makes one.
    """

    integrator: AbstractIntegrator
    actuators: Actuators
    control: AbstractControl
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)

    def __init__(
        self, integrator: AbstractIntegrator, actuators: Actuators, control: AbstractControl
    ):
        self.integrator, self.actuators, self.control = integrator, actuators, control
        self.order = integrator.order
        self.preserves = integrator.preserves & {"group", "constraint"}

    @property
    def needs_momentum(self) -> bool:
        return self.integrator.needs_momentum

    @property
    def memory_saves_work(self) -> bool:
        return self.integrator.memory_saves_work

    def acting(self, system: AbstractGroupSystem, state: State) -> AbstractGroupSystem:
        """Return the system with the inputs of the step from `state` among its forces."""
        pushed = Pushed(system.force, self.actuators, self.control.during(state))
        return system.with_force(pushed)

    def check(self, system: AbstractGroupSystem) -> None:
        self.integrator.check(system)

    def check_step(self, system: AbstractGroupSystem, state: State, h: float) -> None:
        self.integrator.check_step(system, _alone(state), h)

    def refusal(self, system: AbstractGroupSystem, state: State, h: float, moved: float) -> Refusal:
        return self.integrator.refusal(self.acting(system, state), _alone(state), h, moved)

    def memory(self, system: AbstractGroupSystem, state: State) -> Memory:
        return self.integrator.memory(self.acting(system, state), _alone(state))

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        new, info, _ = self.next_step(system, state, h, self.memory(system, state))
        return new, info

    def next_step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""], memory: Memory
    ) -> tuple[State, StepInfo, Memory]:
        acting, start = self.acting(system, state), _alone(state)
        if self.integrator.memory_saves_work:  # it may hold forces of inputs that are over
            memory = self.integrator.memory(acting, start)
        new, info, memory = self.integrator.next_step(acting, start, h, memory)
        kept = self.control.next(system, new, state.control, h)
        return State(new.g, new.momentum, new.t, kept), info, memory


class Pushed(Frozen):
    """The external force of a driven system: its own, and that of the inputs."""

    own: Function | None
    actuators: Actuators
    law: Law

    def __call__(self, g: Element, xi: Coordinates, t: Float[Array, ""]) -> Coordinates:
        push = self.actuators.covector(g, self.law(g, xi, t))
        return push if self.own is None else jnp.asarray(self.own(g, xi, t)) + push


def _alone(state: State) -> State:
    """The state of the plant, without that of its controller."""
    return State(state.g, state.momentum, state.t)
