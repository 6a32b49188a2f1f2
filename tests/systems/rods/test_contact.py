"""Two rods in rolling contact, against the reference numbers of an independent program."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.mechanics.state import State
from retrax.systems.rods.crossing import _kicks
from retrax.systems.rods.crossing import kick_rods as again
from retrax_papers.rods.printed import PrintedSlip, as_printed

S = rx.systems
SAVED = 20  # states of a run whose invariants are looked at: as many in all of them


@cache
def pressed(elements=20):
    """The pressed rods at rest: made once, for it takes longer than the tests."""
    return S.crossed_rods(elements, kick=0.0)


def kicked(size=1.0, friction=1e9, **others):
    """Friction is given, and much of it, so that all runs share one program."""
    pair, rest = pressed()
    return again(pair, rest.g, size, friction=friction, **others)


def test_straight_rods_that_touch():
    pair, start = S.crossed_rods(pressed=0.0)
    travel, lam = jax.jit(
        lambda p, s: (p.velocity(s.g, s.momentum)[-2:], p.multipliers(s)),
    )(pair, start)
    np.testing.assert_allclose(travel, [-0.006665619895, 0.025073927335], rtol=0, atol=1e-12)
    expected = [1.474132558e-6, -3.215707065e-5, -1.566823891e-5]
    np.testing.assert_allclose(lam, expected, rtol=0, atol=1e-14)


def test_pressed_equilibrium():
    pair, rest = pressed()
    lam = jax.jit(lambda p, s: p.multipliers(s))(pair, rest)
    force = pair.contact_force(rest.g, lam)
    assert float(force["pressure"]) == pytest.approx(0.03960870404, abs=2e-11)
    assert float(force["friction"]) < 1e-12
    np.testing.assert_allclose(rest.g[2], [0.90035801962, 1.14906146658], rtol=0, atol=2e-11)
    assert float(pair.energy(rest)) == pytest.approx(0.08392673105, abs=1e-11)
    assert float(pair.energy(kicked()[1])) == pytest.approx(0.08477544153920, abs=1e-13)


def test_the_pressure_converges_with_order_two_at_a_fixed_width():
    found = []
    for elements in (20, 40, 80):
        pair, rest = S.crossed_rods(elements, kick=0.0)
        lam = jax.jit(lambda p, s: p.multipliers(s))(pair, rest)
        found.append(float(pair.contact_force(rest.g, lam)["pressure"]))
    np.testing.assert_allclose(found, [0.0396087, 0.0397844, 0.0398280], rtol=0, atol=6e-8)
    coarse, fine = np.diff(found)
    assert np.log2(coarse / fine) == pytest.approx(2.01, abs=0.01)


def test_rolling_converges_to_the_reference_and_keeps_the_gap():
    """s and the contact force at t = 1 and 2, by Richardson's extrapolation of order 2."""
    pair, start = kicked()
    points, forces = [], []
    for h in (0.01, 0.005):
        every = round(1 / h)
        run = rx.simulate(
            pair,
            rx.RollingVerlet(),
            start,
            h=h,
            steps=2 * every,
            save_every=every // SAVED * 2,
        )
        assert run.provenance["backend"] == "native"
        points.append(np.asarray(run.g[2][[10, 20]]))
        gap, skew, slip, force = measured(pair, run.states)
        assert np.abs(gap - 0.1).max() < 1e-15
        assert np.abs(skew).max() < 1e-15
        assert np.abs(slip).max() < 1e-16
        forces.append(np.asarray(force)[[10, 20]])
    exact = np.array([[0.89856574417, 1.16237458402], [0.89631651447, 1.16704792150]])
    force = np.array(
        [
            [-0.00577787972, -0.00298643045, -0.03595396035],
            [-0.00846845934, -0.00810401431, -0.03734785815],
        ]
    )
    best = (4 * points[1] - points[0]) / 3
    np.testing.assert_allclose(best, exact, rtol=0, atol=3e-8)
    np.testing.assert_allclose((4 * forces[1] - forces[0]) / 3, force, rtol=0, atol=5e-6)
    ratio = np.abs(points[0] - exact).max() / np.abs(points[1] - exact).max()
    assert np.log2(ratio) == pytest.approx(2, abs=0.05)


