"""Numbers in functions: a changed one is used, and from the second change on costs nothing.

Every case falls freely for a step, with a weight that is held in another way and changes.
"""

import functools
import math
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import retrax as rx
from retrax.engine.backends.native import single_kernel

H = 0.25
weight_of_all, table, named = 2.0, [2.0, 7.0], {"w": 2.0}


class Weight:
    """A callable object with a method."""

    def __init__(self):
        self.w, self.name = 2.0, "weight"

    def __call__(self, x):
        return self.w * x[0]

    def twice(self, x):
        return self.w * x[0] * self.half()

    def half(self):
        return 1.0


def by_global(x):
    return weight_of_all * x[0]


def calls_by_global(x):
    return by_global(x)


def _parameters():
    """A potential and what changes its weight, by name: all of these are traced."""
    cell, array, device = 2.0, np.array([2.0, 5.0]), jnp.array(2.0)
    scalar, bound, held = np.float64(2.0), Weight(), Weight()
    place = types.SimpleNamespace(w=2.0, inner=types.SimpleNamespace(w=2.0))
    listed, pairs = [2.0, 1.0], {"w": (2.0, 3.0)}

    def closes(x):
        return cell * x[0]

    def nested(x):
        return jnp.sum(jax.vmap(lambda y: closes(y[None]))(x))

    def set_cell(value):
        nonlocal cell
        cell = value

    def set_scalar(value):
        nonlocal scalar
        scalar = np.float64(value)

    def set_device(value):
        nonlocal device
        device = jnp.array(value)

    def set_pairs(value):
        pairs["w"] = (value, 3.0)

    def with_default(x, by=2.0):
        return by * x[0]

    def with_keyword(x, *, by=2.0):
        return by * x[0]

    given = functools.partial(lambda w, x: w["w"] * x[0], {"w": 2.0})

    def loops(x):
        return lax.fori_loop(0, 3, lambda k, y: y + cell * x[0] / 3.0, 0.0)

    return {
        "cell": (closes, set_cell),
        "function in a cell": (nested, set_cell),
        "in a JAX loop": (loops, set_cell),
        "NumPy scalar": (lambda x: scalar * x[0], set_scalar),
        "JAX array": (lambda x: device * x[0], set_device),
        "array in place": (lambda x: array[0] * x[0], lambda v: array.__setitem__(0, v)),
        "list in place": (lambda x: listed[0] * x[0], lambda v: listed.__setitem__(0, v)),
        "tuple in a dictionary": (lambda x: pairs["w"][0] * x[0], set_pairs),
        "global": (by_global, lambda v: globals().update(weight_of_all=v)),
        "global of a global function": (
            calls_by_global,
            lambda v: globals().update(weight_of_all=v),
        ),
        "global list": (lambda x: table[0] * x[0], lambda v: table.__setitem__(0, v)),
        "global dictionary": (lambda x: named["w"] * x[0], lambda v: named.update(w=v)),
        "default": (with_default, lambda v: setattr(with_default, "__defaults__", (v,))),
        "keyword default": (with_keyword, lambda v: with_keyword.__kwdefaults__.update(by=v)),
        "partial": (given, lambda v: given.args[0].update(w=v)),
        "callable object": (held, lambda v: setattr(held, "w", v)),
        "bound method": (bound.twice, lambda v: setattr(bound, "w", v)),
        "attribute": (lambda x: held.w * x[0], lambda v: setattr(held, "w", v)),
        "attribute of an attribute": (
            lambda x: place.inner.w * x[0],
            lambda v: setattr(place.inner, "w", v),
        ),
    }


def _constants():
    """The same for weights that cannot be traced, or must not be."""
    w = 2.0

    def set_w(value):
        nonlocal w
        w = value

    def caught(x):
        try:
            return x[0] * (w if w > 2.5 else 2.0)
        except Exception:
            return 99.0 * x[0]

    def counted(x):
        nonlocal w
        w = w + 0.0
        return w * x[0]

    return {
        "chosen by hand": (lambda x: jnp.where(w > 0, w, 1.0 * w) * x[0], set_w),
        "if": (lambda x: w * x[0] if w < 2.5 else w * x[0] + 0.0 * w, set_w),
        "math": (lambda x: math.sqrt(w * w) * x[0], set_w),
        "NumPy": (lambda x: float(np.sum([w])) * x[0], set_w),
        "a count": (lambda x: sum([x[0]] * int(w)), set_w),
        "a type": (lambda x: (w if isinstance(w, float) else 99.0) * x[0], set_w),
        "another type": (lambda x: (w if type(w) is float else 99.0) * x[0], set_w),
        "an error that is caught": (caught, set_w),
        "bound anew": (counted, set_w),
        "jitted": (jax.jit(lambda x: w * x[0]), set_w),
    }


