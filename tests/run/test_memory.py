"""What a step hands to the next one: carried by every back end, kept by commits, differentiated."""

import json
import os
import signal
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from springs import AdamsBashforth, Springs

import retrax as rx
from retrax.integrators.base import AbstractIntegrator
from retrax.store import checkpoint_format

H, STEPS = 0.02, 90
BACKENDS = ("native", "xla")


def springs(count):
    system = Springs(jnp.linspace(1.0, 2.0, count))
    return system, system.state(jnp.linspace(0.2, 0.5, count), velocity=jnp.zeros(count), t=0.4)


# Numbers in registers, and arrays long enough to stay in memory; a force, and more than one.
CASES = {
    "few": (lambda: springs(3), rx.LieVerlet()),
    "many": (lambda: springs(40), rx.LieVerlet()),
    "composed": (lambda: springs(3), rx.Composition(rx.LieVerlet(), 4)),
    "composed, many": (lambda: springs(40), rx.Composition(rx.LieVerlet(), 4)),
    "two steps": (lambda: springs(3), AdamsBashforth()),
}
EVERYWHERE = [(name, backend) for name in CASES for backend in BACKENDS]


def run(name, backend, **options):
    make, method = CASES[name]
    system, state = make()
    how = {"h": H, "steps": STEPS, "backend": backend, **options}
    return rx.simulate(system, method, state, **how)


def resume(path, name, **options):
    make, method = CASES[name]
    return rx.resume(path, system=make()[0], integrator=method, **options)


def same(one, other):
    leaves = [jax.tree.leaves((x.t, x.states, x.info)) for x in (one, other)]
    assert all(np.array_equal(a, b) for a, b in zip(*leaves, strict=True))


def stopped_at(step):
    """A progress function that stops a run once it has come so far."""
    sent = []

    def progress(done, total):
        if done >= step and not sent:
            sent.append(os.kill(os.getpid(), signal.SIGINT))

    return progress


@pytest.mark.parametrize("name, backend", EVERYWHERE)
@pytest.mark.filterwarnings("ignore:.*keeps data, not code")
def test_a_run_goes_on_from_any_commit_to_the_same_bits(name, backend, tmp_path):
    whole = run(name, backend, save_every=7)
    for every, step in ((3, 17), (6, 61)):
        path = tmp_path / f"{every}.zarr"
        with pytest.raises(rx.Interrupted):
            run(
                name, backend, save_every=7, checkpoint=path, every=every, progress=stopped_at(step)
            )
        found = json.loads((path / "zarr.json").read_text())["attributes"]["restart"]
        assert step <= found["step"] < step + every and found["step"] % 7 and found["memory"]
        same(resume(path, name), whole)


@pytest.mark.parametrize("name, backend", EVERYWHERE)
@pytest.mark.filterwarnings("ignore:.*keeps data, not code")
def test_states_do_not_depend_on_how_often_they_are_saved_or_committed(name, backend, tmp_path):
    whole = run(name, backend)
    for save_every, every in ((2, None), (30, 7), (45, 1)):
        path = None if every is None else tmp_path / f"{every}.zarr"
        other = run(name, backend, save_every=save_every, checkpoint=path, every=every)
        pairs = zip(jax.tree.leaves(whole.states), jax.tree.leaves(other.states), strict=True)
        assert all(np.array_equal(a[::save_every], b) for a, b in pairs)


