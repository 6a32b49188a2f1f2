"""The figures of `rx.show`: what they draw was computed, what cannot be drawn is refused."""

import itertools
import subprocess
import sys
from operator import attrgetter
from xml.etree import ElementTree

import numpy as np
import pytest

import retrax as rx
from retrax.show.quantities import names, quantity
from retrax.show.style import CYCLE, look


def test_import_retrax_does_not_load_matplotlib_and_show_does():
    code = (
        "import sys, retrax as rx; assert 'matplotlib' not in sys.modules; rx.show.spectrum; "
        "assert 'matplotlib' in sys.modules and callable(rx.show.space_time)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="'retrax' has no attribute 'shown'"):
        attrgetter("shown")(rx)


def _curve(figure, k=0):
    return figure.axes[0].lines[k].get_xydata()


def test_quantities_by_name_are_those_of_the_run(runs):
    run = runs("SO(3)")
    np.testing.assert_array_equal(quantity(run, "momentum 2").values, run.momentum[:, 1])
    np.testing.assert_array_equal(quantity(run, "velocity 3").values, run.velocity[:, 2])
    np.testing.assert_array_equal(quantity(run, "energy").values, run.invariants()["energy"])
    assert quantity(run, "energy").label == "energy (J)"
    assert quantity(run, "momentum 2").label == "$\\mu_{2}$ (kg m²/s)"
    height = quantity(run, lambda state: state.g[2, 2], "height").values
    np.testing.assert_array_equal(height, run.g[:, 2, 2])
    assert "position 1" not in names(run) and "position 2" in names(runs("R^2"))


def test_portraits_draw_every_run_from_its_start(runs):
    run = runs("R^2")
    figure = rx.show.phase_portrait(run)
    np.testing.assert_array_equal(_curve(figure), np.stack([run.g[:, 0], run.momentum[:, 0]], 1))
    np.testing.assert_array_equal(_curve(figure, 1), _curve(figure)[:1])
    both = rx.show.phase_portrait([run, run], "position 1", "position 2", labels=["a", "b"])
    assert len(both.axes[0].lines) == 4
    assert [text.get_text() for text in both.axes[0].get_legend().get_texts()] == ["a", "b"]
    dots = rx.show.phase_portrait(runs("SO(3)"), joined=False).axes[0]
    assert dots.lines[0].get_linestyle() == "None"
    assert (dots.get_xlabel()[:5], dots.get_ylabel()[:5]) == ("$\\mu_", "$\\mu_")


FOUND = rx.analysis.Convergence((10, 20, 40), (0.1, 0.05, 0.025), (8e-3, 1e-3), (3.0,), 3.0)


def test_convergence_shows_differences_over_steps_and_the_order():
    figure = rx.show.convergence({"a method": FOUND})
    np.testing.assert_array_equal(_curve(figure), [[0.1, 8e-3], [0.05, 1e-3]])
    slope = _curve(figure, 1)
    assert np.log2(slope[0, 1] / slope[1, 1]) == pytest.approx(3.0, abs=1e-12)
    assert figure.axes[0].get_legend().get_texts()[0].get_text() == "a method: order 3.00"
    assert figure.axes[0].get_xscale() == figure.axes[0].get_yscale() == "log"


def test_work_and_precision_are_sorted_by_work():
    figure = rx.show.work_precision({"a": [(2.0, 1e-3), (1.0, 1e-2)], "b": [(1.5, 1e-4)]})
    np.testing.assert_array_equal(_curve(figure), [[1.0, 1e-2], [2.0, 1e-3]])
    assert figure.axes[0].lines[0].get_marker() != figure.axes[0].lines[1].get_marker()


def test_spectra_mark_the_lines_of_the_signal():
    t = np.linspace(0, 400, 4001)
    found = rx.analysis.spectrum(t, np.sin(2.0 * t) + 0.1 * np.cos(5.3 * t))
    figure = rx.show.spectrum(found, up_to=10.0)
    marked = sorted(float(note.get_text()) for note in figure.axes[0].texts)
    np.testing.assert_allclose(marked, [2.0, 5.3], atol=1e-3)
    assert figure.axes[0].get_xlim() == (0.0, 10.0)


def test_space_and_time_shows_a_quantity_at_every_place(runs):
    run = runs("SO(3)")
    figure = rx.show.space_time(run, lambda state: state.g[2], label="a row")
    mesh = figure.axes[0].collections[0]
    np.testing.assert_array_equal(mesh.get_array(), run.g[:, 2, :])
    assert figure.axes[1].get_ylabel() == "a row"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda run: rx.show.phase_portrait(run, "momentm 1"), "Did you mean 'momentum 1'?"),
        (lambda run: rx.show.phase_portrait([]), "runs is empty"),
        (lambda run: rx.show.phase_portrait(run, labels=["a", "b"]), "labels has 2 names for 1"),
        (lambda run: rx.show.phase_portrait(run, [1.0, 2.0]), "values of shape (2,)"),
        (lambda run: rx.show.spectrum(run, "velocity 9"), "the heavy top has no quantity"),
        (lambda run: rx.show.spectrum(run, up_to=-1.0), "up_to = -1.0 rad/s leaves nothing"),
        (lambda run: rx.show.convergence({}), "measured has nothing to draw"),
        (lambda run: rx.show.work_precision({"a": []}), "nothing to draw for 'a'"),
        (lambda run: rx.show.work_precision({"a": [(0.0, 1.0)]}), "curves['a'] has a work or an"),
        (
            lambda run: rx.show.space_time(run),
            "a picture of the heavy top over place and time needs a function",
        ),
        (lambda run: rx.show.space_time(run, lambda s: s.g[2, 2]), "needs a list of them"),
        (lambda run: rx.show.space_time(run, lambda s: s.g[2], places=[1.0]), "places has shape"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_a_sentence(runs, make, says):
    with pytest.raises(rx.BadInput) as refused:
        make(runs("SO(3)"))
    assert says in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "begins"), [("a.svg", b"<?xml"), ("a.PDF", b"%PDF"), ("a.png", b"\x89PNG")]
)
def test_the_suffix_says_how_a_figure_is_written(tmp_path, name, begins):
    figure = rx.show.convergence({"a method": FOUND})
    first = rx.show.save(figure, tmp_path / name).read_bytes()
    assert first.startswith(begins)
    assert rx.show.save(figure, tmp_path / name).read_bytes() == first
    if name == "a.svg":
        assert "a method: order 3.00" in "".join(ElementTree.fromstring(first).itertext())


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("a.sgv", "must end in .svg, .pdf or .png. Did you mean '.svg'?"),
        ("a", "must end in .svg, .pdf or .png."),
        ("nowhere/a.svg", "folder 'nowhere' does not exist"),
    ],
)
def test_paths_that_cannot_be_written_are_refused(tmp_path, monkeypatch, path, says):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rx.BadInput) as refused:
        rx.show.save(rx.show.convergence(FOUND), path)
    assert says in str(refused.value)
    with pytest.raises(rx.BadInput, match="is not a figure"):
        rx.show.save(None, "a.svg")


