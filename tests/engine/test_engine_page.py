"""The page of the engine names every module, and prints what it says it prints."""

import contextlib
import io
import re
from itertools import pairwise
from pathlib import Path

import pytest

import retrax

ENGINE = Path(retrax.__file__).parent / "engine"
PAGE = (Path(__file__).parents[2] / "docs" / "engine.md").read_text()
BLOCKS = re.findall(r"^```(python|text)\n(.*?)^```", PAGE, flags=re.M | re.S)


def modules():
    """All files of the engine; of those that only describe a folder, none."""
    for file in sorted(ENGINE.rglob("*.py")):
        if file.name != "__init__.py" or "import" in file.read_text():
            yield file.relative_to(ENGINE).as_posix()


@pytest.mark.parametrize("module", list(modules()))
def test_every_module_is_named_once(module):
    assert PAGE.count(f"`{module}`") == 1


def test_the_page_names_no_other_modules():
    named = set(re.findall(r"`((?:trace|axes|passes|llvm|backends)/\w+\.py)`", PAGE))
    assert named <= set(modules())


def test_programs_on_the_page_are_printed_by_its_code():
    namespace = {"__name__": "page"}
    shown = 0
    for (language, code), (following, text) in pairwise(BLOCKS):
        if language != "python" or "simulate(" in code:
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "<engine.md>", "exec"), namespace)
        if following == "text":
            assert printed.getvalue() == text
            shown += 1
    assert shown == 5
