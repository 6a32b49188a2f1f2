"""Steps too large for machine code: users are told before XLA compiles, which is found out once."""

import numpy as np
import pytest

import retrax as rx
from retrax.engine import backends, step_program
from retrax.engine.trace import evaluator


@pytest.fixture(scope="module")
def hopper():
    m = rx.Mechanism()
    m.body("trunk", mass=5.0, inertia=[0.1, 0.2, 0.25], at=[0, 0, 1.0])
    m.body("leg", mass=0.5, inertia=[0.004, 0.004, 0.001], at=[0.1, 0, 0.85])
    m.join(rx.Revolute("trunk", "leg", at=[0.1, 0, 1.0], axis=[0, 1, 0], name="hip"))
    foot = rx.Ball(0.02, body="leg", at=[0, 0, -0.15], name="foot")
    system = m.system(contact=rx.Contacts([(foot, rx.Plane(name="floor"))], friction=0.6))
    return system, system.assemble()


def made(hopper):
    system, start = hopper
    return backends.make_loop("auto", system, rx.NonsmoothRattle(), start, 0.001).name


def test_a_user_is_told_how_long_xla_compiles(hopper, monkeypatch):
    monkeypatch.setattr(backends, "_MOST_NATIVE", 15_000)
    backends.require_quick.cache_clear()
    told = (
        r"mechanism of 2 bodies and 1 joint with 1 contact is too large .* XLA compiles it in "
        r"about 20 s before the first step"
    )
    with pytest.warns(UserWarning, match=told):
        assert made(hopper) == "xla"
    backends.require_quick.cache_clear()


def test_what_is_too_large_is_traced_once(hopper, monkeypatch):
    monkeypatch.setattr(evaluator, "MOST_VALUES", 1000)
    traced, whole = [], step_program.scalarise_in_turn

    def counted(*args, **named):
        traced.append(args)
        return whole(*args, **named)

    monkeypatch.setattr(step_program, "scalarise_in_turn", counted)
    step_program.step_program.cache_clear()
    for _ in range(3):
        with pytest.warns(UserWarning, match=r"is too large .* XLA compiles it in about \d0 s"):
            assert made(hopper) == "xla"
    assert len(traced) == 1
    step_program.step_program.cache_clear()


def test_a_reason_that_is_raised_again_holds_no_frames(hopper, monkeypatch):
    monkeypatch.setattr(evaluator, "MOST_VALUES", 1000)
    step_program.step_program.cache_clear()
    system, start = hopper
    whole = step_program.signature(system, rx.NonsmoothRattle(), start)
    depths = []
    for _ in range(3):
        with pytest.raises(step_program.Unscalarisable) as raised:
            step_program.step_program(*whole)
        depths.append(len(raised.traceback))
    assert np.ptp(depths) == 0
    step_program.step_program.cache_clear()
