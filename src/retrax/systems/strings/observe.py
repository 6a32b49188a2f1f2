"""What a string pendulum measures: energies, strains, tensions, velocities."""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.mechanics.state import State
from retrax.numerics import tridiagonal
from retrax.numerics.small_matrices import cross
from retrax.systems.strings import chain

if TYPE_CHECKING:
    from retrax.systems.strings.string_pendulum import StringPendulum

UNITS: dict[str, str] = {
    "kinetic energy of the string": "J",
    "kinetic energy of the bodies": "J",
    "rotational energy of the bodies": "J",
    "elastic energy": "J",
    "gravity energy of the string": "J",
    "gravity energy of the bodies": "J",
    "elastic energy of elements": "J",
    "strain": "1",
    "tension": "N",
    "stretched length": "m",
    "velocity of attachment": "m/s",
    "velocity of centre of mass": "m/s",
    "angular velocity": "rad/s",
    "angular momentum": "kg m^2/s",
}


def observables(system: "StringPendulum", state: State) -> dict[str, Float[Array, "..."]]:
    """Return energies, strain and tension of the elements, length and velocities, by name.

    All of them are functions of the momenta: differences of two positions would give velocities in
    the middle of a step. The rotational energy is the kinetic energy of the bodies without that of
    their centres of mass.
    """
    r, R = system.parts(state.g)
    v, omega = system.velocities(state.g, state.momentum)
    u, kappa = system.spacing, system.stiffness / system.spacing
    string = chain.masses(system.elements, system.density * u)
    arms = jax.vmap(jnp.matmul)(R, system.arm)
    v_body = system.carrier_rows(v)
    v_centre = v_body + jax.vmap(lambda R, w, arm: R @ cross(w, arm))(R, omega, system.arm)
    central = system.inertia - jax.vmap(_parallel)(system.mass, system.arm)
    spin = jnp.sum(jax.vmap(lambda w, J: w @ (J @ w) / 2)(omega, central))
    travel = jnp.sum(system.mass * jnp.sum(v_centre**2, axis=1)) / 2
    longer = chain.lengths(chain.spans(r)) - u
    elastic = chain.elastic_energies(r, u, kappa, system.slack)
    momentum = tridiagonal.product(string.diagonal, string.below, v)
    height = system.carrier_rows(r) + arms
    return {
        "kinetic energy of the string": jnp.sum(v * momentum) / 2,
        "kinetic energy of the bodies": travel + spin,
        "rotational energy of the bodies": spin,
        "elastic energy": jnp.sum(elastic),
        "gravity energy of the string": -system.gravity * (string.weights @ r[:, 2]),
        "gravity energy of the bodies": -system.gravity * (system.mass @ height[:, 2]),
        "elastic energy of elements": elastic,
        "strain": longer / u,
        "tension": kappa * (jnp.maximum(longer, 0.0) if system.slack else longer),
        "stretched length": jnp.sum(longer + u),
        "velocity of attachment": v_body,
        "velocity of centre of mass": v_centre,
        "angular velocity": omega,
        "angular momentum": angular_momentum(system, state),
    }


def angular_momentum(system: "StringPendulum", state: State) -> Float[Array, "3"]:
    r"""Return $\sum_ar_a\times p_a + \sum_bR_b\pi_b$, about the pivot, in space axes."""
    r, R = system.parts(state.g)
    p, pi = system.momenta(state.momentum)
    return jnp.sum(jax.vmap(cross)(r, p), axis=0) + jnp.sum(jax.vmap(jnp.matmul)(R, pi), axis=0)


def _parallel(mass: Float[Array, ""], arm: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """Return what a mass at the end of `arm` adds to an inertia."""
    return mass * (arm @ arm * jnp.eye(3) - jnp.outer(arm, arm))
