"""Runs as sound: the pitch is right, and what cannot be heard is refused."""

import wave

import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.show.space_time_diagram import space_time
from retrax.systems import StringsInContact


@pytest.fixture(scope="module")
def pure():
    """Strings that move alike and feel no contact: sin x cos t, for 250 periods."""
    system = StringsInContact(G=0.0, n=32)
    start = system.at((2.0, 2.0), u=np.sin, v=np.sin)
    return rx.simulate(system, rx.ContactDKD(), start, h=0.05, steps=31_500, save_every=4)


def heard(path):
    with wave.open(str(path)) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        rate = file.getframerate()
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(float)
    found = rx.analysis.spectrum(np.arange(len(samples)) / rate, samples)
    return found.peaks()[:, 0] / (2 * np.pi), len(samples) / rate, np.max(np.abs(samples))


def test_a_pure_tone_is_heard_at_220_hertz(pure, tmp_path):
    path = pure.sound(tmp_path / "tone.wav")
    lines, seconds, loudest = heard(path)
    # The lattice lowers the tone by (pi/n)^2/6 = 0.16 %, the step raises it by h^2/24 = 0.01 %.
    own = 220 * (1 - (np.pi / 32) ** 2 / 6 + 0.05**2 / 24)
    assert len(lines) == 1 and abs(lines[0] - own) < 0.02
    fine = heard(pure.sound(tmp_path / "cosine.wav", np.cos(pure.t)))[0]
    assert abs(fine[0] - 220) < 0.02
    assert seconds == pytest.approx(pure.t[-1] / (2 * np.pi) / 220, abs=1e-3)
    assert 0.89 * 2**15 < loudest < 2**15


def test_any_quantity_of_any_run_can_be_heard(tmp_path):
    body = rx.systems.FreeRigidBody([2.0, 2.0, 1.0])
    start = body.state(jnp.eye(3), velocity=[0.3, 0.1, 3.0])
    run = rx.simulate(body, rx.LieVerlet(), start, h=0.05, steps=8000)
    path = run.sound(tmp_path / "wobble.wav", lambda state: state.momentum[0], pitch=330.0)
    assert abs(heard(path)[0][0] - 330) < 0.5
    with pytest.raises(rx.BadInput, match="the free rigid body needs an observable"):
        run.sound(tmp_path / "none.wav")
    with pytest.raises(rx.BadInput, match="one finite number at each"):
        run.sound(tmp_path / "none.wav", lambda state: state.momentum)


def test_what_cannot_be_heard_is_refused(pure, tmp_path):
    system = StringsInContact(G=0.0, n=32)
    start = system.at((2.0, 2.0), u=np.sin, v=np.sin)
    short = rx.simulate(system, rx.ContactDKD(), start, h=0.05, steps=400)
    with pytest.raises(rx.BadInput, match=r"that is a run of 138\.2 s, is the least"):
        short.sound(tmp_path / "click.wav")
    coarse = rx.simulate(system, rx.ContactDKD(), start, h=0.05, steps=4000, save_every=40)
    with pytest.raises(rx.BadInput, match=r"saved states a period.*smaller save_every \(it is 40"):
        coarse.sound(tmp_path / "coarse.wav")
    with pytest.raises(rx.BadInput, match=r"folder .* does not exist"):
        pure.sound(tmp_path / "nowhere" / "tone.wav")
    assert list(tmp_path.iterdir()) == []


def test_the_picture_in_space_and_time_shows_both_strings_and_paths(pure):
    figure = space_time(pure)
    strings = [axes for axes in figure.axes if axes.get_title("left")]
    assert len(strings) == 2
    x, t = strings[0].lines[0].get_data()
    assert np.max(np.abs(np.asarray(x) - pure.g[2][:, 0])) < 1e-12 and len(t) == len(pure.t)
    body = rx.systems.FreeRigidBody([2.0, 2.0, 1.0])
    start = body.state(jnp.eye(3), velocity=[0.3, 0.1, 3.0])
    with pytest.raises(rx.BadInput, match="over place and time needs a function"):
        space_time(rx.simulate(body, rx.LieVerlet(), start, h=0.05, steps=2))
