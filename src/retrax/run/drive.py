"""Driven runs: an `Actuated` system and who drives it, as a system and an integrator."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

import jax

from retrax.errors import BadInput
from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.driven import Driven
from retrax.mechanics.actuated import Actuated
from retrax.mechanics.controls import AbstractControl
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import is_traced, quote
from retrax.numerics.reuse import remember

# What may be run: a system, or one with inputs.
Plant = AbstractGroupSystem | Actuated
# So many driven integrators are kept: the same one for the same parts.
_MOST = 16


def unwrap(
    plant: object, integrator: AbstractIntegrator, control: object
) -> tuple[Any, AbstractIntegrator]:
    """Return what moves, and how a step of it is taken under `control`.

    **Raises:** `BadInput` where a system without inputs is to be driven, or `control` cannot drive.
    """
    if control is None:
        return (_free(plant) if isinstance(plant, Actuated) else plant), integrator
    drives = require_control(control)
    if not isinstance(plant, Actuated):
        if not isinstance(plant, AbstractGroupSystem):
            return plant, integrator  # the checks of a run say what is wrong with it
        raise BadInput(
            f"control = {control!r} drives inputs, but the {plant.name} has none: run "
            f"{plant.driven_as}."
        )
    return plant.system, _DRIVEN.of(integrator, plant, drives)


def _free(plant: Actuated) -> AbstractGroupSystem:
    """Return what moves without inputs, if they may be zero."""
    if not plant.actuators.may_rest:
        raise BadInput(
            f"without control the {plant.name} runs free, with inputs of zero, but its bounds "
            "leave out zero: give control=rx.Signal(t, u), or run plant.system."
        )
    return plant.system


def begin_run(system: object, integrator: AbstractIntegrator, state: object) -> Any:
    """Return a start with what a controller keeps, and without what another has kept."""
    if not isinstance(state, State) or not isinstance(system, AbstractGroupSystem):
        return state  # the checks of a run say what is wrong with it
    if state.control is None and not isinstance(integrator, Driven):
        return state
    return integrator.begin(system, state)


def require_control(control: object) -> AbstractControl:
    """Return what drives a plant, if it can."""
    if isinstance(control, AbstractControl):
        return control
    if callable(control):
        how = "rx.Feedback(law) lets it act within each step, rx.Sampled(law, period=...) samples"
    else:
        how = "a table is rx.Signal(t, u), a law rx.Feedback(law) or rx.Sampled(law, period=...)"
    raise BadInput(f"control = {quote(control)} does not say how it drives: {how}.")


class _DrivenIntegrators:
    """One driven integrator for the same three parts: who runs them often is to find it again."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[Driven, Actuated]] = OrderedDict()
        remember(self)

    def cache_clear(self) -> None:
        self._kept.clear()

    def of(
        self, integrator: AbstractIntegrator, plant: Actuated, control: AbstractControl
    ) -> Driven:
        if is_traced(integrator, plant, control):
            return _drive(integrator, plant, control)
        arrays, written = jax.tree.flatten(integrator)
        these = (id(integrator) if arrays else written, id(plant), id(control))
        if these not in self._kept:
            # Keeps them alive, so that no other object has their numbers.
            self._kept[these] = _drive(integrator, plant, control), plant
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        self._kept.move_to_end(these)
        return self._kept[these][0]


def _drive(integrator: AbstractIntegrator, plant: Actuated, control: AbstractControl) -> Driven:
    driven = Driven(integrator, plant.actuators, control)
    driven.check(plant.system)
    return driven


_DRIVEN = _DrivenIntegrators()
