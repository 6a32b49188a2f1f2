"""Calls that once ended in an error from inside, or in nonsense without a word."""

import os
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.numerics.reuse import Jitted

BODY = rx.systems.FreeRigidBody([1.0, 2.0, 2.5])
START = BODY.state(np.eye(3), velocity=[0.3, 0.1, 0.9])
VERLET = rx.LieVerlet()
RUN = rx.simulate(BODY, VERLET, START, h=0.01, steps=20)


MEASURED = rx.Measurements(RUN.t, np.asarray(RUN.g), of="attitude", noise=0.01)


def pendulum(p):
    return rx.MechanicalSystem(rx.SO3(), jnp.stack([jnp.ones(()), p["J"], p["J"]]))


def mechanism():
    made = rx.Mechanism()
    made.body("a", mass=1.0, inertia=[0.08, 0.08, 0.01], at=[0, 0, -0.5])
    made.join(rx.Revolute("ground", "a", at=[0, 0, 0], axis=[0, 1, 0], name="hinge"))
    return made


def traced(call):
    return jax.jit(call)(jnp.asarray(0.1))


CALLS = {
    "a traced place": (
        lambda: traced(lambda a: rx.Revolute("a", "b", at=[0, 0, a], axis=[0, 0, 1]) and a),
        "at is needed as a number, but JAX is tracing it (jit, grad, jvp or vmap): it",
    ),
    "gravity to be differentiated": (
        lambda: jax.grad(lambda a: rx.Mechanism(gravity=[0, 0, a]) and a)(-9.81),
        "gravity is needed as a number, but JAX is tracing it",
    ),
    "lengths to be differentiated": (
        lambda: jax.grad(lambda a: rx.systems.double_pendulum(lengths=(a, 1.0)) and a)(1.0),
        "lengths is needed as a number, but JAX is tracing it",
    ),
    "an overview of a number": (lambda: rx.show.overview(5), "run = 5 is not a run"),
    "a colour as others spell it": (
        lambda: rx.draw.box([1, 1, 1], color="red"),
        "box() got an unexpected keyword argument 'color': 'colour' is the name here.",
    ),
    "a quantity that is a word": (
        lambda: rx.show.quantity(RUN, lambda s: "x"),
        "it returns a value of type str, which is no number or array",
    ),
    "a law that returns a word": (
        lambda: rx.simulate(
            rx.systems.spacecraft([1.0, 2.0, 3.0]),
            rx.RKMK(),
            START,
            h=0.01,
            steps=2,
            control=rx.Sampled(lambda g, w, t: "abc", period=0.01),
        ),
        "it returns a value of type str, which is no number or array",
    ),
    "a traced radius": (lambda: traced(rx.draw.sphere), "radius is needed as a number"),
    "a traced count": (
        lambda: traced(lambda a: rx.simulate(BODY, VERLET, START, h=0.01, steps=a).g),
        "steps is needed as a number",
    ),
    "steps that wrap around": (
        lambda: rx.Stepper(BODY, VERLET, START, h=0.01).step(steps=2**64 + 1),
        "more than 2**53",
    ),
    "an angle without end": (
        lambda: mechanism().system().assemble(joints={"hinge": 1e308}),
        "'hinge' = 1e+308 is out of reach",
    ),
    "a reading of one body": (lambda: mechanism().read("a", 5, max), "must be two bodies"),
    "a reading without a function": (
        lambda: mechanism().read("a", ("ground", "a"), 5),
        "coordinate = 5 must be a function",
    ),
    "a force that is none": (lambda: BODY.with_force(3), "force = 3 must be a function"),
    "a force of no arguments": (lambda: BODY.with_force(lambda: 1), "force cannot be evaluated"),
    "the energy of a number": (lambda: BODY.energy(5), "state = 5 is not a State"),
    "invariants of a word": (lambda: BODY.invariants("a"), "state = 'a' is not a State"),
    "a velocity of nothing": (lambda: BODY.velocity_at(None), "state = None is not a State"),
    "balls without a radius": (lambda: rx.systems.Balls(None, 1.0), "radius = None must be"),
    "a retraction of a number": (lambda: rx.Cayley()(3, [1, 2, 3]), "group = 3 is not a Lie"),
    "a retraction of a word": (lambda: rx.Exp()(rx.SO3(), "x"), "xi = 'x' must be"),
    "an axis twice": (lambda: rx.SecondKind([0, 0, 1])(rx.SO3(), [1, 2, 3]), "axes"),
    "a point too short": (lambda: rx.Sphere(3).project([1, 0]), "y is not laid out as points"),
    "no point at all": (lambda: rx.Sphere(3).project([0, 0, 0]), "no nearest point"),
    "a tangent of nothing": (lambda: rx.Sphere(3).lift([1, 0, 0], None), "v = None"),
    "a defect of a word": (lambda: rx.Stiefel(3, 2).defect("a"), "y = 'a'"),
    "weights that are not positive": (lambda: rx.MinimumEffort([1, -1]), "must be positive"),
    "a figure of a number": (lambda: rx.show.spectrum(5), "run = 5 is not a run"),
    "a portrait of a number": (lambda: rx.show.phase_portrait(5), "run = 5 is not a run"),
    "a portrait with a number": (lambda: rx.show.phase_portrait(RUN, labels=5), "labels = 5"),
    "a picture of a number": (lambda: rx.show.space_time(5), "run = 5 is not a run"),
    "invariants of a number": (lambda: rx.show.invariants(5), "run = 5 is not a run"),
    "a spectrum up to a word": (lambda: rx.show.spectrum(RUN, up_to="a"), "up_to = 'a' rad/s"),
    "a spectrum above nothing": (lambda: rx.show.spectrum(RUN, above=np.nan), "above = nan dB"),
    "orders of a number": (lambda: rx.show.convergence(5), "measured = 5 is not what"),
    "orders of numbers": (lambda: rx.show.convergence({"a": 5}), "measured = 5 is not what"),
    "work of a number": (lambda: rx.show.work_precision(5), "curves = 5 is not a dataset"),
    "work without errors": (lambda: rx.show.work_precision({"a": [1]}), "must be pairs"),
    "figures at a number": (lambda: rx.show.write_figures(RUN, 5), "path = 5 must be the path"),
    "a colour that is a number": (lambda: rx.draw.box(1.0, colour=5), "colour = 5 is not known"),
    "precision of a number": (
        lambda: rx.analysis.work_precision(5, [VERLET], time=1.0, h=[0.1]),
        "systems = 5 is not a pair",
    ),
    "a sweep with a word for a step": (
        lambda: rx.sweep(BODY, VERLET, states=START, h=[0.1, "a"], steps=2, store="x.zarr"),
        "h = [0.1, 'a'] must be an array of real numbers",
    ),
    "nodes and other coefficients": (
        lambda: rx.Collocation(rx.Nodes("mine", (0.5,), ((1.0,),), (1.0,), 2, True)),
        "are not those of its nodes",
    ),
    "embedded weights of nothing": (
        lambda: rx.RKMK(rx.Tableau("mine", 2, ((), (1.0,)), (0.5, 0.5), embedded=(1, 2, 3))),
        "add up to 1, but this is 6",
    ),
    "a start of no arguments": (
        lambda: rx.fit(pendulum, MEASURED, {"J": 2.0}, state=lambda: START),
        "state(system) cannot be made",
    ),
    "a parameter taken for a number": (
        lambda: rx.fit(lambda p: pendulum({"J": float(p["J"])}), MEASURED, {"J": 2.0}),
        "leave float() out",
    ),
    "smoothing without end": (
        lambda: rx.smooth(BODY, MEASURED, 0.1, h=1e-9),
        "steps through the measurements",
    ),
    "exponents while tracing": (
        lambda: traced(lambda h: rx.analysis.lyapunov(BODY, VERLET, START, h=h, steps=40)),
        "JAX is tracing",
    ),
    "an export while tracing": (
        lambda: traced(lambda h: rx.export(BODY, VERLET, "x.c", h=h)),
        "JAX is tracing",
    ),
    "an export off the group": (
        lambda: rx.export(BODY, VERLET, "x.c", state=rx.State(2 * np.eye(3), np.zeros(3))),
        "is not a rotation",
    ),
}


