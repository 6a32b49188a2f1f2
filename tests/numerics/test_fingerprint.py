"""A fingerprint changes with everything that a function could read, and with nothing else."""

import dataclasses
import functools
import itertools
import os
import random
import subprocess
import sys
import types
from collections import defaultdict

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from beartype import beartype
from jaxtyping import Array, Float, jaxtyped

from retrax.numerics.fingerprint import digest, fingerprint
from retrax.numerics.reads import reads

NEGATIVE_ZERO = -0.0


def written(source, **names):
    """A function `f` as another module would have it, with globals of its own."""
    space = {"__name__": "somewhere", "jnp": jnp, "np": np, "jax": jax, **names}
    exec(source, space)
    return space["f"], space


def test_reads_follow_attributes_as_far_as_the_code_does():
    f, _ = written("def f(x):\n    return a.b.c * x + g(d) + [h.k for _ in x][0] + jnp.sin(x)\n")
    found = reads(f.__code__)
    assert dict(found.names) == {
        "a": (("b", "c"),), "g": ((),), "d": ((),), "h": (("k",),), "jnp": (("sin",),),
    }  # fmt: skip
    assert found.known


ALIKE = [
    1, 1.0, True, "1", b"1", 1j, np.float64(1), np.float32(1), np.int64(1), np.array(1.0),
    np.array([1.0]), (1,), [1], {1}, {1: 1}, None,
]  # fmt: skip
SIGNS = [(0.0, NEGATIVE_ZERO), ((0.0,), (NEGATIVE_ZERO,)), (np.zeros(2), -np.zeros(2))]
SHAPES = [(np.zeros(2), np.zeros((2, 1))), (np.zeros(100), np.zeros(101))]


@pytest.mark.parametrize(("one", "other"), [*itertools.combinations(ALIKE, 2), *SIGNS, *SHAPES])
def test_numbers_compare_with_their_types_and_bits(one, other):
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one) == fingerprint(one)
    assert digest(one) != digest(other)


def test_nan_is_the_same_as_itself():
    assert fingerprint([float("nan")]) == fingerprint([float("nan")])


def weighted(weight):
    """A function whose arguments are checked, as the style of JAX is to write one."""

    @jaxtyped(typechecker=beartype)
    def f(x: Float[Array, "3"]):
        return weight * x[2]

    return f


def test_checks_of_types_hide_nothing_and_add_nothing():
    assert fingerprint(weighted(2.0)).complete
    assert fingerprint(weighted(2.0)) == fingerprint(weighted(2.0))
    assert fingerprint(weighted(2.0)) != fingerprint(weighted(3.0))


class Scaled:
    """A decorator that keeps a number beside the function."""

    def __init__(self, function, by):
        functools.update_wrapper(self, function)
        self.by = by

    def __call__(self, x):
        return self.by * self.__wrapped__(x)


class Lazy:
    def __init__(self, w):
        self.w = w

    @functools.cached_property
    def weight(self):
        return self.w


def one(x):
    return x


def marked(w):
    def f(x):
        return x

    f.w = w
    return f


def ruled(rule):
    f = jax.custom_jvp(one)
    f.defjvp(rule)
    return f


def slope_of(k):
    def rule(primals, tangents):
        return primals[0], k * tangents[0]

    return rule


CHANGED = {
    "object that wraps a function": (Scaled(one, 2.0), Scaled(one, 3.0)),
    "rule of a derivative": (ruled(slope_of(2.0)), ruled(slope_of(3.0))),
    "gradient": (jax.grad(slope_of(2.0)), jax.grad(slope_of(3.0))),
    "map of a map": (jax.vmap(jax.jit(slope_of(2.0))), jax.vmap(jax.jit(slope_of(3.0)))),
    "cached property": (Lazy(2.0), Lazy(3.0)),
    "method": (Lazy(2.0).__init__, Lazy(3.0).__init__),
    "factory": (defaultdict(slope_of(2.0)), defaultdict(slope_of(3.0))),
    "module of equinox": (eqx.nn.Identity(), eqx.nn.Lambda(slope_of(2.0))),
    "attribute of a function": (marked(2.0), marked(3.0)),
    "names of fields": (np.zeros(1, [("a", "f8")]), np.zeros(1, [("b", "f8")])),
    "key": (jax.random.key(0), jax.random.key(1)),
    "weak type": (jnp.asarray(1.0), jnp.ones(())),
    "array of objects": (np.array([2.0, None]), np.array([3.0, None])),
    "method of a list": ([2.0].index, [3.0].index),
    "entry of a large array": (np.arange(1000.0), np.arange(1000.0) + np.eye(1000)[7]),
    "range": (range(3), range(4)),
}


@pytest.mark.parametrize("case", CHANGED)
def test_what_differs_has_another_fingerprint(case):
    first, second = (fingerprint(x) for x in CHANGED[case])
    assert first != second


