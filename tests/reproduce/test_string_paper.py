"""The string pendulum paper: error growth, plateau, solvers, and what is written."""

import numpy as np
import pytest
import xarray as xr

from retrax.reproduce.report import together
from retrax.reproduce.string_pendulum import PAPER


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("papers")
    return folder, together([part.make(folder, True) for part in PAPER.parts])


def test_errors_grow_as_tabulated(done):
    numbers = done[1].numbers
    position = dict(zip(numbers["times"], numbers["error of position"], strict=True))
    # The specification has 3e-10, 1.2e-7, 9e-7, 2e-5, 1.4e-4 (Euclidean) at these times.
    expected = {0.1: 2.2e-10, 0.5: 1.2e-7, 1.0: 8.6e-7, 1.5: 1.5e-5, 2.0: 1.2e-4}
    for t, error in expected.items():
        assert position[t] == pytest.approx(error, rel=0.1)
    assert 1e-3 < position[5.0] < 1.0
    nudge = dict(zip(numbers["times"], numbers["growth of a nudge of 1e-9"], strict=True))
    assert nudge[2.0] < 2e-8 and nudge[5.0] > 1e-3


def test_what_is_kept_and_the_plateau(done):
    numbers = done[1].numbers
    assert numbers["largest deviation of J3"] < 7e-15
    assert numbers["largest distance from SO(3)"] < 1e-15
    assert numbers["largest energy deviation"] < 3.1e-5
    levels = np.array(list(numbers["plateau"].values()))
    slopes = np.log2(levels[:-1] / levels[1:])
    assert np.all(levels < 0) and np.all(np.abs(slopes - 2) < 0.5)


def test_the_fixed_point_contracts_at_its_rate_and_newton_needs_one(done):
    numbers = done[1].numbers
    rates = [rate for rate, _ in numbers["fixed point"].values()]
    assert rates == pytest.approx([0.17, 0.45, 0.767, 0.927, 0.978], abs=0.005)
    assert all(40 <= count <= 75 for count in numbers["fixed-point iterations along the run"])
    assert numbers["Newton iterations a step"] < 1.5
    assert numbers["largest difference of the two solvers"] < 3e-13


def test_figures_with_their_data_and_the_page(done):
    folder, found = done
    names = ["figure-1", "figure-2", "figure-3", "growth", "long-run", "solver"]
    assert [one.name for one in found.pictures] == names
    for name in names:
        assert (folder / f"{name}.png").stat().st_size > 10_000
    with xr.open_dataset(folder / "figure-3.nc") as data:
        assert float(data["stretched_length"].max()) > 1.1
        assert data["stretched_length"].attrs["units"] == "m"
    assert (folder / "motion.html").stat().st_size < 8_000_000
    assert len(found.findings) == 13
