"""One large body on several threads: the same bits, and nobody waits for ever."""

import threading
import time

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jostling import jostled
from test_signals import FOREVER, in_a_moment

import retrax as rx
from retrax.engine.backends import make_loop, native
from retrax.engine.backends.signals import Flag
from retrax.engine.backends.team import Team, team_for
from retrax.engine.llvm.machine_code import compile_code
from retrax.engine.llvm.meeting import PLACE
from retrax.engine.llvm.team_kernel import assemble_team
from retrax.engine.progress import FAILURE, INTERVAL, Packing, start
from retrax.engine.step_program import signature, step_program

VERLET = rx.LieVerlet()
LATE = 60.0  # seconds after which a thread will not come back


def swinging_rod(elements):
    """No two numbers of it alike: clamped, bent, damped, in wind and weight."""
    rod = rx.systems.Rod(
        elements, 1.3, stretching=(9.0, 8.0, 30.0), bending=(0.02, 0.03, 0.015), mass=0.9,
        inertia=(2e-3, 1.5e-3, 3e-3), ends=("clamped", "free"), gravity=(0.3, -9.81, 0.1),
        damping=1e-4,
    )  # fmt: skip
    s = np.linspace(0.0, 1.0, rod.nodes)
    v = 0.4 * np.stack([s, 1 - s**2, np.sin(5 * s)], axis=1)
    omega = 0.7 * np.stack([np.cos(3 * s), s, s**2], axis=1)
    return rod, rod.state(rod.straight((0.3, -0.2, 1.0)), velocity=rod.velocity_of(omega, v)), 2e-3


def string(elements):
    system, state, h, _ = rx.systems.StringPendulum.paper(elements=elements)
    return system, state, h * min(1.0, 20 / elements)


def chosen(elements):
    """A chain whose force is one of two arrays, now this and now that."""
    n = 3 * elements

    def force(g, xi, t):
        x = g.reshape(elements, 3)
        pull = jnp.concatenate([x[1:], x[:1]]) - x
        high = jnp.sin(300.0 * t) > 0.0
        return lax.cond(high, lambda y: y - 0.1 * x, lambda y: 2.0 * y[::-1], pull).reshape(-1)

    system = rx.MechanicalSystem(rx.Translation(n), jnp.ones(n), force=force)
    places = jnp.sin(jnp.arange(float(n)))
    return system, system.state(places, velocity=jnp.cos(3.0 * places)), 2e-3


class Call:
    """The arguments of a kernel: `records` times `every` steps of a system from its start."""

    def __init__(self, system, state, h, records, every, method=VERLET):
        self.made_for = signature(system, method, state)
        self.program, self.layout = step_program(*self.made_for)
        at = Packing.rows(state)[:, 0].copy()
        self.params = Packing.rows((system, method, []))
        self.out = np.zeros((records, len(at)))
        self.interval = np.zeros((records, len(INTERVAL)))
        self.failure = np.full(len(FAILURE), np.nan)
        memory = np.zeros(max(1, self.layout.memory.size))
        self.arrays = (self.params, at, memory, self.out, self.interval, self.failure)
        self.flag = Flag()
        self.given = (
            *(x.ctypes.data for x in self.arrays), h, 0, records, every, 1, 1, 0, 1,
            self.flag.address,
        )  # fmt: skip

    def team(self, threads):
        assembly, scratch = assemble_team(self.program, self.layout)
        self.code = compile_code(assembly)
        return Team(self.code.address("work"), scratch, threads, seconds=1.0)

    def numbers(self):
        assert np.isnan(self.failure[0])
        return np.concatenate([x.ravel() for x in (self.out, self.interval, *self.arrays[1:3])])


