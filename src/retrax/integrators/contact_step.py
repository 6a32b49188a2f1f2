"""What the integrators of strings in contact have in common: which systems, how fast a contact."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from retrax.errors import BadInput, ContactTooFast
from retrax.integrators.base import AbstractIntegrator, Refusal
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.systems.strings.strings_in_contact import StringsInContact


def require_strings(integrator: AbstractIntegrator, system: AbstractGroupSystem) -> None:
    """Refuse everything but a pair of strings."""
    if not isinstance(system, StringsInContact):
        raise BadInput(
            f"{type(integrator).__name__} steps StringsInContact, whose contacts carry no momentum,"
            f" but the {system.name} is another system; use LieVerlet or, under a constraint, "
            "LagrangeDAlembert."
        )


def speeds_allowed(system: StringsInContact, speeds: Float[Array, "2"]) -> Bool[Array, ""]:
    """Whether both contacts are slower than the waves."""
    return jnp.max(jnp.abs(speeds)) < system.c


def too_fast(system: StringsInContact, state: State, h: float) -> Refusal:
    """What to say of a contact that reaches the speed of the waves."""
    state = jax.tree.map(jnp.asarray, state)
    s = [float(x) for x in state.g[2]]
    speeds = system.velocity(state.g, state.momentum)[-2:]
    return Refusal(
        "moved a contact faster than the waves",
        f"The contacts are at s = ({s[0]:.6g}, {s[1]:.6g}) with speeds ({float(speeds[0]):.3g}, "
        f"{float(speeds[1]):.3g}), and the model holds only below c = {float(system.c):g}; what "
        "counts is G max|u_t|/c, so take a smaller G or amplitude.",
        h,
        ContactTooFast,
    )
