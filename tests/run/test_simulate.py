"""The loop: what is saved, bits, transformations, refusals, failures."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx

SO3 = rx.SO3()


@functools.cache
def top():
    system = rx.systems.HeavyTop([1.0, 1.7, 2.3], 1.0, [0.04, -0.03, 0.11])
    return system, system.state(SO3.exp(jnp.array([0.7, -0.4, 0.2])), velocity=[1.2, -0.5, 1.0])


def run(**changes):
    system, state = top()
    arguments = {"h": 0.05, "steps": 40, **changes}
    return rx.simulate(
        arguments.pop("system", system),
        arguments.pop("integrator", rx.LieVerlet()),
        arguments.pop("state", state),
        **arguments,
    )


def test_times_are_multiples_of_h_not_sums():
    t = run(h=0.1, steps=1000).t
    assert np.array_equal(t, 0.1 * np.arange(1001))


def test_saving_less_saves_the_same_states_and_always_the_last():
    every = run(steps=40)
    some = run(steps=40, save_every=7)
    assert np.array_equal(some.t, 0.05 * np.array([0, 7, 14, 21, 28, 35, 40]))
    assert np.array_equal(some.g, every.g[[0, 7, 14, 21, 28, 35, 40]])
    assert np.array_equal(some.momentum, every.momentum[[0, 7, 14, 21, 28, 35, 40]])
    assert int(np.sum(some.info.iterations)) == int(np.sum(every.info.iterations)) > 40


def test_chunks_do_not_show():
    long = run(h=0.01, steps=2500)  # more states than one chunk holds
    assert len(long) == 2501
    assert np.array_equal(long.momentum[-1], run(h=0.01, steps=2500, save_every=2500).momentum[-1])


def test_the_same_run_twice_is_the_same_bits():
    assert np.array_equal(run().momentum, run().momentum)


def test_the_final_state_starts_another_run():
    first = run(steps=20)
    second = run(steps=20, state=first.final)
    whole = run(steps=40)
    assert second.t[0] == first.t[-1] and np.array_equal(second.t[-1], whole.t[-1])
    np.testing.assert_allclose(second.momentum[-1], whole.momentum[-1], rtol=0, atol=1e-15)


def test_gradients_agree_with_differences_in_both_modes():
    _, state = top()

    def end(parameters):
        system = rx.systems.HeavyTop(parameters[:3], 1.0, parameters[3:6])
        start = system.state(state.g, velocity=parameters[6:])
        final = rx.simulate(system, rx.LieVerlet(), start, h=0.05, steps=20, save_every=6).final
        return jnp.sum(final.g * jnp.arange(9.0).reshape(3, 3)) + final.momentum @ final.momentum

    p = jnp.array([1.0, 1.7, 2.3, 0.04, -0.03, 0.11, 1.2, -0.5, 1.0])
    reverse, forward = jax.jit(jax.grad(end))(p), jax.jit(jax.jacfwd(end))(p)
    np.testing.assert_allclose(reverse, forward, rtol=0, atol=1e-12)
    value = jax.jit(end)
    e = 1e-5
    difference = [(value(p.at[i].add(e)) - value(p.at[i].add(-e))) / (2 * e) for i in range(9)]
    np.testing.assert_allclose(reverse, jnp.stack(difference), rtol=0, atol=2e-8)


def test_a_batch_is_many_single_runs():
    system, state = top()
    spins = jnp.array([[1.2, -0.5, 1.0], [0.1, 0.9, -2.0]])

    def end(velocity):
        start = system.state(state.g, velocity=velocity)
        return rx.simulate(system, rx.LieVerlet(), start, h=0.05, steps=20).final.momentum

    batch = jax.jit(jax.vmap(end))(spins)
    for spin, momentum in zip(spins, batch, strict=True):
        np.testing.assert_allclose(end(spin), momentum, rtol=0, atol=1e-14)


def test_progress_is_reported_and_reaches_the_end(capsys):
    seen = []
    run(steps=50, save_every=5, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (50, 50)
    run(progress=True)
    assert "left" in capsys.readouterr().err
    run()
    assert capsys.readouterr().err == ""
    with pytest.raises(rx.BadInput, match="progress = 'yes'"):
        run(progress="yes")


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"h": 0.0}, "h = 0.0 must be a finite number"),
        ({"h": np.inf}, "h = inf must be a finite number"),
        ({"h": np.nan}, "h = nan must be a finite number"),
        ({"h": "small"}, "h = 'small' must be a finite number"),
        ({"steps": 10.5}, "steps = 10.5 must be a whole number"),
        ({"steps": 0}, "steps = 0 must be a whole number"),
        ({"steps": True}, "steps = True must be a whole number"),
        ({"save_every": 0}, "save_every = 0 must be a whole number"),
        ({"integrator": rx.LieVerlet}, "is not a retrax integrator"),
        ({"system": "top"}, "system = 'top' is not a retrax system"),
        ({"state": jnp.eye(3)}, "is not a State"),
    ],
)
def test_runs_that_cannot_start_are_refused(changes, sentence):
    with pytest.raises(rx.BadInput, match=sentence.replace(".", r"\.")):
        run(**changes)


def test_states_changed_by_hand_are_looked_at_again():
    _, state = top()
    with pytest.raises(rx.BadInput, match=r"state\.g is not a rotation"):
        run(state=rx.State(1.1 * state.g, state.momentum))
    with pytest.raises(rx.BadInput, match=r"state\.momentum must be finite"):
        run(state=rx.State(state.g, jnp.array([0.0, jnp.nan, 0.0])))
    with pytest.raises(rx.BadInput, match="float32"):
        run(state=rx.State(state.g, state.momentum.astype(jnp.float32)))
    with pytest.raises(rx.BadInput, match=r"state\.momentum has shape \(2,\)"):
        run(state=rx.State(state.g, jnp.zeros(2)))


def test_a_retraction_that_does_not_fit_is_refused_before_the_run():
    basis = [np.outer(np.eye(3)[i], np.eye(3)[j]) for i in range(3) for j in range(3) if i != j]
    basis += [np.diag([1.0, -1.0, 0.0]), np.diag([0.0, 1.0, -1.0])]
    sl3 = rx.MechanicalSystem(rx.MatrixGroup(np.array(basis)), np.ones(8))
    start = sl3.state(np.eye(3), velocity=np.zeros(8))
    with pytest.raises(rx.BadInput, match=r"use Exp\(\)"):
        rx.simulate(sl3, rx.LieVerlet(), start, h=0.1, steps=1)


def test_a_step_that_is_too_long_is_explained():
    with pytest.raises(rx.StepFailed) as failure:
        run(integrator=rx.LieVerlet(rx.Exp()), h=8.0)
    sentence = str(failure.value)
    for part in (
        "LieVerlet",
        "heavy top",
        "step 1 of 40",
        "t = 0 s",
        "did not converge",
        "Try h =",
    ):
        assert part in sentence
    assert len(failure.value.trajectory) == 1


def test_numbers_that_are_not_finite_stop_the_run_where_they_appear():
    wall = rx.MechanicalSystem(rx.Translation(1), [1.0], lambda x: -jnp.sqrt(1.0 - x[0]))
    start = wall.state([0.0], velocity=[1.0])
    with pytest.raises(rx.StepFailed, match="not finite") as failure:
        rx.simulate(wall, rx.RKMK("euler"), start, h=0.4, steps=100, save_every=50)
    partial = failure.value.trajectory
    assert np.all(np.isfinite(partial.momentum))
    assert partial.completed == round(partial.t[-1] / 0.4) < 50
    whole = rx.simulate(wall, rx.RKMK("euler"), start, h=0.4, steps=partial.completed)
    assert np.array_equal(whole.momentum[-1], partial.momentum[-1])


def memory_of_a_gradient(steps, backend):
    """Bytes that a compiled gradient of a run takes; nothing is run."""
    system, state = top()

    def end(momentum):
        start = rx.State(state.g, momentum, state.t)
        run = rx.simulate(
            system, rx.LieVerlet(), start, h=0.01, steps=steps, save_every=steps, backend=backend
        )
        return jnp.sum(run.final.momentum**2)

    compiled = jax.jit(jax.grad(end)).lower(state.momentum).compile()
    return compiled.memory_analysis().temp_size_in_bytes


def test_a_long_gradient_does_not_keep_every_step():
    """Natively all states are kept while they fit into 4 MiB, and of a longer run few."""
    state = 8 * 13
    assert memory_of_a_gradient(40_000, "native") < 40_001 * state + 2**10
    assert memory_of_a_gradient(50_000, "native") < 2000  # measured 1218
    assert memory_of_a_gradient(1_000_000, "native") < 12 * 1218  # measured 11,074


def test_on_xla_the_memory_of_a_gradient_grows_with_the_square_root_of_the_steps():
    assert memory_of_a_gradient(6400, "xla") < 12 * memory_of_a_gradient(64, "xla")  # measured 6
