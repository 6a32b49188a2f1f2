"""`retrax bench`, made short: what it prints and keeps, with and without a C compiler."""

import json
import os

import pytest
from typer.testing import CliRunner

from retrax.cli.main import app
from retrax_papers.bench import ensembles, kernels, rods, single, strings, suite
from retrax_papers.bench.suite import NO_COMPILER


def _shorten(patch):
    """Make a run of a few seconds; nobody looks at its times."""
    patch.setattr(single, "SUBSTEPS", 2000)
    patch.setattr(single, "ORDERS", (2,))
    patch.setattr(single, "TOP_STEPS", 2000)
    patch.setattr(strings, "ELEMENTS", (2, 20, 24))
    patch.setattr(strings, "NODE_STEPS", 400)
    patch.setattr(rods, "ELEMENTS", (16, 20))
    patch.setattr(rods, "ELEMENT_STEPS", 400)
    patch.setattr("retrax_papers.bench.timing._LEAST", 1e-6)
    small = {"MEMBERS": 20, "STEPS": 100, "SIZES": (10,), "WORK": 100, "LEAST_STEPS": 1}
    for name, value in small.items():
        patch.setattr(ensembles, name, value)


@pytest.fixture(scope="module")
def alone():
    """What is measured without a compiler: once, for both ways to print it."""
    with pytest.MonkeyPatch.context() as patch:
        _shorten(patch)
        patch.setenv("CC", "a-compiler-that-is-not-there")
        return suite.measure(lambda what: None)


@pytest.fixture
def measured_alone(alone, monkeypatch):
    monkeypatch.setattr(suite, "measure", lambda report: alone)


def _bench(*arguments):
    result = CliRunner().invoke(app, ["bench", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.skipif(kernels.compiler() is None, reason="needs a C compiler")
def test_results_are_printed_and_kept(monkeypatch, tmp_path):
    _shorten(monkeypatch)
    path = tmp_path / "bench.json"
    said = _bench("-o", path)
    assert all(
        text in said for text in ("3D pendulum", "20 free bodies", "string pendulum", "A rod")
    )
    assert NO_COMPILER[:20] not in said
    record = json.loads(path.read_text())
    assert record["results"]["missing"] == []
    for row in record["results"]["single"]["per_step"]:
        assert row["loop"]["ratio_min"] <= row["loop"]["ratio"] <= row["loop"]["ratio_max"]
    assert set(record["results"]["ensemble"]["c"]) == {"two iterations", "until converged"}
    rods_of = record["results"]["rod"]["rows"]
    assert [row["elements"] for row in rods_of] == [16, 20]
    assert all(0 < row["ns"] and 0 < row["wall_all_ns"] for row in rods_of)
    assert record["machine"]["cores"] == os.cpu_count()
    assert str(kernels.SOURCES.parent) not in path.read_text()


def test_without_a_compiler_retrax_is_timed_by_itself(measured_alone):
    results = json.loads(_bench("--json"))["results"]
    assert results["missing"] == [NO_COMPILER]
    row = results["single"]["per_step"][0]
    assert row["ns"] > 0 and "c_ns" not in row and "ratio" not in row["loop"]
    assert results["ensemble"]["sizes"][0]["ns"] > 0


def test_without_a_compiler_the_table_says_what_is_missing(measured_alone):
    assert NO_COMPILER in _bench()


def test_the_folder_of_the_output_is_checked_first(tmp_path):
    result = CliRunner().invoke(app, ["bench", "-o", str(tmp_path / "nowhere" / "bench.json")])
    assert result.exit_code == 2 and "does not exist" in result.stderr
