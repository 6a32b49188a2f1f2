"""Kernels for GPUs: their PTX, their threads emulated, and on a card where there is one."""

import re
import shutil
import subprocess
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gpu_emulator import Emulator

import retrax as rx
from retrax.engine import backends
from retrax.engine.llvm import ptx
from retrax.engine.llvm.ptx_kernel import assemble_function, assemble_kernel
from retrax.engine.passes.live import live
from retrax.engine.step_program import signature, step_program
from retrax.engine.trace.scalarise import scalarise
from retrax.integrators.driven import Driven
from retrax.systems.catalogue import CASES
from retrax.testing.constrained import claims_problem

ON_GPU = jax.default_backend() == "gpu"
needs_gpu = pytest.mark.skipif(not ON_GPU, reason="needs an NVIDIA GPU")
# Systems and integrators whose programs differ in kind: loops, choices, functions, memory, buffers.
READY = ("pendulum3d", "heavy-top", "rod", "string-pendulum")
CLAIMS = ("rkmk-4", "taylor-4", "composition-4", "collocation-4", "lagrange-d-alembert")
PAIRS = {
    **{f"case {name}": (name, None) for name in READY},
    **{name: (None, name) for name in CLAIMS},
}
# What PTX may call that no module defines.
DRIVER = {"vprintf", "malloc", "free"}


def problem(case, name):
    if case is not None:
        system, state, h, _ = CASES[case].make()
        return system, rx.LieVerlet(), state, h
    integrator = rx.INTEGRATORS[name]
    system, state = claims_problem(integrator)[1][:2]
    return system, integrator, state, 0.002


def program_of(system, integrator, state):
    return step_program(*signature(system, integrator, state), unroll=True)


def spread(state, members, by=0.1):
    factors = np.linspace(1 - by, 1 + by, members)
    copies = jax.tree.map(lambda x: np.stack([np.asarray(x)] * members), state)
    return rx.State(copies.g, copies.momentum * factors[:, None], copies.t)


def functions_of(text):
    """The functions that PTX calls, and those that it has."""
    called = set(re.findall(r"call(?:\.uni)?\s+(?:\([^)]*\),\s*)?([\w$]+)", text))
    return called, set(re.findall(r"\.func\s+(?:\([^)]*\)\s*)?([\w$]+)", text))


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
def test_every_kind_of_program_has_ptx(pair, shared):
    system, integrator, state, _ = problem(*PAIRS[pair])
    program, inputs = program_of(system, integrator, state)
    assembly, layout = assemble_kernel(program, inputs, shared)
    try:
        text = ptx.compile_ptx(assembly, "sm_90")
    except rx.BadInput as missing:
        assert "libdevice" in str(missing)
        return
    assert ".visible .entry run(" in text and ".target sm_90" in text
    called, there = functions_of(text)
    assert called - there <= DRIVER
    assert layout.pieces == program.has_buffers
    if shutil.which("ptxas"):
        subprocess.run(
            ["ptxas", "-arch=sm_90", "-o", "/dev/null", "-"], input=text, text=True, check=True
        )


@pytest.mark.parametrize("pair", ["case pendulum3d", "case rod", "case string-pendulum", "rkmk-4"])
def test_threads_take_the_steps_of_the_native_loop(pair):
    """Bit by bit, with a launch that ends in the middle of a record."""
    system, integrator, state, h = problem(*PAIRS[pair])
    states, steps = spread(state, 3, by=0.05), 6
    emulator = Emulator(*program_of(system, integrator, state), system, integrator, states, h)
    emulator.run(1, 2)
    out, interval = emulator.run(1, steps - 2, begun=True)
    last = emulator.packing.unpack(out)
    native = rx.ensemble(system, integrator, states, h=h, steps=steps, backend="native")
    np.testing.assert_allclose(last.momentum[0], native["momentum"][0], rtol=0, atol=1e-15)
    np.testing.assert_array_equal(interval[0, 0], native["iterations"][0])
    np.testing.assert_allclose(interval[0, 2], native["increment"][0], rtol=0, atol=1e-15)
    assert np.isnan(emulator.failure).all()


def test_threads_draw_noise_as_the_native_loop_does():
    """A digital controller with a key: its PTX is whole, and the emulated kernel has its words."""

    def law(R, xi, t, key):
        key, draw = jax.random.split(key)
        return 0.3 * jax.random.normal(draw, (2,)), key

    body = rx.MechanicalSystem(rx.SO3(), jnp.array([1.0, 2.0, 2.5]))
    plant = rx.Actuated(body, jnp.eye(3)[:, :2])
    by = rx.Sampled(law, 0.02, state=jax.random.key(3))
    driven = Driven(rx.LieVerlet(), plant.actuators, by)
    begin = plant.state(jnp.eye(3), velocity=[0.3, 0.2, 1.0])
    state = driven.begin(body, begin)
    program = program_of(body, driven, state)
    assembly, _ = assemble_kernel(*program, False)
    try:
        called, there = functions_of(ptx.compile_ptx(assembly, "sm_90"))
        assert called - there <= DRIVER
    except rx.BadInput as missing:
        assert "libdevice" in str(missing)
    states = jax.tree.map(lambda x: np.stack([np.asarray(x)] * 3), state)
    emulator = Emulator(*program, body, driven, states, 0.01)
    out, _ = emulator.run(1, 6)
    last = emulator.packing.unpack(out)
    native = rx.simulate(plant, rx.LieVerlet(), begin, h=0.01, steps=6, control=by, progress=False)
    words, momentum = np.asarray(last.control.own[0]), np.asarray(last.momentum[0])
    np.testing.assert_array_equal(words, [native.final.control.own] * 3)
    np.testing.assert_allclose(momentum, [native.final.momentum] * 3, rtol=0, atol=1e-15)