@pytest.mark.parametrize("call, sentence", CALLS.values(), ids=CALLS.keys())
def test_a_hostile_call_ends_in_a_sentence(call, sentence):
    with pytest.raises(rx.BadInput, match=re.escape(sentence)) as told:
        call()
    assert "\n" not in str(told.value) and str(told.value).endswith(".")


@pytest.mark.parametrize("read", [rx.load_urdf, rx.load_mjcf, rx.draw.mesh])
def test_a_pipe_is_not_read(tmp_path, read):
    if read is rx.load_mjcf:
        pytest.importorskip("mujoco")
    os.mkfifo(tmp_path / "pipe.stl")
    with pytest.raises(rx.BadInput, match="a named pipe"):
        read(tmp_path / "pipe.stl")


def test_a_corner_beyond_all_integers_is_damage(tmp_path):
    (tmp_path / "a.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 99999999999999999999 1 2\n")
    with pytest.raises(rx.BadInput, match="is damaged"):
        rx.draw.mesh(tmp_path / "a.obj")


def test_a_column_given_twice_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("t,wx,wx,wz\n0,1,2,3\n1,1,2,3\n")
    with pytest.raises(rx.BadInput, match="has two columns 'wx'"):
        rx.Measurements.read(tmp_path / "a.csv")


