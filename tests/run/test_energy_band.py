"""A run warns where its energy leaves the band that its integrator keeps to."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx

SUN = rx.MechanicalSystem(rx.Translation(3), [1.0] * 3, lambda x: -1 / jnp.sqrt(x @ x))
FALL = np.pi / 2**1.5  # from rest at the distance 1 to the centre


def warned(run):
    """What a call warns of, and what it returns."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = run()
    return [str(w.message) for w in caught if "left its band" in str(w.message)], result


@pytest.mark.parametrize("sideways", [0.0, 0.02])
@pytest.mark.parametrize("h", [1e-3, 2.3e-3])
def test_a_fall_into_the_centre_is_told_with_the_time_of_the_collision(sideways, h):
    start = SUN.state([1.0, 0.0, 0.0], velocity=[0.0, sideways, 0.0])
    told, run = warned(
        lambda: rx.simulate(SUN, rx.LieVerlet(), start, h=h, steps=3000, progress=False)
    )
    assert abs(run.energy()[-1] + 1) > 1
    (sentence,) = told
    assert "-1 J at the start" in sentence or "-0.9998 J at the start" in sentence
    before, after = (float(part.split()[0]) for part in sentence.split("at t = ")[1:])
    assert before - 0.01 < FALL < after + 0.01


def test_orbits_swings_and_forced_motions_give_no_alarm():
    """A weld, a coarse ellipse, a swing from rest, a fall, a load that does work."""
    swing = rx.MechanicalSystem(rx.SO3(), [1.0, 2.0, 2.5], lambda R: 9.81 * R[2, 2])
    c, s = np.cos(3.0), np.sin(3.0)
    low = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    falls = rx.MechanicalSystem(rx.Translation(1), [2.0], lambda x: 19.62 * x[0])
    pushed = rx.MechanicalSystem(
        rx.Translation(1), [1.0], lambda x: 0.0 * x[0], force=lambda g, xi, t: jnp.array([5.0])
    )
    welded = rx.Mechanism()
    beam = welded.body("beam", 3.0, [0.1, 0.2, 0.25], at=[2.0, 0.0, 0.0])
    welded.join(rx.Fixed("ground", beam, at=[0.5, 0.0, 0.0]))
    welded = welded.system()  # its energy is 0 up to rounding errors
    cases = (
        (welded, welded.assemble(), 0.01),
        (SUN, SUN.state([0.4, 0.0, 0.0], velocity=[0.0, 2.0, 0.0]), 0.02),
        (swing, swing.state(low, velocity=np.zeros(3)), 0.05),
        (falls, falls.state([0.0], velocity=[0.0]), 0.05),
        (pushed, pushed.state([0.0], velocity=[0.1]), 0.05),
    )
    for system, start, h in cases:
        told, _ = warned(
            lambda system=system, start=start, h=h: rx.simulate(
                system, rx.LieVerlet(), start, h=h, steps=400, progress=False
            )
        )
        assert not told


@pytest.mark.parametrize("other", ["a prepared run", "a Stepper"])
def test_what_keeps_its_functions_is_judged_by_them(other):
    """A fall from rest, of which g changes later, and one into a centre that has no pull later."""

    def passed(potential, start, h, change):
        body = rx.MechanicalSystem(rx.Translation(1), [1.0], potential)
        start = body.state(start, velocity=[0.0])
        if other == "a Stepper":
            stepper = rx.Stepper(body, rx.LieVerlet(), start, h=h)
            change()
            for _ in range(8):
                stepper.step(steps=5)
            return stepper.run()
        run = rx.prepare(body, rx.LieVerlet(), h=h)
        change()
        return run(start, 40)

    k = [9.81, 1.0]
    told, run = warned(
        lambda: passed(lambda x: k[0] * x[0], [0.5], 0.1, lambda: k.__setitem__(0, 1.62))
    )
    assert not told and np.ptp(run.energy()) < 1e-11

    def well(x):
        return -k[1] / jnp.sqrt(x @ x)

    told, run = warned(lambda: passed(well, [1.0], 0.1, lambda: k.__setitem__(1, 0.0)))
    assert told and np.ptp(run.energy()) > 1
