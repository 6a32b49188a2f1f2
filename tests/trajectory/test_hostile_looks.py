"""What looks at a run refuses what is no function, path or quantity, in a sentence."""

import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx


@pytest.fixture(scope="module")
def run():
    body = rx.systems.FreeRigidBody([1.0, 1.2, 1.5])
    start = body.state(jnp.eye(3), velocity=jnp.ones(3))
    return rx.simulate(body, "lie-verlet", start, h=0.1, steps=4)


NO_FUNCTIONS = [3, None, "abc", (), {}, np.ones(3), object()]
NO_QUANTITIES = [
    lambda s: "x", lambda s: None, lambda s: {}, lambda: 3.0, lambda s: 1 / 0, lambda s: s.nothing,
    lambda s: np.cos(s.g), lambda s: s.g[0, 0] if s.t > 0 else 0.0, type,
]  # fmt: skip


@pytest.mark.parametrize("junk", [*NO_FUNCTIONS, *NO_QUANTITIES])
def test_along_takes_functions_of_the_state(run, junk):
    with pytest.raises(rx.BadInput, match=r"^function"):
        run.along(junk)


def test_along_says_what_to_write_instead(run):
    with pytest.raises(rx.BadInput, match=r"np.cos .*: use jnp.cos"):
        run.along(lambda s: np.cos(s.g[0, 0]))


@pytest.mark.parametrize("junk", [3, (), {}, np.nan, lambda s: 0, object(), b"x", "a\0.png"])
@pytest.mark.parametrize("how", ["plot", "movie", "sound"])
def test_figures_movies_and_sounds_go_to_paths(run, how, junk):
    with pytest.raises(rx.BadInput, match=r"^path = "):
        getattr(run, how)(junk)


def test_a_movie_names_its_settings_and_its_length(run, tmp_path):
    with pytest.raises(rx.BadInput, match=r"'colour'.*write_movie takes"):
        run.movie(tmp_path / "x.gif", colour="red")
    with pytest.raises(rx.BadInput, match="'fps' is the name"):
        run.movie(tmp_path / "x.gif", fsp=3)
    with pytest.raises(rx.BadInput, match="at most 100000"):
        run.movie(tmp_path / "x.gif", seconds=1e30)


@pytest.mark.parametrize("junk", ["abc", {}, object(), b"x", lambda s: {"a": s.t}])
def test_a_sound_is_made_of_one_quantity(run, junk, tmp_path):
    with pytest.raises(rx.BadInput, match="observable"):
        run.sound(tmp_path / "x.wav", junk)


@pytest.mark.parametrize("name", ["tone", "pitch", "rate"])
def test_tones_are_positive_numbers(run, name, tmp_path):
    for junk in ("a", None if name != "tone" else "a", -1.0, np.nan, ()):
        with pytest.raises(rx.BadInput, match=name):
            run.sound(tmp_path / "x.wav", run.energy(), **({"tone": 1.0} | {name: junk}))
