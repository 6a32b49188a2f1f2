"""A state shows its numbers."""

import jax
import jax.numpy as jnp
import numpy as np

import retrax as rx

EYE = "[[1, 0, 0], [0, 1, 0], [0, 0, 1]]"


def test_a_state_shows_its_numbers_in_one_line():
    top = rx.MechanicalSystem(rx.SO3(), [1.0, 1.0, 1.0])
    state = top.state(jnp.eye(3), momentum=[1.0, -2.5, 1 / 3], t=0.25)
    assert repr(state) == f"State(g={EYE}, momentum=[1, -2.5, 0.333333], t=0.25)"


def test_configurations_that_are_tuples_show_their_parts():
    body = rx.MechanicalSystem(rx.SE3(), [1.0, 1.0, 1.0, 2.0, 2.0, 2.0])
    state = body.state((jnp.eye(3), jnp.zeros(3)), momentum=np.arange(6.0))
    assert repr(state) == f"State(g=({EYE}, [0, 0, 0]), momentum=[0, 1, 2, 3, 4, 5], t=0)"
    alone = rx.State((jnp.ones(2),), jnp.ones(1))
    assert repr(alone) == "State(g=([1, 1],), momentum=[1], t=0)"


def test_long_arrays_leave_out_their_middle():
    many = rx.State(jnp.ones((500, 3, 3)), jnp.ones((500, 3)), jnp.arange(500.0))
    text = repr(many)
    assert len(text) < 250 and "\n" not in text
    assert text.endswith("t=[0, 1, 2, ..., 497, 498, 499])")


def test_states_without_numbers_show_their_shapes():
    state, seen = rx.State(jnp.eye(3), jnp.ones(3)), []
    jax.jit(lambda s: seen.append(repr(s)))(state)
    seen.append(repr(jax.eval_shape(lambda: state)))
    assert seen == ["State(g=float64[3, 3], momentum=float64[3], t=float64[])"] * 2


def test_states_of_anything_can_be_shown():
    nothing = jax.tree.map(lambda x: None, rx.State(jnp.eye(3), jnp.ones(3)))
    assert repr(nothing) == "State(g=None, momentum=None, t=None)"
    named = rx.State({"a": jnp.ones(2)}, jnp.asarray([jnp.nan, 1e-300]))
    assert repr(named) == "State(g={'a': [1, 1]}, momentum=[nan, 1e-300], t=0)"
