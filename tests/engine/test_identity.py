"""A compiled program is used again only where everything it was traced from is the same.

Every case falls freely for a step, with the weight w = 2 read in another way. Then w becomes 3.
"""

import copy
import functools
import math
import sys
import types
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from distributed.protocol.pickle import dumps
from jax import lax

import retrax as rx
from retrax.engine.backends.native import single_kernel
from retrax.integrators.base import AbstractIntegrator
from retrax.sweeps.axes import Setting
from retrax.sweeps.blocks import Job, _unpack
from retrax.sweeps.bodies import Bodies

w = 2.0
listed, by_name, array = [2.0], {"w": 2.0}, np.array([2.0, 7.0])
params = types.ModuleType("params")
H = 0.25


def weigh_two(x):
    return 2.0 * x[0]


def weigh_three(x):
    return 3.0 * x[0]


params.w, params.weigh = 2.0, weigh_two
sys.modules["params"] = params


class Weight:
    """A callable object; its class has a weight too."""

    of_class = 2.0

    def __init__(self):
        self.w = 2.0

    def __call__(self, x):
        return self.w * x[0]

    def by_class(self, x):
        return self.of_class * x[0]

    @property
    def doubled(self):
        return 2 * self.w


class Slotted:
    __slots__ = ("w",)

    def __init__(self):
        self.w = 2.0


def weigh(x):
    return w * x[0]


def calls_another(x):
    return weigh(x)


def has_nested(x):
    def inner(y):
        return w * y

    return sum([inner(y) for y in x])


def imports(x):
    from params import w as imported

    return imported * x[0]


def in_a_loop(x):
    return lax.fori_loop(0, 1, lambda k, y: y + w * x[0], 0.0)


def looped_by_name(k, y):
    return y * w


def in_a_named_loop(x):
    return lax.fori_loop(0, 1, looped_by_name, x[0])


def _set(**values):
    globals().update(values)


@pytest.fixture(autouse=True)
def _as_before():
    """Every case starts with the weight 2."""
    before = dict(w=2.0, weigh=weigh, in_a_named_loop=in_a_named_loop)
    yield
    _set(**before)
    listed[0], by_name["w"], array[0] = 2.0, 2.0, 2.0
    params.w, params.weigh, Weight.of_class = 2.0, weigh_two, 2.0


def _cases():
    """Pairs of a potential and what makes its weight 3, by name."""
    weight, slotted, config = Weight(), Slotted(), types.SimpleNamespace(w=2.0, inner=Weight())
    cell, name = 2.0, "w"

    def closes(x):
        return cell * x[0]

    def another_cell():
        nonlocal cell
        cell = 3.0

    def with_default(x, by=2.0):
        return by * x[0]

    def with_keyword(x, *, by=2.0):
        return by * x[0]

    bound = functools.partial(lambda held, x: held["w"] * x[0], {"w": 2.0})
    return {
        "global": (weigh, lambda: _set(w=3.0)),
        "function that calls another": (calls_another, lambda: _set(w=3.0)),
        "another function of the same name": (calls_another, lambda: _set(weigh=weigh_three)),
        "nested function": (has_nested, lambda: _set(w=3.0)),
        "import inside": (imports, lambda: setattr(params, "w", 3.0)),
        "inside a JAX loop": (in_a_loop, lambda: _set(w=3.0)),
        "function handed to a JAX loop": (in_a_named_loop, lambda: _set(w=3.0)),
        "jitted function": (jax.jit(weigh), lambda: _set(w=3.0)),
        "cell": (closes, another_cell),
        "list": (lambda x: listed[0] * x[0], lambda: listed.__setitem__(0, 3.0)),
        "dict": (lambda x: by_name["w"] * x[0], lambda: by_name.update(w=3.0)),
        "entry of an array": (lambda x: array[0] * x[0], lambda: array.__setitem__(0, 3.0)),
        "method of an array": (lambda x: array.min() * x[0], lambda: array.__setitem__(0, 3.0)),
        "module attribute": (lambda x: params.w * x[0], lambda: setattr(params, "w", 3.0)),
        "function of a module": (
            lambda x: params.weigh(x),
            lambda: setattr(params, "weigh", weigh_three),
        ),
        "module as a whole": (
            lambda x: getattr(params, name) * x[0],
            lambda: setattr(params, "w", 3.0),
        ),
        "object attribute": (lambda x: config.w * x[0], lambda: setattr(config, "w", 3.0)),
        "attribute of an attribute": (
            lambda x: config.inner.w * x[0],
            lambda: setattr(config.inner, "w", 3.0),
        ),
        "callable object": (weight, lambda: setattr(weight, "w", 3.0)),
        "bound method": (weight.__call__, lambda: setattr(weight, "w", 3.0)),
        "property": (lambda x: weight.doubled / 2 * x[0], lambda: setattr(weight, "w", 3.0)),
        "class attribute": (weight.by_class, lambda: setattr(Weight, "of_class", 3.0)),
        "slot": (lambda x: slotted.w * x[0], lambda: setattr(slotted, "w", 3.0)),
        "partial": (bound, lambda: bound.args[0].update(w=3.0)),
        "default": (with_default, lambda: setattr(with_default, "__defaults__", (3.0,))),
        "keyword default": (with_keyword, lambda: with_keyword.__kwdefaults__.update(by=3.0)),
    }


