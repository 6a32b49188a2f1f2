"""What is seen to be no number for any argument, and what may be one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.numerics.bounds import is_never_a_number

C = np.array([1.0, 2.0, 3.0])
NEVER = [
    lambda R, m: jnp.log(-1 - jnp.sum(m**2)),
    lambda R, m: 0.5 * jnp.sum(m**2) + jnp.log(-2 - R[2, 2] ** 2),
    lambda R, m: m[0] * jnp.nan,
    lambda R, m: jnp.sqrt(-1 - m @ m),
    lambda R, m: jnp.log(-jnp.exp(m[0]) - 0.1),
    lambda R, m: jnp.sum(C * np.nan * m),
    lambda R, m: jnp.log(jnp.sin(m[0]) - 2),
]
SOMEWHERE = [
    lambda R, m: jnp.log(1 - jnp.sum(m**2)),
    lambda R, m: jnp.sqrt(-1 + jnp.sum(m**2)),
    lambda R, m: jnp.log(-1 - m[0]),
    lambda R, m: jnp.log(m[0] * m[1]),
    lambda R, m: jnp.log(-(m[0] ** 3)),
    lambda R, m: jnp.where(m[0] > 0, jnp.log(-1 - m[0] ** 2), 1.0),
    lambda R, m: jnp.sqrt(-m @ m),
    lambda R, m: jnp.log((R @ m) @ m),
    lambda R, m: jnp.nansum(jnp.log(-1 - m**2)),
    lambda R, m: jnp.log(R[2, 2] - 0.999999) + jnp.log(0.01 - jnp.abs(m[0] - 1000)),
]


@pytest.mark.parametrize("function", NEVER)
def test_what_is_never_a_number_is_seen_and_is_no_energy(function):
    assert is_never_a_number(jax.make_jaxpr(function)(jnp.eye(3), jnp.zeros(3)))
    for kind in (rx.HamiltonianSystem, rx.LagrangianSystem):
        with pytest.raises(rx.BadInput, match="is nan everywhere: it must be a number"):
            kind(rx.SO3(), function)
    if function is NEVER[1]:
        with pytest.raises(rx.BadInput, match="potential is nan everywhere"):
            rx.MechanicalSystem(rx.SO3(), C, lambda R: function(R, jnp.zeros(3)))


@pytest.mark.parametrize("function", SOMEWHERE)
def test_what_may_be_a_number_somewhere_is_left_alone(function):
    assert not is_never_a_number(jax.make_jaxpr(function)(jnp.eye(3), jnp.zeros(3)))
