"""A native loop answers Ctrl-C within a second, and a signal changes no number."""

import os
import signal
import threading
import time
from contextlib import contextmanager
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import retrax as rx
from retrax.engine.backends import make_loop, signals
from retrax.engine.progress import start as begun
from retrax.integrators.base import AbstractIntegrator

# Far more steps than fit into the time that a test waits.
FOREVER = 10**10


@contextmanager
def in_a_moment(seconds=0.3):
    """Press Ctrl-C while this process is at work; the work must end within a second."""
    sent = []

    def send():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(seconds, send)
    timer.start()
    try:
        yield
    finally:
        ended = time.perf_counter()
        timer.join()
    assert ended - sent[0] < 1.0


@pytest.fixture
def body():
    return rx.systems.FreeRigidBody([1.0, 2.0, 2.5])


@pytest.fixture
def start(body):
    return body.state(jnp.eye(3), velocity=[0.3, 0.1, 0.9])


def test_a_run_stops_and_says_where(body, start):
    rx.simulate(body, rx.LieVerlet(), start, h=1e-3, steps=1)
    with pytest.raises(KeyboardInterrupt, match=r"stopped after step \d+ of 10000000000, and"):
        with in_a_moment():
            rx.simulate(body, rx.LieVerlet(), start, h=1e-3, steps=FOREVER, save_every=FOREVER)
    # Python hears by itself again.
    with pytest.raises(KeyboardInterrupt), in_a_moment(seconds=0.05):
        time.sleep(5)


def test_an_ensemble_stops_and_says_where(body, start):
    states = jax.tree.map(lambda x: np.stack([np.asarray(x)] * 20), start)
    rx.ensemble(body, rx.LieVerlet(), states, h=1e-3, steps=1)
    with pytest.raises(KeyboardInterrupt, match="ensemble was stopped after 0 of"), in_a_moment():
        rx.ensemble(body, rx.LieVerlet(), states, h=1e-3, steps=10**8)


def test_a_loop_inside_a_step_stops_too(body, start):
    class Endless(AbstractIntegrator):
        order: ClassVar[int] = 1
        preserves: ClassVar[frozenset[str]] = frozenset()

        def step(self, system, state, h):
            x = lax.while_loop(lambda x: x < 1e300, lambda x: 1.0 + 0.5 * x, h)
            return rx.RKMK("euler").step(system, state, h + 0.0 * x)

    loop = make_loop("native", body, Endless(), start, 1e-3)
    with pytest.raises(KeyboardInterrupt), in_a_moment():
        loop.run(begun(start), 1, 3, 1)


def test_a_handler_that_lets_the_run_go_on_changes_no_number(body, start):
    heard = []
    run = dict(h=1e-3, steps=5_000_000, save_every=999)
    undisturbed = rx.simulate(body, rx.LieVerlet(), start, **run)
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    timers = [
        threading.Timer(0.02 * k, os.kill, (os.getpid(), signal.SIGINT)) for k in range(1, 10)
    ]
    try:
        for timer in timers:
            timer.start()
        disturbed = rx.simulate(body, rx.LieVerlet(), start, **run)
    finally:
        for timer in timers:
            timer.join()
        signal.signal(signal.SIGINT, before)
    assert heard
    assert np.array_equal(undisturbed.momentum, disturbed.momentum)
    assert np.array_equal(undisturbed.info.increment, disturbed.info.increment)


def test_a_run_stopped_within_a_chunk_is_resumed_with_the_same_bits(body, start, tmp_path):
    run = dict(h=1e-3, steps=6_000_000, save_every=10_000)
    whole = rx.simulate(body, rx.LieVerlet(), start, **run)
    timers = []

    def send_soon(done, total):
        if done and not timers:
            timers.append(threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGTERM)))
            timers[0].start()

    path = tmp_path / "run.zarr"
    with pytest.raises(rx.Interrupted, match="was stopped by SIGTERM") as stopped:
        rx.simulate(body, rx.LieVerlet(), start, checkpoint=path, progress=send_soon, **run)
    assert 0 < stopped.value.trajectory.completed < run["steps"]
    again = rx.resume(path)
    assert np.array_equal(whole.momentum, again.momentum)
    assert np.array_equal(whole.info.increment, again.info.increment)


def test_other_threads_run_without_hearing():
    called = []
    thread = threading.Thread(
        target=lambda: called.append(signals.interruptibly(lambda *given: given[0], 7))
    )
    thread.start()
    thread.join()
    assert called == [(7, 0)]
