"""Run files say what Python says; every wrong key, type and value is one sentence."""

import numpy as np
import pytest

import retrax as rx
from retrax.cases import read
from retrax.systems.catalogue import CASES

TOP = """
h = 0.01
steps = 40
save_every = 4
output = "top.nc"
integrator = { name = "LieVerlet", retraction = "Exp" }

[system]
name = "HeavyTop"
inertia = [1.2, 1.6, 0.8]
mass = 1.0
arm = [0.0, 0.0, 0.6]

[state]
exp = [1.0, 0.0, 0.0]
velocity = [0.6, 0.2, 8.0]
"""
OWN = """
import jax.numpy as jnp
import retrax as rx

def make():
    body = rx.systems.FreeRigidBody([1.0, 2.0, 2.5])
    return body, body.state(jnp.eye(3), velocity=[0.3, 0.1, 0.9]), 0.05, 60

def system_alone():
    return rx.systems.Pendulum3D.paper()[0]

def of(length): ...
def number(): return 3
def short(): return make()[:3]
def no_system(): return (1, 2, 3, 4)
def divides(): return 1 / 0
def refused(): return rx.systems.FreeRigidBody([1.0, 1.0, 5.0])
"""


@pytest.fixture
def written(tmp_path):
    def write(text, name="run.toml"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def test_a_run_file_runs_as_python_does(written):
    path = written(TOP)
    asked = read(path)
    top, start, _, _ = CASES["heavy-top"].make()
    assert (asked.name, asked.h, asked.steps, asked.save_every) == ("run", 0.01, 40, 4)
    assert asked.integrator == rx.LieVerlet(rx.Exp())
    assert asked.output == path.parent / "top.nc" and asked.report is None
    run = rx.simulate(asked.system, asked.integrator, asked.state, h=asked.h, steps=asked.steps)
    same = rx.simulate(top, rx.LieVerlet(rx.Exp()), start, h=0.01, steps=40)
    np.testing.assert_array_equal(run.momentum, same.momentum)


def test_a_case_brings_what_is_not_said(written):
    asked = read(written('case = "suslov"\nsteps = 7'))
    system, start, h, _ = CASES["suslov"].make()
    assert (asked.name, asked.method, asked.h, asked.steps) == (
        "suslov",
        "lagrange-d-alembert",
        h,
        7,
    )
    np.testing.assert_array_equal(asked.state.momentum, start.momentum)
    np.testing.assert_array_equal(asked.system.inertia, system.inertia)
    other = read(written('case = "suslov"\nh = 1\n[state]\nvelocity = [0.2, 0.4, 0.0]'))
    assert other.h == 1.0
    np.testing.assert_allclose(other.state.momentum, system.inertia @ np.array([0.2, 0.4, 0.0]))


def test_the_file_of_the_user_is_found_beside_the_run_file(written):
    written(OWN, "own.py")
    asked = read(written('file = "own.py:make"\nsteps = 3'))
    assert (asked.h, asked.steps, asked.method) == (0.05, 3, "lie-verlet")
    written("from own import make as made\ndef make(): return made()", "other.py")
    assert read(written('file = "other.py"')).steps == 60
    paper = read(written('file = "own.py:system_alone"'))
    assert (paper.h, paper.steps) == CASES["pendulum3d"].make()[2:]


def _changed(old, new):
    assert old in TOP
    return TOP.replace(old, new)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("h = ", "this is not TOML: Invalid value"),
        (_changed("steps", "step"), "the key 'step' is not known: the keys are case, file, h, "),
        (_changed("steps", "step"), "Did you mean 'steps'?"),
        (_changed("steps = 40", "steps = 40.5"), "steps = 40.5 must be a whole number."),
        (_changed("h = 0.01", 'h = "small"'), "h = 'small' must be a number."),
        (_changed("h = 0.01", "h = true"), "h = True must be a number."),
        (_changed("steps = 40", "steps = true"), "steps = True must be a whole number."),
        (_changed("h = 0.01", ""), "h is missing"),
        (_changed("steps = 40", ""), "steps is missing"),
        (_changed('output = "top.nc"', "output = 3"), "output = 3 must be text."),
        (_changed("HeavyTop", "HevyTop"), "[system]: system = 'HevyTop' is not known. Did you"),
        (_changed("arm =", "arms ="), "[system]: HeavyTop has no parameter 'arms'"),
        (_changed("mass = 1.0", "mass = -1.0"), "[system]: mass = -1.0"),
        (_changed("velocity", "velocty"), "[state]: the start of the heavy top has no key"),
        (_changed("LieVerlet", "LieVerlett"), "integrator: integrator = 'LieVerlett' is not known"),
        (_changed("[state]", "[statue]"), "the key 'statue' is not known"),
        ('system = "HeavyTop"', "system = 'HeavyTop' must be a table: [system] and its keys below"),
        ("steps = 3", "exactly one of case, file and [system] says what moves, but the run"),
        (f'case = "suslov"\n{TOP}', "but case and system are given."),
        ('case = "suslof"', "case = 'suslof' is not known. Did you mean 'suslov'?"),
        (_changed("[state]", "[state]\n[extra]"), "the key 'extra' is not known"),
    ],
)  # fmt: skip
def test_everything_wrong_in_a_run_file_is_one_sentence(written, text, says):
    path = written(text)
    with pytest.raises(rx.BadInput) as refused:
        read(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("elsewhere.py:make", "there is no file"),
        ("own.py:mak", "has no function 'mak': it has make, system_alone, of, number, short, "
         "no_system, divides, refused. Did you mean 'make'?"),
        ("own.py:of", "of in"),
        ("own.py:of", "needs the arguments length, but it is called without any"),
        ("own.py:number", "returns int, but it must return (system, state, h, steps)"),
        ("own.py:short", "returns a tuple of 3, but it must return"),
        ("own.py:no_system", "returns int where the system is expected"),
        ("own.py:divides", "own.py', line 16: divides() ends in an error: ZeroDivisionError: "
         "division by zero"),
        ("own.py:refused", "line 17: refused() ends in an error: inertia with principal moments"),
        ("broken.py:make", "broken.py' is not Python: line 1"),
        ("raises.py:make", "raises.py', line 2: the file ends in an error: KeyError: 'x'"),
        ("leaves.py:make", "leaves.py', line 1: the file ends in an error: SystemExit: 3"),
    ],
)  # fmt: skip
def test_everything_wrong_in_a_file_of_the_user_is_one_sentence(written, name, says):
    written(OWN, "own.py")
    written("def make(:", "broken.py")
    written("x = {}\nx['x']", "raises.py")
    written("raise SystemExit(3)", "leaves.py")
    with pytest.raises(rx.BadInput) as refused:
        read(written(f'file = "{name}"'))
    assert says in str(refused.value) and "\n" not in str(refused.value)


def test_a_run_file_that_is_not_there(tmp_path):
    with pytest.raises(rx.BadInput, match=r"nothing\.toml: there is no such file\."):
        read(tmp_path / "nothing.toml")


def test_brackets_nested_too_deeply_are_refused(tmp_path):
    path = tmp_path / "deep.toml"
    path.write_text("case = " + "[" * 3000 + "]" * 3000)
    with pytest.raises(rx.BadInput, match="nested too deeply"):
        read(path)