@pytest.mark.parametrize("make", [swinging_rod, string, chosen])
@pytest.mark.parametrize("elements", [20, 101])
def test_bits_do_not_depend_on_the_number_of_threads(make, elements):
    method = rx.RKMK("rk4") if make is chosen else VERLET
    alone = Call(*make(elements), records=3, every=7, method=method)
    assert native.single_kernel(*alone.made_for).run(*alone.given) == 3
    assert np.mean(alone.out[-1] != alone.out[0]) > 0.7
    for threads in (1, 2, 3, 5):
        call = Call(*make(elements), records=3, every=7, method=method)
        assert call.team(threads)(*call.given) == 3
        np.testing.assert_array_equal(call.numbers(), alone.numbers())


def test_a_step_that_fails_ends_all_threads_with_the_same_words():
    system, state, _ = swinging_rod(37)
    calls = [Call(system, state, 5.0, records=2, every=4) for _ in range(2)]
    native.single_kernel(*calls[0].made_for).run(*calls[0].given)
    calls[1].team(3)(*calls[1].given)
    assert not np.isnan(calls[0].failure[0])
    for ours, other in zip(*(call.arrays[1:] for call in calls), strict=True):
        np.testing.assert_array_equal(ours, other)


def test_a_team_that_is_told_to_stop_stops_in_the_same_step():
    call = Call(*swinging_rod(37), records=10**6, every=10**6)
    call.flag.raise_it()
    assert call.team(3)(*call.given) == 0


def test_a_team_that_waits_too_long_parts_and_the_first_goes_on():
    """The meeting place says that the first thread has only waited in the last second."""
    alone = Call(*swinging_rod(37), records=2, every=9)
    native.single_kernel(*alone.made_for).run(*alone.given)
    call = Call(*swinging_rod(37), records=2, every=9)
    team = call.team(2)
    place, scratch = np.zeros(2 * PLACE, np.int64), np.empty(2 * team._scratch + 16)
    place[16] = scratch.ctypes.data + (-scratch.ctypes.data) % 64
    second = 10**9
    place[25], place[26] = second, time.time_ns() - second
    left = []

    def other():
        left.append(team._work(*call.given[:12], 1, 2, place.ctypes.data, call.flag.address))

    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    assert team._work(*call.given[:12], 0, 2, place.ctypes.data, call.flag.address) == 2
    thread.join(LATE)
    assert left == [0] and place[24] == 2
    np.testing.assert_array_equal(call.numbers(), alone.numbers())


@pytest.mark.parametrize(
    "make, elements, threads", [(swinging_rod, 3000, 2), (swinging_rod, 900, 1), (string, 2000, 1)]
)
def test_threads_are_used_where_they_pay(make, elements, threads):
    system, state, _ = make(elements)
    program, _ = step_program(*signature(system, rx.LieVerlet(), state))
    found, seconds = team_for(program, 2)
    assert found == threads and 3e-7 * elements > seconds > 3e-9 * elements
    assert team_for(program, 1)[0] == 1


def test_runs_of_users_have_the_same_bits_on_any_number_of_cores(monkeypatch):
    rod, state, h = swinging_rod(3000)
    runs = []
    for cores in (1, 2, 3):
        monkeypatch.setattr(native, "cores", lambda cores=cores: cores)
        run = rx.simulate(rod, rx.LieVerlet(), state, h=h / 120, steps=60, save_every=25)
        kernel = native.loop_kernel(*signature(rod, rx.LieVerlet(), state), cores)
        assert isinstance(kernel.run, Team) == (cores > 1)
        runs.append(np.concatenate([np.ravel(x) for x in (*run.g, run.momentum)]))
    np.testing.assert_array_equal(runs[0], runs[1])
    np.testing.assert_array_equal(runs[0], runs[2])


def test_a_team_hears_ctrl_c(monkeypatch):
    rod, state, h = swinging_rod(3000)
    monkeypatch.setattr(native, "cores", lambda: 2)
    loop = make_loop("native", rod, rx.LieVerlet(), state, h / 120)
    with pytest.raises(KeyboardInterrupt), in_a_moment():
        loop.run(start(state), 1, FOREVER, 1)


def test_a_body_whose_entries_are_replaced_one_by_one_has_one_thread():
    program, _ = step_program(*signature(*jostled(balls=200)))
    assert team_for(program, 8)[0] == 1
