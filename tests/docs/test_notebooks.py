"""The notebooks are the pages of the tutorial, and run from the first cell to the last."""

import importlib.util
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
_SPEC = importlib.util.spec_from_file_location("notebooks", ROOT / "tools/notebooks.py")
assert _SPEC and _SPEC.loader
TOOL = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(TOOL)
QUICK = "page-and-file"


def test_every_page_of_the_tutorial_is_a_notebook():
    """`python tools/notebooks.py` writes them again."""
    pages = sorted((ROOT / "docs/tutorial").glob("*.md"))
    assert [one.stem for one in NOTEBOOKS] == [one.stem for one in pages]
    for file, page in zip(NOTEBOOKS, pages, strict=True):
        assert file.read_text(encoding="utf-8") == TOOL.written(page), file.name


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, marks=[] if file.stem == QUICK else pytest.mark.campaign, id=file.stem)
        for file in NOTEBOOKS
    ],
)
@pytest.mark.filterwarnings("default")
def test_a_notebook_runs(file, tmp_path, monkeypatch):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src")]))
    book = nbformat.read(file, as_version=4)
    nbformat.validate(book)
    nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    if file.stem == "first-run":
        (last,) = [cell for cell in book.cells if cell.source == "run.animate()"]
        assert "<iframe" in last.outputs[0]["data"]["text/html"]
