"""Prepared runs: the bits, the checks and the failures of `simulate`, in a fraction of its time."""

import pickle
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx

SO3 = rx.SO3()
_PARTS = ("t", "states", "info", "failed", "h", "steps", "completed", "save_every")


def _top():
    system = rx.systems.HeavyTop([1.0, 1.7, 2.3], 1.0, [0.04, -0.03, 0.11])
    return system, system.state(SO3.exp(jnp.array([0.7, -0.4, 0.2])), velocity=[1.2, -0.5, 1.0])


def _rod():
    rod = rx.MechanicalSystem(
        rx.Product(rx.SE3(), rx.Translation(2)),
        np.diag([1.0, 2.0, 2.5, 1.0, 1.0, 1.0, 0.5, 0.7]),
        lambda g: jnp.sum(g[0][1] ** 2) + g[1] @ g[1] * g[0][0][0, 1],
        physical=False,
    )
    turn = SO3.exp(jnp.array([0.3, -0.2, 0.5]))
    g = ((turn, jnp.array([0.1, 0.2, -0.3])), jnp.array([0.4, -0.1]))
    return rod, rod.state(g, velocity=0.1 * np.arange(1.0, 9.0))


def _sleigh():
    body = rx.systems.ChaplyginSleigh(1.0, 0.7, 0.4)
    g = (rx.SO2().exp(jnp.array([0.3])), np.array([0.1, -0.2]))
    return body, body.state(g, velocity=[0.5, 1.0, 0.0], project=True)


def _same(one, other):
    for part in _PARTS:
        for a, b in zip(
            *(jax.tree.leaves(getattr(run, part)) for run in (one, other)), strict=True
        ):
            assert np.array_equal(a, b) and np.asarray(a).dtype == np.asarray(b).dtype, part
    assert one.provenance | {"created": ""} == other.provenance | {"created": ""}


def _ordinary(system, integrator, state, **options):
    """A run that goes the long way: it reports its progress."""
    return rx.simulate(system, integrator, state, progress=lambda done, steps: None, **options)


@pytest.mark.parametrize(
    ("make", "integrator"),
    [
        (_top, rx.LieVerlet()),
        (_top, rx.Composition(rx.LieVerlet(), order=4)),
        (_top, rx.Collocation(rx.gauss(2))),
        (_rod, rx.LieVerlet()),
        (_sleigh, rx.LagrangeDAlembert(rx.Exp())),
    ],
)
@pytest.mark.parametrize(("steps", "every"), [(1, 1), (40, 1), (40, 7), (3, 10)])
def test_a_prepared_run_has_the_bits_of_simulate(make, integrator, steps, every):
    system, state = make()
    run = rx.prepare(system, integrator, h=0.02, save_every=every)
    options = dict(h=0.02, steps=steps, save_every=every)
    expected = _ordinary(system, integrator, state, **options)
    _same(run(state, steps), expected)
    for _ in range(3):
        _same(rx.simulate(system, integrator, state, **options), expected)
    host = jax.tree.map(np.asarray, state)
    _same(run(host, steps), expected)


def test_long_runs_and_the_xla_back_end_are_the_same_too():
    system, state = _top()
    _same(
        rx.prepare(system, "lie-verlet", h=0.01)(state, 2500),
        _ordinary(system, "lie-verlet", state, h=0.01, steps=2500),
    )
    _same(
        rx.prepare(system, rx.LieVerlet(), h=0.01, backend="xla")(state, 25),
        _ordinary(system, rx.LieVerlet(), state, h=0.01, steps=25, backend="xla"),
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (dict(h=0.0), "h = 0.0 must be a finite number of seconds"),
        (dict(h=np.nan), "h = nan must be a finite number"),
        (dict(h="0.1"), "h = '0.1' must be a finite number"),
        (dict(save_every=0), "save_every = 0 must be a whole number of at least 1"),
        (dict(save_every=1.5), "save_every = 1.5 must be a whole number"),
        (dict(backend="fortran"), "backend = 'fortran' must be one of"),
        (dict(backend=["native"]), r"backend = \['native'\] must be one of"),
        (dict(progress=3), "progress = 3 must be None, True, False or a function"),
        (dict(system="top"), "system = 'top' is not a retrax system"),
        (dict(integrator=rx.Kahan()), "Kahan"),
    ],
)
def test_what_cannot_be_prepared_is_refused(changes, sentence):
    system, _ = _top()
    arguments = dict(system=system, integrator=rx.LieVerlet(), h=0.1) | changes
    with pytest.raises(rx.BadInput, match=sentence):
        rx.prepare(arguments.pop("system"), arguments.pop("integrator"), **arguments)


