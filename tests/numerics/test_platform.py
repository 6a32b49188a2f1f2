"""Where JAX cannot compute, retrax says so: it neither hangs nor raises what JAX raises."""

import subprocess
import sys

import pytest

PLATFORM = """
import retrax as rx
for call in (lambda: rx.SO3().exp([0, 0, 1.0]), lambda: rx.SO3().identity(),
             lambda: rx.Mechanism(), lambda: rx.systems.FreeRigidBody([1.0, 1.2, 1.5])):
    try:
        call()
    except rx.BadInput as error:
        print(error)
"""
FORK = """
import os, signal, sys, warnings
warnings.simplefilter("ignore")
import jax, jax.numpy as jnp, retrax as rx
early = os.fork()  # nothing has been computed yet: this one may compute
if early:
    assert os.waitpid(early, 0)[1] == 0
body = rx.systems.FreeRigidBody([1.0, 1.2, 1.5])
states = jax.vmap(lambda v: body.state(jnp.eye(3), velocity=v))(jnp.ones((4, 3)))
one = body.state(jnp.eye(3), velocity=jnp.ones(3))
if not early:
    sys.exit(0)
rx.ensemble(body, "lie-verlet", states, h=0.1, steps=3, progress=False)
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
signal.alarm(30)
for call in (
    lambda: rx.ensemble(body, "lie-verlet", states, h=0.1, steps=3, progress=False),
    lambda: rx.ensemble(body, "lie-verlet", states, h=0.1, steps=4, backend="xla"),
    lambda: rx.simulate(body, "lie-verlet", one, h=0.1, steps=3),
    lambda: rx.prepare(body, "lie-verlet", h=0.1),
    lambda: rx.systems.FreeRigidBody([1.0, 1.2, 1.5]),
):
    try:
        call()
    except rx.BadInput as error:
        print(error)
sys.stdout.flush()
os._exit(0)
"""


def _said(script: str, **environment: str) -> list[str]:
    import os

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300,
        env=os.environ | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.campaign
def test_a_platform_that_jax_does_not_know_is_named():
    said = _said(PLATFORM, JAX_PLATFORMS="foo")
    assert len(said) == 4
    assert all(line.startswith("JAX_PLATFORMS = 'foo'") and "cpu" in line for line in said)


@pytest.mark.campaign
@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="no forks here")
def test_a_fork_of_a_process_that_has_computed_is_refused():
    said = _said(FORK)
    assert len(said) == 5
    assert all("was forked" in line and '"spawn"' in line for line in said)


def test_a_fork_is_noted_only_where_jax_is_at_work(monkeypatch):
    from retrax.errors import BadInput
    from retrax.numerics import platform

    monkeypatch.setattr(platform._Fork, "of_one_at_work", False)
    monkeypatch.setattr(platform, "_at_work", lambda: False)
    platform._note_fork()
    platform.require_platform()
    monkeypatch.setattr(platform, "_at_work", lambda: True)
    platform._note_fork()
    with pytest.raises(BadInput, match="was forked"):
        platform.require_platform()