@pytest.mark.parametrize("which", ["radius", "mass", "friction", "drag"])
def test_balls_are_made_while_jax_traces(which):
    def made(x):
        return rx.systems.Balls(**({"radius": 0.1, "mass": 1.0, "count": 2} | {which: x})).inertia

    assert traced(made).shape == (12,)


def test_weights_are_made_while_jax_traces():
    assert traced(lambda x: rx.MinimumEffort(x).weights).shape == ()


def test_an_interruption_stays_one_inside_of_a_program():
    def stopped(x):
        raise KeyboardInterrupt

    call = Jitted(lambda x: jax.pure_callback(stopped, jax.ShapeDtypeStruct((), jnp.float64), x))
    with pytest.raises(KeyboardInterrupt):
        call(jnp.asarray(1.0))


def test_a_system_runs_under_another_force():
    damped = BODY.with_force(lambda g, xi, t: -xi)
    run = rx.simulate(damped, "rkmk-4", START, h=0.01, steps=10)
    assert run.energy()[-1] < run.energy()[0]


def test_an_event_that_is_not_there_is_told_with_those_that_are():
    run = rx.simulate(BODY, VERLET, START, h=0.01, steps=2, events={"a": lambda g, w, t: w[0]})
    with pytest.raises(KeyError, match="'x': the events are 'a'"):
        run.events["x"]


def test_a_run_that_could_not_be_loaded_is_not_saved(tmp_path):
    run = rx.simulate(BODY, VERLET, START, h=0.01, steps=5)
    run.momentum[3] = np.nan
    with pytest.raises(rx.BadInput, match=r"the states .* must be finite, but its entry \[3, 0\]"):
        run.save(tmp_path / "run.nc")
    assert not any(tmp_path.iterdir())


def test_a_fit_of_hours_warns_before_it_starts():
    data = rx.Measurements([0, 1e9], RUN.g[:2], noise=0.01)
    with pytest.raises(UserWarning, match=r"takes 1e\+12 steps each time .* 2.8e\+02 hours"):
        rx.fit(pendulum, data, {"J": 1.0}, h=0.001)  # warnings are errors here
