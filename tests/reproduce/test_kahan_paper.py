"""The paper on Kahan's integrator, in quick mode by the command: numbers, boundary, files."""

import json

import numpy as np
import pytest
import xarray as xr
from quoted import latex, missing

from retrax.cli.main import app
from retrax_papers.kahan import runs


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    from typer.testing import CliRunner

    folder = tmp_path_factory.mktemp("papers") / "gallery"
    call = ["reproduce", "kahan", "-o", str(folder), "--quick", "--json", "--workers", "2"]
    result = CliRunner().invoke(app, call)
    assert (result.exit_code, result.stderr) == (0, "")
    return folder / "kahan", json.loads(result.stdout)


def test_the_theorem_made_precise(done):
    structure = done[1]["numbers"]["structure"]
    bracket = structure["3, 2, 1"]["bracket"]
    assert [f"{d:.1e}" for d in bracket] == ["8.9e-03", "1.1e-03", "1.4e-04", "1.7e-05"]
    for name in ("energy", "casimir"):
        defects = structure["3, 2, 1"][name]
        assert np.log2(defects[-2] / defects[-1]) == pytest.approx(3, abs=0.15)
    for top in ("3, 3, 1", "3, 1, 1"):
        assert max(map(max, structure[top].values())) < 2e-15


def test_long_runs_orders_and_poles(done):
    numbers = done[1]["numbers"]
    fine = numbers["long runs"]["h = 0.1"]
    assert fine["energy_first"] == pytest.approx(fine["energy_last"], abs=2e-9)
    assert fine["ratio"] < 2e-14 and fine["casimir_over_b"] < 1e-13 and fine["formula"] < 1e-13
    errors = numbers["errors at t = 100"]
    assert f"{errors['Kahan']['0.1']:.4e}" == "1.7133e-02"
    for name, order in (("Kahan", 2), ("Kahan, order 4, projected", 4)):
        rows = list(errors[name].values())
        assert np.log2(rows[1] / rows[2]) == pytest.approx(order, abs=0.02)
    assert numbers["safe step bound"] == pytest.approx(4 * np.sqrt(3), rel=1e-15)
    assert numbers["pole"]["step"] == 4 and numbers["pole"]["determinant"] < 0


def test_the_page_quotes_what_is_measured(done):
    structure = done[1]["numbers"]["structure"]["3, 2, 1"]
    quoted = [latex(x, 1) for law in ("bracket", "energy", "casimir") for x in structure[law]]
    assert missing("kahan.md", quoted) == []


def test_the_boundary_is_sharp():
    edge = runs.boundary(cells=40)
    below = edge.second < edge.bound
    assert not (edge.failed_step[:, below] > 0).any()
    assert (edge.failed_step[:, edge.second > 1.01 * edge.bound] > 0).all()


def test_every_figure_has_its_data_and_the_page_shows_it(done):
    folder, said = done
    names = ["theorem", "long-run", "orbits", "orders", "predators", "poles"]
    assert said["figures"] == [f"{name}.png" for name in names]
    page = (folder / "index.html").read_text()
    for name in names:
        assert (folder / f"{name}.png").stat().st_size > 10_000 and f'href="{name}.nc"' in page
        with xr.open_dataset(folder / f"{name}.nc") as data:
            assert all({"units", "long_name"} <= set(data[v].attrs) for v in data.variables)
    with xr.open_dataset(folder / "orders.nc") as data:
        drawn = data["error"].sel(integrator="Kahan").values
    assert drawn == pytest.approx(list(said["numbers"]["errors at t = 100"]["Kahan"].values()))
    rows = [line for line in (folder / "table.md").read_text().splitlines() if line[:2] == "| "]
    assert len(rows) == 2 + len(said["findings"]) and all(row.count("|") == 5 for row in rows)
    kept = {(row["run"], row["name"]): row["largest_error"] for row in said["invariants"]}
    assert kept["Kahan, h = 0.1", "H/C"] < 2e-14
    assert (folder / "body.html").stat().st_size < 8_000_000
