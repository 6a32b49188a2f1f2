r"""A step of any integrator, with inputs."""

from collections import OrderedDict

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from retrax.groups.base import Coordinates, Element
from retrax.integrators.base import AbstractIntegrator, Memory, Refusal, StepInfo
from retrax.mechanics.actuated import Actuators, Inputs, Law
from retrax.mechanics.controls import AbstractControl, Held, Kept
from retrax.mechanics.functions import Function, as_pytree
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Symmetries
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import is_traced, require_instance, shape_and_dtype
from retrax.numerics.evaluate import evaluate
from retrax.numerics.frozen import Frozen, numbers_of
from retrax.numerics.reuse import remember

# So many pairs of driven integrators and systems are remembered to fit.
_MOST = 16


class Driven(AbstractIntegrator):
    r"""Steps of `integrator` with the inputs that `control` chooses.

    An input that is held gives half of its impulse at each end of a step of `LieVerlet`,

    $$
    \mu^+ = \mu_k + \tfrac h2\bigl(F(g_k) + B(g_k)u_k\bigr), \qquad
    \mu_{k+1} = \mathrm{Ad}^*_{\tau(h\xi)}\mu^+ + \tfrac h2\bigl(F(g_{k+1}) + B(g_{k+1})u_k\bigr),
    $$

    so that the balance of momentum is exact. `simulate(plant, integrator, ..., control=control)`
    makes one, and steps `plant.system` with it.

    **Arguments:** `integrator`: whose steps are taken; `actuators`: those of an `Actuated` system;
    `control`: who chooses the inputs.

    References: [MarsdenWest2001] (forces in discrete mechanics).
    """

    integrator: AbstractIntegrator
    actuators: Actuators
    control: AbstractControl
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)

    def __init__(
        self, integrator: AbstractIntegrator, actuators: Actuators, control: AbstractControl
    ):
        what = "a retrax integrator"
        self.integrator = require_instance("integrator", integrator, AbstractIntegrator, what)
        what = "what drives a plant: a Signal, a Feedback, a Sampled"
        self.control = require_instance("control", control, AbstractControl, what)
        self.actuators = actuators
        self.order = integrator.order
        self.preserves = integrator.preserves & {"group", "constraint", "positions", "contact"}

    def __repr__(self) -> str:
        return f"{self.integrator!r} driven by {self.control!r}"

    @property
    def needs_momentum(self) -> bool:
        return self.integrator.needs_momentum

    @property
    def memory_saves_work(self) -> bool:
        return self.integrator.memory_saves_work

    @property
    def counted(self) -> str:
        return self.integrator.counted

    def begin(self, system: AbstractGroupSystem, state: State) -> State:
        """Return the start of a run, with what the controller keeps.

        A state that a controller of this form has left goes on with what that has kept.
        """
        count = self.actuators.count
        blank = self.control.blank(count)
        if _is_alike(state.control, blank):
            nested = jax.tree.unflatten(jax.tree.structure(blank), jax.tree.leaves(state.control))
            return State(state.g, state.momentum, state.t, nested)
        start, kept = alone(state), None
        if blank is not None and is_traced(self, system, start):
            kept = self.control.first(system, start, count)
        elif blank is not None:
            kept = evaluate(_first, self.control, system, start, np.zeros(count))
        return State(start.g, start.momentum, start.t, kept)

    def acting(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> AbstractGroupSystem:
        """Return the system with the inputs of the step from `state` among its forces."""
        pushed = Pushed(as_pytree(system.force), self.actuators, self.control.during(state, h))
        return system.with_force(pushed)

    def ask_inputs(self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]) -> Inputs:
        """Return the inputs that the controller asks for from `state` on."""
        return self.control.during(state, h)(state.g, system.velocity_at(state), state.t)

    def inputs(self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]) -> Inputs:
        """Return the inputs that act from `state` on, within their bounds."""
        return self.actuators.limit(self.ask_inputs(system, state, h))

    def symmetries(self, system: AbstractGroupSystem) -> Symmetries:
        """Return the symmetries of the driven system: those that its inputs do not break.

        A law of feedback is a force like others. Inputs that are held may be anything.
        """
        if self.control.holds:
            law, actuators = Partial(_restless, np.zeros(self.actuators.count)), self.actuators
            actuators = Actuators(actuators.matrix, None, None, actuators.count)
        else:
            law, actuators = self.control.during(_example(system), jnp.ones(())), self.actuators
        driven = system.with_force(Pushed(as_pytree(system.force), actuators, law))
        object.__setattr__(driven, "symmetry", None)  # what is declared may be broken
        return Symmetries.none(system.group.dim) if is_traced(driven) else driven.symmetries()

    def check(self, system: AbstractGroupSystem) -> None:
        if not _CHECKED.knows(self, system):
            self._check(system)
            _CHECKED.remember(self, system)

    def _check(self, system: AbstractGroupSystem) -> None:
        self.control.check(system, self.actuators.count)
        kept = jax.tree.map(jnp.asarray, self.control.blank(self.actuators.count))
        self.integrator.check(self.acting(system, _example(system, kept), jnp.ones(())))

    def check_step(self, system: AbstractGroupSystem, state: State, h: float) -> None:
        self.integrator.check_step(system, alone(state), h)

    def check_run(self, t: float, h: float, steps: int) -> str | None:
        return self.integrator.check_run(t, h, steps) or self.control.check_run(t, h, steps)

    def refusal(self, system: AbstractGroupSystem, state: State, h: float, moved: float) -> Refusal:
        acting = self.acting(system, state, jnp.asarray(h))
        return self.integrator.refusal(acting, alone(state), h, moved)

    def fault(self, system: AbstractGroupSystem, state: State, h: float) -> str | None:
        return self.integrator.fault(self.acting(system, state, jnp.asarray(h)), alone(state), h)

    def culprit(self, system: AbstractGroupSystem, state: State, h: float) -> str | None:
        """Say, where it is so, that the controller made the step from `state` fail."""

        def look(driven: Driven, system: AbstractGroupSystem, state: State, h: Array) -> tuple:
            u = driven.ask_inputs(system, state, h)
            held = Driven(driven.integrator, driven.actuators, Held())
            start = State(state.g, state.momentum, state.t, u)
            new = alone(held.step(system, start, h)[0])
            kept = driven.control.next(system, new, state.control, h)
            after = State(new.g, new.momentum, new.t, kept)
            return u, new, kept, driven.ask_inputs(system, after, h)

        now = jax.tree.map(jnp.asarray, state)
        u, new, kept, then = jax.jit(look)(self, system, now, jnp.asarray(h))
        if not _all_finite(u):
            return _not_finite(self.control, u, state.t)
        if _all_finite((new.g, new.momentum)) and not _all_finite((kept, then)):
            return _not_finite(self.control, kept if _all_finite(then) else then, new.t)
        return None

    def memory(self, system: AbstractGroupSystem, state: State) -> Memory:
        return self.integrator.memory(self.acting(system, state, jnp.ones(())), alone(state))

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        new, info, _ = self.next_step(system, state, h, self.memory(system, state))
        return new, info

    def next_step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""], memory: Memory
    ) -> tuple[State, StepInfo, Memory]:
        acting, start = self.acting(system, state, h), alone(state)
        if self.memory_saves_work and self.control.holds:  # it may hold inputs that are over
            memory = self.integrator.memory(acting, start)
        new, info, memory = self.integrator.next_step(acting, start, h, memory)
        kept = self.control.next(system, new, state.control, h)
        return State(new.g, new.momentum, new.t, kept), info, memory


