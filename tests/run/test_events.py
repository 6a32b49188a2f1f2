"""Events of a run: found to round-off wherever states are saved; and runs that they end."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import retrax as rx

BODY = rx.MechanicalSystem(rx.SO3(), [1.0, 2.0, 2.5], lambda R: 3 * R[2, 2] + R[0, 1])
START = BODY.state(np.eye(3), velocity=[0.3, 0.2, -0.5], t=0.1)
H, STEPS = 0.01, 1500


def tilt(R, w, t):
    return R[0, 1] - 0.2


def spin(R, w, t):
    return w[0]


EVENTS = {"tilt": tilt, "spin": rx.Event(spin, "falling")}


def simulate(events=None, integrator="lie-verlet", system=BODY, state=START, **more):
    more = {"h": H, "steps": STEPS, "save_every": 7} | more
    return rx.simulate(system, integrator, state, events=events, **more)


@pytest.fixture(scope="module")
def run():
    return simulate(EVENTS)


def test_looking_changes_no_bit_of_a_run(run):
    plain = simulate()
    assert np.array_equal(run.g, plain.g) and np.array_equal(run.t, plain.t)
    assert np.array_equal(run.info.iterations, plain.info.iterations)
    assert not plain.events and run.completed == plain.completed


def test_events_are_zeros_of_their_functions(run):
    for name, function in (("tilt", tilt), ("spin", spin)):
        found = run.events[name]
        assert len(found) >= 2 and np.all(np.diff(found.t) > 0)
        for k in range(len(found)):
            state = jax.tree.map(jnp.asarray, found[k])
            xi = BODY.velocity_at(state)
            assert abs(float(function(state.g, xi, state.t))) < 1e-14
    assert set(run.events["tilt"].directions) == {-1, 1}
    assert set(run.events["spin"].directions) == {-1}


def test_no_crossing_is_missed(run):
    """Every change of sign along all steps of the run, looked at one by one."""
    every = simulate(save_every=1)
    values = every.g[:, 0, 1] - 0.2
    changes = np.flatnonzero(values[:-1] * values[1:] < 0)
    assert np.array_equal(np.floor((run.events["tilt"].t - 0.1) / H).astype(int), changes)
    falls = np.flatnonzero((every.velocity[:-1, 0] > 0) & (every.velocity[1:, 0] < 0))
    assert np.array_equal(np.floor((run.events["spin"].t - 0.1) / H).astype(int), falls)


def test_the_time_of_an_event_is_known_to_the_order_of_the_method():
    """Where a falling body hits the ground, against SciPy's own search for events."""
    g, drag = 9.81, 0.3
    ball = rx.MechanicalSystem(
        rx.Translation(3), jnp.ones(3), lambda x: g * x[2], force=lambda x, v, t: -drag * v
    )
    start = ball.state(np.array([0.0, 0.0, 2.0]), velocity=[1.0, 0.5, 3.0])
    run = rx.simulate(
        ball,
        rx.Taylor(10),
        start,
        h=0.05,
        steps=100,
        events={"ground": rx.Stop(lambda x, v, t: x[2])},
    )

    def ground(t, y):
        return y[1]

    ground.terminal = True

    def fall(t, y):
        return [-g - drag * y[0], y[0]]

    known = solve_ivp(fall, (0, 5), [3.0, 2.0], events=ground, rtol=1e-13, atol=1e-14)
    assert abs(run.t[-1] - known.t_events[0][0]) < 1e-12


def test_a_run_that_is_stopped_ends_at_the_event(run, tmp_path):
    stopped = simulate({"spin": spin, "tilt": rx.Stop(tilt, "falling")})
    first = run.events["tilt"].t[run.events["tilt"].directions == -1][0]
    assert stopped.t[-1] == first == stopped.events["tilt"].t[-1]
    assert stopped.events.ended_by == "tilt" and stopped.completed < stopped.steps == STEPS
    assert stopped.completed == int((first - 0.1) / H) and len(stopped.events["tilt"]) == 1
    assert np.all(stopped.events["spin"].t < first)
    n = stopped.completed // 7 + 1
    assert np.array_equal(stopped.g[:n], run.g[:n])
    assert "it ended the run" in stopped.summary()
    on = rx.simulate(BODY, "lie-verlet", stopped.final, h=H, steps=20, events={"tilt": tilt})
    assert not len(on.events["tilt"])  # it stands behind the crossing


