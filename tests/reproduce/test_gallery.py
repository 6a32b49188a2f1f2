"""The gallery: what is kept, made again, refused and told, with papers that take no time."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

from retrax.cli.main import app
from retrax.errors import BadInput
from retrax.show.style import new_figure, style
from retrax_papers import catalogue, command, manifest
from retrax_papers.catalogue import Paper, Part
from retrax_papers.drawings import DataFigure, along_time, by_name, columns, write_drawings
from retrax_papers.gallery import make_gallery
from retrax_papers.report import Extra, Finding, Reproduction, kept

T = np.linspace(0.0, 1.0, 5)


def _drawing(name):
    with style():
        figure = new_figure(3.0, 2.0, "A parabola")
        figure.add_subplot(111).plot(T, T**2)
    return DataFigure(name, "Fig. 1: a parabola", "It is <b>steep</b>.", figure,
                   along_time(T, {"height of the ball": (T**2, "m")}))  # fmt: skip


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A figure with its data, written once: drawing is what takes time here."""
    folder = tmp_path_factory.mktemp("drawn")
    return folder, write_drawings(folder, [_drawing("parabola")])


class Stub:
    """A paper of two parts that count how often they are made."""

    def __init__(self, drawn, name="stub"):
        self.drawn, self.made = drawn, []
        self.fails = False
        parts = (Part("one", "the first", self.one, (1, 3)), Part("two", "the second", self.two))
        self.paper = Paper(name, "A stub & a paper", "It says nothing.", parts, cover="parabola")

    def one(self, folder: Path, quick: bool) -> Reproduction:
        self.made.append(("one", quick))
        finding = Finding("Fig. 1", "flat < 1", "`rx.steep` 2", "it is not flat")
        shutil.copytree(self.drawn[0], folder, dirs_exist_ok=True)
        row = kept("a run", "energy", T, 2.0 + 0.1 * T)
        return Reproduction((finding,), {"slope": 2.0}, self.drawn[1], (row,))

    def two(self, folder: Path, quick: bool) -> Reproduction:
        if self.fails:
            raise KeyboardInterrupt
        self.made.append(("two", quick))
        (folder / "motion.html").write_text("moving")
        return Reproduction(numbers={"more": [1]}, extras=(Extra("motion.html", "it moves"),))


@pytest.fixture
def stub(drawn):
    return Stub(drawn)


def test_everything_is_written_and_can_be_read(tmp_path, stub):
    events = []
    made = make_gallery([stub.paper], tmp_path / "g", quick=True, watch=events.append)
    folder = made.folder / "stub"
    assert stub.made == [("one", True), ("two", True)]
    assert [(e.part.name, e.seconds is None) for e in events] == [
        ("one", True), ("one", False), ("two", True), ("two", False)
    ]  # fmt: skip
    assert [e.done for e in events] == [0.0, 0.5, 0.5, 1.0] and events[-1].left == 0
    for suffix, begins in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("nc", b"\x89HDF")):
        assert (folder / f"parabola.{suffix}").read_bytes().startswith(begins)
    with xr.open_dataset(folder / "parabola.nc") as data:
        assert data["height_of_the_ball"].attrs == {"units": "m", "long_name": "height of the ball"}
        np.testing.assert_array_equal(data["height_of_the_ball"], T**2)
        assert data.attrs["title"] == "Fig. 1: a parabola" and "provenance_retrax" in data.attrs
    numbers = json.loads((folder / "numbers.json").read_text())
    assert numbers["numbers"] == {"slope": 2.0, "more": [1]} and numbers["mode"] == "quick"
    assert numbers["invariants"][0]["largest_error"] == pytest.approx(0.1)
    assert numbers["invariants"][0]["drift"] == pytest.approx(0.1)
    page = (folder / "index.html").read_text()
    for piece in (
        "A stub &amp; a paper", "flat &lt; 1", "<code>rx.steep</code>", 'href="parabola.nc"',
        "&lt;b&gt;steep", "quick mode", 'href="motion.html"', 'src="motion.html"',
        "<mn>10</mn><mn>−1</mn>",
    ):  # fmt: skip
        assert piece in page
    index = made.index.read_text()
    assert 'href="stub/index.html"' in index and 'href="stub/motion.html"' in index
    for text in (page, index):  # nothing is fetched: every address is inside or beside the page
        assert "http" not in text.replace("http-equiv", "")
    assert "| Fig. 1 | flat < 1 |" in (folder / "table.md").read_text()


def test_an_interrupted_gallery_goes_on_where_it_stopped(tmp_path, stub):
    stub.fails = True
    with pytest.raises(KeyboardInterrupt):
        make_gallery([stub.paper], tmp_path / "g")
    assert not (tmp_path / "g" / "index.html").exists()
    stub.fails, events = False, []
    make_gallery([stub.paper], tmp_path / "g", watch=events.append)
    assert stub.made == [("one", False), ("two", False)]
    assert [e.kept for e in events] == [True, False, False]


