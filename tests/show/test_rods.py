"""Rods on a page: their centrelines, where they touch, and the force there; also from a file."""

import json

import jax
import numpy as np
import pytest

import retrax as rx
from retrax.show.page import page_data
from retrax.show.scene import plain, unpack


@pytest.fixture(scope="module")
def run():
    pair, start = rx.systems.crossed_rods(8, width=0.25)
    return rx.simulate(pair, rx.RollingDKD(), start, h=0.01, steps=20, backend="xla")


def test_both_centrelines_are_drawn_through_their_nodes(run):
    rods = [one for one in page_data(run)["scene"]["things"] if one["kind"] == "line"]
    assert [rod["radius"] for rod in rods] == [0.05, 0.05]
    for rod, (_, places) in zip(rods, run.g[:2], strict=True):
        points = unpack(rod["points"]).reshape(len(run.t), rod["nodes"], 3)
        assert np.max(np.abs(points - places)) < 2e-5
        stretch = np.linalg.norm(np.diff(places, axis=1), axis=2) / 0.25
        _, low, high, _ = rod["scale"]
        shown = low + unpack(rod["values"]) * (high - low)
        assert np.max(np.abs(shown - stretch)) < 1e-5 * high


def test_the_contact_lies_between_the_rods_and_carries_the_force(run):
    *_, contact, force = page_data(run)["scene"]["things"]
    at = unpack(contact["places"])
    first, second = jax.jit(jax.vmap(run.system.strands))(run.g)
    middle = [np.einsum("tk,tki->ti", one.weights, one.places) for one in (first, second)]
    assert np.max(np.abs(at - (middle[0] + middle[1]) / 2)) < 1e-5
    assert np.max(np.abs(np.linalg.norm(middle[1] - middle[0], axis=1) - 0.1)) < 1e-4
    assert np.max(np.abs(unpack(force["start"]) - at)) < 1e-5
    arrows = unpack(force["vector"])
    cosine = np.sum(arrows * run.multipliers, axis=1)
    cosine = cosine / np.linalg.norm(arrows, axis=1) / np.linalg.norm(run.multipliers, axis=1)
    assert np.min(cosine) > 0.99999


def test_a_stored_run_shows_the_same(run, tmp_path):
    loaded = rx.load(run.save(tmp_path / "rods.nc"))
    same = [json.dumps(page_data(one)["scene"], default=plain) for one in (loaded, run)]
    assert same[0] == same[1]


def test_the_force_has_a_panel(run):
    titles = [panel["title"] for panel in page_data(run)["panels"]]
    assert "force on the first rod" in titles and run.plot() is not None
