"""The paper on rods: numbers, figures, sound, table."""

import math

import numpy as np
import pytest
import xarray as xr

from retrax.analysis.lyapunov import Lyapunov
from retrax_papers.drawings import write_drawings
from retrax_papers.report import markdown, together
from retrax_papers.rods import paper, runs, sliding
from retrax_papers.rods.figures import told_apart
from retrax_papers.rods.findings import chaos, contact
from retrax_papers.rods.runs import Crossed, holding


@pytest.mark.parametrize("k, cap, paper", [(0.2, 0.0194, 0.0981), (1.0, 0.2929, 0.3536)])
def test_random_forces_lie_in_the_cap_of_the_hemisphere(k, cap, paper):
    found = holding(k, 1_000_000)
    assert (round(found.cap, 4), round(found.paper, 4)) == (cap, paper)
    assert abs(found.measured - found.cap) < 4 * found.error
    assert abs(found.measured - found.paper) > 100 * found.error


def test_the_lines_of_a_frozen_contact():
    lines = runs.frozen_lines(2.0, 2.6)
    for known in (0.785247, 1.0, 1.319976, 1.664754):  # by another program
        assert min(abs(line - known) for line in lines) < 1e-6


def test_all_of_it_on_a_coarse_lattice(tmp_path, monkeypatch):
    """Every figure, number and sentence; the couplings cut down."""
    monkeypatch.setattr(runs, "COUPLINGS", (0.0, 0.2, 0.8))
    real = runs.exponent
    monkeypatch.setattr(runs, "exponent", lambda time, **told: real(100.0, **told))
    parts = (paper.figure_2, paper.paths, paper.exponents, paper.friction)
    done = together([part(tmp_path, True) for part in parts])
    names = ["figure-2", "spectra", "exponents", "friction"]
    assert [one.name for one in done.pictures] == names
    assert (tmp_path / "contact.wav").stat().st_size > 2 * 44_100 * 0.99
    numbers = done.numbers
    assert numbers["energies"]["moving contact"]["modified"] < 1e-12
    counts = [len(lines) for lines in numbers["lines above -40 dB"].values()]
    assert counts[:2] == [1, 4] and counts[2] > 6
    assert set(numbers["exponents"]) == {f"G = {G:g}, n = {n}" for n in (32, 64)
                                         for G in (0.0, 0.2, 0.8)}  # fmt: skip
    assert all(math.isfinite(one["exponent"]) for one in numbers["exponents"].values())
    assert np.max(numbers["exact paths"]["periodic"]) < 6e-3  # measured 3.8e-3
    with xr.open_dataset(tmp_path / "exponents.nc") as data:
        drawn = float(data["exponent"].sel(G=0.8, n=64))
    assert drawn == numbers["exponents"]["G = 0.8, n = 64"]["exponent"]
    text = markdown("Rods", done)
    for sentence in ("false as a general statement", "1.9", "s2' = G2 v_t(s2)"):
        assert sentence in text


def test_captions_claim_no_more_than_their_error_bars():
    def one(exponent, error, growth=9.0):
        none = np.zeros(0)
        return Lyapunov(exponent, error, none, none, growth, none, none, none)

    found = {(0.0, 64): one(0.0073, 0.0063), (0.8, 64): one(0.02, 0.002)}
    caption = told_apart(found, 64)
    assert "of G = 0.8 differ from zero by two standard errors" in caption
    assert "Those of G = 0 cannot be distinguished from zero in this time" in caption
    found |= {(0.2, 64): one(0.004, 0.003), (0.8, 32): one(0.005, 0.004)}
    said = " ".join(
        f"{row.measured} {row.explanation}" for row in chaos(found, {}, {0.02: 0.01}, 100.0)
    )
    assert "G = 0: 0.0073 +- 0.0063 (not distinguishable from zero)" in said
    assert "not on every lattice distinguishable from zero" in said
    assert "no limit in sight" not in said and "grows as the step" not in said


def test_findings_about_rods_in_space_name_what_was_measured():
    found = Crossed(
        rolling=None,
        forces={"least pressure": 0.0322, "largest pressure": 0.0458, "friction needed": 0.715},
        gaps={"RollingVerlet": 2e-16, "printed 8": 0.003, "printed 10": 0.023},
        energies={"RollingVerlet": 5.6e-7, "RollingDKD": 5.5e-7},
        events={"kick x 8": "Separation at t = 0.093291", "friction 0.5": "Slip at t = 0.0747"},
        frequencies={"true": 0.642979, "printed shear": 0.9069, "printed bending": 1.570796},
    )
    text = " ".join(cell for finding in contact(found, 40.0) for cell in finding)
    for piece in (
        "0.30 %",
        "2.30 %",
        "2e-16",
        "0.642979",
        "Separation at t",
        "5.6e-07",
        "0.715 of",
    ):
        assert piece in text


def test_rods_beyond_the_end_of_rolling_are_drawn_and_told(tmp_path):
    t = np.linspace(0.01, 1.0, 100)
    mode = np.where(t < 0.25, 2, 1)

    def slide(mode, used, gap):
        rubbed = np.cumsum(np.where(mode == 2, 1e-6, 0.0))
        return sliding.Slide(t, mode, used + 0 * t, 0.1 * t, gap, 1e-8 - rubbed, rubbed, 0 * t)

    found = dict(
        zip(
            sliding.CASES,
            (
                slide(np.ones(100, int), 0.7, 0 * t),
                slide(mode, 0.2, 0 * t),
                slide(np.where(t < 0.5, 0, mode), 0.2, 1e-3 * (t < 0.5)),
            ),
            strict=True,
        )
    )
    (written,) = write_drawings(tmp_path, [sliding.figure(found)])
    assert written.name == "sliding" and (tmp_path / "sliding.png").stat().st_size > 10_000
    with xr.open_dataset(tmp_path / "sliding.nc") as data:
        np.testing.assert_array_equal(data["rubbed"][1], found["k = 0.2"].rubbed)
    text = " ".join(cell for finding in sliding.findings(found, 10.0) for cell in finding)
    for piece in ("up to 0.70 of", "slip 24 % of the", "2.399e-05 J", "apart 49 %", "1.00 mm"):
        assert piece in text
    assert "close up to 1e-08" in text