def _fallen(system, backend="native", **more):
    """The run of one step from rest at x = 1."""
    start = system.state([1.0], velocity=[0.0])
    options = dict(h=H, steps=1, backend=backend, progress=False) | more
    return rx.simulate(system, rx.RKMK("euler"), start, **options)


def _weighing(potential):
    return rx.MechanicalSystem(rx.Translation(1), [1.0], potential)


@pytest.mark.parametrize("case", _cases())
def test_a_changed_value_is_seen_by_the_next_run_of_the_same_system(case):
    potential, change = _cases()[case]
    system = _weighing(potential)
    assert float(_fallen(system).momentum[-1, 0]) == -2.0 * H
    change()
    assert float(_fallen(system).momentum[-1, 0]) == -3.0 * H
    assert float(_fallen(_weighing(potential)).momentum[-1, 0]) == -3.0 * H


@pytest.mark.parametrize("case", ["global", "function handed to a JAX loop", "callable object"])
def test_every_door_sees_a_changed_value(case):
    """The XLA loop, energies, and ensembles on both back ends."""
    potential, change = _cases()[case]
    system = _weighing(potential)
    states = jax.vmap(lambda x: system.state([x], velocity=[0.0]))(jnp.array([1.0, 2.0]))

    def seen():
        run = _fallen(system, "xla")
        ends = [
            rx.ensemble(system, rx.RKMK("euler"), states, h=H, steps=1, backend=backend)
            for backend in ("native", "xla")
        ]
        return [
            -float(run.momentum[-1, 0]) / H,
            float(run.invariants()["energy"][0]),
            *(-float(end["momentum"][0, 0, 0]) / H for end in ends),
        ]

    assert seen() == [2.0] * 4
    change()
    assert seen() == [3.0] * 4


def test_the_energy_of_a_run_is_that_of_its_own_value():
    system = _weighing(weigh)
    run = _fallen(system)
    _set(w=3.0)
    assert float(run.invariants()["energy"][0]) == 2.0
    assert float(_fallen(system).invariants()["energy"][0]) == 3.0


def test_states_between_those_saved_are_of_the_functions_of_their_run():
    system = _weighing(weigh)
    run = rx.simulate(
        system, rx.LieVerlet(), system.state([1.0], velocity=[0.0]), h=H, steps=8, save_every=4
    )
    again = rx.simulate(system, rx.LieVerlet(), run.states_at(0), h=H, steps=8)
    _set(w=3.0)
    assert np.array_equal(run.at(H).g, again.g[1])
    assert abs(rx.analysis.poincare(run, lambda state: state.g[0]).t[0] - 1.0) < 1e-12
    assert rx.analysis.modified_energy(again, samples=3, reach=2, nodes=4).spread < 1e-12


def test_a_class_that_has_changed_since_a_run_is_named():
    """What methods of systems and integrators do cannot be recalled."""

    class Damped(AbstractIntegrator):
        order: ClassVar[int] = 1
        preserves: ClassVar[frozenset[str]] = frozenset()

        def step(self, system, state, h):
            end, info = rx.RKMK("euler").step(system, state, h)
            return rx.State(end.g, w * end.momentum, end.t), info

    system = _weighing(lambda x: x[0])
    start = system.state([1.0], velocity=[0.0])
    run = rx.simulate(system, Damped(), start, h=H, steps=1)
    _set(w=3.0)
    with pytest.warns(UserWarning, match="has changed since this run"):
        run.invariants()


