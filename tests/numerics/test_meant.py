"""Whoever writes a name that is not there is told the one that was meant."""

import jax.numpy as jnp
import pytest

import retrax as rx
from retrax.numerics.meant import resolve_name
from retrax.systems import FreeRigidBody, HeavyTop

TOP = HeavyTop(inertia=[1.2, 1.6, 0.8], mass=1.0, arm=[0.0, 0.1, 0.6])
START = TOP.state(jnp.eye(3), velocity=jnp.array([0.6, 0.2, 3.0]))


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("dt", "h"), ("timestep", "h"), ("T", "until"), ("t_end", "until"), ("n_steps", "steps")],
)
def test_the_size_and_the_length_of_a_run_by_other_names(wrong, right):
    given = {"h": 0.01, "steps": 3} | {wrong: 0.01}
    for run in (rx.simulate, rx.ensemble):
        with pytest.raises(rx.BadInput, match=f"{run.__name__}.*{wrong!r}: '{right}' is the name"):
            run(TOP, "lie-verlet", START, **given)


def test_an_unknown_keyword_is_a_type_error_as_everywhere_in_python():
    with pytest.raises(TypeError, match="unexpected keyword argument 'dt'"):
        rx.simulate(TOP, "lie-verlet", START, dt=0.01, steps=3)


@pytest.mark.parametrize("wrong", ["omega", "w", "angular_velocity", "velocty", "Velocity"])
def test_the_velocity_of_a_state_by_other_names(wrong):
    with pytest.raises(rx.BadInput, match="'velocity' is the name"):
        TOP.state(jnp.eye(3), **{wrong: jnp.zeros(3)})


@pytest.mark.parametrize("wrong", ["damping", "torque", "drag", "tau"])
def test_a_ready_system_without_forces_says_what_has_them(wrong):
    with pytest.raises(rx.BadInput, match=r"HeavyTop takes inertia, .*force=f.*rx.Actuated"):
        HeavyTop(inertia=[1.2, 1.6, 0.8], mass=1.0, arm=[0.0, 0.1, 0.6], **{wrong: 1.0})
    with pytest.raises(rx.BadInput, match=r"simulate takes system, .*force=f.*rx.Actuated"):
        rx.simulate(TOP, "lie-verlet", START, h=0.01, steps=3, **{wrong: 1.0})


def test_classes_functions_and_methods_tell_what_they_take():
    cases = [
        (lambda: FreeRigidBody(I=[1.0, 1.2, 1.4]), "'inertia' is"),
        (lambda: rx.MechanicalSystem(rx.SO3(), J=[1.0, 1.2, 1.4], V=None), "'inertia' is"),
        (lambda: rx.MechanicalSystem(rx.SO3(), damping=1.0), "force=lambda g, xi, t: -c"),
        (lambda: rx.Spring("a", "b", k=3.0), "'stiffness' is"),
        (lambda: rx.Mechanism().body("a", m=1.0), "'mass' is"),
        (lambda: rx.systems.chain(N=3), "'n' is"),
        (lambda: rx.sweep(TOP, "lie-verlet", START, dt=0.1), "'h' is"),
        (lambda: rx.LieVerlet(retracton=rx.Exp()), "'retraction' is"),
        (lambda: rx.fit(colour="red"), "fit takes system_of, data"),
    ]
    for call, words in cases:
        with pytest.raises(rx.BadInput, match=words):
            call()


def test_a_missing_argument_and_an_error_inside_stay_what_they_are():
    with pytest.raises(TypeError, match="missing"):
        HeavyTop(mass=1.0)

    def broken(mass):
        raise TypeError("inside")

    from retrax.numerics.meant import explain_keywords

    with pytest.raises(TypeError, match="inside"):
        explain_keywords(broken)(mass=1.0)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("R", "'g'"), ("omega", "'velocity'"), ("times", "'t'"), ("energies", "'energy'"),
     ("x", "'g'"), ("Energy", "'energy'"), ("summry", "'summary'")],
)  # fmt: skip
def test_parts_of_a_run_by_other_names(wrong, right):
    run = rx.simulate(TOP, "lie-verlet", START, h=0.01, steps=3)
    with pytest.raises(AttributeError, match=f"{wrong!r}: {right} is the name"):
        getattr(run, wrong)
    assert not hasattr(run, "nothing_like_it")


def test_parts_of_a_state_by_other_names():
    with pytest.raises(AttributeError, match="'g' is the name"):
        START.R  # noqa: B018
    with pytest.raises(AttributeError, match=r"system.velocity_at\(state\)"):
        START.omega  # noqa: B018


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("HeavyTop", "use rx.systems.HeavyTop"), ("Rod", "use rx.systems.Rod"),
     ("heavy_top", "use rx.systems.HeavyTop"), ("lyapunov", "use rx.analysis.lyapunov"),
     ("integrate", "'simulate' is"), ("RK4", "no attribute 'RK4'"), ("Lieverlet", "'LieVerlet'")],
)  # fmt: skip
def test_names_of_the_package_that_are_elsewhere_or_spelt_otherwise(wrong, right):
    with pytest.raises(AttributeError, match=right):
        getattr(rx, wrong)


def test_names_of_ready_systems_spelt_otherwise():
    with pytest.raises(AttributeError, match="'Pendulum3D' is the name"):
        rx.systems.Pendulum  # noqa: B018


def test_nothing_is_guessed_where_no_name_is_alike():
    assert resolve_name("colour", ["h", "steps", "until"]) is None
