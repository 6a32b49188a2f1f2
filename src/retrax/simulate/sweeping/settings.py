"""Integrators and step sizes of a sweep: each pair is run over all members."""

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from retrax.errors import BadInput
from retrax.integrators.catalogue import as_integrator
from retrax.simulate.ensemble import saved_states
from retrax.simulate.validate import require_count, require_step_size


class Setting(NamedTuple):
    """How one run over all members is made."""

    integrator: Any
    h: float
    steps: int
    save_every: int | None


class Settings(NamedTuple):
    """Dimensions with their sizes, labels, and the settings along the last dimension first."""

    sizes: dict[str, int]
    labels: dict[str, tuple[tuple[str, ...], np.ndarray]]
    each: tuple[Setting, ...]

    @property
    def records(self) -> int:
        """How many states are saved of each member."""
        return saved_states(self.each[0].steps, self.each[0].save_every)


def settings(integrator: Any, h: Any, steps: Any, save_every: Any) -> Settings:
    """A dimension `integrator` where that is a dict, and a dimension `h` where that is a list."""
    sizes, labels = {}, {}
    named = isinstance(integrator, Mapping)
    if named:
        if not integrator or not all(isinstance(name, str) for name in integrator):
            raise BadInput(
                f"integrator = {integrator!r} must be an integrator or a dict of them by name."
            )
        sizes["integrator"] = len(integrator)
        labels["integrator"] = (("integrator",), np.array(list(integrator)))
    sized = np.ndim(h) == 1
    if sized:
        sizes["h"] = len(h)
        labels["h"] = (("h",), np.asarray(h, dtype=float))
        if len(set(labels["h"][1])) != len(h) or not len(h):
            raise BadInput(f"h = {h!r} must be one step size or a list of different ones.")
    each_h = list(h) if sized else [h]
    counts = zip(
        each_h, _each("steps", steps, sizes), _each("save_every", save_every, sizes), strict=True
    )
    sequence = [_checked(*count) for count in counts]
    records = {saved_states(n, every) for _, n, every in sequence}
    if len(records) > 1:
        raise BadInput(
            f"the step sizes h = {h!r} would save {sorted(records)} states, but must all save as "
            "many: give a save_every for each, or None."
        )
    given = list(integrator.values()) if named else [integrator]
    integrators = [as_integrator(one) for one in given]
    each = tuple(Setting(i, *count) for i, count in itertools.product(integrators, sequence))
    return Settings(sizes, labels, each)


def _each(name: str, value: Any, sizes: dict[str, int]) -> list[Any]:
    """A value for each step size, where one may stand for all."""
    if not isinstance(value, list | tuple | np.ndarray) or np.ndim(value) == 0:
        return [value] * sizes.get("h", 1)
    if len(value) != sizes.get("h"):
        raise BadInput(
            f"{name} = {value!r} must be one number, or a list of one for each of a list h."
        )
    return list(value)


def _checked(h: Any, steps: Any, save_every: Any) -> tuple[float, int, int | None]:
    require_step_size(h)
    require_count("steps", steps)
    if save_every is None:
        return float(h), int(steps), None
    require_count("save_every", save_every)
    return float(h), int(steps), int(save_every)
