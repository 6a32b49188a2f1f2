"""Links lead somewhere, every page is in the navigation, and commands can be typed as shown."""

import re
import shlex
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from click import Context
from markdown.extensions.toc import slugify
from typer.main import get_command

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
OUTSIDE = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES = [*OUTSIDE, *sorted(DOCS.rglob("*.md"))]
FENCE = re.compile(r"^( *)```([\w+-]*)[^\n]*\n(.*?)^\1```$", re.M | re.S)
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+(?:\([^()]*\))?)\)")
LANGUAGES = {
    "",
    "python",
    "py",
    "sh",
    "bash",
    "console",
    "toml",
    "json",
    "text",
    "js",
    "julia",
    "matlab",
    "r",
    "c",
}


class _Loader(yaml.SafeLoader):
    """mkdocs.yml without the objects that some of its tags name."""


_Loader.add_multi_constructor("", lambda *_: None)
CONFIG = yaml.load((ROOT / "mkdocs.yml").read_text(), _Loader)


def prose(page: Path) -> str:
    """A page without its code, displayed or in the line."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text()))


def links(page: Path) -> list[str]:
    return LINK.findall(prose(page))


@cache
def anchors(page: Path) -> set[str]:
    text = FENCE.sub("", page.read_text())
    found = set(re.findall(r'id="([^"]+)"', text))
    for names in re.findall(
        r"<!-- (?:names|returned): (.*?) -->", text, re.S
    ):  # what docs/hooks/names.py makes
        found |= {f"rx.{name.removesuffix('.*')}" for name in names.split()}
    for heading in re.findall(r"^#+ (.*)$", text, re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("$", "")
        found.add(slugify(plain, "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    broken = []
    for link in links(page):
        parts = urlsplit(link)
        if parts.scheme:
            good = parts.scheme in ("https", "http", "mailto") and (parts.netloc or parts.path)
            broken += [] if good and " " not in link else [link]
            continue
        target = (page.parent / parts.path).resolve() if parts.path else page
        inside = target.is_relative_to(DOCS) or page in OUTSIDE
        if not target.exists() or not inside:
            broken.append(link)
        elif parts.fragment and parts.fragment not in anchors(target):
            broken.append(link)
    assert not broken


def in_navigation(entry) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    values = entry.values() if isinstance(entry, dict) else entry
    return [page for value in values for page in in_navigation(value)]


def test_every_page_is_in_the_navigation_once():
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    assert sorted(in_navigation(CONFIG["nav"])) == sorted(pages)


def test_the_navigation_has_at_most_six_groups():
    assert len(CONFIG["nav"]) <= 6


def test_a_page_starts_with_one_title():
    for page in PAGES:
        titles = re.findall(r"^# .*$", FENCE.sub("", page.read_text()), re.M)
        assert len(titles) == 1 and page.read_text().startswith(titles[0]), page


def test_every_block_says_what_it_is():
    """So that no Python hides from the test that runs it."""
    for page in PAGES:
        text = page.read_text()
        blocks = FENCE.findall(text)
        assert len(re.findall(r"^ *```", text, re.M)) == 2 * len(blocks), page
        for indent, language, _ in blocks:
            assert language in LANGUAGES, (page, language)
            assert language != "python" or not indent, f"{page}: an indented block is not run"
        run = len(re.findall(r"^```python$", text, re.M))  # what test_docs.py looks for
        assert run == sum(language == "python" for _, language, _ in blocks), page
        for _, language, code in blocks:
            if language == "py":  # shown and not run, for want of a cluster or a GPU
                compile(code, page.name, "exec")
            assert language or not re.search(r"^(import|from) \w+", code, re.M), page


def commands():
    for page in PAGES:
        for _, language, code in FENCE.findall(page.read_text()):
            if language in ("", "sh", "bash", "console"):
                for line in code.replace("\\\n", " ").splitlines():
                    found = re.match(r"^(?:\$ )?(?:\.venv/bin/)?(retrax|make) +(.*)$", line)
                    if found:
                        yield pytest.param(*found.groups(), id=f"{page.stem}: {line.strip()[:60]}")


@pytest.mark.parametrize("program, line", list(commands()))
def test_a_command_can_be_typed_as_shown(program, line):
    words = shlex.split(line, comments=True)
    if program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
        assert set(words) <= set(targets)
        return
    from retrax.cli.main import app

    command = get_command(app)
    if not words[0].startswith("-"):
        name = words.pop(0)
        assert name in command.commands
        command = command.commands[name]
    command.make_parser(Context(command)).parse_args(words)
