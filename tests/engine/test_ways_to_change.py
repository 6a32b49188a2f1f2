"""Whatever way of Python leads a function to another number, the next run has that number.

Every case falls freely for a step, with a weight of 2 that becomes 3, then 2 again, then 5.
"""

import abc
import collections
import contextvars
import copy
import dataclasses
import enum
import functools
import itertools
import json
import numbers
import operator
import os
import re
import sys
import threading
import time
import types
import warnings
import weakref

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import retrax as rx
from retrax.numerics.frozen import Frozen

H = 0.25
LINE, METHOD = rx.Translation(1), rx.RKMK("euler")


class Box:
    """Something with a weight; what `way` returns is handed to it."""

    def __init__(self, **named):
        vars(self).update(named)


class Text:
    """A number that does not say which."""

    def __init__(self, w):
        self.w = w

    def __repr__(self):
        return "some weight"


GIVEN = {"w": 2.0}


def weights(found):
    """A weight by the text of a number."""
    return {"2.0": 2.0, "3.0": 3.0, "5.0": 5.0}.get(found, 0.0)


def chosen(is_two, is_three, is_five):
    return 2.0 if is_two else 3.0 if is_three else 5.0 if is_five else 0.0


def by_conversion():
    """The number decides by what Python makes of it."""
    k = Box(w=2.0, a=np.array([2.0]), j=jnp.array([2.0]))

    def change(v):
        k.w, k.a, k.j = v, np.array([v]), jnp.array([v])

    def same(f):
        return lambda x: chosen(*[f(v) for v in (2.0, 3.0, 5.0)]) * x[0]

    def caught(x):
        try:
            return {2.0: 2.0, 3.0: 3.0, 5.0: 5.0}[k.w] * x[0]
        except Exception:
            return 0.0 * x[0]

    @dataclasses.dataclass
    class Point:
        w: float

    return change, {
        "array_equal": same(lambda v: np.array_equal(k.a, [v])),
        "allclose": same(lambda v: np.allclose(k.a, [v])),
        "allclose of an array of JAX": same(lambda v: np.allclose(k.j, v)),
        "f-string": lambda x: weights(f"{k.w}") * x[0],
        "format": lambda x: weights("{.w}".format(k)) * x[0],  # noqa: UP032
        "percent": lambda x: weights("%s" % k.w) * x[0],  # noqa: UP031
        "str": lambda x: weights(str(k.w)) * x[0],
        "repr": lambda x: weights(repr(k.w)) * x[0],
        "json": lambda x: weights(json.dumps(k.w)) * x[0],
        "hash": same(lambda v: hash(k.w) == hash(v)),
        "key": caught,
        "isinstance": lambda x: (k.w if isinstance(k.w, float) else 0.0) * x[0],
        "type": lambda x: (k.w if type(k.w) is float else 0.0) * x[0],
        "is_array": lambda x: (0.0 if eqx.is_array(k.w) else k.w) * x[0],
        "ndarray": lambda x: (k.a[0] if isinstance(k.a, np.ndarray) else 0.0) * x[0],
        "dataclass": same(lambda v: Point(k.w) == Point(v)),
        "in a tuple": same(lambda v: k.w in (v,)),
        "match": same(lambda v: dict.fromkeys([k.w]) == {v: None}),
        "getattr": lambda x: getattr(k, "w", 0.0) * x[0],
        "attrgetter": lambda x: operator.attrgetter("w")(k) * x[0],
        "item": lambda x: k.a.item() * x[0],
        "tolist": lambda x: k.a.tolist()[0] * x[0],
        "tobytes": same(lambda v: k.a.tobytes() == np.array([v]).tobytes()),
        "range": lambda x: float(len(range(int(k.w)))) * x[0],
        "sorted": lambda x: sorted([k.w, 100.0])[0] * x[0],
        "copied": lambda x: copy.deepcopy(k).w * x[0],
        "vars": lambda x: vars(k)["w"] * x[0],
        "dir": lambda x: next(getattr(k, n) for n in dir(k) if n == "w") * x[0],
        "eval": lambda x: eval("k.w", {"k": k}) * x[0],
        "thread": lambda x: _in_a_thread(lambda: k.w) * x[0],
    }


