"""Many balls that touch each other, and what stands in space."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.integrators.base import AbstractIntegrator, Refusal, StepInfo, shorter_step
from retrax.integrators.contact.ball_step import Faults, stepped
from retrax.integrators.contact.ball_touch import BallTouch, cut, filled, relisted, untouched
from retrax.integrators.contact.rod_record import RodContactRecord
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.systems.balls import Balls

Scalar = Float[Array, ""]
# Where there are no more pairs than a share of the nodes, the step has room for these alone.
_SHARE = 2


class BallRattle(AbstractIntegrator):
    r"""The step of `NonsmoothRattle` on balls: kick, impulses, flight, kick, impulses.

    Balls fly freely within a step, so that only contacts join them:

    $$
    \begin{aligned}
    \mu^+ &= \mu_k + \tfrac h2F_k + \sum_iR_i^Tz_i, \qquad (g_{k+1}, \mu^-) = \mathrm{flight}_h(g_k,
        \mu^+)                                                                     &&\text{(1)}\\
    0 \le \gamma_i(g_{k+1}) &\perp p_i \ge 0, \qquad
      q_i = \mathrm{proj}_{|q| \le fp_i}\bigl(q_i - \tfrac\rho2(T_i(g_k) + T_i(g_{k+1}))\xi\bigr)
                                                                                   &&\text{(2)}\\
    \mu_{k+1} &= \mu^- + \tfrac h2F_{k+1} + \sum_iR_i'^Tz_i'                       &&\text{(3)}
    \end{aligned}
    $$

    with the impulses of (3) as in `NonsmoothRattle`. Impulses between balls act along one line and
    at one point, and so keep momentum and angular momentum to round-off.

    What meets in a step rubs at its end, with $|q'| \le f(p + p')$, and what slips fast goes on.

    References: [Moreau1988], [AcaryBrogliato2008].
    """

    order: ClassVar[int] = 2
    preserves: ClassVar[frozenset[str]] = frozenset({"group", "contact"})
    memory_saves_work: ClassVar[bool] = True

    def check(self, system: AbstractGroupSystem) -> None:
        if not isinstance(system, Balls):
            raise BadInput(f"the contact of balls is not one of the {system.name}.")

    def check_step(self, system: Balls, state: State, h: float) -> None:
        system.check_step(state, h)

    def refusal(self, system: Balls, state: State, h: float, moved: float) -> Refusal:
        begun = jax.tree.map(jnp.asarray, state)

        @jax.jit
        def again(size: Scalar) -> tuple[StepInfo, RodContactRecord, Faults]:
            memory = relisted(system, begun, size, self.memory(system, begun))
            _, info, _, record, faults = stepped(system, begun, size, memory)
            return info, record, faults

        _, record, faults = again(jnp.asarray(h))
        contact, shorter = system.contact, shorter_step(h, moved)
        room, number, skin = contact.room(system.nodes), int(faults.number), float(faults.skin)
        pairs, who = contact.listed_things
        if number > room:
            return Refusal(
                f"found more near {pairs} than there is room for",
                f"{number} {pairs} are nearer than the skin of {skin:.3g} m, but capacity is "
                f"{room}: give {who} a capacity of {number} or more, or a thinner skin.",
                shorter,
            )
        if not float(faults.moved) <= skin / 2:
            return Refusal(
                "moved a ball too far",
                f"A ball moves by {float(faults.moved):.3g} m in the step, but contacts are looked "
                f"for within half the skin, {skin / 2:.3g} m.",
                shorter,
            )
        left = np.asarray(faults.left)
        worst = int(np.argmax(left))
        if bool(faults.unsolved):
            name = contact.called(int(record.first[worst]), int(record.second[worst]))
            return Refusal(
                "could not be solved for its contacts",
                f"{name} is left with {left[worst]:.1e} m of overlap, gap or creep in the step.",
                h / 2,
            )
        return Refusal(
            "could not be solved for its contacts",
            "From rest of all impulses it could; the heap is at the edge of what sweeps solve.",
            h / 2,
        )

    def memory(self, system: Balls, state: State) -> BallTouch:
        return untouched(system, state)

    def step(self, system: Balls, state: State, h: Scalar) -> tuple[State, StepInfo]:
        new, info, _ = self.next_step(system, state, h, self.memory(system, state))
        return new, info

    def next_step(
        self, system: Balls, state: State, h: Scalar, memory: BallTouch
    ) -> tuple[State, StepInfo, BallTouch]:
        begun, few = relisted(system, state, h, memory), system.nodes // _SHARE

        def whole(memory: BallTouch) -> tuple[State, StepInfo, BallTouch]:
            return stepped(system, state, h, memory)[:3]

        def briefly(memory: BallTouch) -> tuple[State, StepInfo, BallTouch]:
            new, info, last = whole(cut(memory, few))
            return new, info, filled(last, memory)

        if few == 0 or len(begun.near.first) <= 2 * few:
            return whole(begun)
        return lax.cond(begun.near.number <= few, briefly, whole, begun)

    def contact_record(
        self, system: Balls, state: State, h: Scalar, memory: BallTouch | None = None
    ) -> tuple[State, RodContactRecord]:
        """Take a step again, and return what its contacts do."""
        state = jax.tree.map(jnp.asarray, state)
        begun = self.memory(system, state) if memory is None else memory
        new, _, _, record, _ = stepped(system, state, h, relisted(system, state, h, begun))
        return new, record

    def record(self, system: Balls, state: State, h: Scalar, memory: BallTouch) -> RodContactRecord:
        """Take the step again that handed on `memory`, from its own impulses."""
        begun = memory._replace(force=system.kick(state.g, state.t))
        return self.contact_record(system, state, h, begun)[1]
