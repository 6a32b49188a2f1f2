"""What a user reads when a group or an element is not one."""

import jax
import jax.numpy as jnp
import pytest

import retrax as rx

SCALED = 1.15 * jnp.eye(3)
MIRROR = jnp.diag(jnp.array([1.0, 1.0, -1.0]))


@pytest.mark.parametrize(
    ("group", "g", "sentence"),
    [
        (
            rx.SO3(),
            SCALED,
            r"R0 is not a rotation: max \|R\^T R - 1\| = 0.32, allowed 1e-09; make it one with "
            r"SO3\(\).project\(R0\).",
        ),
        (rx.SO3(), MIRROR, r"R0 is a reflection \(det = -1\), not a rotation."),
        (rx.SO3(), jnp.eye(2), r"expected an array of shape \(3, 3\), got an array of shape \(2,"),
        (rx.SO3(), (jnp.eye(3), jnp.zeros(3)), r"expected an array .*, got a tuple \(an array"),
        (rx.SO3(), jnp.full((3, 3), jnp.nan), r"R0 must be finite, but its entry \[0, 0\] is nan"),
        (rx.SO3(), jnp.eye(3, dtype=jnp.float32), "R0 has dtype float32"),
        (rx.SO2(), 2 * jnp.eye(2), r"R0 is not a rotation: .* = 3, .*SO2\(\).project\(R0\)"),
        (rx.SO2(), MIRROR[1:, 1:], "R0 is a reflection"),
        (rx.SE3(), (MIRROR, jnp.zeros(3)), r"R0\[0\] is a reflection"),
        (rx.SE2(), (2 * jnp.eye(2), jnp.zeros(2)), r"R0\[0\] is not a rotation"),
        (rx.SE3(), jnp.eye(4), r"element of SE\(3\): expected a tuple \(an array of shape \(3, 3"),
        (rx.Product(rx.Translation(2), rx.SO3()), (jnp.zeros(2), SCALED), r"R0\[1\] is not a rot"),
        (rx.Power(rx.SO3(), 2), jnp.stack([jnp.eye(3), MIRROR]), "node 1 of R0 is a reflection"),
        (rx.Translation(2), jnp.zeros(3), r"element of R\^2: expected an array of shape \(2,\)"),
    ],
)
def test_what_is_not_an_element_is_refused_in_one_sentence(group, g, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        group.check("R0", g)


@pytest.mark.parametrize(
    "group", [rx.SO2(), rx.SO3(), rx.SE2(), rx.SE3(), rx.Product(rx.SO3(), rx.Translation(2))]
)
def test_elements_are_accepted(group, key):
    group.check("g", group.random(key))


def test_traced_values_are_not_looked_at():
    jax.jit(lambda R: rx.SO3().check("R0", R))(SCALED)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: rx.Translation(0), "Translation: n = 0 must be a whole number of at least 1"),
        (lambda: rx.Translation(-1), "Translation: n = -1 must be"),
        (lambda: rx.Power(rx.SO3(), 0), "Power: n = 0 must be"),
        (lambda: rx.Product(), r"Product\(\) has no factors"),
    ],
)
def test_bad_groups_are_refused(make, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        make()


@pytest.mark.parametrize(
    ("group", "text", "name"),
    [
        (rx.SO2(), "SO2()", "SO(2)"),
        (rx.SO3(), "SO3()", "SO(3)"),
        (rx.SE2(), "SE2()", "SE(2)"),
        (rx.SE3(), "SE3()", "SE(3)"),
        (rx.Translation(3), "Translation(3)", "R^3"),
        (rx.Product(rx.SO3(), rx.Translation(2)), "Product(SO3(), Translation(2))", "SO(3) x R^2"),
        (rx.Power(rx.SO3(), 4), "Power(SO3(), 4)", "SO(3)^4"),
        (rx.Power(rx.Translation(2), 4), "Power(Translation(2), 4)", "(R^2)^4"),
    ],
)
def test_repr_and_name(group, text, name):
    assert (repr(group), group.name) == (text, name)


def test_equal_groups_are_equal_and_hash_alike():
    a, b = (rx.Product(rx.SO3(), rx.Translation(2)) for _ in range(2))
    assert a == b
    assert hash(a) == hash(b)
    assert a != rx.Product(rx.SO3(), rx.Translation(3))
