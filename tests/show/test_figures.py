import importlib
import struct

import numpy as np
import pytest

import retrax as rx
from retrax.show.bodies import unit
from retrax.show.figures import invariants, momentum_sphere, overview, write_figures


def _labels(figure):
    return {axes.get_ylabel() for axes in figure.axes} | {axes.get_xlabel() for axes in figure.axes}


def test_every_run_has_an_overview_with_units(any_run):
    figure = overview(any_run)
    labels = _labels(figure)
    assert {"error (J)", "defect (1)", "time (s)"} <= labels
    assert f"velocity ({unit(any_run, 'velocity')})" in labels
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert any(title.startswith("error of energy") for title in titles)


@pytest.mark.parametrize(
    ("name", "velocity", "momentum"),
    [
        ("SO(3)", "rad/s", "kg m²/s"),
        ("SO(3) x SO(2)^2", "rad/s", "kg m²/s"),
        ("R^2", "m/s", "kg m/s"),
        ("SE(3)", "SI", "SI"),
        ("SO(4)", "SI", "SI"),
    ],
)
def test_units_are_only_given_where_they_are_known(runs, name, velocity, momentum):
    run = runs(name)
    assert unit(run, "velocity") == velocity
    assert unit(run, "spatial momentum e1") == momentum
    assert unit(run, "energy") == "J"


def test_curves_show_the_errors(runs):
    run = runs("SO(3)")
    figure = invariants(run)
    for axes, values in zip(figure.axes, run.invariants().values(), strict=True):
        np.testing.assert_array_equal(axes.lines[0].get_ydata(), values - values[0])
        assert "drift" in axes.get_title(loc="right")


def test_sphere_joins_close_states_and_dots_far_ones(runs):
    def dotted(figure):
        return any(line.get_marker() == "." for axes in figure.axes for line in axes.lines)

    close = runs("SO(3)")
    assert not dotted(momentum_sphere(close))
    far = rx.simulate(close.system, rx.LieVerlet(), close.final, h=0.02, steps=300, save_every=50)
    assert dotted(momentum_sphere(far))


def test_nothing_that_turns_has_no_sphere(runs):
    assert momentum_sphere(runs("R^2")) is None
    assert momentum_sphere(runs("SO(4)")) is None


def test_figures_are_written_also_of_a_loaded_run(runs, tmp_path):
    run = rx.load(runs("SO(3)").save(tmp_path / "top.nc"))
    written = write_figures(run, tmp_path / "top")
    assert [path.name for path in written] == [
        "top-overview.png",
        "top-invariants.png",
        "top-momentum-sphere.png",
    ]
    for path in written:
        content = path.read_bytes()
        assert content[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = struct.unpack(">II", content[16:24])
        assert width > 1000 and height > 500
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        ["top.nc", *(path.name for path in written)]
    )


def test_a_missing_folder_is_a_sentence(runs, tmp_path):
    with pytest.raises(rx.BadInput, match=r"folder .* does not exist"):
        write_figures(runs("SO(3)"), tmp_path / "nowhere" / "top")


def test_plotting_does_not_touch_global_state(runs):
    import matplotlib

    before = dict(matplotlib.rcParams)
    runs("SO(3)").plot()
    assert dict(matplotlib.rcParams) == before


def test_missing_packages_are_named(monkeypatch):
    import retrax.show

    with monkeypatch.context() as patch:
        patch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(rx.RetraxError, match=r"pip install 'retrax\[show\]'"):
            importlib.reload(retrax.show)
    importlib.reload(retrax.show)