def test_threads_with_parameters_of_their_own():
    inertias = jnp.array([[1.0, 2.0, 2.5], [1.5, 2.0, 3.0], [2.0, 2.2, 2.4]])
    bodies = jax.vmap(rx.systems.FreeRigidBody)(inertias)
    states = jax.vmap(lambda body: body.state(jnp.eye(3), velocity=jnp.array([0.4, 0.1, 0.9])))(
        bodies
    )
    states = jax.tree.map(np.asarray, states)
    one = jax.tree.map(lambda x: x[0], (bodies, states))
    program = program_of(one[0], rx.LieVerlet(), one[1])
    emulator = Emulator(*program, bodies, rx.LieVerlet(), states, 0.01, shared=False)
    out, _ = emulator.run(2, 10)
    native = rx.ensemble(
        bodies, rx.LieVerlet(), states, h=0.01, steps=20, save_every=10, backend="native"
    )
    momentum = emulator.packing.unpack(out).momentum
    np.testing.assert_allclose(momentum, native["momentum"][1:], rtol=0, atol=1e-15)


def test_a_thread_whose_step_fails_says_so():
    wall = rx.MechanicalSystem(rx.Translation(1), [1.0], lambda x: -jnp.sqrt(1.0 - x[0]))
    speeds = jnp.linspace(0.0, 3.0, 11)[:, None]
    states = jax.vmap(lambda v: wall.state(jnp.zeros(1), velocity=v))(speeds)
    states = jax.tree.map(np.asarray, states)
    program = program_of(wall, rx.LieVerlet(), jax.tree.map(lambda x: x[0], states))
    emulator = Emulator(*program, wall, rx.LieVerlet(), states, 0.05)
    emulator.run(1, 7)
    emulator.run(2, 6)
    with pytest.warns(UserWarning, match="members failed"):
        native = rx.ensemble(wall, rx.LieVerlet(), states, h=0.05, steps=19, backend="native")
    step = np.where(np.isnan(emulator.failure[0]), -1, emulator.failure[0] + 1)
    np.testing.assert_array_equal(step, native["failed_step"])
    assert (step > 0).sum() > 3 and (step < 0).sum() > 3


def test_functions_come_from_libdevice():
    def function(x):
        return jnp.sin(x) + jnp.arctan2(x, 2.0) + jnp.expm1(x) + x**2.5

    program = live(scalarise(function, jnp.zeros(())))
    text = ptx.compile_ptx(assemble_function(program, [1]), "sm_80")
    called, there = functions_of(text)
    assert called <= there and ".target sm_80" in text


def test_without_libdevice_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setenv("RETRAX_LIBDEVICE", "/nowhere/libdevice.10.bc")
    program = live(scalarise(jnp.sin, jnp.zeros(())))
    with pytest.raises(rx.BadInput, match=r"libdevice.* not found: install jax\[cuda13\]"):
        ptx.compile_ptx(assemble_function(program, [1]), "sm_90")
    plain = live(scalarise(lambda x: x * x, jnp.zeros(())))
    assert ".entry run(" in ptx.compile_ptx(assemble_function(plain, [1]), "sm_90")


def test_newer_cards_run_the_code_of_the_newest_that_llvm_knows():
    assert ptx.architecture(90) == "sm_90" and ptx.architecture(88) == "sm_87"
    assert ptx.architecture(120) == "sm_90"
    with pytest.raises(rx.BadInput, match=r"compute capability 3\.5"):
        ptx.architecture(35)


def test_the_old_name_is_said_once():
    backends._rename.cache_clear()
    with pytest.warns(DeprecationWarning, match="backend = 'pallas' is called 'gpu' now"):
        assert backends.require_backend("pallas") == "gpu"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert backends.require_backend("pallas") == "gpu"


@needs_gpu
@pytest.mark.parametrize("name", ["rod", "string-pendulum", "pendulum3d"])
def test_cards_agree_with_the_processor(name):
    system, integrator, state, h = problem(name, None)
    states = spread(state, 41, by=0.05)
    runs = [
        rx.ensemble(system, integrator, states, h=h, steps=100, save_every=30, backend=b)
        for b in ("gpu", "native")
    ]
    for ours, theirs in zip(*(x.data_vars.values() for x in runs), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-13)


@needs_gpu
def test_shares_of_several_cards(monkeypatch):
    """Two shares, on one card if there is no other; launches of a single step."""
    from retrax.engine.backends import gpu

    system, integrator, state, h = problem("pendulum3d", None)
    states, seen = spread(state, 1001), []
    whole = rx.ensemble(system, integrator, states, h=h, steps=50, save_every=20, backend="gpu")
    monkeypatch.setattr(gpu, "_PIECE", 0.0)
    monkeypatch.setattr(gpu, "_FIRST", 0.0)
    devices = [jax.devices()[0], jax.devices()[-1]]
    parts = rx.ensemble(
        system, integrator, states, h=h, steps=50, save_every=20, backend="gpu", devices=devices,
        progress=lambda done, total: seen.append(done),
    )  # fmt: skip
    assert seen == list(range(1, 51))
    for name in whole.data_vars:
        np.testing.assert_array_equal(whole[name], parts[name])


@needs_gpu
def test_a_second_call_compiles_nothing():
    system, integrator, state, h = problem("pendulum3d", None)
    states = jax.tree.map(jnp.asarray, spread(state, 1000))
    rx.ensemble(system, integrator, states, h=h, steps=10, backend="gpu")
    with jax.log_compiles(), warnings.catch_warnings():
        warnings.simplefilter("error")
        again = rx.ensemble(system, integrator, states, h=h, steps=10, backend="gpu")
    assert again.attrs["compile_seconds"] < 0.1