@pytest.mark.parametrize("save_every", [1, 7, 500])
def test_where_states_are_saved_does_not_matter(run, save_every):
    other = simulate(EVENTS, save_every=save_every)
    for name in EVENTS:
        assert np.array_equal(other.events[name].t, run.events[name].t)
    assert np.sum(other.info.iterations) == np.sum(run.info.iterations)


def test_back_ends_agree(run):
    other = simulate(EVENTS, backend="xla")
    for name in EVENTS:
        assert np.max(np.abs(other.events[name].t - run.events[name].t)) < 1e-12
        gap = np.abs(other.events[name].states.g - run.events[name].states.g)
        assert np.max(gap) < 1e-12
    assert np.array_equal(other.info.iterations, run.info.iterations)


def test_several_events_in_one_step_come_in_the_order_of_time():
    times = {"c": 0.5031, "a": 0.5017, "b": 0.5062}
    clocks = {name: (lambda R, w, t, at=at: t - at) for name, at in times.items()}
    run = simulate(clocks)
    for name, at in times.items():
        assert abs(run.events[name].t[0] - at) < 1e-15
    ended = simulate(clocks | {"b": rx.Stop(clocks["b"])})
    assert [len(ended.events[name]) for name in "abc"] == [1, 1, 1]
    early = simulate(clocks | {"a": rx.Stop(clocks["a"])})
    assert [len(early.events[name]) for name in "abc"] == [1, 0, 0]
    assert early.t[-1] == early.events["a"].t[0]


def test_a_start_on_the_section_is_no_crossing():
    run = simulate({"start": lambda R, w, t: t - 0.1, "ends": lambda R, w, t: t - 0.15})
    assert not len(run.events["start"]) and len(run.events["ends"]) == 1


def test_events_are_found_back_in_time():
    method, events = rx.Taylor(12), {"tilt": tilt}
    forth = simulate(events, method)
    back = rx.simulate(BODY, method, forth.final, h=-H, steps=STEPS, events=events).events["tilt"]
    assert np.max(np.abs(back.t[::-1] - forth.events["tilt"].t)) < 1e-10
    assert np.array_equal(back.directions[::-1], -forth.events["tilt"].directions)


@pytest.mark.parametrize(
    "integrator",
    [rx.Collocation(rx.gauss(2)), rx.GalerkinVariational(rx.gauss(2)), rx.Taylor(8)],
    ids=repr,
)
def test_every_method_finds_the_same_events(integrator):
    """Methods of high order agree about the times to their errors."""
    close = simulate({"tilt": tilt}, rx.Taylor(14), steps=300).events["tilt"]
    found = simulate({"tilt": tilt}, integrator, steps=300).events["tilt"]
    assert len(found) == len(close) and np.max(np.abs(found.t - close.t)) < 1e-9


def test_driven_runs_have_events():
    plant = rx.Actuated(BODY, jnp.eye(3))
    control = rx.Sampled(lambda R, w, t: -0.4 * w, period=0.05)
    more = {"system": plant, "control": control, "steps": 500}
    run, plain = simulate({"tilt": tilt}, **more), simulate(**more)
    found = run.events["tilt"]
    assert np.array_equal(run.g, plain.g) and len(found) >= 1
    assert np.max(np.abs(found.states.g[:, 0, 1] - 0.2)) < 1e-15
    assert np.max(np.abs(run.at(found.t).g - found.states.g)) < 1e-14


@pytest.mark.filterwarnings("ignore:system.* keeps data, not code")
@pytest.mark.parametrize("steps", [47, 48, 500])
def test_a_resumed_run_has_all_its_events(run, steps, tmp_path):
    path = tmp_path / "run.zarr"
    simulate(EVENTS, steps=steps, checkpoint=path, every=13)
    assert rx.load(path).events["tilt"].t.tolist() == [
        t for t in run.events["tilt"].t if t < 0.1 + steps * H
    ]
    whole = rx.resume(path, STEPS, system=BODY, events=EVENTS)
    assert np.array_equal(whole.g, run.g)
    for name in EVENTS:
        assert np.array_equal(whole.events[name].t, run.events[name].t)
        assert np.array_equal(whole.events[name].states.g, run.events[name].states.g)
    with pytest.raises(rx.BadInput, match=r"looks out for the events \['tilt', 'spin'\]"):
        rx.resume(path, 2 * STEPS, system=BODY)