@pytest.mark.parametrize("integrator", [rx.RollingVerlet(), rx.RollingDKD()])
def test_free_rods_keep_their_momenta(integrator):
    """Let go of the pressed rods: they roll until they part."""
    held, rest = pressed()
    made = {"mass": 1.0, "inertia": [6.25e-4, 6.25e-4, 1.25e-3]}
    made |= {"stretching": held.first.stretching, "bending": held.first.bending}
    rods = [S.Rod(20, 2.0, **made) for _ in range(2)]
    pair = S.RodsInContact(*rods, radius=0.05, width=0.1)
    start = pair.state(rest.g, velocity=_kicks(pair, 1.0), project=True)
    there = bounded(pair, integrator, start, 40)
    momenta = jax.jit(jax.vmap(pair.further_invariants))(there.states)
    assert len(momenta) == 6
    for values in momenta.values():
        assert np.abs(values - values[0]).max() < 1e-14


def bounded(pair, integrator, start, steps):
    """As far as the contact holds."""
    try:
        return rx.simulate(pair, integrator, start, h=0.01, steps=steps, backend="xla")
    except rx.ContactLost as event:
        assert event.trajectory.completed > 3
        return event.trajectory


def test_the_explicit_steps_are_of_order_two_in_all_they_give():
    """s at t = 1 against the reference; the gap and the slip, which they keep up to O(h^2)."""
    pair, start = kicked()
    points, misses = [], []
    for h in (0.01, 0.005):
        run = rx.simulate(
            pair, rx.RollingDKD(), start, h=h, steps=round(1 / h), save_every=round(1 / h) // SAVED
        )
        points.append(np.abs(np.asarray(run.g[2][-1]) - [0.89856574417, 1.16237458402]).max())
        gap, _, slip, _ = measured(pair, run.states)
        misses.append([np.abs(gap - 0.1).max(), np.abs(slip).max()])
    assert np.log2(points[0] / points[1]) == pytest.approx(2, abs=0.05)
    np.testing.assert_allclose(np.log2(np.divide(*misses)), 2, rtol=0, atol=0.3)


@jax.jit
@partial(jax.vmap, in_axes=(None, 0))
def measured(pair, state):
    """Gap, tangency, slip and contact force: one program for all runs with as many states."""
    slip = pair.slip(state.g, pair.mobile(state.momentum))
    return pair.gap(state.g), pair.tangency(state.g), slip, pair.multipliers(state)


