"""Data as it comes: what is mended says so, what cannot be right is a sentence."""

import numpy as np
import pytest
from pendulums import GUESS, attitudes, motion, pendulum

import retrax as rx
from retrax.estimation.attitudes import from_vectors
from retrax.estimation.grid import grid

T = np.linspace(0.0, 1.0, 51)
VECTORS = np.random.default_rng(0).normal(size=(51, 3)) * 0.5
ROTATIONS = from_vectors(VECTORS)


def quaternions(order="wxyz"):
    rows = [np.asarray(rx.SO3().to_quaternion(R, order=order)) for R in ROTATIONS]
    return np.stack(rows)


@pytest.mark.parametrize("order", ["wxyz", "xyzw"])
def test_quaternions_in_both_orders(order):
    data = rx.Measurements(T, quaternions(order), order=order)
    assert np.allclose(data.values, ROTATIONS, atol=1e-14)
    assert data.notes == ()


def test_flipped_signs_are_one_attitude():
    """Half of the quaternions with the other sign."""
    q = quaternions()
    q[::2] *= -1
    flips = int(np.sum(np.einsum("ki,ki->k", q[1:], q[:-1]) < 0))
    assert flips > 10
    with pytest.warns(UserWarning, match=f"change sign {flips} times"):
        data = rx.Measurements(T, q, order="wxyz")
    assert np.allclose(data.values, ROTATIONS, atol=1e-14)
    assert "one attitude" in data.notes[0]


def test_rotation_vectors_in_both_units():
    assert np.allclose(rx.Measurements(T, VECTORS).values, ROTATIONS)
    assert np.allclose(rx.Measurements(T, np.rad2deg(VECTORS), unit="deg").values, ROTATIONS)


def test_gaps_are_accepted_with_a_note():
    kept = np.r_[0:20, 30:51]
    with pytest.warns(UserWarning, match=r"1 gap in time, the longest of 0\.22 s after t = 0\.38"):
        rx.Measurements(T[kept], ROTATIONS[kept])


def test_missing_rows_are_dropped_when_asked():
    R = ROTATIONS.copy()
    R[[3, 7]] = np.nan
    with pytest.raises(rx.BadInput, match="2 of 51 rows hold NaN or infinity, the first is row 3"):
        rx.Measurements(T, R)
    with pytest.warns(UserWarning, match="2 of 51 rows with NaN or infinity were left out"):
        assert len(rx.Measurements(T, R, missing="drop")) == 49


def test_matrices_with_few_digits_are_projected():
    with pytest.warns(UserWarning, match="projected"):
        data = rx.Measurements(T, np.round(ROTATIONS, 5))
    defect = np.swapaxes(data.values, 1, 2) @ data.values - np.eye(3)
    assert np.max(np.abs(defect)) < 1e-14


MIRRORED = ROTATIONS * np.array([1.0, 1.0, -1.0])
SHUFFLED = np.concatenate([T[1:], T[:1]])


@pytest.mark.parametrize(
    ("arguments", "options", "match"),
    [
        ((SHUFFLED, ROTATIONS), {}, "not in order: t = 0 s in row 50 follows 1 s"),
        ((0 * T, ROTATIONS), {}, "all times are t = 0 s"),
        ((T, quaternions()), {}, "quaternions need their order"),
        ((T, quaternions()), {"order": "zyxw"}, "choose one of wxyz, xyzw"),
        ((T, 2 * quaternions()), {"order": "wxyz"}, "has length 2"),
        ((T, 1.1 * ROTATIONS), {}, "is not a rotation"),
        ((T, MIRRORED), {}, "left-handed"),
        ((T, np.rad2deg(VECTORS)), {}, "in degrees"),
        ((T, ROTATIONS), {"order": "wxyz"}, "these are rotation matrices"),
        ((T, ROTATIONS), {"unit": "deg"}, "unit is for rotation vectors"),
        ((T, quaternions()), {"order": "wxyz", "unit": "rad"}, "these are quaternions"),
        ((T, VECTORS), {"of": "position", "unit": "deg"}, "convert position yourself"),
        ((T, ROTATIONS[:, 0]), {"of": 3}, "must be a name or a function"),
        ((T[:4], ROTATIONS), {}, "one row for each of 4 times"),
        ((T, ROTATIONS), {"noise": -1.0}, "positive standard deviation"),
        ((T, ROTATIONS), {"time_unit": "h"}, "choose one of s, ms"),
        ((T, np.zeros((51, 5))), {}, "attitudes are"),
    ],
)
def test_what_cannot_be_right_is_refused(arguments, options, match):
    with pytest.raises(rx.BadInput, match=match):
        rx.Measurements(*arguments, **options)


@pytest.fixture(scope="module")
def run():
    return motion(np.linspace(0.0, 2.0, 101))


def test_rates_in_degrees_are_noticed(run):
    """Against the attitudes beside them, and against the first guess."""
    seen = rx.Measurements(run.t, attitudes(run, 0.01), noise=0.01)
    rates = rx.Measurements(run.t, np.rad2deg(run.velocity), of="velocity", noise=1.0)
    with pytest.raises(rx.BadInput, match="in degrees per second"):
        rx.fit(pendulum, [seen, rates], GUESS)
    start = pendulum(GUESS).state(run.g[0], velocity=run.velocity[0])
    with pytest.raises(rx.BadInput, match="in degrees per second"):
        rx.fit(pendulum, rates, GUESS, state=start)


