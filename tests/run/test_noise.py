"""Noise in a control law: keys of random numbers as the state of a digital controller."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from noisy_plants import KEYS, PLANT, START, H, control, drawn, noisy, run

import retrax as rx


@pytest.mark.parametrize("kind", KEYS)
def test_the_noise_of_a_run_is_that_of_jax(kind):
    """On both back ends, to a rounding error of erf_inv; words have every bit."""
    wanted = drawn(jax.random.key(3), 20)
    for backend in ("native", "xla"):
        made = run(control(kind=kind), backend=backend)
        noise = made.inputs[:40:2] + 0.5 * made.velocity[:40:2, :2]
        np.testing.assert_allclose(noise, wanted, rtol=0, atol=1e-15)  # 1.1e-16 measured
        key = jax.random.key(3)
        for _ in range(21):
            key, _ = jax.random.split(key)
        np.testing.assert_array_equal(made.final.control.own, jax.random.key_data(key))


def test_a_run_goes_on_with_the_key_that_it_has_left(tmp_path):
    whole = run(control())
    half = run(control(), steps=20)
    file = tmp_path / "half.nc"
    half.save(file)
    for begin in (half.final, rx.load(file).final):
        rest = run(control(seed=8), steps=20, state=begin)
        np.testing.assert_array_equal(rest.momentum[-1], whole.momentum[-1])
        np.testing.assert_array_equal(rest.inputs[-1], whole.inputs[-1])


def test_the_same_key_gives_the_same_run_and_another_another():
    first, again, other = (run(control(seed)).inputs for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).min(axis=0).max() > 0


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_members_have_keys_of_their_own(backend):
    keys = jax.random.split(jax.random.key(5), 3)
    states = jax.tree.map(lambda x: jnp.stack([jnp.asarray(x)] * 3), START)
    stacked = jax.vmap(lambda key: rx.Sampled(noisy, 0.02, state=key))(keys)
    listed = [rx.Sampled(noisy, 0.02, state=key) for key in keys]
    for each in (stacked, listed):
        many = rx.ensemble(
            PLANT,
            rx.LieVerlet(),
            states,
            h=H,
            steps=10,
            save_every=1,
            control=each,
            backend=backend,
        )
        for k in range(3):
            alone = run(listed[k], steps=10)
            np.testing.assert_allclose(
                many["inputs"].values[:, k], alone.inputs, rtol=0, atol=1e-14
            )


def test_keys_may_be_one_part_of_a_state_that_has_truths_and_numbers():
    def law(R, xi, t, state):
        key, draw = jax.random.split(state["key"])
        assert state["old"].dtype == jnp.uint32 and state["armed"].dtype == bool
        armed = state["armed"] & (t < 0.1)
        u = jnp.where(armed, jax.random.uniform(draw, (2,)), 0.0)
        drawn = {"key": key, "old": jax.random.split(state["old"])[0], "armed": armed}
        return u, drawn | {"sum": state["sum"] + 1, "flag": t > 0.1}

    state = {"key": jax.random.key(0), "old": jax.random.PRNGKey(1), "armed": True}
    by = rx.Sampled(law, 0.02, state=state | {"sum": 0, "flag": 0.0})
    made, exact = (run(by, backend=b) for b in ("native", "xla"))
    np.testing.assert_array_equal(made.inputs, exact.inputs)
    assert np.all(made.inputs[:10] > 0) and not np.any(made.inputs[12:])
    assert made.final.control.own["sum"] == 21 and made.final.control.own["flag"] == 1


def test_derivatives_pass_beside_the_noise():
    """Noise is no function of gains: the slope is that of differences with the same key."""

    def end(gain, backend="native"):
        def law(R, xi, t, state):
            key, draw = jax.random.split(state[0])
            return -state[1] * xi[:2] + 0.3 * jax.random.normal(draw, (2,)), (key, state[1])

        by = rx.Sampled(law, 0.02, state=(jax.random.key(3), gain))
        return jnp.sum(run(by, steps=10, backend=backend).momentum[-1] ** 2)

    slope = jax.grad(end)(jnp.asarray(0.5))
    difference = (end(jnp.asarray(0.5 + 1e-5)) - end(jnp.asarray(0.5 - 1e-5))) / 2e-5
    np.testing.assert_allclose(slope, difference, rtol=0, atol=1e-8)


def test_a_plant_of_ornstein_and_uhlenbeck_has_its_variance():
    """dv = -c v dt + s dW, held over each step: mean 0, variance s^2/(2c) to the order of c h."""
    c, s, h, members, steps = 1.0, 0.5, 0.05, 400, 200
    line = rx.MechanicalSystem(rx.Translation(1), [1.0])
    plant = rx.Actuated(line, inputs=np.eye(1))

    def law(x, v, t, key):
        key, draw = jax.random.split(key)
        return -c * v + s / np.sqrt(h) * jax.random.normal(draw, (1,)), key

    keys = jax.random.split(jax.random.key(11), members)
    each = jax.vmap(lambda key: rx.Sampled(law, h, state=key))(keys)
    start = plant.state([0.0], velocity=[0.0])
    states = jax.tree.map(lambda x: np.stack([np.asarray(x)] * members), start)
    many = rx.ensemble(plant, rx.LieVerlet(), states, h=h, steps=steps, save_every=20, control=each)
    v = many["momentum"].values[4:, :, 0]  # from four times of decay on, each decay apart
    # Sampled, v' = (1 - c h) v + s sqrt(h) w: the closed form of this recurrence.
    variance = s**2 * h / (1 - (1 - c * h) ** 2)
    independent = v.size * (1 - np.exp(-1)) / (1 + np.exp(-1))
    assert abs(v.mean()) < 4 * np.sqrt(variance / independent)
    assert abs(v.var() / variance - 1) < 4 * np.sqrt(2 / independent)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: rx.Sampled(noisy, 0.02, state="key"), "state = 'key' must be an array of real"),
        (lambda: rx.Sampled(noisy, 0.02, state=1j), "must be an array of real numbers"),
        (
            lambda: run(control(law=lambda R, xi, t, key: (xi[:2], jax.random.key_data(key)))),
            r"given key<fry>\[\] and returns uint32\[2\]; it must return the same arrays",
        ),
        (
            lambda: run(control(law=lambda R, xi, t, key: (xi[:2], jax.random.split(key)))),
            r"given key<fry>\[\] and returns key<fry>\[2\]",
        ),
        (
            lambda: run(control(kind="PRNGKey", law=lambda R, xi, t, k: (xi[:2], k.astype(float)))),
            r"given uint32\[2\] and returns float64\[2\]",
        ),
    ],
    ids=["text", "complex", "words of a key", "two keys", "floats"],
)
def test_a_state_that_is_no_state_is_told(make, said):
    with pytest.raises(rx.BadInput, match=said):
        make()


def test_other_generators_run_on_xla():
    by = rx.Sampled(noisy, 0.02, state=jax.random.key(0, impl="rbg"))
    with pytest.warns(match="key<rbg>"):
        made = run(by, steps=4)
    assert np.all(np.isfinite(made.inputs)) and made.final.control.own.shape == (4,)
