"""A constrained run is a run like any other: derivatives, ensembles, inputs, files, exports."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import retrax as rx

ARM = jnp.array([0.2, -0.1, 0.6])


def on_arm(length, g):
    """Where the end of an arm of the body is, which is to stay at the origin."""
    return g[1] + length * (g[0] @ ARM)


def body(length=1.0, weight=9.81):
    """A body on an arm, SO(3) x R^3, whose length and weight are parameters."""
    return rx.MechanicalSystem(
        rx.Product(rx.SO3(), rx.Translation(3)),
        [0.4, 0.7, 0.5, 1.2, 1.2, 1.2],
        Partial(lambda w, g: w * g[1][2], jnp.asarray(weight)),
        constraint=rx.Holonomic(Partial(on_arm, jnp.asarray(length))),
    )


def started(system, spin=0.9):
    place = system.assembled((jnp.eye(3), -ARM))
    return system.state(place, velocity=jnp.array([spin, -0.4, 0.7, 0.0, 0.0, 0.0]), project=True)


def end(p, backend="auto"):
    system = body(p[0], p[1])
    run = rx.simulate(
        system, rx.LieVerlet(), started(system, p[2]), h=0.02, steps=40, backend=backend
    )
    return jnp.sum(run.final.g[1] * jnp.array([1.0, -2.0, 0.5])) + run.final.momentum[0]


AT = jnp.array([1.1, 9.0, 0.8])


def test_gradients_forward_and_in_reverse_are_those_of_differences():
    step = 1e-4
    differences = []
    for e in np.eye(3):
        values = [float(end(AT + k * step * e)) for k in (-2, -1, 1, 2)]
        differences.append(np.dot(values, [1, -8, 8, -1]) / (12 * step))
    reverse, forward = jax.grad(end)(AT), jax.jacfwd(end)(AT)
    size = np.abs(differences).max()
    assert np.abs(reverse - np.array(differences)).max() < 3e-10 * size
    assert np.abs(forward - np.array(differences)).max() < 3e-10 * size


def test_xla_and_native_agree():
    assert abs(float(end(AT, "xla")) - float(end(AT, "native"))) < 2e-13


def test_members_of_an_ensemble_move_as_alone():
    system = body()
    alone = [started(system, spin) for spin in (0.2, 0.5, 0.9)]
    states = jax.tree.map(lambda *x: jnp.stack(x), *alone)
    many = rx.ensemble(system, rx.LieVerlet(), states, h=0.02, steps=50)
    for k, state in enumerate(alone):
        run = rx.simulate(system, rx.LieVerlet(), state, h=0.02, steps=50)
        assert np.abs(many["g1"].values[-1, k] - np.asarray(run.g[1][-1])).max() < 1e-13
    off = rx.State((states.g[0], states.g[1] + 0.1), states.momentum, states.t)
    with pytest.raises(rx.BadInput, match=r"misses zero by 0\.1"):
        rx.ensemble(system, rx.LieVerlet(), off, h=0.02, steps=50)


def test_a_run_goes_on_from_its_checkpoint_with_the_same_bits(tmp_path):
    system = body()
    state, path = started(system), tmp_path / "kept"
    whole = rx.simulate(system, rx.LieVerlet(), state, h=0.02, steps=80, save_every=20)
    with pytest.warns(UserWarning, match="keeps data, not code"):
        rx.simulate(system, rx.LieVerlet(), state, h=0.02, steps=40, save_every=20, checkpoint=path)
    more = rx.resume(path, system=system, steps=80)
    assert np.array_equal(np.asarray(more.g[1][-1]), np.asarray(whole.g[1][-1]))


def test_inputs_drive_a_held_body_and_a_stepper_steps_it():
    system = body()
    plant = rx.Actuated(system, inputs=np.eye(6)[:, :2])
    state = started(system)
    law = rx.Feedback(lambda g, xi, t: -0.5 * xi[:2])
    run = rx.simulate(plant, rx.LieVerlet(), state, h=0.02, steps=200, control=law)
    assert run.constraint_violation().max() < 5e-15
    assert run.energy()[-1] < run.energy()[0] - 0.1
    with pytest.raises(rx.BadInput, match="drift off its constraint on positions"):
        rx.simulate(plant, rx.RKMK("rk4"), state, h=0.02, steps=2, control=law)
    stepper = rx.Stepper(system, rx.LieVerlet(), state, h=0.02)
    free = rx.simulate(system, rx.LieVerlet(), state, h=0.02, steps=10)
    assert np.array_equal(stepper.step(steps=10).momentum, np.asarray(free.final.momentum))


def test_events_are_found_on_the_constraint():
    system = body()
    run = rx.simulate(
        system,
        rx.LieVerlet(),
        started(system),
        h=0.02,
        steps=100,
        events={"level": lambda g, xi, t: g[1][0]},
    )
    found = run.events["level"]
    assert len(found.t) >= 1
    assert (
        float(jnp.max(jnp.abs(on_arm(1.0, jax.tree.map(lambda x: x[0], found.states.g))))) < 2e-15
    )


@pytest.mark.parametrize("name", ["body.c", "body.wasm"])
def test_a_held_step_can_be_exported(name, tmp_path):
    system = body()
    rx.export(system, rx.LieVerlet(), tmp_path / name, state=started(system), h=0.02)
    assert (tmp_path / name).stat().st_size > 1000
    with pytest.raises(rx.BadInput, match="must start on its constraint"):
        rx.export(system, rx.LieVerlet(), tmp_path / name, h=0.02)


def test_a_length_in_the_constraint_is_found_from_a_record():
    """Trial lengths move the start along the rod, onto the sphere of each."""

    def pendulum(p):
        def on_sphere(length, x):
            return x @ x - length**2

        held = rx.Holonomic(Partial(on_sphere, jnp.asarray(p["length"])))
        return rx.MechanicalSystem(
            rx.Translation(3), [1.0, 1.0, 1.0], lambda x: 9.81 * x[2], constraint=held
        )

    def hung(system):
        place = system.assembled(jnp.array([0.6, 0.0, -0.8]))
        return system.state(place, velocity=[0.0, 0.7, 0.0])

    true = pendulum({"length": 1.1})
    run = rx.simulate(true, rx.LieVerlet(), hung(true), h=0.02, steps=60)
    data = rx.Measurements(run.t, np.asarray(run.g), of="configuration", noise=1e-2)
    found = rx.fit(
        pendulum,
        data,
        start={"length": 1.0},
        state=hung,
        free_state=False,
        integrator=rx.LieVerlet(),
        h=0.02,
    )
    assert abs(found.p["length"] - 1.1) < 1e-8


def test_the_exponents_on_what_the_constraint_leaves_add_up_to_zero():
    """A pendulum on a sphere has four, and they come in pairs."""
    system = rx.MechanicalSystem(rx.Sphere(3), [1.0, 1.0, 1.0], lambda x: 9.81 * x[2])
    state = system.state([0.6, 0.0, -0.8], velocity=[0.0, 0.7, 0.0])
    found = rx.analysis.lyapunov(system, rx.LieVerlet(), state, h=0.02, steps=400, exponents=4)
    assert np.abs(found.spectrum.sum()) < 0.3  # lengths of tangents are not those of the form
    with pytest.raises(rx.BadInput, match="from 1 to 4"):
        rx.analysis.lyapunov(system, rx.LieVerlet(), state, h=0.02, steps=400, exponents=5)