def test_the_memory_makes_a_difference():
    make, method = CASES["two steps"]
    system, state = make()
    whole = run("two steps", "native").final
    half = rx.simulate(system, method, state, h=H, steps=STEPS // 2)
    anew = rx.simulate(system, method, half.final, h=H, steps=STEPS // 2).final
    assert np.max(np.abs(whole.momentum - anew.momentum)) > 1e-6


class Forgetful(AbstractIntegrator):
    """The same steps, each by itself."""

    base: AbstractIntegrator
    order: ClassVar[int] = 2
    preserves: ClassVar[frozenset[str]] = frozenset()

    def step(self, system, state, h):
        return self.base.step(system, state, h)


@pytest.mark.parametrize("backend", BACKENDS)
def test_where_the_memory_is_a_function_of_the_state_steps_by_themselves_agree(backend):
    system, state = springs(3)
    for method in (rx.LieVerlet(), rx.Composition(rx.LieVerlet(), 4)):
        ends = [
            rx.simulate(system, m, state, h=H, steps=STEPS, backend=backend).final
            for m in (method, Forgetful(method))
        ]
        np.testing.assert_allclose(ends[0].momentum, ends[1].momentum, rtol=1e-13)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["few", "many", "two steps"])
@pytest.mark.filterwarnings("ignore:.*arrays of members have no room for it")
def test_members_of_an_ensemble_take_the_steps_of_runs_alone(name, backend):
    make, method = CASES[name]
    system, state = make()
    starts = jax.tree.map(lambda x: jnp.stack([jnp.asarray(x)] * 3), state)
    pushes = jnp.linspace(0.0, 0.2, 3)[:, None]
    starts = type(state)(starts.g, starts.momentum + pushes, starts.t)
    runs = rx.ensemble(system, method, starts, h=H, steps=STEPS, save_every=40, backend=backend)
    for k in range(3):
        one = jax.tree.map(lambda x, k=k: x[k], starts)
        alone = rx.simulate(system, method, one, h=H, steps=STEPS, save_every=40)
        np.testing.assert_allclose(
            runs["momentum"].isel(member=k).values, alone.momentum, rtol=1e-12, atol=1e-14
        )


def energy_at_end(method, system, scale, h=H):
    start = system.state(scale * jnp.array([0.2, 0.3, 0.5]), velocity=jnp.zeros(3), t=0.4)
    end = rx.simulate(system, method, start, h=h, steps=40, save_every=16).final
    return jnp.sum(end.g**3) + jnp.sum(end.momentum)


@pytest.mark.parametrize("method", [rx.LieVerlet(), AdamsBashforth()], ids=["kicks", "two steps"])
def test_derivatives_go_through_the_memory(method):
    system = springs(3)[0]
    value, slope = jax.value_and_grad(lambda s: energy_at_end(method, system, s))(1.3)
    forward = jax.jvp(lambda s: energy_at_end(method, system, s), (1.3,), (1.0,))[1]
    e = 1e-6
    difference = (
        energy_at_end(method, system, 1.3 + e) - energy_at_end(method, system, 1.3 - e)
    ) / (2 * e)
    np.testing.assert_allclose(slope, difference, rtol=1e-8)
    np.testing.assert_allclose(forward, slope, rtol=1e-13)
    np.testing.assert_allclose(value, energy_at_end(method, system, 1.3), rtol=1e-13)


def test_derivatives_are_those_of_steps_by_themselves():
    system = springs(3)[0]
    slopes = [
        jax.grad(lambda s, method=method: energy_at_end(method, system, s))(1.3)
        for method in (rx.LieVerlet(), Forgetful(rx.LieVerlet()))
    ]
    np.testing.assert_allclose(*slopes, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:.*keeps data, not code")
def test_a_checkpoint_without_its_memory_is_rejected(tmp_path):
    path = tmp_path / "run.zarr"
    with pytest.raises(rx.Interrupted):
        run("many", "native", save_every=7, checkpoint=path, every=7, progress=stopped_at(30))
    change(path, lambda restart: restart.pop("memory"))
    with pytest.raises(rx.BadInput, match="a restart without what its step hands on"):
        resume(path, "many")


@pytest.mark.filterwarnings("ignore:.*keeps data, not code")
def test_a_memory_of_another_size_is_rejected(tmp_path):
    path = tmp_path / "run.zarr"
    with pytest.raises(rx.Interrupted):
        run("many", "native", checkpoint=path, every=7, progress=stopped_at(30))
    change(path, lambda restart: restart.update(memory=restart["since"]))
    with pytest.raises(rx.BadInput, match=r"a memory of 3 numbers, but .* hand on 40"):
        resume(path, "many")


def change(path, how):
    """Rewrite where a checkpoint restarts."""
    record = json.loads((path / "zarr.json").read_text())
    record["attributes"].pop("checksum")
    how(record["attributes"]["restart"])
    (path / "zarr.json").write_bytes(checkpoint_format._check(record))


class Counting(AdamsBashforth):
    """A memory that loops do not carry."""

    def memory(self, system, state):
        return jnp.zeros((), int)


@pytest.mark.parametrize("backend", BACKENDS)
def test_memory_is_float64_or_rejected(backend):
    system, state = springs(3)
    with pytest.raises(rx.BadInput, match="int64 numbers in its memory, but loops carry float64"):
        rx.simulate(system, Counting(), state, h=H, steps=3, backend=backend)
