"""Rods on a page: their centrelines, where they touch, and the force there; also from a file."""

import jax
import numpy as np
import pytest

import retrax as rx
from retrax.show.page import page_data


@pytest.fixture(scope="module")
def run():
    pair, start = rx.systems.crossed_rods(8, width=0.25)
    return rx.simulate(pair, rx.RollingDKD(), start, h=0.01, steps=20, backend="xla")


def test_both_centrelines_are_drawn_through_their_nodes(run):
    rods = page_data(run)["scene"]["rods"]
    assert [rod["radius"] for rod in rods] == [0.05, 0.05]
    for rod, (_, places) in zip(rods, run.g[:2], strict=True):
        points = np.array(rod["points"]).reshape(len(run.t), rod["nodes"], 3)
        assert np.max(np.abs(points - places)) < 1e-4
        stretch = np.linalg.norm(np.diff(places, axis=1), axis=2) / 0.25
        low, high = rod["range"]
        shown = low + np.array(rod["tension"]).reshape(stretch.shape) * (high - low)
        assert np.max(np.abs(shown - stretch)) < 1e-3 * high


def test_the_contact_lies_between_the_rods_and_carries_the_force(run):
    scene = page_data(run)["scene"]
    pose = np.array(scene["poses"]).reshape(len(scene["t"]), 12)
    first, second = jax.jit(jax.vmap(run.system.strands))(run.g)
    middle = [np.einsum("tk,tki->ti", one.weights, one.places) for one in (first, second)]
    assert np.max(np.abs(pose[:, 9:] - (middle[0] + middle[1]) / 2)) < 1e-4
    assert np.max(np.abs(np.linalg.norm(middle[1] - middle[0], axis=1) - 0.1)) < 1e-4
    arrows = np.array(scene["momenta"]).reshape(-1, 3)
    cosine = np.sum(arrows * run.multipliers, axis=1)
    cosine = cosine / np.linalg.norm(arrows, axis=1) / np.linalg.norm(run.multipliers, axis=1)
    assert np.min(cosine) > 0.999


def test_a_stored_run_shows_the_same(run, tmp_path):
    loaded = rx.load(run.save(tmp_path / "rods.nc"))
    assert page_data(loaded)["scene"] == page_data(run)["scene"]


def test_the_force_has_a_panel(run):
    titles = [panel["title"] for panel in page_data(run)["panels"]]
    assert "force on the first rod" in titles and run.plot() is not None
