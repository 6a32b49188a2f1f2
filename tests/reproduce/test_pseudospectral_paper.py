"""The pseudospectral paper: what is wrong in it, by how much, and what its methods conserve."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from quoted import latex, missing

import retrax as rx

# Tracing two dozen methods under run-time type checks would take minutes.
PROGRAM = """
import sys
from pathlib import Path
from retrax_papers.pseudospectral import paper
from retrax_papers.report import together, write_json
folder = Path(sys.argv[1])
parts = [getattr(paper, name) for name in sys.argv[2:]]
write_json(folder / "numbers.json", together([part(folder, False) for part in parts]).data())
"""


def _made(folder, *parts):
    source = str(Path(rx.__file__).parent.parent)
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), *parts],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert result.returncode == 0, result.stderr
    return folder, json.loads((folder / "numbers.json").read_text())


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Everything but the long runs."""
    folder = tmp_path_factory.mktemp("pseudospectral")
    return _made(folder, "diagrams", "pendulum", "algorithm")


@pytest.fixture(scope="module")
def whole(done, tmp_path_factory):
    """All parts, the long runs with the others."""
    folder, said = _made(tmp_path_factory.mktemp("long"), "long_runs")
    together = {key: said[key] for key in ("findings", "pictures")}
    together = {key: [*done[1][key], *more] for key, more in together.items()}
    return (done[0], folder), {"numbers": {**done[1]["numbers"], **said["numbers"]}, **together}


# Largest errors over 30 s at h = 0.05: of (R, omega) at the end, energy, momentum, SO(3).
TABLE = {
    "plain Gauss": (3.9e-5, 1.6e-14, 1.1e-15, 6.7e-15),
    "geometric Gauss": (3.5e-5, 9.2e-9, 4.3e-8, 6.5e-15),
    "centred Gauss": (3.5e-5, 5.7e-9, 4.3e-8, 5.6e-15),
    "SE(3) Gauss": (6.9e-6, 3.5e-7, 4.9e-15, 6.6e-15),
    "spatial Gauss": (3.7e-5, 1.7e-7, 4.6e-15, 6.4e-15),
    "Magnus": (3.5e-5, 4.8e-8, 4.6e-8, 4.8e-15),
    "variational Gauss": (3.6e-5, 8.5e-8, 2.6e-15, 4.7e-15),
    "plain Radau": (8.8e-4, 9.0e-4, 3.4e-5, 2.1e-4),
    "plain Lobatto": (3.9e-5, 3.6e-7, 2.5e-7, 1.2e-7),
}


@pytest.mark.parametrize("name", TABLE)
def test_conservation_over_30_seconds(done, name):
    measured = done[1]["numbers"]["30 s"][name]
    for value, expected in zip(measured.values(), TABLE[name], strict=True):
        if expected < 1e-13:
            assert value < 2 * expected  # round-off
        else:
            assert value == pytest.approx(expected, rel=0.03 if value < 1e-4 else 0.2)


def test_errors_are_those_of_the_reference(done):
    expected = {
        "s = 1": {"0.2": 1.405e-1, "0.1": 5.128e-2, "0.05": 1.541e-2},
        "s = 2": {"0.2": 1.800e-3, "0.1": 1.151e-4, "0.05": 7.234e-6},
        "s = 3": {"0.2": 5.069e-6, "0.1": 8.022e-8, "0.05": 1.258e-9},
        "s = 4": {"0.2": 7.056e-9, "0.1": 2.779e-11, "0.05": 1.089e-13},
    }
    measured = done[1]["numbers"]["errors at t = 10"]
    for s, rows in expected.items():
        for h, error in rows.items():
            assert measured[s][h] == pytest.approx(error, rel=0.01 if error > 1e-12 else 0.05)


def test_spectral_convergence(done):
    errors = done[1]["numbers"]["h = 1"]
    assert errors["4"] == pytest.approx(2.87e-3, rel=0.01)
    assert errors["8"] == pytest.approx(2.82e-8, rel=0.01)
    assert errors["12"] < 1e-13  # measured: 4.7e-14


def test_the_algorithm_as_printed(done):
    numbers = done[1]["numbers"]
    printed = numbers["printed, t = 10"]
    assert min(printed["as printed"]) > 1.5
    R, omega = numbers["printed, t = 1"]
    assert R == pytest.approx(0.45, abs=0.05) and omega == pytest.approx(0.75, abs=0.05)
    for name, order in (("velocity corrected", 2), ("both corrected", 4)):
        _, coarse, fine = printed[name]
        assert np.log2(coarse / fine) == pytest.approx(order, abs=0.25)
    assert numbers["printed energy"] == pytest.approx([-6.301, -8.241], abs=5e-4)