@pytest.mark.filterwarnings("ignore:system.* keeps data, not code")
def test_a_stopped_run_in_files(tmp_path):
    events = {"tilt": rx.Stop(tilt)}
    stopped = simulate(events, checkpoint=tmp_path / "run.zarr")
    read = [
        rx.load(tmp_path / "run.zarr"),
        rx.load(stopped.save(tmp_path / "run.nc")),
        rx.resume(tmp_path / "run.zarr", system=BODY),
    ]
    for again in read:
        assert np.array_equal(again.g, stopped.g) and np.array_equal(again.t, stopped.t)
        assert again.events.ended_by == "tilt" and again.completed == stopped.completed
        assert np.array_equal(again.events["tilt"].states.g, stopped.events["tilt"].states.g)
    with pytest.raises(rx.BadInput, match="ended by its event 'tilt'"):
        rx.resume(tmp_path / "run.zarr", 3000, system=BODY)


def test_sections_of_a_run_are_its_events(run):
    section = rx.analysis.poincare(run, lambda state: state.g[0, 1] - 0.2)
    assert np.max(np.abs(section.t - run.events["tilt"].t)) < 1e-13


def test_a_step_that_fails_is_told_as_ever():
    cliff = rx.MechanicalSystem(rx.SO3(), [1.0, 2.0, 2.5], lambda R: jnp.sqrt(R[2, 2] - 0.2))
    start = cliff.state(np.eye(3), velocity=[1.0, 0.0, 0.0])
    with pytest.raises(rx.StepFailed, match="step") as told:
        simulate({"half": lambda R, w, t: R[2, 2] - 0.5}, system=cliff, state=start)
    assert len(told.value.trajectory.events["half"]) == 1


def test_an_event_that_is_not_a_number_is_told():
    with pytest.raises(rx.StepFailed, match="event 'odd' is not a number") as told:
        simulate({"odd": lambda R, w, t: jnp.sqrt(0.5 - t)})
    assert told.value.trajectory.t[-1] <= 0.5


@pytest.mark.parametrize(
    "function", [lambda R, w, t: w[0] * np.nan, lambda R, w, t: jnp.sqrt(t - 0.5)]
)
def test_an_event_that_is_not_a_number_at_the_start_is_told(function):
    with pytest.raises(rx.StepFailed, match="event 'odd' is not a number"):
        simulate({"odd": function})
    with pytest.raises(rx.StepFailed, match="event 'odd' is not a number"):
        simulate({"tilt": tilt, "odd": function})