@pytest.mark.parametrize("steps", [0, -1, 1.5, True, "3", 2**54])
def test_steps_are_looked_at_in_every_call(steps):
    system, state = _top()
    run = rx.prepare(system, rx.LieVerlet(), h=0.1)
    run(state, 1)
    with pytest.raises(rx.BadInput) as refused:
        run(state, steps)
    with pytest.raises(rx.BadInput) as expected:
        _ordinary(system, rx.LieVerlet(), state, h=0.1, steps=steps)
    assert str(refused.value) == str(expected.value)


def _bad_states():
    _, state = _top()
    g, mu, t = np.array(state.g), np.array(state.momentum), np.array(state.t)
    return {
        "stretched": rx.State(1.1 * g, mu, t),
        "reflected": rx.State(-g, mu, t),
        "momentum not finite": rx.State(g, np.array([0.0, np.nan, 0.0]), t),
        "configuration not finite": rx.State(g * np.inf, mu, t),
        "time not finite": rx.State(g, mu, np.array(np.inf)),
        "time too large": rx.State(g, mu, np.array(1e18)),
        "float32": rx.State(g, mu.astype(np.float32), t),
        "short": rx.State(g, mu[:2], t),
        "of another group": _rod()[1],
        "of many members": jax.tree.map(lambda x: np.stack([x, x]), state),
        "a list": [1.0, 2.0],
        "nothing": None,
    }


@pytest.mark.parametrize("case", _bad_states())
def test_states_are_looked_at_in_every_call(case):
    system, state = _top()
    run, bad = rx.prepare(system, rx.LieVerlet(), h=0.1), _bad_states()[case]
    run(state, 1)
    with pytest.raises(rx.BadInput) as refused:
        run(bad, 1)
    with pytest.raises(rx.BadInput) as expected:
        _ordinary(system, rx.LieVerlet(), bad, h=0.1, steps=1)
    assert str(refused.value) == str(expected.value)


def test_a_state_changed_in_place_is_looked_at_again():
    system, state = _top()
    run = rx.prepare(system, rx.LieVerlet(), h=0.1)
    end = run(state, 1).final
    run(end, 1)
    end.g[0, 0] += 1e-3
    with pytest.raises(rx.BadInput, match=r"state\.g is not a rotation"):
        run(end, 1)


def test_a_start_that_breaks_the_constraint_is_refused():
    body, state = _sleigh()
    run = rx.prepare(body, rx.LagrangeDAlembert(rx.Exp()), h=0.02)
    run(state, 1)
    bad = rx.State(state.g, state.momentum + np.array([0.1, 0.2, 0.5]), state.t)
    with pytest.raises(rx.BadInput) as refused:
        run(bad, 1)
    with pytest.raises(rx.BadInput) as expected:
        _ordinary(body, rx.LagrangeDAlembert(rx.Exp()), bad, h=0.02, steps=1)
    assert str(refused.value) == str(expected.value)


def test_a_step_that_fails_is_as_loud_as_in_simulate():
    wall = rx.MechanicalSystem(rx.Translation(1), [1.0], lambda x: -jnp.sqrt(1.0 - x[0]))
    start = wall.state([0.0], velocity=[1.0])
    run = rx.prepare(wall, rx.RKMK("euler"), h=0.4, save_every=50)
    with pytest.raises(rx.StepFailed) as failure:
        run(start, 100)
    with pytest.raises(rx.StepFailed) as expected:
        _ordinary(wall, rx.RKMK("euler"), start, h=0.4, steps=100, save_every=50)
    assert str(failure.value) == str(expected.value)
    got, wanted = failure.value.trajectory, expected.value.trajectory
    assert np.array_equal(got.momentum, wanted.momentum) and got.completed == wanted.completed


def test_a_step_of_more_than_half_a_turn_gives_a_warning():
    body = rx.systems.FreeRigidBody([1.0, 2.0, 3.0])
    spin = body.state(np.eye(3), velocity=[0.0, 0.0, 4.0])
    run = rx.prepare(body, rx.RKMK("rk4"), h=1.0)
    for _ in range(2):
        with pytest.warns(UserWarning, match="turned the free rigid body by"):
            run(spin, 2)