@pytest.mark.campaign
def test_long_runs(whole):
    long = whole[1]["numbers"]["long runs"]
    assert long["geometric Gauss"][1] == pytest.approx(-7.4e-9, rel=0.02)  # joules a second
    for name in ("centred Gauss", "variational Gauss"):
        assert abs(long[name][1]) < 2e-11  # measured: 1.1e-11, of a fit through oscillations
    assert long["plain Gauss"][0] < 1e-12  # measured: 2.1e-13, rounding errors of 100,000 steps
    defects = whole[1]["numbers"]["symplectic defects"]
    assert defects["geometric Gauss"] > 1e-5 and defects["variational Gauss"] < 2e-15


def test_an_iteration_that_stops_early_leaves_the_group(done):
    loose = done[1]["numbers"]["30 s"]["plain Gauss, stopped at 1e-10"]["group"]
    assert loose == pytest.approx(4.2e-12, rel=0.1)


def test_figure_6_draws_the_curve_that_grows_to_about_1e_13(done):
    folder, said = done
    with xr.open_dataset(folder / "figure-6.nc") as data:
        defect = data["defects"].sel(integrator="plain Gauss, stopped at 3.2e-11").values
    thirds = [part.max() for part in np.array_split(defect, 3)]
    assert thirds[0] < thirds[1] < thirds[2] and 1e-13 < thirds[2] < 4e-13  # measured: 2e-13
    caption = next(one["caption"] for one in said["pictures"] if one["name"] == "figure-6")
    assert f"leaves SO(3) by {defect.max():.0e} after 30 s" in caption


@pytest.mark.campaign
def test_the_page_quotes_what_is_measured(whole):
    numbers = whole[1]["numbers"]
    printed = numbers["printed, t = 10"]
    quoted = [latex(x, 1) for name in ("velocity corrected", "both corrected")
              for x in printed[name]]  # fmt: skip
    quoted += [latex(x, 1) for x in numbers["errors at t = 10"]["s = 2"].values()]
    quoted += [latex(-numbers["long runs"]["geometric Gauss"][1], 1)]
    quoted += [latex(numbers["symplectic defects"]["geometric Gauss"], 1)]
    quoted += [latex(numbers["long runs"][name][0], 1) for name in ("centred Gauss",
                                                                  "variational Gauss")]  # fmt: skip
    about = {"geometric Gauss": 3e-5, "centred Gauss": 3e-5, "variational Gauss": 1e-5}
    for name, value in about.items():  # of a chaotic orbit
        assert value / 2 < numbers["chaotic"][name][0] < 2 * value
        quoted.append(latex(value, 0))
    quoted += [f"misses by {numbers['diagrams']['left']:.2f}"]
    quoted += [latex(numbers["h = 1"]["12"], 0)]
    stopped = ("1e-10", "3.2e-11")
    quoted += [
        latex(numbers["30 s"][f"plain Gauss, stopped at {at}"]["group"], 0) for at in stopped
    ]
    assert missing("pseudospectral.md", quoted) == []


def test_the_diagrams_commute_on_one_side_only(done):
    diagrams = done[1]["numbers"]["diagrams"]
    assert max(diagrams[name] for name in ("action", "translation", "right")) < 2e-13
    assert diagrams["left"] > 1


FIGURES = ["figures-1-to-3", "figure-4", "figure-6", "convergence"]


@pytest.mark.campaign
def test_the_long_runs_are_drawn_and_nothing_is_left_out(whole):
    (_, folder), said = whole
    assert [one["name"] for one in said["pictures"]] == [*FIGURES, "energy"]
    assert (folder / "energy.png").stat().st_size > 10_000
    assert len(said["findings"]) == 18


def test_every_figure_has_its_data(done):
    folder, said = done
    assert [one["name"] for one in said["pictures"]] == FIGURES
    for name in FIGURES:
        assert (folder / f"{name}.png").stat().st_size > 10_000
    with xr.open_dataset(folder / "figure-6.nc") as data:
        worst = np.abs(data["energies"].sel(integrator="geometric Gauss")).max()
    assert float(worst) == said["numbers"]["30 s"]["geometric Gauss"]["energy"]
