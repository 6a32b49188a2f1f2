import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import retrax as rx
from retrax.show.page import again, failure, page, page_data
from retrax.show.scene import plain, read_single, unpack


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
    assert path.stat().st_size < 1_000_000
    read = _Reader(path.read_text(encoding="utf-8"))
    assert read.addresses == []
    assert not re.search(r"@import|url\(", path.read_text(encoding="utf-8").split("</style>")[0])
    words = " ".join(read.words)
    for name in any_run.invariants():
        assert name in words
    for key in ("system", "integrator", "retrax", "jax"):
        assert any_run.provenance[key] in words
    assert json.loads(read.data).keys() == {"scene", "panels", "colours", "run"}
    assert [p.name for p in tmp_path.iterdir()] == ["run.html"]


def test_plotted_errors_keep_their_extremes(runs):
    run = runs("SO(3)")
    energy, momenta, defect, velocity = page_data(run)["panels"]
    assert [p["unit"] for p in (energy, momenta, velocity)] == ["J", "kg m²/s", "rad/s"]
    error = run.invariants()["energy"] - run.invariants()["energy"][0]
    shown = read_single(energy["curves"][0]["y"])
    np.testing.assert_allclose([max(shown), min(shown)], [max(error), min(error)], rtol=1e-6)
    assert [c["name"] for c in momenta["curves"]] == ["spatial momentum e3"]
    assert defect["log"] and defect["title"] == "distance from SO(3)"
    assert len(velocity["curves"]) == 3


def test_poses_are_the_saved_configurations(runs):
    run = runs("SE(3)")
    scene = page_data(run)["scene"]
    poses = unpack(scene["things"][0]["poses"])
    np.testing.assert_allclose(poses[:, :9].reshape(-1, 3, 3), np.asarray(run.g[0]), atol=2e-5)
    np.testing.assert_allclose(poses[:, 9:], np.asarray(run.g[1]), atol=2e-5)
    np.testing.assert_allclose(read_single(scene["t"]), run.t, rtol=1e-7)
    assert scene["joined"] == len(run) - 1


def test_up_is_where_the_system_says(runs):
    assert page_data(runs("SO(3)"))["scene"]["up"] == 1
    assert page_data(runs("SO(3), third axis down"))["scene"]["up"] == -1


def test_a_point_moves_without_a_box(runs):
    things = page_data(runs("R^2"))["scene"]["things"]
    assert [thing["kind"] for thing in things] == ["point", "path"]


def test_a_group_without_a_picture_shows_its_numbers(runs):
    run = runs("SO(4)")
    data = page_data(run)
    (bars,) = data["scene"]["things"]
    assert (bars["kind"], bars["rows"], bars["columns"]) == ("bars", 4, 4)
    heights = unpack(bars["values"])
    scale = np.max(np.abs(heights)) / np.max(np.abs(np.asarray(run.g)))
    np.testing.assert_allclose(heights / scale, np.asarray(run.g).reshape(-1, 16), atol=3e-5)
    assert len(data["panels"]) == 4


def test_states_too_far_apart_are_not_joined_and_the_page_says_so(runs):
    close = runs("SO(3)")
    far = rx.simulate(close.system, rx.LieVerlet(), close.final, h=0.02, steps=300, save_every=50)
    scene = page_data(far)["scene"]
    assert scene["joined"] == 0
    assert any("too far apart" in note for note in scene["notes"])


def test_a_long_run_is_smooth_at_first_and_shown_to_its_end(runs, monkeypatch):
    monkeypatch.setattr("retrax.show.scene._FRAMES", 20)
    run = runs("SO(3)")
    scene = page_data(run)["scene"]
    t = read_single(scene["t"])
    assert len(t) <= 20 and 0 < scene["joined"] < len(t) - 1
    assert t[-1] == np.float32(run.t[-1]) and np.all(np.diff(t) > 0)
    assert any("jumps between" in note for note in scene["notes"])


def test_a_failed_run_of_one_state_has_a_page(runs, tmp_path):
    run = runs("SO(3)")
    with pytest.raises(rx.StepFailed) as caught:
        rx.simulate(run.system, rx.CotangentLift(), run.final, h=3.0, steps=5)
    text = caught.value.trajectory.report(tmp_path / "failed.html").read_text(encoding="utf-8")
    done, end = caught.value.trajectory.completed, caught.value.trajectory.t[-1]
    assert done < 5 and f"The run stopped after {done} of 5 steps, at t = {end:g} s." in text
    stored = rx.load(caught.value.trajectory.save(tmp_path / "failed.nc"))
    assert "did not converge" in stored.provenance["failure"]
    assert failure(stored) == failure(caught.value.trajectory)
    caught.value.trajectory.plot()


def test_a_page_says_how_to_run_a_case_again_and_a_system_of_ones_own(runs):
    case = runs("SO(3), third axis down")
    case.provenance["case"] = "pendulum3d"
    options = "--integrator lie-verlet --h 0.05 --steps 40 --save-every 1"
    assert f"retrax run pendulum3d {options}<" in again(case) and "CASES[" in again(case)
    case.provenance["asked"] = "mine.toml"
    assert f"retrax run mine.toml {options}<" in again(case) and "CASES[" not in again(case)
    assert "rx.RKMK(" in again(runs("SE(3)"))


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
    assert type(loaded.system) is rx.systems.HeavyTop and loaded.integrator == run.integrator
    same = [json.dumps(page_data(one), default=plain) for one in (loaded, run)]
    assert same[0] == same[1]


def test_a_missing_folder_is_a_sentence(runs, tmp_path):
    with pytest.raises(rx.BadInput, match=r"folder .* does not exist"):
        runs("SO(3)").report(tmp_path / "nowhere" / "top.html")


def test_the_libraries_carried_along_are_those_that_are_pinned():
    root = Path(__file__).parents[2]
    pinned = json.loads((root / "web/package.json").read_text())["devDependencies"]
    vendor = root / "src/retrax/show/assets/vendor"
    assert f"three.js {pinned['three']}" in (vendor / "three.min.js").read_text()[:200]
    assert f"(v{pinned['uplot']})" in (vendor / "uplot.min.js").read_text()[:200]
    licences = (vendor / "LICENSES.txt").read_text()
    assert all(f"{name} {pinned[name]} (MIT)" in licences for name in ("three", "uplot"))
