"""Nodes that touch each other, and what stands in space: rods, and many balls."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from retrax.contact.node_contact import Closest
from retrax.contact.rows import Places
from retrax.contact.steps.last_touch import LastTouch, cut, initial_memory, pad, refresh_neighbours
from retrax.contact.steps.neighbours import Neighbours, spots_of
from retrax.contact.steps.node_record import NodeRecord, record
from retrax.contact.steps.node_step import Faults, step_pairs
from retrax.errors import BadInput
from retrax.integrators.base import AbstractIntegrator, Refusal, StepInfo, shorter_step
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.nodal.nodes import AbstractNodes

Scalar = Float[Array, ""]
# Where there are no more pairs than a share of the nodes, the step has room for these alone.
_SHARE = 2


class NodeContact(AbstractIntegrator):
    r"""The step of `NonsmoothRattle` on nodes: kick, impulses, flight, kick, impulses.

    Nodes fly freely within a step, so that only contacts join them:

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

    with the impulses of (3) as in `NonsmoothRattle`. Impulses between nodes act along one line and
    at one point, and so keep momentum and angular momentum to round-off.

    Two balls are the same pair in every step, and (2) is all of the law of `NonsmoothRattle`: what
    meets in a step rubs at its end, with $|q'| \le f(p + p')$, what slips fast goes on, and of what
    should come back at an impact that part does which adds no energy. Gaps of
    rods are those between points: of the points that would be closest at the end of the step with
    the velocities of its start. Where it turns out that others come closer and overlap, these take
    their place, or join them. The impulses of (2) act at the points that are closest at the start,
    and those of what slips so fast that a step cannot stop it rub against its slip there.

    References: [Moreau1988], [AcaryBrogliato2008].
    """

    order: ClassVar[int] = 2
    preserves: ClassVar[frozenset[str]] = frozenset({"group", "contact"})
    memory_saves_work: ClassVar[bool] = True

    def check(self, system: AbstractGroupSystem) -> None:
        if not isinstance(system, AbstractNodes):
            raise BadInput(f"rx.SelfContact is the contact of rods, not of the {system.name}.")
        if system.constraint is not None:
            raise BadInput(
                f"the {system.name} have joints and may touch, which no step can do yet; leave out "
                "joints or contact."
            )

    def check_step(self, system: AbstractNodes, state: State, h: float) -> None:
        system.check_step(state, h)

    def refusal(self, system: AbstractNodes, state: State, h: float, moved: float) -> Refusal:
        begun = jax.tree.map(jnp.asarray, state)

        @jax.jit
        def again(size: Scalar) -> tuple[LastTouch, Faults]:
            memory = refresh_neighbours(system, begun, size, self.memory(system, begun))
            return step_pairs(system, begun, size, memory)[2:]

        last, faults = again(jnp.asarray(h))
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
                "moved a node too far",
                f"A node moves by {float(faults.moved):.3g} m in the step, but contacts are looked "
                f"for within half the skin, {skin / 2:.3g} m.",
                shorter,
            )
        left = np.asarray(faults.left)
        worst = int(np.argmax(left))
        if bool(faults.unsolved):
            name = contact.contact_name(
                *(int(x[worst]) for x in spots_of(contact, last.near).sides)
            )
            return Refusal(
                "could not be solved for its contacts",
                f"{name} is left with {left[worst]:.1e} m of overlap, gap or creep in the step.",
                h / 2,
            )
        if bool(faults.adds):
            why = "Friction adds energy in all solutions that were found, even where nothing rubs."
            return Refusal("could not be solved for its contacts", why, h / 2)
        why = system.why_not(state, h)
        if why is None:
            why = "They are solved from no impulses at all, but not from those of the step before."
            return Refusal("could not be solved for its contacts", why, h / 2)
        return Refusal("could not turn so far", why, shorter)

    def memory(self, system: AbstractNodes, state: State) -> LastTouch:
        return initial_memory(system, state)

    def step(self, system: AbstractNodes, state: State, h: Scalar) -> tuple[State, StepInfo]:
        new, info, _ = self.next_step(system, state, h, self.memory(system, state))
        return new, info

    def next_step(
        self, system: AbstractNodes, state: State, h: Scalar, memory: LastTouch
    ) -> tuple[State, StepInfo, LastTouch]:
        begun, few = refresh_neighbours(system, state, h, memory), system.nodes // _SHARE
        kinds = system.contact.kinds

        def whole(memory: LastTouch) -> tuple[State, StepInfo, LastTouch]:
            return step_pairs(system, state, h, memory)[:3]

        def briefly(memory: LastTouch) -> tuple[State, StepInfo, LastTouch]:
            new, info, last = whole(cut(memory, few, kinds))
            return new, info, pad(last, memory, kinds)

        if few == 0 or len(begun.near.first) <= 2 * few:
            return whole(begun)
        return lax.cond(begun.near.number <= few, briefly, whole, begun)

    def contact_record(
        self, system: AbstractNodes, state: State, h: Scalar, memory: LastTouch | None = None
    ) -> tuple[State, NodeRecord]:
        """Take a step again, and return what its contacts do."""
        state = jax.tree.map(jnp.asarray, state)
        begun = self.memory(system, state) if memory is None else memory
        new, _, last, _ = step_pairs(system, state, h, refresh_neighbours(system, state, h, begun))
        return new, self.record(system, state, new, h, last)

    def record(
        self, system: AbstractNodes, state: State, new: State, h: Scalar, memory: LastTouch
    ) -> NodeRecord:
        """Return what contacts did in a step between two states that handed on `memory`."""
        spots, impulses = spots_of(system.contact, memory.near), (h * memory.first, h * memory.last)
        return record(system, spots, state, new, impulses, memory.where)

    def closest(self, system: AbstractNodes, places: Places, near: Neighbours) -> Closest:
        """Return how far apart what is near is at these places."""
        return spots_of(system.contact, near).closest(places)
