"""The times at which the members of a sweep are saved."""

import math
from typing import Any

import numpy as np

from retrax.simulate.plan import saved_steps
from retrax.simulate.sweeping.axes import Axes
from retrax.simulate.sweeping.bodies import Bodies
from retrax.simulate.sweeping.settings import Settings


def times(axes: Axes, settings: Settings, bodies: Bodies) -> dict[str, Any]:
    """The times of the saved states: one list for all, or as many as step sizes and starts differ.

    They are the times that a run has, t0 + k h.
    """
    one_of_each_h = settings.each[: settings.sizes.get("h", 1)]
    behind = np.stack([saved_steps(s.steps, s.save_every) * s.h for s in one_of_each_h], axis=1)
    starts = np.asarray(bodies.states.t)
    alike = bool((starts == starts[0]).all())
    if alike and "h" not in settings.sizes:
        return {"time": (("time",), starts[0] + behind[:, 0])}
    dims, shape = ["time"], [len(behind)]
    if "h" in settings.sizes:
        dims, shape = ["time", "h"], list(behind.shape)
    t = behind.reshape(shape)
    if alike:
        return {"t": (tuple(dims), starts[0] + t)}
    several = starts.reshape(math.prod(axes.sizes.values()))
    t = t[..., None] + several
    return {"t": ((*dims, *axes.sizes), t.reshape(*shape, *axes.sizes.values()))}
