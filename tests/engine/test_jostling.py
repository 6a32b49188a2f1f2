"""Lists of pairs in the memory of a step, and sweeps over them, on all back ends."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gpu_emulator import Emulator
from jostling import jostled, ticking

import retrax as rx
from retrax.engine.llvm import ptx
from retrax.engine.llvm.ptx_kernel import assemble_kernel
from retrax.engine.step_program import signature, step_program

H, STEPS = 0.01, 60


@pytest.fixture(scope="module")
def native():
    system, method, state = jostled()
    return rx.simulate(system, method, state, h=H, steps=STEPS, backend="native")


def test_the_native_loop_takes_the_steps_of_xla(native):
    system, method, state = jostled()
    xla = rx.simulate(system, method, state, h=H, steps=STEPS, backend="xla")
    np.testing.assert_allclose(native.states.momentum, xla.states.momentum, rtol=0, atol=1e-11)
    assert native.provenance["backend"] == "native"


def test_the_list_is_made_anew_now_and_then(native):
    """Step by step in JAX."""
    system, method, state = jostled()
    memory, step = method.memory(system, state), jax.jit(method.next_step)
    for _ in range(STEPS):
        state, _, memory = step(system, state, jnp.asarray(H), memory)
    assert 1 < float(memory["made"]) < STEPS / 3
    assert 3 < float(memory["count"]) < 64
    np.testing.assert_allclose(native.final.momentum, state.momentum, rtol=0, atol=1e-11)


@pytest.mark.filterwarnings("ignore:.*keeps data, not code")
def test_the_list_is_handed_on_between_calls(native, tmp_path):
    system, method, state = jostled()
    path = tmp_path / "run.zarr"
    whole = rx.simulate(system, method, state, h=H, steps=STEPS, checkpoint=path, every=7)
    np.testing.assert_array_equal(whole.states.momentum, native.states.momentum)


def test_members_go_their_own_ways(native):
    system, method, state = jostled()
    others = [jostled(seed=seed)[2] for seed in (4, 5)]
    states = jax.tree.map(lambda *x: jnp.stack(x), state, *others)
    members = rx.ensemble(system, method, states, h=H, steps=STEPS, backend="native")
    np.testing.assert_array_equal(members["momentum"][-1][0], native.final.momentum)
    alone = rx.simulate(system, method, others[1], h=H, steps=STEPS)
    np.testing.assert_array_equal(members["momentum"][-1][2], alone.final.momentum)


def test_threads_of_a_gpu_take_the_same_steps():
    system, method, state = jostled(balls=17, room=16)
    states = jax.tree.map(lambda *x: jnp.stack(x), state, jostled(17, 16, seed=4)[2])
    program = step_program(*signature(system, method, state))
    emulator = Emulator(*program, system, method, states, H)
    out, _ = emulator.run(1, 2)
    native = rx.ensemble(system, method, states, h=H, steps=2, backend="native")
    found = emulator.packing.unpack(out).momentum[0]
    np.testing.assert_allclose(found, native["momentum"][-1], rtol=0, atol=1e-14)
    assembly, _ = assemble_kernel(*program, True)
    assert ".visible .entry run(" in ptx.compile_ptx(assembly, "sm_90")


def test_lanes_have_lists_of_their_own():
    body, method, states = ticking(11)
    together = jax.tree.map(lambda *x: jnp.stack(x), *states)
    members = rx.ensemble(body, method, together, h=H, steps=300, save_every=100, backend="native")
    for k in (0, 4, 10):
        alone = rx.simulate(body, method, states[k], h=H, steps=300, backend="xla")
        found = members["momentum"][-1][k]
        np.testing.assert_allclose(found, alone.final.momentum, rtol=0, atol=1e-12)
