"""A compiled program is used again only where everything it was traced from is the same.

Every case falls freely for a step, with the weight w = 2 read in another way. Then w becomes 3.
"""

import functools
import itertools
import math
import types
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import retrax as rx
from retrax.engine.native import single_kernel
from retrax.engine.step_program import signature, step_program

w = 2.0
listed, by_name, array = [2.0], {"w": 2.0}, np.array([2.0, 7.0])
params = types.ModuleType("params")
params.w, params.weigh = 2.0, lambda x: 2.0 * x[0]
H = 0.25


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


def _reset():
    global w, weigh
    w, listed[0], by_name["w"], array[0] = 2.0, 2.0, 2.0, 2.0
    params.w, params.weigh = 2.0, lambda x: 2.0 * x[0]
    Weight.of_class = 2.0


def _set(**values):
    globals().update(values)


def _cases():
    """Pairs of a potential and what makes its weight 3, by name."""
    weight, slotted, config = Weight(), Slotted(), types.SimpleNamespace(w=2.0, inner=Weight())
    cell, generator = 2.0, itertools.count(2)

    def closes(x):
        return cell * x[0]

    def another_cell():
        nonlocal cell
        cell = 3.0

    def with_default(x, by=2.0):
        return by * x[0]

    def with_keyword(x, *, by=2.0):
        return by * x[0]

    def heavier(x):
        return 3.0 * x[0]

    def draws(x):
        return float(next(generator)) * x[0]

    bound = functools.partial(lambda held, x: held["w"] * x[0], {"w": 2.0})
    make = functools.partial(setattr)
    return {
        "global": (weigh, lambda: _set(w=3.0)),
        "a function that calls another": (calls_another, lambda: _set(w=3.0)),
        "another function of the same name": (calls_another, lambda: _set(weigh=heavier)),
        "nested function": (has_nested, lambda: _set(w=3.0)),
        "inside a JAX loop": (in_a_loop, lambda: _set(w=3.0)),
        "lambda": (lambda x: w * x[0], lambda: _set(w=3.0)),
        "cell": (closes, another_cell),
        "list": (lambda x: listed[0] * x[0], lambda: listed.__setitem__(0, 3.0)),
        "dict": (lambda x: by_name["w"] * x[0], lambda: by_name.update(w=3.0)),
        "entry of an array": (lambda x: array[0] * x[0], lambda: array.__setitem__(0, 3.0)),
        "method of an array": (lambda x: array.min() * x[0], lambda: array.__setitem__(0, 3.0)),
        "module attribute": (lambda x: params.w * x[0], lambda: make(params, "w", 3.0)),
        "function of a module": (
            lambda x: params.weigh(x),
            lambda: make(params, "weigh", heavier),
        ),
        "module by another name": (
            lambda x: getattr(params, "w") * x[0],  # noqa: B009
            lambda: make(params, "w", 3.0),
        ),
        "object attribute": (lambda x: config.w * x[0], lambda: make(config, "w", 3.0)),
        "attribute of an attribute": (
            lambda x: config.inner.w * x[0],
            lambda: make(config.inner, "w", 3.0),
        ),
        "callable object": (weight, lambda: make(weight, "w", 3.0)),
        "bound method": (weight.__call__, lambda: make(weight, "w", 3.0)),
        "property": (lambda x: weight.doubled / 2 * x[0], lambda: make(weight, "w", 3.0)),
        "class attribute": (weight.by_class, lambda: make(Weight, "of_class", 3.0)),
        "slot": (lambda x: slotted.w * x[0], lambda: make(slotted, "w", 3.0)),
        "partial": (bound, lambda: bound.args[0].update(w=3.0)),
        "default": (with_default, lambda: make(with_default, "__defaults__", (3.0,))),
        "keyword default": (with_keyword, lambda: with_keyword.__kwdefaults__.update(by=3.0)),
        "gradient of a function": (
            jax.tree_util.Partial(lambda f, x: f(x), jax.tree_util.Partial(weigh)),
            lambda: _set(w=3.0),
        ),
        "generator, which cannot be looked into": (draws, lambda: [next(generator)] * 0),
    }