class _Checked:
    """Pairs of objects that have been seen to fit: to trace a law takes longer than many steps."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, int], tuple[Driven, AbstractGroupSystem]] = OrderedDict()
        remember(self)

    def cache_clear(self) -> None:
        self._kept.clear()

    def knows(self, driven: Driven, system: AbstractGroupSystem) -> bool:
        return (id(driven), id(system)) in self._kept

    def remember(self, driven: Driven, system: AbstractGroupSystem) -> None:
        """Keep both alive, so that no other object has their numbers."""
        if not is_traced(driven, system):
            self._kept[id(driven), id(system)] = driven, system
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)


_CHECKED = _Checked()


class Pushed(Frozen):
    """The external force of a driven system: its own, and that of the inputs."""

    own: Function | None
    actuators: Actuators
    law: Law

    def __call__(self, g: Element, xi: Coordinates, t: Float[Array, ""]) -> Coordinates:
        push = self.actuators.covector(g, self.law(g, xi, t))
        return push if self.own is None else jnp.asarray(self.own(g, xi, t)) + push


def alone(state: State) -> State:
    """Return the state of the plant, without that of its controller."""
    return State(state.g, state.momentum, state.t)


def _all_finite(tree: PyTree) -> bool:
    return all(bool(np.isfinite(x).all()) for x in jax.tree.leaves(tree))


def _not_finite(control: AbstractControl, found: PyTree, t: Array | np.ndarray) -> str:
    """Name the first of what is not finite; of outputs in a row the last is the new one."""
    odd = next(np.asarray(x) for x in jax.tree.leaves(found) if not _all_finite(x))
    told = numbers_of(odd[-1] if odd.ndim == 2 else odd)
    return f"the controller {control!r} gave {told} at t = {float(t):.6g} s"


def _example(system: AbstractGroupSystem, kept: Kept = None) -> State:
    """Return a state of the right form."""
    return State(system.group.identity(), jnp.zeros(system.group.dim), 0.0, kept)


def _restless(like: Inputs, g: Element, xi: Coordinates, t: Float[Array, ""]) -> Inputs:
    """Return inputs that differ from state to state without a rule that a symmetry could share."""
    seen = jnp.concatenate([*(jnp.ravel(x) for x in jax.tree.leaves(g)), xi, t[None]])
    mixed = jnp.sin(1.0 + np.arange(1, seen.size * like.size + 1)).reshape(like.size, -1)
    return 1.0 + mixed @ seen


def _first(
    control: AbstractControl, system: AbstractGroupSystem, state: State, inputs: Inputs
) -> Kept:
    return control.first(system, state, len(inputs))


def _is_alike(kept: object, like: Kept) -> bool:
    """Tell whether what a state keeps has the form of what a controller keeps.

    A file does not always tell how that was nested, and a plain tuple stands for it then.
    """
    found, tree = jax.tree.flatten(kept)
    wanted, wanted_tree = jax.tree.flatten(like)
    if tree != wanted_tree and type(kept) is not tuple:
        return False
    return [shape_and_dtype(x) for x in found] == [shape_and_dtype(x) for x in wanted]