def test_only_what_is_read_counts():
    config = types.SimpleNamespace(w=2.0)
    f, space = written("def f(x): return config.w * x", config=config, unused=1)
    before = fingerprint(f)
    space["unused"] = 2
    assert fingerprint(f) == before
    config.w = 3.0
    assert fingerprint(f) != before


def test_equal_code_with_equal_content_is_the_same():
    assert fingerprint(slope_of(2.0)) == fingerprint(slope_of(2.0))


@pytest.mark.parametrize(
    "source",
    [
        "def f(x): return float(os.environ['W']) * x",
        "def f(x): return random.random() * x",
        "def f(x): return np.random.rand() * x",
        "def f(x): return globals()['w'] * x",
        "from os import getenv\ndef f(x): return float(getenv('W')) * x",
        "from random import random\ndef f(x): return random() * x",
        "from time import time\ndef f(x): return time() * x",
        "from datetime import datetime\ndef f(x): return datetime.now().second * x",
        "from pathlib import Path\ndef f(x): return len(Path('w').read_text()) * x",
        "def f(x): return float(open('w').read()) * x",
        "def f(x): return next(numbers) * x",
        "import logging\nlog = logging.getLogger()\ndef f(x):\n    log.debug('f')\n    return x",
        "def f(x): return getattr(whole, 'w') * x",
        "import operator\nweigh = operator.attrgetter('w')\ndef f(x): return weigh(whole) * x",
        "import functools\n@functools.cache\ndef w(): return 2.0\ndef f(x): return w() * x",
        "class M(type):\n    w = 2.0\nclass A(metaclass=M): pass\ndef f(x): return A.w * x",
        "class A: pass\ndef f(x): return len(A.__subclasses__()) * x",
        "def g(x): return x\ndef f(x): return g.__globals__['w'] * x",
        "@jax.jit\ndef g(x): return x\ndef f(x): return g(x)",
        "def f(x): return whole.w * g(whole)",
        "def f(x):\n    import whole\n    return whole.w * x",
        "def f(x):\n    from . import w\n    return w * x",
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    w: float = 1.0\n"
        "a = A()\ndef f(x): return a.w * x",  # its repr reads the name of the class
    ],
)
def test_what_cannot_be_known_is_not_complete(source):
    names = dict(os=os, random=random, numbers=iter([1.0]), whole=types.ModuleType("whole"))
    f, _ = written(source, **names, g=one)
    assert not fingerprint(f).complete


@pytest.mark.parametrize(
    "source",
    [
        "import math, functools\ndef f(x): return functools.reduce(max, [math.pi, x])",
        "def f(x): return np.linalg.norm([1.0]) * jnp.where(x > 0, jax.nn.relu(x), float('nan'))",
        "import retrax as rx\ndef f(x): return rx.SO3().exp(x)[2, 2]",
        "class A:\n    w: float = 1.0\n    def f(self, x): return self.w * x\nf = A().f",
        "f = jax.vmap(jax.grad(lambda x: jnp.sin(x) ** 2))",
        "class A:\n    def __init__(self): self.w = 1.0\n"
        "a = A()\ndef f(x): return a.w * x + abs(x) + sum(range(3))",
    ],
)
def test_what_people_write_is_complete(source):
    assert fingerprint(written(source)[0]).complete


def test_a_tracer_is_never_the_same():
    seen = []

    def f(x):
        seen.append(fingerprint(lambda y: x * y).complete)
        return x

    jax.grad(f)(1.0)
    assert seen == [False]


def test_a_module_of_ones_own_may_have_the_name_of_one_of_pythons():
    test = types.ModuleType("test")
    test.__file__ = "/home/somebody/test.py"
    exec("w = 2.0\ndef f(x): return w * x", vars(test))
    before = fingerprint(test.f)
    test.w = 3.0
    assert fingerprint(test.f) != before


def test_a_made_class_is_not_one_of_pythons():
    made = dataclasses.make_dataclass("Made", [("w", float)], namespace={"half": 0.5})
    before = fingerprint(made)
    made.half = 0.25
    assert fingerprint(made) != before


def test_cycles_end_and_count():
    a = [2.0]
    a.append(a)
    b = [3.0]
    b.append(b)
    assert fingerprint(a).complete
    assert fingerprint(a) != fingerprint(b)


SOURCE = """
def helper(x): return w * x + table[0] + len(names)
def f(x, *, by=2.0): return helper(x) * by + jnp.sin(jax.lax.cond(x > 0, helper, helper, x))
"""


def test_a_digest_is_the_same_in_another_process():
    names = dict(w=2.0, table=np.arange(3.0), names={"a", "b", "c"})
    code = (
        "import numpy as np, jax, jax.numpy as jnp\n"
        f"w, table, names = 2.0, np.arange(3.0), {{'c', 'b', 'a'}}\nexec({SOURCE!r})\n"
        "from retrax.numerics.fingerprint import digest\nprint(digest(f))"
    )
    there = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert there.stdout.strip() == digest(written(SOURCE, **names)[0])
