import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import retrax as rx
from retrax.show.page import page, page_data


class _Reader(HTMLParser):
    """The addresses a page refers to, its visible text, and its embedded data."""

    def __init__(self, text: str):
        super().__init__()
        self.addresses, self.words, self.inside, self.data = [], [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.addresses += [value for name, value in attrs if name in ("src", "href", "data")]
        if tag in ("script", "style"):
            self.inside.append(dict(attrs).get("id", tag))

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self.inside.pop()

    def handle_data(self, data):
        if not self.inside:
            self.words.append(data)
        elif self.inside[-1] == "run":
            self.data += data


def test_page_is_self_contained_and_small(any_run, tmp_path):
    path = any_run.report(tmp_path / "run.html")
    assert path == tmp_path / "run.html"
    assert path.stat().st_size < 6_000_000
    read = _Reader(path.read_text(encoding="utf-8"))
    assert read.addresses == []
    assert not re.search(r"@import|url\(", path.read_text(encoding="utf-8").split("</style>")[0])
    words = " ".join(read.words)
    for name in any_run.invariants():
        assert name in words
    for key in ("system", "integrator", "retrax", "jax"):
        assert any_run.provenance[key] in words
    assert json.loads(read.data).keys() == {"scene", "panels", "colours"}
    assert [p.name for p in tmp_path.iterdir()] == ["run.html"]


def test_plotted_errors_keep_their_extremes(runs):
    run = runs("SO(3)")
    energy, momenta, defect, velocity = page_data(run)["panels"]
    assert [p["unit"] for p in (energy, momenta, velocity)] == ["J", "kg m²/s", "rad/s"]
    error = run.invariants()["energy"] - run.invariants()["energy"][0]
    np.testing.assert_allclose(max(energy["curves"][0]["y"]), max(error), rtol=1e-4)
    np.testing.assert_allclose(min(energy["curves"][0]["y"]), min(error), rtol=1e-4)
    assert [c["name"] for c in momenta["curves"]] == ["spatial momentum e3"]
    assert defect["log"] and defect["title"] == "distance from SO(3)"
    assert len(velocity["curves"]) == 3


def test_poses_are_the_saved_configurations(runs):
    run = runs("SE(3)")
    scene = page_data(run)["scene"]
    poses = np.array(scene["poses"]).reshape(len(run), 12)
    np.testing.assert_allclose(poses[:, :9].reshape(-1, 3, 3), np.asarray(run.g[0]), atol=1e-4)
    np.testing.assert_allclose(poses[:, 9:], np.asarray(run.g[1]), atol=1e-4)
    np.testing.assert_allclose(scene["t"], run.t, rtol=1e-7)
    assert scene["smooth"] and scene["travels"]


def test_up_is_where_the_system_says(runs):
    assert page_data(runs("SO(3)"))["scene"]["up"] == 1
    assert page_data(runs("SO(3), third axis down"))["scene"]["up"] == -1


def test_a_point_moves_without_a_box(runs):
    (body,) = page_data(runs("R^2"))["scene"]["bodies"]
    assert body["corners"] is None
    assert page_data(runs("R^2"))["scene"]["momenta"] is None


def test_a_group_without_a_picture_still_has_its_plots(runs):
    data = page_data(runs("SL(3)"))
    assert data["scene"] is None and len(data["panels"]) == 4


def test_states_too_far_apart_are_not_joined_and_the_page_says_so(runs):
    close = runs("SO(3)")
    far = rx.simulate(close.system, rx.LieVerlet(), close.final, h=0.02, steps=300, save_every=50)
    scene = page_data(far)["scene"]
    assert not scene["smooth"]
    assert any("too far apart" in note for note in scene["notes"])


def test_a_long_run_plays_a_part_rather_than_jump(runs, monkeypatch):
    monkeypatch.setattr("retrax.show.frames._POSES", 20)
    scene = page_data(runs("SO(3)"))["scene"]
    assert scene["smooth"] and len(scene["t"]) <= 20
    assert any("covers the time up to" in note for note in scene["notes"])


def test_a_failed_run_of_one_state_has_a_page(runs, tmp_path):
    run = runs("SO(3)")
    with pytest.raises(rx.StepFailed) as caught:
        rx.simulate(run.system, rx.CotangentLift(), run.final, h=3.0, steps=5)
    assert caught.value.trajectory.report(tmp_path / "failed.html").exists()
    caught.value.trajectory.plot()


def test_names_cannot_break_out_of_the_page(runs, tmp_path):
    run = rx.load(runs("SO(3)").save(tmp_path / "top.nc"))
    run.provenance["system"] = "</script><script>alert(1)</script>"
    run.provenance["group"] = "</script>"
    text = page(run)
    assert "<script>alert(1)" not in text
    json.loads(_Reader(text).data)


def test_loaded_run_gives_the_same_picture(runs, tmp_path):
    run = runs("SO(3)")
    loaded = rx.load(run.save(tmp_path / "top.nc"))
    assert loaded.system is None
    assert page_data(loaded) == page_data(run)


def test_a_missing_folder_is_a_sentence(runs, tmp_path):
    with pytest.raises(rx.BadInput, match=r"folder .* does not exist"):
        runs("SO(3)").report(tmp_path / "nowhere" / "top.html")