@pytest.fixture(autouse=True)
def _as_before():
    yield
    globals().update(weight_of_all=2.0)
    table[0], named["w"] = 2.0, 2.0


def _system(potential):
    return rx.MechanicalSystem(rx.Translation(1), [1.0], potential)


def _weight_in(system, **more):
    """The weight that a run of one step from rest at x = 1 has felt."""
    start = system.state([1.0], velocity=[0.0])
    options = dict(h=H, steps=1, progress=False) | more
    return -float(rx.simulate(system, rx.RKMK("euler"), start, **options).momentum[-1, 0]) / H


@pytest.mark.parametrize("case", _parameters())
def test_a_number_that_changes_is_used_and_compiles_one_more_program(case):
    potential, change = _parameters()[case]
    system = _system(potential)
    assert _weight_in(system) == 2.0
    change(3.0)
    assert _weight_in(system) == 3.0
    before = single_kernel.cache_info().misses
    for value in (4.0, -5.0, 2.0, 0.0):
        change(value)
        assert _weight_in(system) == value
        assert _weight_in(system, backend="xla") == value
    assert single_kernel.cache_info().misses == before


@pytest.mark.parametrize("case", _constants())
def test_a_number_that_cannot_be_traced_is_used_all_the_same(case):
    potential, change = _constants()[case]
    system = _system(potential)
    for value in (2.0, 3.0, 4.0, 3.0, 5.0):
        change(value)
        assert _weight_in(system) == value


@pytest.mark.parametrize("backend", ["auto", "xla"])
@pytest.mark.parametrize("case", [*_parameters(), *_constants()])
def test_a_prepared_run_keeps_what_it_was_made_from(case, backend):
    potential, change = (_parameters() | _constants())[case]
    system = _system(potential)
    run = rx.prepare(system, rx.RKMK("euler"), h=H, backend=backend)
    start = system.state([1.0], velocity=[0.0])
    for value in (2.0, 3.0):
        change(value)
        assert -float(run(start, 1).momentum[-1, 0]) / H == 2.0
        assert -float(run(start, until=H).momentum[-1, 0]) / H == 2.0


def test_a_new_function_of_the_same_code_needs_no_new_program():
    def force(u):
        return _system(lambda x: u * x[0])

    assert [_weight_in(force(u)) for u in (2.0, 3.0)] == [2.0, 3.0]
    before = single_kernel.cache_info().misses
    assert [_weight_in(force(u)) for u in (4.0, 5.0, 6.0)] == [4.0, 5.0, 6.0]
    assert single_kernel.cache_info().misses == before


def test_one_number_that_cannot_be_traced_leaves_the_others_parameters():
    u, sign = 2.0, 1.0
    system = _system(lambda x: (u if sign > 0 else -u) * x[0])
    assert _weight_in(system) == 2.0
    u = 3.0
    assert _weight_in(system) == 3.0
    sign = -1.0
    assert _weight_in(system) == -3.0
    before = single_kernel.cache_info().misses
    u = 4.0
    assert _weight_in(system) == -4.0
    assert single_kernel.cache_info().misses <= before + 1
    u = 5.0
    assert _weight_in(system) == -5.0
    assert single_kernel.cache_info().misses <= before + 1


def test_what_two_functions_share_changes_for_both():
    """One is traced with the number as a parameter; the other, jitted, has it as a constant."""
    w = 2.0
    fixed = jax.jit(lambda x: w * x[0])
    system = _system(lambda x: w * x[0] + fixed(x))
    for w in (2.0, 3.0, 4.0, 5.0):
        assert _weight_in(system) == 2 * w


