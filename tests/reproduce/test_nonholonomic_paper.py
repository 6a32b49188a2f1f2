"""The nonholonomic paper: the numbers of its figures, to the digits known, and what is written."""

import json

import numpy as np
import pytest

from retrax.cli.main import app
from retrax.reproduce import nonholonomic
from retrax.reproduce.report import Finding, Reproduction

# Energy error and final momentum of 180,000 steps, from independent code, to the digits given.
EXPECTED = {
    "(17), s = 0, exponential": (4.12e-6, 0.000448, 3.316612),
    "(17), s = 0, Cayley": (1.24e-5, 0.000448, 3.316587),
    "(18), corrected, exponential": (4.13e-7, 1.048809, 0.000142),
    "(19), corrected, Cayley": (1.24e-6, 1.048810, 0.000142),
    "(19), literally": (1.98e-5, 1.048828, 0.0),
}
STEADY = {
    "(17), s = 1/2, exponential": 8.5e-4,
    "(17), s = 1/2, Cayley": 2.2e-2,
    "Lagrange-d'Alembert, s = 0, exponential": 1.7e-3,
    "Lagrange-d'Alembert, s = 0, Cayley": 9.1e-2,
    "Hamel midpoint, exponential": 0.0,
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*is of order 1 under a constraint")
def test_figures_1_and_2():
    measured = nonholonomic.figure_runs()
    for name, (energy, first, second) in EXPECTED.items():
        one = measured[name]
        assert f"{one.energy_error:.2e}" == f"{energy:.2e}"
        assert one.momentum[:2] == pytest.approx((first, second), abs=6e-7)
    for name, attitude in STEADY.items():
        one = measured[name]
        assert one.energy_error < 2e-13
        assert one.momentum == pytest.approx((1, 1, 0), abs=2e-12)
        assert one.attitude_error == pytest.approx(attitude, rel=0.03, abs=1e-11)
    for name in (*EXPECTED, *STEADY):
        assert measured[name].constraint < 2e-14 and measured[name].group_defect < 1e-15
    free = measured["(10), exponential"]
    assert free.largest_third == pytest.approx(np.sqrt(10 / 11), abs=1e-6)
    assert free.energy_error == pytest.approx(3.7e-7, rel=0.02)
    assert measured["(10), Cayley"].energy_error == pytest.approx(1.1e-6, rel=0.02)
    held = measured[nonholonomic.WITH_MULTIPLIER]
    assert held.largest_third / 100 < 1e-16
    assert held.energy_error == pytest.approx(0.05, rel=0.01)
    assert held.momentum[1] == pytest.approx(3.464, abs=1e-3)


def test_the_command_leaves_figures_table_and_numbers(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    def short(folder):
        return nonholonomic.reproduce(folder, steps=300)

    monkeypatch.setattr("retrax.cli.reproduce.PAPERS", {"nonholonomic": short})
    result = CliRunner().invoke(app, ["reproduce", "nonholonomic", "-o", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.stderr
    said = json.loads(result.stdout)
    end = said["numbers"]["schemes"]["Hamel midpoint, exponential"]["momentum"]
    assert end == pytest.approx([1.0, 1.0, 0.0], abs=5e-18)
    errors = said["numbers"]["errors"]
    slopes = {}
    for name, rows in errors.items():
        (h0, e0), (h1, e1) = list(rows.items())[:2]
        slopes[name] = np.log(e0 / e1) / np.log(float(h0) / float(h1))
    assert slopes["(17), s = 0"] == pytest.approx(1, abs=0.05)
    assert slopes["Lagrange-d'Alembert"] == pytest.approx(2, abs=0.01)
    assert slopes["discrete gradient, order 4"] == pytest.approx(4, abs=0.05)
    assert slopes["Lagrange-d'Alembert, order 6"] == pytest.approx(6, abs=0.05)
    folder = tmp_path / "nonholonomic"
    for name in ("figure-1.png", "figure-2.png", "orders.png"):
        assert (folder / name).stat().st_size > 10_000
    table = (folder / "table.md").read_text()
    assert table.count("\n| ") == 2 + len(said["findings"]) and "HamelMidpoint" in table


def test_bad_papers_are_refused(tmp_path):
    from typer.testing import CliRunner

    result = CliRunner().invoke(app, ["reproduce", "nonholonomc", "-o", str(tmp_path)])
    assert result.exit_code == 2 and "Did you mean 'nonholonomic'?" in result.stderr


def test_a_report_is_a_table_with_pictures(tmp_path):
    finding = Finding("Fig. 1", "flat", "flat", "yes")
    done = Reproduction("x", "A paper", (finding,), {"a": 1.0}, (tmp_path / "one.png",))
    paths = done.write(tmp_path)
    assert "| Fig. 1 | flat | flat | yes |" in paths[0].read_text()
    assert "![one](one.png)" in paths[0].read_text()
    assert json.loads(paths[1].read_text())["numbers"] == {"a": 1.0}
