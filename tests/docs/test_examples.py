"""The examples run, small; their own asserts say what to expect."""

import runpy
from pathlib import Path

import pytest

from retrax.show.style import style

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = {
    "collocation": {"counts": (1, 2), "reference": 3},
    "ensemble": {"members": 16, "steps": 48},
    "gradient_design": {"steps": 8},
    "heavy_top": {"steps": 2000},
    "kahan_top": {"steps": 100},
    "optimal_manoeuvres": {"steps": 40},
    "rolling_disk": {"steps": 20},
    "string_pendulum": {"elements": 4, "steps": 240},
    "strings_in_contact": {"n": 24, "periods": 0.5},
    "suslov": {"steps": 1000},
    "thrown_box": {"steps": 300},
}


def test_every_example_is_here():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SMALL)


@pytest.mark.filterwarnings("ignore:.*is of order 1 under a constraint:UserWarning")
@pytest.mark.parametrize("name", SMALL)
def test_an_example_runs(name, tmp_path):
    main = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]
    with style():
        main(**SMALL[name]).savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000