@pytest.mark.parametrize(
    ("events", "sentence"),
    [
        (tilt, "must be a dictionary"),
        ({"tilt": 3.0}, r"events\['tilt'\] = 3.0 must be a function"),
        ({"tilt": lambda R, w, t: R[0]}, r"returns float64 of shape \(3,\)"),
        ({"tilt": lambda R, w, t: R[0, 1] > 0}, "returns bool"),
        ({"tilt": lambda R, w, t: R[0, 1] + 0j}, "events\\[.tilt.\\]"),
        ({3: tilt}, "names are texts"),
    ],
)
def test_a_sentence_for_what_is_no_event(events, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        simulate(events)


def test_a_direction_is_one_of_three():
    with pytest.raises(rx.BadInput, match="direction = 'up'"):
        rx.Stop(tilt, "up")


def test_events_tell_themselves_shortly(run):
    assert len(repr(run.events)) < 200 and "crossings at t =" in repr(run.events["tilt"])
    assert "event 'tilt'" in run.summary()


def test_a_sampled_controller_goes_on_behind_a_stop_where_steps_end():
    plant = rx.Actuated(rx.systems.FreeRigidBody([1.3, 2.1, 2.9]), inputs=np.eye(3)[:, :1])
    control = rx.Sampled(lambda R, xi, t: t[None], period=0.1)
    start = plant.state(np.eye(3), velocity=[0.4, 1.1, -0.7])
    options = {"h": 0.02, "steps": 20, "control": control}
    stop = {"there": rx.Stop(lambda R, xi, t: t - 0.134)}
    first = rx.simulate(plant, "lie-verlet", start, events=stop, **options)
    assert first.inputs[-1, 0] == pytest.approx(0.1)
    rest = rx.simulate(plant, "lie-verlet", first.final, **options)
    np.testing.assert_allclose(np.unique(rest.inputs), [0.1, 0.214, 0.314, 0.414, 0.514], rtol=1e-9)


BALL = rx.MechanicalSystem(rx.Translation(3), jnp.ones(3), lambda x: 9.81 * x[2])


def bounced(restitution, floor, bounces, direction="falling", back=True, method="lie-verlet"):
    """The heights and times of a ball's impacts, each the end of a run."""
    state = BALL.state(np.array([0.0, 0.0, floor + 1.0]), velocity=[2.0, 0.0, 4.0])
    stop = {"ground": rx.Stop(lambda x, v, t: x[2] - floor, direction)}
    heights, times = [], []
    for _ in range(bounces):
        flight = rx.simulate(BALL, method, state, h=0.01, steps=500, events=stop)
        x, v, t = flight.final.g, flight.velocity[-1], float(flight.final.t)
        heights.append(x[2] - floor)
        times.append(t)
        there = np.where([True, True, False], x, floor) if back else x
        state = BALL.state(there, velocity=v * [1, 1, -restitution], t=t)
    return np.array(heights), np.array(times)


def test_a_ball_bounces_on_when_flights_are_shorter_than_a_step():
    heights, times = bounced(0.3, 0.0, 9)
    assert np.max(np.abs(heights)) < 1e-15
    np.testing.assert_allclose(np.diff(times)[1:] / np.diff(times)[:-1], 0.3, rtol=1e-5)


@pytest.mark.campaign
@pytest.mark.parametrize("direction", ["falling", "both"])
@pytest.mark.parametrize("floor", [0.0, 0.3])
@pytest.mark.parametrize("back", [True, False])
def test_a_ball_that_bounces_ends_on_the_floor(floor, direction, back):
    """Also where flights are shorter than a step, and than round-off lets their height be seen."""
    heights, times = bounced(0.5, floor, 70, direction, back)
    assert np.max(np.abs(heights)) < 1e-16  # measured: 2.2e-19
    first = (4 + np.sqrt(16 + 2 * 9.81)) / 9.81
    assert abs(times[-1] - first - 2 * (9.81 * first - 4) / 9.81) < 1e-10  # measured: 2e-11
    np.testing.assert_allclose(np.diff(times)[1:9] / np.diff(times)[:8], 0.5, rtol=1e-6)


@pytest.mark.campaign
@pytest.mark.parametrize("restitution", [0.5, 0.6, 0.7, 0.83, 0.97, 0.99])
@pytest.mark.parametrize(
    "method", [rx.Adaptive(rx.LieVerlet(), 1e-8), rx.Composition(rx.LieVerlet(), order=4)], ids=repr
)
def test_every_method_keeps_a_ball_on_the_floor(restitution, method):
    heights, _ = bounced(restitution, 0.1, 150, back=False, method=method)
    assert np.max(np.abs(heights)) < 1e-15


@pytest.mark.parametrize(("direction", "ends"), [("falling", True), ("rising", False)])
def test_a_ball_that_rests_does_not_leave_to_the_side_where_a_stop_is(direction, ends):
    state = BALL.state(np.zeros(3), velocity=[1.0, 0.0, 0.0])
    stop = {"ground": rx.Stop(lambda x, v, t: x[2], direction)}
    run = rx.simulate(BALL, "lie-verlet", state, h=0.01, steps=5, events=stop)
    assert (run.events.ended_by == "ground") == ends
    assert (abs(run.final.g[2]) < 1e-30) == ends


def test_a_stop_without_a_direction_tells_that_it_rests():
    state = BALL.state(np.zeros(3), velocity=[1.0, 0.0, 0.0])
    stop = {"ground": rx.Stop(lambda x, v, t: x[2])}
    with pytest.warns(UserWarning, match="'ground' rests on zero at t = 0 s and then leaves it"):
        rx.simulate(BALL, "lie-verlet", state, h=0.01, steps=5, events=stop)


@pytest.mark.parametrize("made", [rx.Event, rx.Stop])
@pytest.mark.parametrize("speed", [0.0, 1.0])
def test_a_body_that_rests_on_another_crosses_nothing(made, speed):
    """Its gap is zero to round-off, on one side and the other."""
    ball = rx.Ball(0.1, body=0, name="ball")
    contact = rx.Contacts([(ball, rx.Plane(name="floor"))], friction=0.3)
    group = rx.Product(rx.SO3(), rx.Translation(3))
    system = rx.MechanicalSystem(
        group, np.r_[3 * [0.004], 3 * [1.0]], lambda g: 9.81 * g[1][2], contact=contact
    )
    start = system.state((np.eye(3), np.array([0, 0, 0.1])), velocity=[0, 0, 0, speed, 0, 0])
    gap = {"gap": made(lambda g, v, t: g[1][2] - 0.1)}
    with pytest.warns(UserWarning, match="'gap' rests on zero"):
        run = rx.simulate(system, rx.NonsmoothRattle(), start, h=2e-3, steps=300, events=gap)
    assert not len(run.events["gap"]) and run.events.ended_by is None


def test_what_gives_way_after_a_rest_is_seen():
    """A ball on a table that is pulled away: it rests on zero for many steps."""
    held = rx.MechanicalSystem(
        rx.Translation(1), [1.0], lambda x: 0 * x[0],
        force=lambda x, v, t: jnp.where(t < 0.1, 0.0, -9.81) + 0 * v,
    )  # fmt: skip
    run = rx.simulate(
        held, "rkmk-4", held.state(np.zeros(1), velocity=[0.0]), h=0.01, steps=50,
        events={"ground": rx.Stop(lambda x, v, t: x[0], "falling")},
    )  # fmt: skip
    assert run.events.ended_by == "ground" and abs(run.final.g[0]) < 1e-16


@pytest.mark.parametrize("h", [0.01, 0.2])
@pytest.mark.parametrize("below", [1e-2, 1e-8])
def test_two_crossings_in_one_step_are_found(h, below):
    start = BALL.state(np.zeros(3), velocity=[0.0, 0.0, 4.0])
    apex = 16 / 2 / 9.81

    def level(x, v, t):
        return x[2] - (apex - below)

    found = rx.simulate(
        BALL, "lie-verlet", start, h=h, steps=round(0.8 / h), events={"level": level}
    ).events["level"]
    assert found.directions.tolist() == [1, -1]
    away = np.sqrt(2 * below / 9.81)
    np.testing.assert_allclose(found.t - 4 / 9.81, [-away, away], rtol=2e-6)


def test_three_crossings_in_one_step_are_found_from_a_start_on_zero():
    start = BALL.state(np.zeros(3), velocity=[0.0, 0.0, 0.0])
    found = rx.simulate(
        BALL, "lie-verlet", start, h=0.1, steps=2,
        events={"wave": lambda x, v, t: (t - 0.03) * (t - 0.05) * (0.08 - t)},
    ).events["wave"]  # fmt: skip
    np.testing.assert_allclose(found.t, [0.03, 0.05, 0.08], atol=1e-15)
    assert found.directions.tolist() == [-1, 1, -1]


def test_what_cannot_be_decided_is_told():
    start = BALL.state(np.zeros(3), velocity=[0.0, 0.0, 4.0])
    grazing = {"graze": lambda x, v, t: (t - 0.1234) ** 2}
    with pytest.warns(UserWarning, match="'graze' touches zero to round-off at t = 0.1234 s"):
        run = rx.simulate(BALL, "lie-verlet", start, h=0.01, steps=20, events=grazing)
    assert not len(run.events["graze"])
    quick = {"quick": lambda x, v, t: jnp.cos(1500 * t) + 0.2}
    with pytest.warns(UserWarning, match="'quick' turns . times within the step from t = 0 s"):
        rx.simulate(BALL, "lie-verlet", start, h=0.01, steps=20, events=quick)


def test_events_at_the_time_of_a_stop_are_kept_in_any_order():
    start = BALL.state(np.array([0.0, 0.0, 1.0]), velocity=np.zeros(3))
    for names in (("a", "b"), ("b", "a")):
        kinds = {"a": rx.Stop, "b": rx.Event}
        events = {name: kinds[name](lambda x, v, t: x[2] - 0.5) for name in names}
        run = rx.simulate(BALL, "lie-verlet", start, h=0.01, steps=100, events=events)
        assert len(run.events["a"]) == len(run.events["b"]) == 1


def test_an_event_may_count():
    steps = {"whole": rx.Event(lambda R, w, t: jnp.floor(t * 10).astype(int) - 2)}
    run = simulate(steps, steps=30)
    assert abs(run.events["whole"].t[0] - 0.2) < 1e-9