def _in_a_thread(f):
    found = []
    one = threading.Thread(target=lambda: found.append(f()))
    one.start()
    one.join()
    return found[0]


def by_hiding():
    """The number is where no look at the function's own names finds it."""
    k = Box(w=2.0)
    table = {"w": 2.0}
    var = contextvars.ContextVar("weight")
    var.set(2.0)
    holder = threading.local()
    holder.w = 2.0
    left = types.ModuleType("retrax_test_weights")
    left.w = 2.0
    sys.modules["retrax_test_weights"] = left
    os.environ["RETRAX_TEST_WEIGHT"] = "2.0"
    kept = []

    @functools.lru_cache
    def settings():
        return k

    @functools.cache
    def cached_table():
        return table

    class OnlyOne(type):
        one = None

        def __call__(cls):
            if cls.one is None:
                cls.one = super().__call__()
            return cls.one

    class Single(metaclass=OnlyOne):
        def __init__(self):
            self.w = 2.0

    class Meta(type):
        w = 2.0

        @property
        def weight(cls):
            return k.w

    class Under(metaclass=Meta):
        pass

    class Called(type):
        def __call__(cls):
            return k.w

    class Number(metaclass=Called):
        pass

    class Base:
        pass

    class Looked:
        def __getattr__(self, name):
            return k.w

    class Told:
        def __get__(self, it, kind):
            return k.w

    class Has:
        w = Told()

    class Kind(abc.ABC):  # noqa: B024
        pass

    class Member(enum.Enum):
        ONE = 1

    Member.ONE.w = 2.0

    class Doubling:
        def __class_getitem__(cls, item):
            return k.w

    @functools.singledispatch
    def dispatched(x):
        return k.w

    subject, ref = Box(w=2.0), None
    kept.append(subject)
    ref = weakref.ref(subject)
    cycle = itertools.cycle([k])

    def owner(x):
        return owner.w * x[0]

    owner.w, owner.__name__ = 2.0, "2.0"

    def change(v):
        k.w = table["w"] = GIVEN["w"] = holder.w = left.w = owner.w = subject.w = v
        var.set(v)
        os.environ["RETRAX_TEST_WEIGHT"] = str(v)
        Single().w = Member.ONE.w = Meta.w = v
        owner.__name__ = owner.__qualname__ = str(v)
        kept[1:] = [type(f"Sub{i}", (Base,), {}) for i in range(int(v))]
        if v == 3.0:
            Kind.register(Box)

    def by_subclasses(x):
        found = [kind for kind in Base.__subclasses__() if kind in kept]
        return (float(len(found)) or 2.0) * x[0]

    return change, {
        "lru_cache": lambda x: settings().w * x[0],
        "cache of a dictionary": lambda x: cached_table()["w"] * x[0],
        "singleton": lambda x: Single().w * x[0],
        "attribute of a metaclass": lambda x: Under.w * x[0],
        "property of a metaclass": lambda x: Under.weight * x[0],
        "call of a metaclass": lambda x: Number() * x[0],
        "subclasses": by_subclasses,
        "__getattr__": lambda x: Looked().w * x[0],
        "descriptor": lambda x: Has.w * x[0],
        "member of an enum": lambda x: Member.ONE.w * x[0],
        "class item": lambda x: Doubling[0] * x[0],
        "single dispatch": lambda x: dispatched(1) * x[0],
        "context variable": lambda x: _in_this_context(var, x),
        "thread local": lambda x: holder.w * x[0],
        "sys.modules": lambda x: sys.modules["retrax_test_weights"].w * x[0],
        "import inside": _importing,
        "environment": lambda x: float(os.environ["RETRAX_TEST_WEIGHT"]) * x[0],
        "weak reference": lambda x: ref().w * x[0],
        "cycle": lambda x: next(cycle).w * x[0],
        "name of a function": lambda x: float(owner.__name__) * x[0],
        "generator": lambda x: sum(item.w for item in (k for _ in range(1))) * x[0],
        "globals of a function": lambda x: (
            _importing.__globals__["sys"].modules[left.__name__].w * x[0]
        ),
        "closure of a function": lambda x: change.__closure__ and settings.__wrapped__().w * x[0],
        "attribute of itself": owner,
        "proxy": lambda x: types.MappingProxyType(table)["w"] * x[0],
        "chain map": lambda x: collections.ChainMap({}, table)["w"] * x[0],
        "partial method": lambda x: functools.partial(getattr, k, "w")() * x[0],
    }