def test_states_between_are_those_of_the_run_where_an_integrator_cannot_be_looked_into():
    class Copied(AbstractIntegrator):
        order: ClassVar[int] = 1
        preserves: ClassVar[frozenset[str]] = frozenset()

        def step(self, system, state, h):
            return copy.copy(rx.RKMK("euler").step(system, state, h))

    system = _weighing(lambda x: w * x[0])
    start = system.state([1.0], velocity=[0.0])
    run = rx.simulate(system, Copied(), start, h=H, steps=1)
    _set(w=3.0)
    assert -float(run.at(H / 2).momentum[0]) == 2.0 * H / 2
    assert float(run.energy()[0]) == 2.0


def test_a_program_is_used_again_where_nothing_has_changed():
    system = _weighing(lambda x: weigh(x))
    _fallen(system)
    before = single_kernel.cache_info().misses
    _set(w=3.0)
    _fallen(system)
    _set(w=2.0)
    _fallen(system)
    assert single_kernel.cache_info().misses <= before + 1


def test_what_cannot_be_looked_into_is_asked_at_every_run():
    value = [2.0]

    def stream():
        while True:
            yield value[0]

    drawn = stream()
    system = _weighing(lambda x: next(drawn) * x[0])
    for value[0] in (2.0, 3.0):
        assert -float(_fallen(system).momentum[-1, 0]) / H == value[0]


def test_a_redefined_class_is_another():
    def spring(k):
        class Spring(eqx.Module):
            def __call__(self, x):
                return k * x[0]

        return Spring()

    assert [-float(_fallen(_weighing(spring(k))).momentum[-1, 0]) / H for k in (2.0, 3.0)] == [2, 3]


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0.0, -0.0)])
def test_static_numbers_that_are_equal_need_not_be_the_same(one, other):
    """1 == 1.0 == True and 0.0 == -0.0; the types and the signs of what is computed differ."""

    class Powered(eqx.Module):
        n: object = eqx.field(static=True)

        def __call__(self, x):
            kind = {int: 2.0, bool: 3.0, float: 5.0 + math.copysign(1.0, self.n)}
            return kind[type(self.n)] * x[0]

    weights = [
        float(_fallen(_weighing(Powered(n)), backend).momentum[-1, 0])
        for n in (one, other)
        for backend in ("native", "xla")
    ]
    assert weights[0] == weights[1] != weights[2] == weights[3]


def test_an_integrator_of_ones_own_is_read_again():
    class Damped(AbstractIntegrator):
        order: ClassVar[int] = 1
        preserves: ClassVar[frozenset[str]] = frozenset()

        def step(self, system, state, h):
            end, info = rx.RKMK("euler").step(system, state, h)
            return eqx.tree_at(lambda s: s.momentum, end, w * end.momentum), info

    system = _weighing(lambda x: x[0])
    start = system.state([1.0], velocity=[0.0])
    for weight, backend in ((2.0, "native"), (2.0, "xla"), (3.0, "native"), (3.0, "xla")):
        _set(w=weight)
        run = rx.simulate(system, Damped(), start, h=H, steps=1, backend=backend)
        assert float(run.momentum[-1, 0]) == -weight * H


def test_a_sweep_sees_a_changed_value_and_refuses_to_mix_it_with_another(tmp_path):
    def made(x):
        system = _weighing(weigh)
        return system, system.state(jnp.stack([x]), velocity=[0.0])

    def swept(store):
        grid = {"x": np.array([1.0, 2.0])}
        return rx.sweep(
            made, rx.RKMK("euler"), grid=grid, h=H, steps=1, store=store, client="serial"
        )

    first = swept(tmp_path / "two")
    assert (first["momentum"].values == -2.0 * H).all()
    _set(w=3.0)
    assert (swept(tmp_path / "three")["momentum"].values == -3.0 * H).all()
    with pytest.raises(rx.BadInput, match="differs from this one in systems"):
        swept(tmp_path / "two")
    _set(w=2.0)
    assert (swept(tmp_path / "two")["momentum"].values == -2.0 * H).all()


def test_a_worker_that_reads_other_values_says_so():
    """Functions of a module travel by name, and workers import the module as it is written."""
    system = _weighing(weigh)
    states = jax.vmap(lambda x: system.state([x], velocity=[0.0]))(jnp.array([1.0, 2.0]))
    settings = (Setting(rx.RKMK("euler"), H, 1, None),)
    job = Job("nowhere", settings, Bodies(system, states, True), "auto", None, ())
    packed = dumps(job.seal(), protocol=5)
    assert _unpack(bytes(packed)).settings == settings
    _unpack.cache_clear()
    _set(w=3.0)
    with pytest.raises(rx.SweepStopped, match="read other values in a worker"):
        _unpack(bytes(packed))
