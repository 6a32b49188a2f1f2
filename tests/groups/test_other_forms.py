"""What is given instead of an element is recognised, and the sentence works as it is written."""

import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.groups.base import AbstractLieGroup

FORMS = [
    (rx.SO3(), np.ones(4), "from_quaternion"),
    (rx.SO3(), np.ones(3), r"SO3\(\).exp\(v\).*Euler"),
    (rx.SO3(), np.eye(4), r"T\[:3, :3\]"),
    (rx.SO2(), 0.3, r"SO2\(\).exp\(jnp.array\(\[angle\]\)\)"),
    (rx.SE3(), np.eye(4), r"\(T\[:3, :3\], T\[:3, 3\]\)"),
    (rx.SE3(), np.ones(6), r"SE3\(\).exp\(xi\)"),
    (rx.SE3(), np.ones(7), "from_quaternion"),
    (rx.SE3(), (np.ones(4), np.ones(3)), "from_quaternion"),
    (rx.SE2(), np.ones(3), r"SO2\(\).exp"),
    (rx.SE2(), (0.3, np.ones(2)), r"SO2\(\).exp"),
    (rx.Power(rx.SO3(), 5), np.ones((5, 4)), "from_quaternion"),
    (rx.Product(rx.SO3(), rx.Translation(2)), (np.ones(4), np.ones(2)), "from_quaternion"),
]


@pytest.mark.parametrize(("group", "given", "words"), FORMS)
def test_what_was_given_is_recognised(group: AbstractLieGroup, given, words):
    with pytest.raises(rx.BadInput, match=f"is not an element of .*{words}"):
        group.check("g", given)


def test_a_shape_that_is_nothing_known_gets_no_advice():
    with pytest.raises(rx.BadInput, match=r"got an array of shape \(5, 2\)\.$"):
        rx.SO3().check("g", np.ones((5, 2)))


def test_a_state_at_a_quaternion_names_the_function():
    with pytest.raises(rx.BadInput, match="from_quaternion"):
        rx.systems.FreeRigidBody([1.0, 1.2, 1.5]).state([1.0, 0.0, 0.0, 0.0], velocity=jnp.ones(3))


def test_the_products_that_the_sentences_write_down_are_elements():
    yaw, pitch, roll, SO3 = 0.3, 0.2, 0.1, rx.SO3
    R = (
        SO3().exp(jnp.array([0, 0, yaw]))
        @ SO3().exp(jnp.array([0, pitch, 0]))
        @ SO3().exp(jnp.array([roll, 0, 0]))
    )
    SO3().check("g", R)
    rx.SE2().check("g", (rx.SO2().exp(jnp.array([yaw])), jnp.array([1.0, 2.0])))
