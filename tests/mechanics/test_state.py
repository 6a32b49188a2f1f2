"""A state shows its numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

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


TOP = rx.systems.HeavyTop([1.0, 1.7, 2.3], 1.0, [0.4, -0.3, 1.1])
FOREIGN = TOP.state(jnp.eye(3), velocity=[1.2, -0.5, 2.0])
LOOKS = {
    "energy", "velocity_at", "observables", "invariants", "power", "multipliers", "reaction",
    "constraint_violation", "freedoms", "redundant", "pose",
}  # fmt: skip


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["plain", "jit"])
@pytest.mark.parametrize(
    "make", [rx.systems.double_pendulum, lambda: rx.systems.FlyingBody([1.0] * 3, 1.0)]
)
def test_a_system_refuses_the_states_of_another(make, transform):
    system = make()
    for name in LOOKS & {*dir(system)}:
        more = (system.names[0],) if name == "pose" else ()
        look = getattr(system, name)
        with pytest.raises(rx.BadInput, match=r"state is not one of the .*: its g is an array of"):
            transform(lambda state, look=look, more=more: look(state, *more))(FOREIGN)
        with pytest.raises(rx.BadInput, match="state = None is not a State"):
            look(None, *more)
    with pytest.raises(TypeError, match="state"):
        system.energy()


def test_a_state_that_lacks_a_momentum_is_refused():
    with pytest.raises(rx.BadInput, match=r"its momentum an array of shape \(2,\), but must be"):
        TOP.energy(rx.State(jnp.eye(3), jnp.ones(2)))
