"""A string on a page: where its bodies are, and its line by tension; also from a file."""

import json

import numpy as np
import pytest

import retrax as rx
from retrax.show.page import page_data
from retrax.show.scene import plain, unpack


@pytest.fixture(scope="module")
def run():
    system, state, h, _ = rx.systems.StringPendulum.paper()
    return rx.simulate(system, rx.LieVerlet(), state, h=h, steps=400, save_every=20)


@pytest.fixture(scope="module")
def things(run):
    return {thing["kind"]: thing for thing in page_data(run)["scene"]["things"]}


def test_the_body_is_drawn_at_its_centre_of_mass_and_size(run, things):
    assert page_data(run)["scene"]["up"] == -1
    pose = unpack(things["body"]["poses"])
    centre = run.g[0][:, -1] + run.g[1] @ np.array([0.04, 0.01, 0.05])
    assert np.max(np.abs(pose[:, 9:] - centre)) < 2e-5
    # The box with the moments of the cylinder, in metres.
    sides = np.ptp(things["body"]["parts"][0]["box"], axis=0)
    assert np.max(np.abs(np.sort(sides) - np.sort([0.06 * 3**0.5, 0.04 * 3**0.5, 0.1]))) < 1e-3


def test_the_line_runs_from_the_pivot_through_all_nodes(run, things):
    line = things["line"]
    points = unpack(line["points"]).reshape(-1, line["nodes"], 3)
    assert line["nodes"] == 21 and not points[:, 0].any()
    assert np.max(np.abs(points[:, 1:] - run.g[0])) < 2e-5
    name, low, high, unit = line["scale"]
    assert (name, unit) == ("tension", "N")
    tension = low + unpack(line["values"]) * (high - low)
    assert np.max(np.abs(tension - run.observables()["tension"])) < 1e-4 * high


def test_a_stored_run_shows_and_holds_the_same(run, tmp_path):
    loaded = rx.load(run.save(tmp_path / "string.nc"))
    same = [json.dumps(page_data(one), default=plain) for one in (loaded, run)]
    assert same[0] == same[1]
    tension = run.dataset()["tension"]
    assert tension.attrs["units"] == "N" and tension.dims == ("time", "tension_0")
    for name, values in run.observables().items():
        assert np.array_equal(loaded.observables()[name], values)


def test_energies_and_length_have_panels(run):
    titles = [panel["title"] for panel in page_data(run)["panels"]]
    assert "energies" in titles and "stretched length" in titles
    assert run.plot() is not None
