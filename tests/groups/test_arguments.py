"""Whatever is handed to a method of a group, it answers with finite numbers or with a sentence."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx

GROUPS = [
    rx.SO3(), rx.SE3(), rx.SO2(), rx.SE2(), rx.SO(4), rx.Translation(3), rx.Power(rx.SO3(), 2),
    rx.Product(rx.SO3(), rx.Translation(2)),
]  # fmt: skip


class Odd:
    def __repr__(self):
        raise RuntimeError

    def __array__(self, *args, **kwargs):
        raise ValueError


JUNK = [
    {}, (), [], None, "abc", 3, np.nan, True, 1 + 2j, np.ones(11), [[1, 2], [3]], ["a"],
    (x for x in (1, 2, 3)), object(), Odd(), np.array(["a"]), np.ones((2, 2, 2, 2)), rx.SO3(),
]  # fmt: skip


def _methods(group):
    for name in dir(type(group)):
        method = getattr(group, name)
        if not name.startswith("_") and inspect.ismethod(method):
            given = list(inspect.signature(method).parameters)
            if given and given[0] not in ("name", "cls") and "order" not in given:
                yield method, given


def _right(group):
    g, xi = group.random(jax.random.key(1)), jnp.full(group.dim, 0.1)
    return {
        "g": g, "k": g, "delta": group.expm1(xi), "a": group.identity(), "x": group.hat(xi),
        "key": jax.random.key(2), "xi": xi, "eta": xi, "mu": xi,
    }  # fmt: skip


def _told(call, **given) -> None:
    try:
        call(**given)
    except rx.BadInput as error:
        assert len(str(error)) > 20
    else:
        pytest.fail(f"{call.__name__} accepted {given}")


@pytest.mark.campaign
@pytest.mark.parametrize("group", GROUPS, ids=repr)
def test_junk_is_refused_in_a_sentence_by_every_method(group):
    right = _right(group)
    for method, names in _methods(group):
        for name in names:
            optional = inspect.signature(method).parameters[name].default is None
            for junk in JUNK:
                if not (junk is None and optional):
                    _told(method, **{n: right[n] for n in names} | {name: junk})


def test_the_sentence_names_group_method_and_argument():
    with pytest.raises(rx.BadInput, match=r"^SO3\(\)\.exp: xi = \{\} must be an array of real"):
        rx.SO3().exp({})
    with pytest.raises(rx.BadInput, match=r"^SO3\(\)\.exp: xi has shape \(4,\), but must have"):
        rx.SO3().exp(jnp.ones(4))
    with pytest.raises(rx.BadInput, match=r"^SO3\(\)\.log: g is not an element of SO\(3\)"):
        rx.SO3().log(())
    with pytest.raises(rx.BadInput, match=r"SO3\(\)\.log: g is not a rotation: .*= 3"):
        rx.SO3().log(2 * jnp.eye(3))
    with pytest.raises(rx.BadInput, match=r"key = 3 is not one key of JAX"):
        rx.SO3().random(3)


def test_numbers_that_overflow_are_refused():
    with pytest.raises(rx.BadInput, match=r"SO3\(\)\.exp is not finite for xi"):
        rx.SO3().exp(np.full(3, 1e200))


def test_lists_and_integers_are_numbers():
    np.testing.assert_array_equal(rx.SO3().exp([0, 0, 1]), rx.SO3().exp(jnp.array([0.0, 0, 1])))
    np.testing.assert_array_equal(rx.SE2().inverse((np.eye(2), [0, 0]))[1], np.zeros(2))


def test_nothing_is_looked_at_while_jax_traces():
    out = jax.jit(jax.vmap(rx.SO3().exp))(jnp.full((4, 3), jnp.nan))
    assert out.shape == (4, 3, 3)


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap], ids=["jit", "vmap"])
@pytest.mark.parametrize(
    ("method", "shapes", "told"),
    [
        (rx.SO3().exp, [(4,)], r"SO3\(\)\.exp: xi is an array of shape \(4,\), but must be an"),
        (rx.SO3().log, [(4, 4)], r"SO3\(\)\.log: g is an array of shape \(4, 4\)"),
        (rx.SO3().compose, [(3, 3), (4, 4)], r"compose: k is an array of shape \(4, 4\)"),
        (rx.SE3().log, [(4, 4)], r"must be a tuple \(an array of shape \(3, 3\), an array"),
        (rx.SE3().vee, [(5, 5)], r"x is an array of shape \(5, 5\)"),
        (rx.Sphere(3).move, [(4,), (3,)], r"Sphere\(3\)\.move: y is an array of shape \(4,\)"),
    ],
)
def test_shapes_are_looked_at_also_where_jax_traces(transform, method, shapes, told):
    many = (2,) if transform is jax.vmap else ()
    with pytest.raises(rx.BadInput, match=told):
        transform(method)(*(jnp.zeros((*many, *shape)) for shape in shapes))


def test_a_list_of_traced_numbers_is_a_vector():
    assert jax.grad(lambda a: rx.SO3().exp([a, 0.0, 0.0])[2, 1])(0.3) == pytest.approx(np.cos(0.3))


@pytest.mark.parametrize("group", [x for x in GROUPS if x.name[0] != "R"], ids=repr)
def test_a_matrix_that_is_not_in_the_algebra_is_refused(group):
    x = group.hat(jnp.full(group.dim, 1e200))
    assert np.array_equal(group.vee(x), np.full(group.dim, 1e200))
    with pytest.raises(rx.BadInput, match="is not in the algebra of"):
        group.vee(jax.tree.map(jnp.ones_like, x))