@pytest.mark.parametrize("integrator", [rx.RollingVerlet(), rx.RollingDKD()])
def test_steps_are_reversible_and_stay_on_the_group(integrator):
    pair, start = kicked()
    run = rx.simulate(pair, integrator, start, h=0.02, steps=100, save_every=100 // SAVED)
    for frames, _ in run.g[:2]:
        defect = np.einsum("tkji,tkjl->tkil", frames, frames) - np.eye(3)
        assert np.abs(defect).max() < 3e-15
    there = run.final
    # As it is: the explicit steps leave the gap and the constraint a little.
    turned = State(*jax.tree.map(jnp.asarray, (there.g, -there.momentum, 0.0)))
    back = rx.simulate(pair, integrator, turned, h=0.02, steps=100).final
    np.testing.assert_allclose(back.g[0][1], start.g[0][1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(back.momentum, -np.asarray(start.momentum), rtol=0, atol=1e-12)


def test_energy_stays_bounded():
    """T = 80; over T = 400 the largest errors are 5.6e-7 and 5.5e-7."""
    pair, start = kicked()
    for integrator in (rx.RollingVerlet(), rx.RollingDKD()):
        run = rx.simulate(pair, integrator, start, h=0.02, steps=4000, save_every=10)
        error = np.asarray(jax.jit(jax.vmap(pair.energy))(run.states))
        error = error - error[0]
        assert np.abs(error).max() < 1e-6
        half = len(error) // 2
        assert np.std(error[half:]) < 1.3 * np.std(error[:half])


def test_separation_is_an_event(tmp_path):
    pair, start = kicked(8.0)
    with pytest.raises(rx.Separation, match="pressure between them falls to zero") as event:
        rx.simulate(pair, rx.RollingVerlet(), start, h=0.001, steps=1000)
    there = event.value.trajectory
    assert there.t[-1] == pytest.approx(0.0932912016, abs=5e-6)
    assert "at t = 0.0933 s" in str(event.value)
    assert there.completed == 93 and len(there) == 95
    assert pressure(pair, there).min() > 0 and pressure(pair, there)[-1] < 1e-9
    assert np.array_equal(rx.load(there.save(tmp_path / "event.nc")).t, there.t)


@pytest.mark.parametrize("base", [rx.RKMK("midpoint"), rx.Adaptive(rx.RKMK("midpoint"), 1e-4)])
def test_separation_is_an_event_of_every_integrator(base):
    """A pressure that changes sign within a step ends the run, whoever takes the step."""
    pair, start = kicked(8.0)
    with pytest.raises(rx.Separation, match="pressure between them falls to zero") as event:
        rx.simulate(pair, base, start, h=0.01, steps=20, backend="xla")
    there = event.value.trajectory
    assert there.t[-1] == pytest.approx(0.0932912016, abs=2e-4)
    assert pressure(pair, there).min() > 0


def pressure(pair, run):
    force = jax.jit(jax.vmap(pair.contact_force))(run.g, run.multipliers)
    return np.asarray(force["pressure"])


def test_slip_is_an_event():
    pair, start = kicked(friction=0.5)
    with pytest.raises(rx.Slip, match="leaves the friction cone") as event:
        rx.simulate(pair, rx.RollingVerlet(), start, h=0.001, steps=1000)
    assert event.value.trajectory.t[-1] == pytest.approx(0.0746938930, abs=4e-6)
    assert isinstance(event.value, rx.ContactLost)


def test_what_is_no_contact_is_refused():
    pair, rest = pressed()
    with pytest.raises(rx.BadInput, match="must be a whole multiple"):
        S.RodsInContact(pair.first, pair.second, radius=0.05, width=0.13)
    with pytest.raises(rx.BadInput, match=r"0.1 apart at the contact, but they must be two radii"):
        other = S.RodsInContact(pair.first, pair.second, radius=0.06, width=0.1)
        other.state(rest.g, velocity=np.zeros(pair.group.dim))
    one, two, s = rest.g
    with pytest.raises(rx.BadInput, match="not the points of the centrelines"):
        pair.state((one, two, s + 1e-6), velocity=np.zeros(pair.group.dim))
    with pytest.raises(rx.BadInput, match="lets the surfaces of the rods slip"):
        pair.state(rest.g, velocity=_kicks(pair, 1.0))
    with pytest.raises(rx.BadInput, match="needs RodsInContact, got the"):
        rod = pair.first
        start = rod.state(rod.straight(), velocity=np.zeros(rod.group.dim))
        rx.simulate(rod, rx.RollingVerlet(), start, h=0.01, steps=1)
    with pytest.raises(rx.BadInput, match="LieVerlet knows no constraints"):
        rx.simulate(pair, rx.LieVerlet(), rest, h=0.01, steps=1)
    with pytest.raises(rx.BadInput, match="which the equations of PrintedSlip do not"):
        printed, start = again(as_printed(PrintedSlip, pair), rest.g)
        rx.simulate(printed, rx.RollingVerlet(), start, h=0.01, steps=1)