def test_milliseconds_are_noticed(run):
    start = pendulum(GUESS).state(run.g[0], velocity=run.velocity[0])
    seen = rx.Measurements(1000 * run.t, attitudes(run, 0.01), noise=0.01)
    with pytest.raises(rx.BadInput, match="in milliseconds"):
        rx.fit(pendulum, seen, GUESS, state=start)
    rates = rx.Measurements(1000 * run.t, run.velocity, of="velocity", noise=0.1)
    with pytest.raises(rx.BadInput, match="in milliseconds"):
        rx.fit(pendulum, [seen, rates], GUESS)
    told = rx.Measurements(1000 * run.t, attitudes(run, 0.01), noise=0.01, time_unit="ms")
    assert np.allclose(told.t, run.t)


def test_several_sensors_need_their_noise(run):
    seen = rx.Measurements(run.t, attitudes(run, 0.01))
    rates = rx.Measurements(run.t, run.velocity, of="velocity", noise=0.1)
    with pytest.raises(rx.BadInput, match="attitude has no noise"):
        rx.fit(pendulum, [seen, rates], GUESS)


@pytest.mark.parametrize(
    ("of", "values", "match"),
    [
        ("position", np.zeros((101, 3)), r"no position on SO\(3\)"),
        ("strain", np.zeros((101, 3)), "is not measured on the mechanical system"),
        ("velocity", np.zeros((101, 2)), r"must have shape \(101, 3\)"),
    ],
)
def test_a_sensor_must_fit_the_system(run, of, values, match):
    data = rx.Measurements(run.t, values, of=of, noise=0.1)
    start = pendulum(GUESS).state(run.g[0], velocity=run.velocity[0])
    with pytest.raises(rx.BadInput, match=match):
        rx.fit(pendulum, data, GUESS, state=start)
    if of == "velocity":
        return
    with pytest.raises(rx.BadInput, match=match):  # also before a first guess is looked for
        rx.fit(pendulum, data, GUESS)


CSV = """t [ms], qw, qx, qy, qz, wx [deg/s], wy [deg/s], wz [deg/s]
0, 1, 0, 0, 0, 0, 0, 90
10, 0.9999983, 0, 0, 0.0018326, 0, 0, 90
20, 0.9999933, 0, 0, 0.0036652, 0, 0, 90
"""


def test_a_csv_file_says_what_its_columns_are(tmp_path):
    path = tmp_path / "record.csv"
    path.write_text(CSV)
    turned, rates = rx.Measurements.read(path, noise={"attitude": 0.01, "velocity": 2.0})
    assert turned.of == "attitude" and rates.of == "velocity"
    assert np.allclose(turned.t, [0.0, 0.01, 0.02])
    assert turned.noise == 0.01 and rates.noise == 2.0
    assert rates.unit == "deg" and turned.values.shape == (3, 3, 3)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("a,b\n1,2\n", "has no column t"),
        ("t,b\n1,2\n", "no columns that are known"),
        ("t,x\n0,1\n1,two\n", "'two' in line 3 is not a number"),
        ("t,x\n0,1\n1\n", "line 3 has 1 cells"),
        ("t [h],x\n0,1\n1,2\n", "times in 'h'"),
        ("", "not a CSV file"),
        ("t,x\n0,1\n1,\n2,3\n", "rows hold NaN"),
        ("t,wx [deg/s],wy [rad/s]\n0,1,2\n1,1,2\n", "different units"),
    ],
)
def test_a_bad_csv_file_is_a_sentence(tmp_path, text, match):
    path = tmp_path / "record.csv"
    path.write_text(text)
    with pytest.raises(rx.BadInput, match=match):
        rx.Measurements.read(path)


def test_a_dataset_says_what_its_variables_are():
    import xarray as xr

    data = xr.Dataset(
        {"attitude": (("q", "time"), quaternions("xyzw").T, {"order": "xyzw", "noise": 0.02})},
        {"time": ("time", 1000 * T, {"units": "ms"})},
    )
    (found,) = rx.Measurements.from_dataset(data)
    assert np.allclose(found.values, ROTATIONS) and np.allclose(found.t, T)
    assert found.noise == 0.02


@pytest.mark.parametrize(
    ("times", "longest", "step", "save_every"),
    [
        ([np.linspace(0, 1, 11)], 1.0, 0.1, 1),
        ([np.linspace(0, 1, 11)], 0.03, 0.025, 4),
        ([np.array([0.0, 0.2, 0.5, 1.1])], 1.0, 0.1, 1),
        ([np.linspace(0, 1, 11), np.linspace(0, 1, 4)], 0.05, 1 / 30, 1),
    ],
)
def test_steps_fall_on_measurements(times, longest, step, save_every):
    found = grid(0.0, times, longest)
    assert found.h == pytest.approx(step, rel=1e-12) and found.save_every == save_every
    for t, rows, rest in zip(times, found.rows, found.rest, strict=True):
        assert not rest.any()
        assert np.allclose(rows * found.h * found.save_every, t, atol=1e-13)


def test_times_without_a_common_step_lie_between_steps():
    t = np.sort(np.random.default_rng(1).uniform(0.0, 1.0, 40))
    found = grid(0.0, [t], 0.01)
    assert found.save_every == 1 and found.h <= 0.01
    assert np.allclose(found.rows[0] * found.h + found.rest[0], t, atol=1e-15)
    assert (found.rest[0] >= 0).all() and (found.rest[0] <= found.h).all()
