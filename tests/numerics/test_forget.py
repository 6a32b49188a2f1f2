"""Forgetting compiled programs: they and the memory they live in are released."""

import gc
import weakref

import jax
import jax.numpy as jnp

import retrax as rx
from retrax.engine.llvm.machine_code import Compiled
from retrax.numerics.reuse import Jitted, forget


def test_machine_code_is_released_and_compiled_again():
    top = rx.systems.HeavyTop((1.0, 1.2, 0.5), 1.0, (0.0, 0.0, 0.3), 9.81)
    state = top.state(jnp.eye(3), velocity=jnp.array([0.1, 0.2, 5.0]))
    # The code that hears signals stays: it is one for all kernels.
    rx.simulate(top, rx.RKMK(), state, h=0.01, steps=1)
    forget()
    others = {id(each) for each in gc.get_objects() if isinstance(each, Compiled)}
    before = rx.simulate(top, rx.LieVerlet(), state, h=0.01, steps=10)
    code = [
        weakref.ref(each)
        for each in gc.get_objects()
        if isinstance(each, Compiled) and id(each) not in others
    ]
    assert code, "the run compiled no kernel"
    forget()
    assert [ref() for ref in code] == [None] * len(code)
    after = rx.simulate(top, rx.LieVerlet(), state, h=0.01, steps=10)
    assert jnp.array_equal(before.states.g, after.states.g)


def test_programs_of_jax_are_traced_anew():
    traced = []

    def double(x):
        traced.append(x)
        return 2.0 * x

    program = Jitted(double)
    program(jnp.ones(3)), program(jnp.ones(3))
    assert len(traced) == 1
    forget()
    assert jax.device_get(program(jnp.ones(3))).tolist() == [2.0] * 3
    assert len(traced) == 2
