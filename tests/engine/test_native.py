"""Machine code fails as JAX does, says so, and is compiled once."""

import importlib
import types

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import retrax as rx
from retrax.engine.llvm import machine_code
from retrax.engine.step_program import step_identity


def test_both_back_ends_fail_at_the_same_step_with_the_same_sentence():
    wall = rx.MechanicalSystem(rx.Translation(1), [1.0], lambda x: -jnp.sqrt(1.0 - x[0]))
    start = wall.state([0.0], velocity=[1.0])
    sentences, ends = [], []
    for backend in ("native", "xla"):
        with pytest.raises(rx.StepFailed) as failure:
            rx.simulate(
                wall, rx.RKMK("euler"), start, h=0.4, steps=99, save_every=4, backend=backend
            )
        sentences.append(str(failure.value))
        ends.append(failure.value.trajectory)
    assert sentences[0] == sentences[1]
    assert np.array_equal(ends[0].t, ends[1].t)
    np.testing.assert_allclose(ends[0].momentum, ends[1].momentum, rtol=1e-15)


def test_a_newton_failure_reports_how_bad_it_was():
    top = rx.systems.HeavyTop([1.0, 1.7, 2.3], 1.0, [0.04, -0.03, 0.11])
    start = top.state(jnp.eye(3), velocity=[1.2, -0.5, 1.0])
    bad = r"relative residual \d.* after 25 iterations"
    with pytest.raises(rx.StepFailed, match=bad) as failure:
        rx.simulate(top, rx.LieVerlet(rx.Exp()), start, h=8.0, steps=5, backend="native")
    assert failure.value.trajectory.completed == 0


def test_a_step_without_scalar_form_runs_on_xla_and_says_so():
    body = rx.MechanicalSystem(rx.SO3(), [1.0, 1.7, 2.3], lambda R: lax.lgamma(3.0 + R[0, 1]))
    start = body.state(jnp.eye(3), velocity=[0.1, 0.2, 0.3])
    with pytest.warns(UserWarning, match="primitive 'lgamma' has no scalar form. It runs on XLA"):
        run = rx.simulate(body, rx.RKMK("euler"), start, h=0.01, steps=3)
    assert run.provenance["backend"] == "xla"
    with pytest.raises(rx.BadInput, match="Use backend='auto'"):
        rx.simulate(body, rx.RKMK("euler"), start, h=0.01, steps=3, backend="native")
    with pytest.raises(rx.BadInput, match="backend = 'cuda' must be one of"):
        rx.simulate(body, rx.RKMK("euler"), start, h=0.01, steps=3, backend="cuda")


def test_numbers_of_a_system_are_inputs_of_its_kernel():
    """Another inertia or potential parameter needs no other kernel."""
    from retrax.engine.backends.native import single_kernel

    def spun(inertia):
        body = rx.systems.FreeRigidBody(inertia)
        start = body.state(jnp.eye(3), velocity=[0.3, 0.0, 0.9])
        return rx.simulate(body, rx.LieVerlet(), start, h=0.05, steps=10, backend="native")

    first = spun([1.0, 2.0, 3.0])
    before = single_kernel.cache_info().misses
    second = spun([1.0, 2.0, 2.5])
    assert single_kernel.cache_info().misses == before
    assert not np.array_equal(first.momentum[-1], second.momentum[-1])


def test_kernels_are_kept_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("RETRAX_CACHE", str(tmp_path / "kernels"))
    assembly = "define i64 @run() {\n  ret i64 42\n}"
    machine_code.Compiled(assembly)
    (kept,) = (tmp_path / "kernels").iterdir()

    def unexpected(*_):
        raise AssertionError("compiled again")

    monkeypatch.setattr(machine_code, "_compile", unexpected)
    machine_code.Compiled(assembly)
    kept.write_bytes(b"")
    monkeypatch.setenv("RETRAX_CACHE", str(tmp_path / "kernels" / kept.name / "impossible"))
    with pytest.raises(AssertionError, match="compiled again"):
        machine_code.Compiled(assembly)


@pytest.mark.parametrize("module", ["json", "retrax.cases.run_file", "retrax.show.page"])
def test_functions_of_libraries_compile_once_too(module):
    """What a library is not known for is looked at as a user's: it was compiled in every run."""
    code = (lambda R: -9.81 * R[2, 2]).__code__
    potential = types.FunctionType(code, vars(importlib.import_module(module)))
    top = rx.MechanicalSystem(rx.SO3(), [1.0, 2.8, 2.0], potential)
    assert step_identity(top, rx.LieVerlet()).complete