def test_arrays_of_a_system_are_those_of_when_the_run_was_prepared():
    stiffness = np.array([2.0])
    system = rx.MechanicalSystem(
        rx.Translation(1), [1.0], jax.tree_util.Partial(lambda k, x: k[0] * x[0], stiffness)
    )
    start = system.state([1.0], velocity=[0.0])
    run = rx.prepare(system, rx.RKMK("euler"), h=0.25)
    for stiffness[0] in (2.0, 3.0, 4.0):
        assert float(run(start, 1).momentum[-1, 0]) == -0.5
        again = rx.simulate(system, rx.RKMK("euler"), start, h=0.25, steps=1)
        assert float(again.momentum[-1, 0]) == -0.25 * stiffness[0]


@pytest.mark.parametrize(
    "options",
    [{}, {"period": 0.2}, {"delay": 0.1}, {"state": jnp.zeros(1)}],
    ids=["plain", "period", "delay", "state"],
)
def test_the_first_sample_is_taken_by_the_law_of_when_the_run_was_prepared(options):
    gain = [0.5]

    def law(g, xi, t, *kept):
        u = jnp.array([gain[0]])
        return (u, kept[0] + u) if kept else u

    plant = rx.Actuated(rx.MechanicalSystem(rx.Translation(1), [1.0]), inputs=np.eye(1))
    start = plant.state(np.zeros(1), velocity=[0.0])
    control = rx.Sampled(law, **{"period": 0.1} | options)
    run = rx.prepare(plant, rx.LieVerlet(), h=0.1, control=control)

    def end(speed):
        return run(rx.State(jnp.zeros(1), speed[None]), 10).states.g[-1, 0]

    before = run(start, 10)
    slope = jax.value_and_grad(end)(jnp.zeros(()))
    gain[0] = 8.0
    assert np.array_equal(run(start, 10).inputs, before.inputs)
    assert np.array_equal(run(start, 10).g, before.g)
    assert jax.value_and_grad(end)(jnp.zeros(())) == slope
    assert np.array_equal(jax.vmap(end)(jnp.zeros(2)), [slope[0]] * 2)


def test_a_prepared_run_can_be_differentiated():
    system, state = _top()
    run = rx.prepare(system, rx.LieVerlet(), h=0.05)

    def end(mu, go):
        return jnp.sum(go(rx.State(state.g, mu, state.t)).final.momentum ** 2)

    def plainly(start):
        return rx.simulate(system, rx.LieVerlet(), start, h=0.05, steps=5)

    one = jax.grad(lambda mu: end(mu, lambda start: run(start, 5)))(state.momentum)
    other = jax.grad(lambda mu: end(mu, plainly))(state.momentum)
    assert np.array_equal(one, other) and np.max(np.abs(one)) > 0.1


def test_progress_is_reported_where_it_is_asked_for():
    system, state = _top()
    told = []
    run = rx.prepare(system, rx.LieVerlet(), h=0.05, progress=lambda *numbers: told.append(numbers))
    run(state, 3)
    assert told == [(3, 3)]


def test_what_is_made_later_is_what_would_be_made_at_once():
    system, state = _top()
    run = rx.prepare(system, rx.LieVerlet(), h=0.05)(state, 12)
    assert "states" not in vars(run) and "provenance" not in vars(run)
    copy = pickle.loads(pickle.dumps(run))
    _same(copy, run)
    assert np.array_equal(copy.energy(), run.energy())
    again = rx.prepare(system, rx.LieVerlet(), h=0.05)(state, 12)
    final = again.final
    assert jax.tree.all(jax.tree.map(np.array_equal, final, run.final))
    final.momentum[0] = 7.0
    assert again.momentum[-1, 0] != 7.0
    assert repr(run) == repr(again) and len(run) == 13


def test_a_prepared_call_takes_a_fraction_of_an_ordinary_one():
    """Measured: a twentieth. A step itself is below a microsecond."""
    system, state = _top()
    state = jax.tree.map(np.asarray, state)
    run = rx.prepare(system, rx.LieVerlet(), h=0.01)

    def shortest(call):
        times = []
        for _ in range(60):
            clock = time.perf_counter()
            call()
            times.append(time.perf_counter() - clock)
        return min(times)

    prepared = shortest(lambda: run(state, 1))
    ordinary = shortest(lambda: _ordinary(system, rx.LieVerlet(), state, h=0.01, steps=1))
    assert prepared < ordinary / 4
