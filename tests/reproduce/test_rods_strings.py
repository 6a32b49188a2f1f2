"""The one-dimensional part of the paper on rods: numbers, figures, sound, table."""

import json
import math

import numpy as np
import pytest

from retrax.reproduce import rods, rods_strings
from retrax.reproduce.catalogue import PAPERS
from retrax.reproduce.rods_friction import estimate, friction


@pytest.mark.parametrize("k, cap, paper", [(0.2, 0.0194, 0.0981), (1.0, 0.2929, 0.3536)])
def test_random_forces_lie_in_the_cap_of_the_hemisphere(k, cap, paper):
    found = estimate(k, 1_000_000)
    assert (round(found.cap, 4), round(found.paper, 4)) == (cap, paper)
    assert abs(found.measured - found.cap) < 4 * found.error
    assert abs(found.measured - found.paper) > 100 * found.error


def test_the_lines_of_a_frozen_contact():
    lines = rods_strings.frozen_lines(2.0, 2.6)
    for known in (0.785247, 1.0, 1.319976, 1.664754):  # by another program
        assert min(abs(line - known) for line in lines) < 1e-6


def test_all_of_it_on_a_coarse_lattice(tmp_path, monkeypatch):
    """Every figure, number and sentence; the couplings and variations cut down."""
    monkeypatch.setattr(rods_strings, "COUPLINGS", (0.0, 0.2, 0.8))
    alike = {"s = (2, 2)": (2.0, 2.0)}
    monkeypatch.setattr(
        rods_strings,
        "variations",
        lambda time, n: {name: rods_strings.exponent(time, n=n, s=s) for name, s in alike.items()},
    )
    real = rods_strings.parting
    monkeypatch.setattr(rods_strings, "parting", lambda time, h: real(10.0, 5 * h))
    monkeypatch.setattr(
        rods, "PARTS", (lambda folder: rods_strings.strings(folder, 100.0, (32,), 0.15), friction)
    )
    done = PAPERS["rods"](tmp_path)
    written = done.write(tmp_path)
    assert {path.name for path in written} == {
        "table.md", "numbers.json", "strings-figure-2.png", "strings-spectra.png",
        "strings-exponents.png", "contact.wav",
    }  # fmt: skip
    assert (tmp_path / "contact.wav").stat().st_size > 2 * 44_100 * 0.15 * 0.99
    numbers = json.loads((tmp_path / "numbers.json").read_text())["numbers"]
    strings = numbers["strings"]
    assert strings["energies"]["moving contact"]["modified"] < 1e-12
    counts = [len(lines) for lines in strings["lines above -40 dB"].values()]
    assert counts[:2] == [1, 4] and counts[2] > 6
    assert set(strings["exponents"]) == {f"G = {G:g}, n = 32" for G in (0.0, 0.2, 0.8)}
    assert all(math.isfinite(one["exponent"]) for one in strings["exponents"].values())
    assert np.max(strings["exact paths"]["periodic"]) < 6e-3  # measured 3.8e-3
    text = done.markdown()
    for sentence in ("false as a general statement", "1.94 %", "s2' = G2 v_t(s2)"):
        assert sentence in text