@pytest.mark.parametrize("spoil", ["a file", "the mode", "the code"])
def test_parts_that_are_not_what_they_were_are_made_again(tmp_path, stub, spoil, monkeypatch):
    stub.fails = True
    with pytest.raises(KeyboardInterrupt):
        make_gallery([stub.paper], tmp_path / "g")
    stub.fails = False
    if spoil == "a file":
        (tmp_path / "g/stub/parabola.nc").write_bytes(b"cut short")
    if spoil == "the code":
        monkeypatch.setattr(manifest, "code", lambda: "another")
    make_gallery([stub.paper], tmp_path / "g", quick=spoil == "the mode")
    assert [name for name, _ in stub.made] == ["one", "one", "two"]


def test_a_complete_gallery_is_not_written_over(tmp_path, stub):
    folder = tmp_path / "g"
    make_gallery([stub.paper], folder, quick=True)
    before = (folder / "manifest.json").read_text()
    for quick in (True, False):
        with pytest.raises(BadInput, match=r"holds a complete gallery \(quick mode") as refusal:
            make_gallery([stub.paper], folder, quick=quick)
        assert str(refusal.value).count(". ") == 0 and "--force" in str(refusal.value)
    assert (folder / "manifest.json").read_text() == before
    other = Stub(stub.drawn, "other")
    make_gallery([other.paper], folder, quick=True)  # another paper of the same kind joins it
    assert 'href="stub/index.html"' in (folder / "index.html").read_text()
    (folder / "notes.txt").write_text("mine")
    make_gallery([stub.paper], folder, force=True)
    assert stub.made[2:] == [("one", False), ("two", False)]
    assert (folder / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("kind", ["folder", "file", "nowhere"])
def test_what_is_not_a_gallery_is_left_alone(tmp_path, stub, kind):
    target = tmp_path / "mine"
    if kind == "folder":
        target.mkdir()
        (target / "manifest.json").write_text('{"format": "something else"}')
    elif kind == "file":
        target.write_text("mine")
    else:
        target = tmp_path / "no" / "where"
    words = {"folder": "not a gallery", "file": "is a file", "nowhere": "does not exist"}[kind]
    with pytest.raises(BadInput, match=words):
        make_gallery([stub.paper], target)
    assert not stub.made
    if kind == "folder":
        make_gallery([stub.paper], target, force=True)
        assert (target / "index.html").exists()


def test_the_command_prints_json_and_nothing_else_or_lines_for_people(tmp_path, stub, monkeypatch):
    monkeypatch.setattr(catalogue, "PAPERS", {"stub": "nowhere"})
    monkeypatch.setattr(catalogue, "paper", lambda name: stub.paper)
    call = ["reproduce", "stub", "-o", str(tmp_path / "g"), "--quick",
            "--workers", "1"]  # fmt: skip
    said = CliRunner().invoke(app, [*call, "--json"])
    assert (said.exit_code, said.stderr) == (0, "")
    assert json.loads(said.stdout)["findings"][0]["what"] == "Fig. 1"
    again = CliRunner().invoke(app, call)
    assert again.exit_code == 2 and "--force" in again.stderr
    people = CliRunner().invoke(app, [*call, "--force"])
    assert people.exit_code == 0 and "The gallery is" in people.stdout
    assert "stub: the first (" in people.stderr
    stub.fails = True
    assert (tmp_path / "g" / "index.html").exists()
    stopped = CliRunner().invoke(app, [*call, "--force"])
    assert stopped.exit_code == 130 and "continues from there" in stopped.stderr
    assert not (tmp_path / "g" / "index.html").exists()  # only a complete gallery has one


def test_the_time_left_is_told_in_words(stub):
    event = command.Event(stub.paper, stub.paper.parts[0], None, False, 0.5, 125.4)
    assert command._left(event) == "about 2 min 05 s left"


def test_columns_of_runs_of_different_lengths_end_in_nan():
    runs = {"a": ([0.0, 1.0], [1.0, 2.0]), "b": ([0.0], [3.0])}
    data = columns(**by_name("run", runs, ("time", "s", "time"), ("height", "m", "height")))
    assert data["height"].dims == ("run", "height_sample") and data["height"].attrs["units"] == "m"
    np.testing.assert_array_equal(data["height"].sel(run="b"), [3.0, np.nan])


@pytest.mark.parametrize("name", catalogue.PAPERS)
def test_the_papers_of_the_catalogue_name_their_parts_and_cover(name):
    paper = catalogue.paper(name)
    assert paper.name == name and len(paper.parts) >= 4
    assert len({part.name for part in paper.parts}) == len(paper.parts)
    assert paper.about.endswith(".") and all(min(part.cost) > 0 for part in paper.parts)