def _importing(x):
    from retrax_test_weights import w

    return w * x[0]


def _in_this_context(var, x):
    return var.get() * x[0]


def by_transformations():
    """A function of JAX has kept what it was made from."""
    k = [2.0]

    def change(v):
        k[0] = v

    @jax.custom_jvp
    def ruled(x):
        return k[0] * x[0]

    @ruled.defjvp
    def _(primals, tangents):
        return ruled(primals[0]), k[0] * tangents[0][0]

    @jax.custom_vjp
    def backwards(x):
        return k[0] * x[0]

    backwards.defvjp(lambda x: (backwards(x), None), lambda _, c: (c * k[0] * jnp.ones(1),))

    def body(c, x):
        return c + k[0] * x, None

    return change, {
        "custom_jvp": lambda x: ruled(x),
        "custom_jvp itself": ruled,
        "custom_vjp": lambda x: backwards(x),
        "checkpoint": jax.checkpoint(lambda x: k[0] * x[0]),
        "scan": lambda x: lax.scan(body, 0.0, x)[0],
        "cond": lambda x: lax.cond(x[0] > -1e9, lambda y: k[0] * y, lambda y: 0.0 * y, x[0]),
        "loop": lambda x: lax.fori_loop(0, 1, lambda _, c: c + k[0] * x[0], 0.0),
        "vmap": lambda x: jax.vmap(lambda y: k[0] * y)(x)[0],
        "grad": lambda x: (
            jax.grad(lambda y: 0.5 * k[0] * (y + 1.0) ** 2 - 0.5 * k[0] * y**2)(x[0]) * 0.0
            + k[0] * x[0]
        ),
        "Partial": jax.tree_util.Partial(lambda x: k[0] * x[0]),
        "closure_convert": lambda x: k[0] * lax.stop_gradient(1.0) * x[0],
        "switch": lambda x: lax.switch(0, [lambda y: k[0] * y, lambda y: 0.0 * y], x[0]),
    }


def _jitted():
    k = [2.0]

    def change(v):
        k[0] = v

    @jax.jit
    @jax.custom_jvp
    def ruled(x):
        return k[0] * x[0]

    @ruled.__wrapped__.defjvp
    def _(primals, tangents):
        return ruled(primals[0]), k[0] * tangents[0][0]

    return change, {
        "jit": jax.jit(lambda x: k[0] * x[0]),
        "jit inside": lambda x: jitted_by_name(k, x),
        "jit of custom_jvp": ruled,
        "filter_jit": eqx.filter_jit(lambda x: k[0] * x[0]),
        "filter_jit inside": lambda x: eqx.filter_jit(lambda y: k[0] * y)(x[0]),
    }


def jitted_by_name(k, x):
    return jax.jit(lambda y: k[0] * y)(x[0])


def by_writing():
    """The number is written into an array that JAX is handed as it is."""
    a, scalar, single, whole = np.array([2.0]), np.array(2.0), np.float32([2.0]), np.array([2])
    many, matrix, held = np.full(64, 2.0), np.diag([2.0]), memoryview(bytearray(8)).cast("d")
    buffer = np.frombuffer(held)
    arrays = a, scalar, single, whole, many, matrix, buffer

    def change(v):
        for one in arrays:
            one[...] = v

    change(2.0)

    @jax.custom_jvp
    def ruled(x):
        return (a * x)[0]

    @ruled.defjvp
    def _(primals, tangents):
        return ruled(primals[0]), (a * tangents[0])[0]

    return change, {
        "array": lambda x: (a * x)[0],
        "scalar": lambda x: scalar * x[0],
        "single precision": lambda x: (lax.convert_element_type(single, float) * x)[0],
        "whole numbers": lambda x: (lax.convert_element_type(whole, float) * x)[0],
        "long array": lambda x: jnp.sum(many * x[0]) / many.size,
        "product": lambda x: (matrix @ x)[0],
        "buffer": lambda x: (buffer * x)[0],
        "asarray": lambda x: (jnp.asarray(a) * x)[0],
        "where": lambda x: (jnp.where(x > -1e9, a, 0.0 * a) * x)[0],
        "scan over it": lambda x: lax.scan(lambda c, y: (c + y * x[0], y), 0.0, a)[0],
        "scan with it": lambda x: lax.scan(lambda c, y: (c + (a * y)[0], y), 0.0, x)[0],
        "cond with it": lambda x: lax.cond(x[0] > -1e9, lambda y: a * y, lambda y: 0.0 * y, x)[0],
        "jit with it": lambda x: jax.jit(lambda y: (a * y)[0])(x),
        "rule with it": ruled,
        "array of what is not known": lambda x: (a * x)[0] + 0.0 * len(json.dumps([1])),
    }