def test_parameters_agree_with_xla_on_a_body_that_turns():
    """An asymmetric body under a torque and a potential whose numbers change."""
    axis, k, load = np.array([0.3, -0.5, 0.8]), 2.0, jnp.array([0.1, 0.2, -0.3])

    def potential(R):
        return k * (R @ axis)[2] + 0.5 * (R @ axis)[0] ** 2

    def torque(R, w, t):
        return load * jnp.cos(k * t) - 0.1 * w

    body = rx.MechanicalSystem(rx.SO3(), [1.0, 2.0, 2.5], potential, torque)
    start = body.state(jnp.eye(3), velocity=[0.3, -0.7, 0.9])
    options = dict(h=0.05, steps=40, progress=False)
    for step in range(4):
        k, load = 2.0 + step, load * 1.5
        axis[1] += 0.25
        native = rx.simulate(body, rx.LieVerlet(), start, backend="native", **options)
        xla = rx.simulate(body, rx.LieVerlet(), start, backend="xla", **options)
        assert np.max(np.abs(native.g - xla.g)) < 1e-12  # measured: 6e-14
        assert np.max(np.abs(native.momentum - xla.momentum)) < 1e-12


def test_a_parameter_that_changes_after_a_run_leaves_its_energy():
    w = 2.0
    system = _system(lambda x: w * x[0])
    start = system.state([1.0], velocity=[0.0])
    for w in (2.0, 3.0, 4.0):
        run = rx.simulate(system, rx.RKMK("euler"), start, h=H, steps=1, progress=False)
        assert run.energy()[0] == w
    run = rx.simulate(system, rx.RKMK("euler"), start, h=H, steps=1, progress=False)
    w = 5.0
    assert run.energy()[0] == 4.0


def test_nothing_of_the_users_is_changed():
    u, held, values = 2.0, Weight(), [2.0]

    def potential(x):
        return (u + held.w + values[0]) * x[0]

    system = _system(potential)
    for u in (2.0, 3.0, 4.0):
        held.w, values[0] = u, u
        assert _weight_in(system) == 3 * u
        assert (type(u), type(held.w), type(values[0])) == (float, float, float)
    assert potential.__closure__[1].cell_contents == 4.0


@pytest.mark.filterwarnings("ignore:.*a checkpoint keeps data, not code")
def test_a_checkpointed_run_has_the_bits_of_a_fresh_process(tmp_path):
    """It may be resumed where nothing is known of what ran before."""
    from retrax.numerics.reuse import forget

    k = 1.9

    def potential(R):
        return k * R[2, 2] + 0.3 * R[0, 1] ** 3

    body = rx.MechanicalSystem(rx.SO3(), [1.0, 2.0, 2.5], potential)
    start = body.state(jnp.eye(3), velocity=[0.3, -0.7, 0.9])
    options = dict(h=0.05, steps=200, progress=False)
    for k in (1.9, 2.3, 3.7):
        kept = rx.simulate(
            body, rx.LieVerlet(), start, checkpoint=tmp_path / f"{k}.zarr", **options
        )
        rx.simulate(body, rx.LieVerlet(), start, **options)
    forget()
    fresh = rx.simulate(body, rx.LieVerlet(), start, **options)
    assert np.array_equal(kept.g, fresh.g)


def _given(u, R, w, t):
    return u


def test_a_control_loop_is_one_run_in_pieces():
    """With the torque found anew before each step; on XLA it is an array of the system."""
    u = np.zeros(3)

    def potential(R):
        return R[2, 2] + 0.2 * R[0, 1]

    system = rx.MechanicalSystem(rx.SO3(), [1.0, 2.0, 2.5], potential, lambda R, w, t: u)
    state = slow = system.state(
        rx.SO3().exp(jnp.array([0.7, -0.4, 0.2])), velocity=[1.2, -0.5, 1.0]
    )
    for _ in range(20):
        u = -0.5 * np.asarray(state.momentum) / np.array([1.0, 2.0, 2.5])
        state = rx.simulate(system, rx.LieVerlet(), state, h=0.02, steps=1).final
        torque = -0.5 * np.asarray(slow.momentum) / np.array([1.0, 2.0, 2.5])
        force = jax.tree_util.Partial(_given, jnp.asarray(torque))
        driven = rx.MechanicalSystem(rx.SO3(), [1.0, 2.0, 2.5], potential, force)
        slow = rx.simulate(driven, rx.LieVerlet(), slow, h=0.02, steps=1, backend="xla").final
    assert np.max(np.abs(state.g - np.asarray(slow.g))) < 1e-13  # measured: 4e-15
    assert np.linalg.norm(torque) > 0.1