def test_plot_writes_where_it_is_told(runs, tmp_path):
    runs("SO(3)").plot(tmp_path / "top.svg")
    assert (tmp_path / "top.svg").read_text().startswith("<?xml")


# Machado, Oliveira and Fernandes (2009): what a colour in linear RGB looks like.
SIGHT = {
    "all cones": np.eye(3),
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                   [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
XYZ = np.array([[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]])


def _linear(colour):
    c = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def _lab(rgb):
    x = XYZ @ np.clip(rgb, 0, 1) / XYZ.sum(axis=1)
    f = np.where(x > 216 / 24389, np.cbrt(x), (24389 / 27 * x + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("sight", SIGHT)
def test_all_eyes_tell_the_colours_apart(sight):
    seen = [_lab(np.array(SIGHT[sight]) @ _linear(colour)) for colour in CYCLE]
    least = min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2))
    assert least > 16.0  # measured: 26, 18, 21, 16.1


def test_pale_colours_are_dashed():
    for k, colour in enumerate(CYCLE):
        contrast = 1.05 / (XYZ[1] @ _linear(colour) + 0.05)
        assert contrast > 3.0 or look(k)["linestyle"] == "--"


def test_a_notebook_shows_the_summary_and_a_picture_of_it(runs, monkeypatch):
    run = runs("SO(3)")
    page = run._repr_html_()
    ElementTree.fromstring(page.replace("<br>", "<br/>").replace('">', '"/>', 1))
    assert page.count("<tr>") == 1 + len(run.invariants()) + 1
    assert 'src="data:image/svg+xml;base64,' in page and len(page) < 100_000
    monkeypatch.setitem(run.provenance, "system", "<script>alert(1)</script>")
    assert "<script>" not in run._repr_html_()
    monkeypatch.delitem(sys.modules, "retrax.show.figures")
    monkeypatch.delitem(sys.modules, "retrax.show")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "<img" not in run._repr_html_() and "energy" in run._repr_html_()


def test_a_notebook_shows_systems_and_integrators_in_a_line():
    top = rx.systems.HeavyTop([1.2, 1.6, 0.8], 1.0, [0.0, 0.0, 0.6])
    assert top._repr_html_() == (
        "<div><strong>heavy top</strong>: on SO(3); inertia [1.2, 1.6, 0.8]; mass 1.0; "
        "arm [0.0, 0.0, 0.6]; gravity 9.81</div>"
    )
    shown = rx.LieVerlet()._repr_html_()
    assert "order 2; preserves group, momentum, symplectic, symmetric" in shown
