"""Lyapunov exponents: known ones, none where there is none, and against pairs of motions."""

import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.systems import StringsInContact
from retrax.testing.problems import asymmetric_top

lyapunov = rx.analysis.lyapunov


@pytest.mark.parametrize("integrator", [rx.Kahan(), rx.RungeKutta("rk4")], ids=repr)
def test_the_exponent_of_lorenz(integrator):
    """0.9056, as everybody finds."""

    def field(x):
        return jnp.stack(
            [10 * (x[1] - x[0]), 28 * x[0] - x[1] - x[0] * x[2], x[0] * x[1] - 8 / 3 * x[2]]
        )

    system = rx.QuadraticField(field)
    found = lyapunov(system, integrator, [1.0, 2.0, 20.0], h=0.005, steps=200_000, skip=2000)
    assert found.error < 0.01
    assert abs(found.exponent - 0.9056) < 3 * found.error
    assert found.running[-1] == found.exponent and len(found.t) == 200


def test_rotation_about_the_middle_axis_is_unstable_at_the_known_rate():
    r"""$|m|\sqrt{(1/I_1 - 1/I_2)(1/I_2 - 1/I_3)}$, on SO(3) with its momenta."""
    body = rx.systems.FreeRigidBody([1.0, 2.0, 3.0])
    start = body.state(jnp.eye(3), momentum=[0.0, 2.0, 0.0])
    found = lyapunov(body, rx.LieVerlet(), start, h=0.01, steps=1000, skip=2000)
    assert found.exponent == pytest.approx(2 * np.sqrt(0.5 * (1 / 2 - 1 / 3)), rel=1e-4)


def test_an_integrable_body_has_none():
    body = rx.systems.FreeRigidBody([1.0, 2.0, 3.0])
    start = body.state(jnp.eye(3), velocity=[0.3, 0.1, 0.9])
    found = lyapunov(body, rx.LieVerlet(), start, h=0.05, steps=200_000)
    assert 0 < found.exponent < 1e-3  # measured 7e-4 after 10,000 s: log t/t
    assert found.running[0] > 10 * found.exponent


def test_the_tangent_grows_as_two_neighbours_part():
    """The same growth from two runs a distance 1e-7 apart, the perturbation through the algebra."""
    top, start = asymmetric_top()
    vector = np.array([0.3, -0.5, 0.2, 0.4, 0.1, -0.6])
    vector /= np.linalg.norm(vector)
    h, steps, small = 0.02, 300, 1e-7
    found = lyapunov(top, rx.LieVerlet(), start, h=h, steps=steps, direction=vector, history=100)
    ends = []
    for sign in (1, -1):
        g = top.group.compose(start.g, top.group.exp(jnp.asarray(sign * small * vector[:3])))
        near = top.state(g, momentum=start.momentum + sign * small * vector[3:])
        ends.append(
            rx.simulate(top, rx.LieVerlet(), near, h=h, steps=steps, save_every=steps).final
        )
    there, here = (jnp.asarray(end.g) for end in ends)
    turned = top.group.log(top.group.compose(top.group.inverse(here), there))
    parted = np.linalg.norm([*turned, *(ends[0].momentum - ends[1].momentum)]) / (2 * small)
    assert found.growth == pytest.approx(np.log(parted), abs=1e-6)
    assert found.growth > 1.0


def test_strings_in_contact_are_chaotic_where_contacts_move_and_not_where_they_are_frozen():
    """Growth in 600 s."""
    growths = {}
    for name, G, s in (("moving", 0.8, (2.0, 2.6)), ("linear", 0.0, (2.0, 2.6))):
        system = StringsInContact(G=G, n=32)
        h = float(system.spacing) / 2
        start = system.at(s, u=np.sin)
        growths[name] = lyapunov(system, rx.ContactDKD(), start, h=h, steps=round(600 / h)).growth
    assert growths["moving"] > growths["linear"] + 1.0


def test_the_whole_spectrum_of_a_chaotic_top():
    """Volumes are kept in every step, so all add up to zero; in pairs they do so in the limit."""
    top, start = asymmetric_top()
    run = {"h": 0.02, "steps": 100_000, "skip": 2000}
    found = lyapunov(top, rx.LieVerlet(), start, exponents=None, **run)
    assert found.spectrum.shape == found.errors.shape == (6,)
    assert abs(np.sum(found.spectrum)) < 4e-14  # measured 4e-15
    assert found.spectrum[0] > 0.1  # chaotic: 0.167
    pairs = found.spectrum + found.spectrum[::-1]
    assert np.max(np.abs(pairs)) < 3e-3  # measured 3e-4
    # Energy and vertical momentum: two pairs of zeros, approached like log t / t.
    assert np.max(np.abs(found.spectrum[1:5])) < 0.02 * found.spectrum[0]
    alone = lyapunov(top, rx.LieVerlet(), start, **run)
    assert alone.exponent == pytest.approx(found.exponent, abs=3 * found.error)
    assert found.exponent == found.spectrum[0] and found.growth > 10


def test_the_spectrum_of_lorenz():
    """0.906, 0, -14.57: they add up to the divergence of the field, -(10 + 1 + 8/3)."""

    def field(x):
        return jnp.stack(
            [10 * (x[1] - x[0]), 28 * x[0] - x[1] - x[0] * x[2], x[0] * x[1] - 8 / 3 * x[2]]
        )

    system = rx.QuadraticField(field)
    found = lyapunov(
        system, "kahan", [1.0, 2.0, 20.0], h=0.002, steps=200_000, skip=2000, exponents=None
    )
    assert np.sum(found.spectrum) == pytest.approx(-(11 + 8 / 3), abs=1e-2)  # measured at h = 0.002
    assert abs(found.spectrum[1]) < 0.01
    assert found.spectrum[0] == pytest.approx(0.9056, abs=4 * found.error)


def test_a_nonholonomic_body_has_as_many_exponents_as_admissible_directions():
    body = rx.systems.Suslov([[2.0, 0.3, -0.6], [0.3, 3.0, 0.8], [-0.6, 0.8, 4.0]], physical=False)
    start = body.state(np.eye(3), velocity=[1.0, 0.5, 0.0])
    found = lyapunov(body, "lagrange-d-alembert", start, h=0.01, steps=1000, exponents=None)
    assert found.spectrum.shape == (5,) and np.isfinite(found.spectrum).all()


def test_what_cannot_be_measured_is_refused():
    body = rx.systems.FreeRigidBody([1.0, 2.0, 3.0])
    start = body.state(jnp.eye(3), velocity=[0.3, 0.1, 0.9])
    with pytest.raises(rx.BadInput, match="must satisfy 2 <= blocks"):
        lyapunov(body, rx.LieVerlet(), start, h=0.1, steps=100, history=200)
    with pytest.raises(rx.BadInput, match="direction has shape"):
        lyapunov(body, rx.LieVerlet(), start, h=0.1, steps=300, direction=[1.0])
    with pytest.raises(rx.BadInput, match="exponents = 7 must be a whole number from 1 to 6"):
        lyapunov(body, rx.LieVerlet(), start, h=0.1, steps=300, exponents=7)
    with pytest.raises(rx.BadInput, match="2 exponents need as many"):
        lyapunov(body, rx.LieVerlet(), start, h=0.1, steps=300, exponents=2, direction=np.ones(6))
    with pytest.raises(rx.StepFailed, match="simulate the motion alone"):
        lyapunov(body, rx.LieVerlet(rx.Exp()), start, h=90.0, steps=300)