def by_likeness():
    """What is equal is not the same: its order, its memory, or which of two objects it is."""
    weights = 2.0, 3.0, 5.0
    full, frozen, kept, text, laid, flagged, noted, part, pattern, written = [
        types.SimpleNamespace() for _ in range(10)
    ]
    arrays = [np.ones(1) for _ in weights]
    texts = ["".join(["heavy", " one"]) for _ in weights]
    base = np.array([2.0, 1.0])
    view = base[1:]
    loops = []
    for places in ("0, 8, 16", "8, 0, 16", "16, 0, 8"):
        named = {}
        exec(f"def loop():\n    for n in {{{places}}}:\n        return n // 8", named)
        loops.append(named["loop"])

    def change(v):
        n = weights.index(v)
        places = [8 * (j + n) % 24 for j in range(3)]  # which meet in a table of eight
        full.it, frozen.it = set(), frozenset(places)
        for place in places:
            full.it.add(place)
        kept.it, text.it = arrays[n], texts[n]
        laid.it = (np.eye(2), np.asfortranarray(np.eye(2)), np.eye(4)[::3, ::3])[n]
        flagged.it = (np.ones(2), np.ones(2), np.ones(2)[:])[n]
        flagged.it.flags.writeable = n != 1
        noted.it = np.ones(1, np.dtype(float, metadata={"w": v}))
        part.it = slice(Text(v))
        pattern.it = re.compile("-" * 250 + f"|{v}")
        written.it = loops[n]
        base[0] = v

    def looped(x):
        for place in full.it:
            return weights[place // 8] * x[0]

    def unpacked(x):
        first, *_ = full.it
        return weights[first // 8] * x[0]

    change(2.0)
    return change, {
        "order of a set": looped,
        "order of a set, unpacked": unpacked,
        "order of a frozen set": lambda x: weights[min(frozen.it, key=lambda _: 0) // 8] * x[0],
        "order of a set that is written down": lambda x: weights[written.it()] * x[0],
        "number in a slice": lambda x: part.it.stop.w * x[0],
        "end of a long pattern": lambda x: (
            chosen(*[pattern.it.match(str(v)) for v in weights]) * x[0]
        ),
        "which array": lambda x: chosen(*[kept.it is a for a in arrays]) * x[0],
        "which text": lambda x: chosen(*[text.it is a for a in texts]) * x[0],
        "strides": lambda x: {16: 2.0, 8: 3.0, 96: 5.0}[laid.it.strides[0]] * x[0],
        "flags": lambda x: (
            {(True, True): 2.0, (False, True): 3.0, (True, False): 5.0}[
                flagged.it.flags.writeable, flagged.it.flags.owndata
            ]
            * x[0]
        ),
        "base of a view": lambda x: view.base[0] * x[0],
        "pointer": lambda x: chosen(*[kept.it.ctypes.data == a.ctypes.data for a in arrays]) * x[0],
        "metadata of a type": lambda x: noted.it.dtype.metadata["w"] * x[0],
    }


def by_modules():
    """The number lies in a module of `equinox`, which is a parameter."""

    class Listed(eqx.Module):
        weights: list

        def __call__(self, x):
            return self.weights[0] * x[0]

    class Named(eqx.Module):
        weights: dict

        def __call__(self, x):
            return self.weights["w"] * x[0]

    class Written(eqx.Module):
        weights: np.ndarray

        def __call__(self, x):
            return (self.weights * x)[0]

    listed, named, written = Listed([2.0]), Named({"w": 2.0}), Written(np.array([2.0]))
    replaced = Listed([jnp.array(2.0)])
    layer = eqx.nn.Linear(1, "scalar", use_bias=False, key=jax.random.key(0))
    layer = eqx.tree_at(lambda layer: layer.weight, layer, np.array([[2.0]]))

    def change(v):
        listed.weights[0] = named.weights["w"] = written.weights[0] = layer.weight[0, 0] = v
        replaced.weights[0] = jnp.array(v)

    return change, {
        "list of a module": listed,
        "dictionary of a module": named,
        "array of a module": written,
        "array in a list of a module": replaced,
        "array of a layer": layer,
        "module inside": lambda x: listed(x),
    }


def by_calls_of_modules():
    """The number is read where a module of `equinox` is called, or is bound beside a function."""
    k = [2.0]

    class Reading(eqx.Module):
        one: jax.Array

        def __call__(self, x):
            return self.one * k[0] * x[0]

        def method(self, x):
            return self(x)

    class Jitted(eqx.Module):
        one: jax.Array

        @eqx.filter_jit
        def __call__(self, x):
            return self.one * k[0] * x[0]

    class Told(eqx.Module):
        function: object = eqx.field(static=True)

        def __call__(self, x):
            return self.function(x)

    class Holding(eqx.Module):
        function: object

        def __call__(self, x):
            return self.function(x)

    class Plain(Frozen):
        function: object = eqx.field(static=True)

        def method(self, x):
            return self.function(x)

    def read(x):
        return k[0] * x[0]

    def weigh(x, w):
        return w * x[0]

    reading, one = Reading(jnp.array(1.0)), [2.0]
    listed, held = eqx.Partial(lambda w, x: w[0] * x[0], one), eqx.Partial(weigh, w=2.0)
    partial, bound = jax.tree_util.Partial(weigh, w=2.0), eqx.Partial(weigh, w=np.array(2.0))

    def change(v):
        k[0] = one[0] = held.keywords["w"] = partial.keywords["w"] = v
        bound.keywords["w"][()] = v

    return change, {
        "module": reading,
        "method of a module": reading.method,
        "jitted module": Jitted(jnp.array(1.0)),
        "static function of a module": Told(read),
        "static function beside a method": Plain(read).method,
        "module beside a function": jax.tree_util.Partial(lambda m, x: m(x), reading),
        "function in a module": Holding(read),
        "eqx.nn.Lambda": eqx.nn.Lambda(read),
        "filter_checkpoint": eqx.filter_checkpoint(read),
        "list in eqx.Partial": listed,
        "keyword of eqx.Partial": held,
        "array in eqx.Partial": bound,
        "eqx.Partial in a module": Holding(held),
        "keyword of tree_util.Partial": partial,
    }


GROUPS = {
    f.__name__: f
    for f in (
        *(by_conversion, by_hiding, by_transformations, by_writing),
        *(by_likeness, by_modules, by_calls_of_modules, _jitted),
    )
}
WAYS = [(group, way) for group, make in GROUPS.items() for way in make()[1]]
IDS = [way for _, way in WAYS]


def way(group, name):
    change, potentials = GROUPS[group]()
    return change, rx.MechanicalSystem(LINE, [1.0], potentials[name])


def start(system):
    return system.state([1.0], velocity=[0.0])


def weight_in(system, backend="native"):
    run = rx.simulate(system, METHOD, start(system), h=H, steps=1, backend=backend, progress=False)
    return -float(run.momentum[-1, 0]) / H, float(run.energy()[0])


@pytest.mark.parametrize(("group", "name"), WAYS, ids=IDS)
def test_the_next_run_and_its_energy_have_the_number_of_now(group, name):
    change, system = way(group, name)
    for v in (2.0, 3.0, 2.0, 5.0):
        change(v)
        assert weight_in(system) == (v, v)


NO_WAY = ("jvp", "custom_vjp")


def doors(system):
    """What a user can ask, as pairs of a name and a function that returns the weight."""
    s = start(system)
    many = jax.vmap(lambda x: system.state(jnp.stack([x]), velocity=[0.0]))(jnp.array([1.0, 2.0]))

    def slope(x):
        begin = system.state(jnp.stack([x]), velocity=[0.0])
        run = rx.simulate(system, METHOD, begin, h=H, steps=1, progress=False)
        return run.momentum[-1, 0]

    yield "xla", lambda: weight_in(system, "xla")[0]
    yield (
        "ensemble",
        lambda: (
            -float(
                rx.ensemble(system, METHOD, many, h=H, steps=1, progress=False)["momentum"][0, 0, 0]
            )
            / H
        ),
    )
    yield "prepare", lambda: -float(rx.prepare(system, METHOD, h=H)(s, 1).momentum[-1, 0]) / H
    yield "Stepper", lambda: -float(rx.Stepper(system, METHOD, s, h=H).step().momentum[0]) / H
    yield "value_and_grad", lambda: -float(jax.value_and_grad(slope)(1.0)[0]) / H
    yield "jvp", lambda: -float(jax.jvp(slope, (1.0,), (1.0,))[0]) / H


@pytest.mark.campaign
@pytest.mark.parametrize(("group", "name"), WAYS, ids=IDS)
def test_every_door_has_the_number_of_now(group, name):
    change, system = way(group, name)
    for v in (2.0, 3.0, 2.0, 5.0):
        change(v)
        # JAX takes no forward derivative through a rule of `jax.custom_vjp`.
        ways_in = [(door, see) for door, see in doors(system) if (door, name) != NO_WAY]
        assert {door: see() for door, see in ways_in} == {door: v for door, _ in ways_in}


# JAX asks a rule of `jax.custom_vjp` whenever it traces a run, so nothing can keep it.
KEPT = [(group, name) for group, name in WAYS if name != "custom_vjp"]


@pytest.mark.campaign
@pytest.mark.parametrize(("group", "name"), KEPT, ids=[name for _, name in KEPT])
def test_what_was_prepared_keeps_its_number(group, name):
    change, system = way(group, name)
    change(2.0)
    run, plant = rx.prepare(system, METHOD, h=H), rx.Stepper(system, METHOD, start(system), h=H)
    for v in (3.0, 5.0):
        change(v)
        plant.reset(start(system))
        assert -float(run(start(system), 1).momentum[-1, 0]) / H == 2.0
        assert -float(plant.step().momentum[0]) / H == 2.0


@pytest.mark.campaign
@pytest.mark.parametrize(("group", "name"), WAYS, ids=IDS)
def test_the_energy_of_an_old_run_is_that_of_its_own_number_or_a_warning(group, name):
    change, system = way(group, name)
    change(2.0)
    run = rx.simulate(system, METHOD, start(system), h=H, steps=1, progress=False)
    change(3.0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert float(run.energy()[0]) == 2.0 or "has changed since" in str(said[0].message)


MODULES = [
    *[(group, name) for group, name in WAYS if "module" in group and name != "module inside"],
    ("_jitted", "filter_jit"),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("group", "name"), MODULES, ids=[name for _, name in MODULES])
def test_runs_keep_their_modules_without_a_word(group, name):
    change, system = way(group, name)
    change(2.0)
    old = rx.simulate(system, METHOD, start(system), h=H, steps=2, save_every=2, progress=False)
    run, plant = rx.prepare(system, METHOD, h=H), rx.Stepper(system, METHOD, start(system), h=H)
    change(3.0)
    plant.step()
    found = old.at(H), run(start(system), 1).final, plant.state
    assert [-float(state.momentum[0]) / H for state in found] == [2.0] * 3
    runs = old, run(start(system), 1), plant.run()
    assert [float(one.energy()[0]) for one in runs] == [2.0] * 3


def test_a_rule_of_equinox_that_allows_no_derivative_is_not_asked_for_one():
    @eqx.filter_custom_vjp
    def weigh(x):
        return 2.0 * x[0]

    weigh.def_fwd(lambda perturbed, x: (2.0 * x[0], None))
    weigh.def_bwd(lambda residuals, c, perturbed, x: 2.0 * c * jnp.ones(1))
    assert weight_in(rx.MechanicalSystem(LINE, [1.0], weigh)) == (2.0, 2.0)


def test_flags_of_modules_are_no_parameters():
    class Chosen(eqx.Module):
        heavy: bool

        def __call__(self, x):
            return (3.0 if self.heavy else 2.0) * x[0]

    for heavy, weight in ((False, 2.0), (True, 3.0)):
        assert weight_in(rx.MechanicalSystem(LINE, [1.0], Chosen(heavy))) == (weight, weight)


def test_a_layer_is_differentiated_and_differs_between_members():
    """Modules that were made apart differ in their arrays alone."""

    def fall(weight):
        layer = eqx.nn.Linear(1, "scalar", use_bias=False, key=jax.random.key(0))
        layer = eqx.tree_at(lambda layer: layer.weight, layer, weight[None, None])
        system = rx.MechanicalSystem(LINE, [1.0], eqx.Partial(layer))
        run = rx.simulate(system, METHOD, start(system), h=H, steps=1, progress=False)
        return -run.momentum[-1, 0] / H

    assert [float(x) for x in jax.value_and_grad(fall)(jnp.array(2.0))] == [2.0, 1.0]
    assert jax.vmap(fall)(jnp.array([2.0, 3.0])).tolist() == [2.0, 3.0]


@pytest.mark.parametrize("told", ["array of NumPy", "array of JAX"])
def test_a_function_that_reads_what_is_printed_sees_how_it_is_printed(told):
    a = np.array([0.125]) if told == "array of NumPy" else jnp.array([0.125])
    system = rx.MechanicalSystem(LINE, [1.0], lambda x: (2.0 if "125" in str(a) else 3.0) * x[0])
    assert weight_in(system) == (2.0, 2.0)
    with np.printoptions(precision=1):
        assert weight_in(system) == (3.0, 3.0)
    assert weight_in(system) == (2.0, 2.0)


def test_a_class_that_is_registered_with_one_of_python_s_is_another():
    class Own:
        pass

    own = Own()
    system = rx.MechanicalSystem(
        LINE, [1.0], lambda x: (3.0 if isinstance(own, numbers.Real) else 2.0) * x[0]
    )
    assert weight_in(system) == weight_in(system) == (2.0, 2.0)
    numbers.Real.register(Own)
    assert weight_in(system) == (3.0, 3.0)


@pytest.mark.parametrize("made", ["threefry2x32", "rbg"])
def test_a_key_of_random_numbers_is_read_under_a_transformation(made):
    """JAX would trace its words too."""
    key = jax.random.key(1, impl=made)
    weight = float(jax.random.uniform(key, dtype=float))

    def fall(mass):
        system = rx.MechanicalSystem(
            LINE, jnp.stack([mass]), lambda x: jax.random.uniform(key, dtype=float) * x[0]
        )
        run = rx.simulate(system, METHOD, start(system), h=H, steps=1, progress=False)
        return run.momentum[-1, 0]

    assert float(jax.value_and_grad(fall)(1.0)[0]) == -weight * H


def test_a_rule_that_knows_no_derivative_forwards_is_told_where_one_is_needed():
    """The velocity of a Lagrangian is found by Newton's method."""

    @jax.custom_vjp
    def weight(x):
        return 2.0 * x[0]

    weight.defvjp(lambda x: (weight(x), None), lambda _, c: (2.0 * c * jnp.ones(1),))
    system = rx.LagrangianSystem(LINE, lambda x, v: (5.0 + weight(x)) * v @ v / 2)
    with pytest.raises(rx.BadInput, match="a derivative that is needed here does not exist"):
        rx.simulate(system, rx.LieVerlet(), start(system), h=H, steps=1)


COUNTER, NOISE = itertools.count(), np.random.default_rng(0)
IMPURE = {
    "random numbers": lambda x: NOISE.normal() * x[0],
    "a clock": lambda x: time.perf_counter() * x[0],
    "a counter": lambda x: next(COUNTER) * x[0],
}


@pytest.mark.parametrize("case", IMPURE)
def test_a_function_that_disagrees_with_itself_is_rejected(case):
    with pytest.raises(rx.BadInput, match="returns something else each time"):
        rx.MechanicalSystem(LINE, [1.0], IMPURE[case])
    with pytest.raises(rx.BadInput, match="returns something else each time"):
        plant = rx.Actuated(rx.MechanicalSystem(LINE, [1.0]), inputs=jnp.ones((1, 1)))
        law = rx.Feedback(lambda g, xi, t: jnp.stack([IMPURE[case](g)]))
        rx.simulate(plant, rx.LieVerlet(), start(plant.system), h=H, steps=1, control=law)


class Impure(eqx.Module):
    """A law with an array, which is a parameter, and a number that is another each time."""

    gain: jax.Array

    def __call__(self, g, xi, t):
        return self.gain * NOISE.normal() * xi


class Unsteady:
    def law(self, g, xi, t):
        return next(COUNTER) * xi


LAWS = {
    "sampled": lambda: rx.Sampled(lambda g, xi, t: NOISE.normal() * xi, H),
    "sampled numbers": lambda: rx.Sampled(lambda g, xi, t: jnp.array([NOISE.normal()]), H),
    "sampled with a state": lambda: rx.Sampled(
        lambda g, xi, t, s: (xi, s + NOISE.normal()), H, state=jnp.zeros(1)
    ),
    "sampled with a key": lambda: rx.Sampled(
        lambda g, xi, t, key: (NOISE.normal() * xi, key), H, state=jax.random.key(0)
    ),
    "a module": lambda: rx.Feedback(Impure(jnp.ones(1))),
    "a module, sampled": lambda: rx.Sampled(Impure(jnp.ones(1)), H),
    "a method": lambda: rx.Feedback(Unsteady().law),
    "a jitted law": lambda: rx.Feedback(jax.jit(lambda g, xi, t: NOISE.normal() * xi)),
}


@pytest.mark.parametrize("case", LAWS)
def test_a_law_that_disagrees_with_itself_is_rejected(case):
    plant = rx.Actuated(rx.MechanicalSystem(LINE, [1.0]), inputs=jnp.ones((1, 1)))
    with pytest.raises(rx.BadInput, match=r"returns something else each time.*jax\.random\.key"):
        rx.simulate(plant, METHOD, start(plant.system), h=H, steps=1, control=LAWS[case]())


OTHERS = {
    "a force": lambda: rx.MechanicalSystem(LINE, [1.0], force=lambda g, xi, t: NOISE.normal() * g),
    "a matrix": lambda: rx.Actuated(
        rx.MechanicalSystem(LINE, [1.0]), inputs=lambda g: NOISE.normal() * jnp.ones((1, 1))
    ),
    "a constraint": lambda: rx.MechanicalSystem(
        rx.Translation(2), [1.0, 1.0], constraint=rx.Holonomic(lambda x: x[0] - NOISE.normal())
    ),
    "a Lagrangian": lambda: rx.LagrangianSystem(
        LINE, lambda x, v: (2 + NOISE.random()) * v[0] ** 2
    ),
}
EVENTS = {"an event": lambda e: e, "a stop": rx.Stop}


@pytest.mark.parametrize("case", [*OTHERS, *EVENTS])
def test_what_else_disagrees_with_itself_is_rejected(case):
    with pytest.raises(rx.BadInput, match="returns something else each time"):
        if case in OTHERS:
            system = OTHERS[case]()  # a force is only asked for by a run
            rx.simulate(system, METHOD, start(system), h=H, steps=1)
        else:
            system = rx.MechanicalSystem(LINE, [1.0])
            event = EVENTS[case](lambda g, xi, t: g[0] - NOISE.normal())
            rx.simulate(system, METHOD, start(system), h=H, steps=1, events={"e": event})


def test_a_function_that_notes_its_calls_is_pure():
    calls = []

    def noted(x):
        calls.append(x.shape)
        return 2.0 * x[0]

    assert weight_in(rx.MechanicalSystem(LINE, [1.0], noted)) == (2.0, 2.0)


@pytest.mark.filterwarnings("ignore:.*machine code of retrax")
def test_a_function_that_prints_is_pure(capsys):
    """JAX makes what it calls back anew at every trace."""

    def potential(x):
        jax.debug.print("at {}", x[0])
        return 2.0 * x[0]

    assert weight_in(rx.MechanicalSystem(LINE, [1.0], potential), "auto") == (2.0, 2.0)
    jax.effects_barrier()
    assert "at 1.0" in capsys.readouterr().out


def test_a_network_is_a_potential():
    network = eqx.nn.MLP(1, "scalar", 8, 1, activation=jnp.tanh, key=jax.random.key(0))
    system = rx.MechanicalSystem(LINE, [1.0], network)
    force = jax.grad(lambda x: network(x))(jnp.ones(1))[0]
    assert abs(weight_in(system)[0] - float(force)) < 1e-15
