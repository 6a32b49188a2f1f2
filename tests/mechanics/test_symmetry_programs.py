"""Looking for symmetries compiles one program for each kind of system, not one for each look."""

import jax.numpy as jnp

import retrax as rx


def test_a_second_look_traces_nothing():
    traced = []

    class Height:
        def __call__(self, rotation):
            traced.append(rotation)
            return rotation[2, 2]

    top = rx.MechanicalSystem(rx.SO3(), [1.0, 1.0, 2.0], Height())
    first = top.symmetries()
    once = len(traced)
    assert [rows.tolist() for rows in top.symmetries()] == [rows.tolist() for rows in first]
    assert len(traced) == once > 0


def test_the_same_program_sees_other_numbers():
    def top(*moments):
        return rx.MechanicalSystem(rx.SO3(), moments, lambda R: R[2, 2])

    assert jnp.shape(top(1.0, 1.0, 2.0).symmetries().body) == (1, 3)
    assert jnp.shape(top(1.0, 1.5, 2.0).symmetries().body) == (0, 3)
