"""The reference shows every public name once, and nothing else of the package."""

import importlib
import importlib.util
import inspect
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("mkdocs")
ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs/api").glob("*.md"))
MODULES = {
    "retrax": "rx",
    "retrax.analysis": "rx.analysis",
    "retrax.draw": "rx.draw",
    "retrax.errors": "rx",
    "retrax.mechanics.solids": "rx.solids",
    "retrax.show": "rx.show",
    "retrax.systems": "rx.systems",
    "retrax.testing": "rx.testing",
}
# Names without underscore that users have no use for.
INSIDE = {
    "rx.UnknownKeyword",  # a BadInput and a TypeError, as which it is caught
    "rx.warn",
    "rx.printable",
    "rx.printable_lines",
    "rx.solids.require_rigid_body",
}
_SPEC = importlib.util.spec_from_file_location("names", ROOT / "docs/hooks/names.py")
assert _SPEC and _SPEC.loader
HOOK = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(HOOK)


@pytest.mark.parametrize("module", MODULES)
def test_the_names_listed_are_those_of_the_module(module):
    """The list of the reference is read off the source; here is what a user sees."""
    found = importlib.import_module(module)
    seen = {
        name
        for name, value in ((name, getattr(found, name)) for name in dir(found))
        if not name.startswith("_")
        and not inspect.ismodule(value)
        and getattr(value, "__module__", "retrax").startswith("retrax")
    }
    listed = HOOK.public_names(module)
    if module == "retrax.mechanics.solids":
        seen = {name for name in seen if listed.get(name, "").startswith(module)}
    assert seen - {"RetraxError"} == set(listed) - {"RetraxError"}


def test_every_public_name_is_in_the_reference_once():
    listed = [
        HOOK.written(name).removesuffix(".*")
        for page in PAGES
        for names in re.findall(r"<!-- (?:names|returned): (.*?) -->", page.read_text(), re.S)
        for name in names.split()
    ]
    assert len(listed) == len(set(listed))
    public = {
        f"{written}.{name}"
        for module, written in MODULES.items()
        for name in HOOK.public_names(module)
    }
    assert public - set(listed) == INSIDE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_signatures_and_no_source(page):
    file = SimpleNamespace(file=SimpleNamespace(src_uri=page.name))
    shown = HOOK.on_page_markdown(page.read_text(), file)
    assert "<!-- names" not in shown and "<!-- returned" not in shown
    for block in re.findall(r"^```py\n(.*?)^```", shown, re.M | re.S):
        assert re.match(r"[\w.]+\(", block), block
        compile("def f" + block[block.index("(") :].rstrip() + ": ...", page.name, "exec")
        assert " at 0x" not in block
    for entry in re.split(r"^#{3,4} ", shown, flags=re.M)[1:]:
        told = re.sub(r"```.*?```|^`from .*`$", "", entry.partition("\n")[2], flags=re.S | re.M)
        assert told.strip(), entry.partition("\n")[0]
