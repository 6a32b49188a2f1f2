"""Where the model of strings in contact ends: a contact that reaches the speed of the waves."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from retrax.errors import ContactTooFast
from retrax.mechanics.state import Ending, State, bracket

if TYPE_CHECKING:
    from retrax.systems.strings.strings_in_contact import StringsInContact


def ending(system: "StringsInContact", step: Callable[[float], State], h: float) -> Ending | None:
    """Where within a step of size `h` a contact becomes as fast as the waves, if it does."""
    lasts = jax.jit(system.lasts)
    if bool(lasts(step(h))):
        return None
    first, _ = bracket(lambda size: bool(lasts(step(size))), h)
    state = jax.tree.map(jnp.asarray, step(first))
    s, speeds = state.g[2], np.asarray(system.velocity(state.g, state.momentum)[-2:])
    return Ending(
        "moved a contact faster than the waves",
        f"The contacts are at s = ({float(s[0]):.4g}, {float(s[1]):.4g}) with speeds "
        f"({speeds[0]:.3g}, {speeds[1]:.3g}), and the model holds only below c = "
        f"{float(system.c):g}; what counts is G max|u_t|/c, so take a smaller G or amplitude.",
        ContactTooFast,
        state,
    )
