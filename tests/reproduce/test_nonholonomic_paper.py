"""The nonholonomic paper: the numbers of its figures, to the digits known, and what is written."""

import numpy as np
import pytest
import xarray as xr
from quoted import latex, missing

from retrax.cli.main import app
from retrax_papers.nonholonomic import figures, paper, runs
from retrax_papers.report import markdown, together

# Energy error and final momentum of 180,000 steps, from independent code, to the digits given.
EXPECTED = {
    "(17), s = 0, exponential": (4.12e-6, 0.000448, 3.316612),
    "(17), s = 0, Cayley": (1.24e-5, 0.000448, 3.316587),
    "(18), exponential": (4.13e-7, 1.048809, 0.000142),
    "(19), Cayley": (1.24e-6, 1.048810, 0.000142),
    "(19), as read": (1.98e-5, 1.048828, 0.0),
    "(18), as read": (4.57e-3, 1.053153, 0.0),  # 2D Newton written apart: (1.05315266, 0)
}
STEADY = {
    "(17), s = 1/2, exponential": 8.5e-4,
    "(17), s = 1/2, Cayley": 2.2e-2,
    "Lagrange-d'Alembert, s = 0, exponential": 1.7e-3,
    "Lagrange-d'Alembert, s = 0, Cayley": 9.1e-2,
    "(11) inverted, s = 1/2, exponential": 8.5e-4,
    "(11) inverted, s = 1/2, Cayley": 2.2e-2,
    "Hamel midpoint, exponential": 0.0,
}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("papers")
    parts = (paper.figure_1, paper.figure_2, paper.equations)
    return folder, together([part(folder, True) for part in (*parts, paper.orders)])


def test_figures_1_and_2(done):
    measured = done[1].numbers
    for name, (energy, first, second) in EXPECTED.items():
        one = measured[name]
        assert f"{one['energy_error']:.2e}" == f"{energy:.2e}"
        assert one["momentum"][:2] == pytest.approx((first, second), abs=6e-7)
    for name, attitude in STEADY.items():
        one = measured[name]
        assert one["energy_error"] < 2e-13
        assert one["momentum"] == pytest.approx((1, 1, 0), abs=2e-12)
        assert one["attitude_error"] == pytest.approx(attitude, rel=0.03, abs=1e-11)
    for name in (*EXPECTED, *STEADY):
        assert measured[name]["constraint"] < 2e-14 and measured[name]["group_defect"] < 1e-15
    assert measured["(18), exponential"]["energy_error"] < 5e-7
    free = measured["(10), exponential"]
    assert free["largest_third"] == pytest.approx(np.sqrt(10 / 11), abs=1e-6)
    assert free["energy_error"] == pytest.approx(3.7e-7, rel=0.02)
    assert measured["(10), Cayley"]["energy_error"] == pytest.approx(1.1e-6, rel=0.02)
    held = measured[runs.WITH_MULTIPLIER]
    assert held["largest_third"] / 100 < 1e-16
    assert held["energy_error"] == pytest.approx(0.05, rel=0.01)
    assert held["momentum"][1] == pytest.approx(3.464, abs=1e-3)


def test_orders_and_figures_with_their_data(done):
    folder, found = done
    slopes = {}
    for name, rows in found.numbers["errors"].items():
        (h0, e0), (h1, e1) = list(rows.items())[:2]
        slopes[name] = np.log(e0 / e1) / np.log(float(h0) / float(h1))
    assert slopes["(17), s = 0"] == pytest.approx(1, abs=0.05)
    assert slopes["Lagrange-d'Alembert"] == pytest.approx(2, abs=0.01)
    assert slopes["(11) inverted, s = 1/4"] == pytest.approx(2, abs=0.01)
    assert slopes["discrete gradient, order 4"] == pytest.approx(4, abs=0.05)
    assert slopes["Lagrange-d'Alembert, order 6"] == pytest.approx(6, abs=0.05)
    assert [one.name for one in found.pictures] == ["figure-1", "figure-2", "equations", "orders"]
    with xr.open_dataset(folder / "figure-1.nc") as data:
        end = data["momentum"].sel(scheme_momentum="(17), s = 0, exponential")[-1].values
    assert end == pytest.approx((0.000448, 3.316612), abs=6e-7)
    text = markdown("A title", found)
    assert text.count("\n| ") == 2 + len(found.findings) and "HamelMidpoint" in text
    drift = {(row.run, row.name): row.largest_error for row in found.invariants}
    assert drift["(17), s = 0, exponential", "Pi_2"] == pytest.approx(2.3166, abs=1e-4)


def test_the_page_quotes_what_is_measured(done):
    measured = done[1].numbers
    quoted = []
    for name in EXPECTED:
        one = measured[name]
        quoted.append(latex(one["energy_error"], 2))
        if "read" not in name:
            quoted.append(f"({one['momentum'][0]:.6f}, {one['momentum'][1]:.6f})")
    quoted += [latex(measured[name]["attitude_error"], 1) for name in STEADY if "Hamel" not in name]
    quoted += [latex(measured[f"(10), {kind}"]["energy_error"], 1) for kind in
               ("exponential", "Cayley")]  # fmt: skip
    assert missing("nonholonomic.md", quoted) == []


def test_figure_1_draws_what_the_papers_figure_shows_with_one_colour_for_each_map(done):
    """(18) and (19), to which the text before Fig. 1 refers, blue and orange in every panel."""
    folder, _ = done
    with xr.open_dataset(folder / "figure-1.nc") as data:
        assert list(data["scheme"].values) == ["(18), exponential", "(19), Cayley"]
        assert float(data["energy"].sel(scheme="(18), exponential").max()) < 5e-7
    measured = runs.constrained_runs(runs.ADAPTED, steps=20)
    drawing = figures.figure_1(measured)
    colours = {"exponential": set(), "Cayley": set()}
    for axes in drawing.figure.axes:
        for line in axes.lines:
            name = str(line.get_label())
            if not name.startswith("_"):
                colours[name.rsplit(", ", 1)[1]].add(line.get_color())
    assert [len(found) for found in colours.values()] == [1, 1]
    assert not colours["exponential"] & colours["Cayley"]


def test_bad_papers_are_refused(tmp_path):
    from typer.testing import CliRunner

    result = CliRunner().invoke(app, ["reproduce", "nonholonomc", "-o", str(tmp_path)])
    assert result.exit_code == 2 and "Did you mean 'nonholonomic'?" in result.stderr
