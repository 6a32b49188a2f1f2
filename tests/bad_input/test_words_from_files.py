"""Words that come out of a file are shown: no terminal, shell, browser or Python obeys them."""

import ast
import html
import shlex

import h5py
import jax.numpy as jnp
import pytest
from typer.testing import CliRunner

import retrax as rx
from retrax.cli.main import app
from retrax.cli.tables import print_lines, print_table
from retrax.errors import printable
from retrax.show.figures import overview
from retrax.show.page import again, page
from retrax_papers.manifest import open_gallery

pytestmark = pytest.mark.filterwarnings("ignore:.*has no checksum")

ESCAPES = "\x1b[2J\x1b]0;owned\x07\r\x08\x9b31m\u202egnp"
SHELL = "x.toml; touch owned; $(touch owned) `touch owned` 'a' \"b\" && rm -rf ~"
MARKUP = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
FORMULA = r"$\nosuchthing{$ and $x"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    body = rx.systems.FreeRigidBody([1.0, 1.7, 2.3])
    state = body.state(jnp.eye(3), velocity=[0.3, -0.2, 0.9])
    run = rx.simulate(body, rx.LieVerlet(), state, h=0.05, steps=4, progress=False)
    return run.save(tmp_path_factory.mktemp("words") / "run.nc")


@pytest.fixture
def changed(saved, tmp_path):
    def change(name="provenance_system", word="", of=""):
        path = tmp_path / "words.nc"
        path.write_bytes(saved.read_bytes())
        with h5py.File(path, "r+") as file:
            (file[of] if of else file).attrs[name] = word
            # No checksum, and no system that words could contradict.
            del file.attrs["checksum"], file["run"]
        return path

    return change


def test_control_characters_are_spelled_out():
    assert printable("plain – ωπ 日本") == "plain – ωπ 日本"
    assert printable("a\nb\tc") == "a b c"
    assert printable("\x1b[31m\x9b\u202e\ud800") == "\\x1b[31m\\x9b\\u202e\\ud800"


def test_a_terminal_sees_no_escapes_of_a_file(changed, tmp_path):
    path = changed()
    with h5py.File(path, "r+") as file:
        for name in ("system", "group", "integrator", "counted", "case"):
            file.attrs[f"provenance_{name}"] = f"top{ESCAPES}"
    run = rx.load(path)
    assert repr(run).isprintable() and run.summary().replace("\n", "").isprintable()
    result = CliRunner().invoke(app, ["report", str(path), "-o", str(tmp_path / "page.html")])
    assert result.exit_code == 0, result.output
    assert result.output.replace("\n", "").isprintable()
    assert "\x1b" not in (tmp_path / "page.html").read_text()


def test_names_of_invariants_and_errors_are_printable(changed, capsys):
    run = rx.load(changed("long_name", f"energy{ESCAPES}", of="energy"))
    assert all(name.isprintable() for name in run.invariants())
    assert str(rx.BadInput(f"x = {ESCAPES}")).isprintable()
    print_lines(f"a{ESCAPES}")
    print_table([f"b{ESCAPES}"], [[f"c{ESCAPES}"]], f"d{ESCAPES}")
    assert capsys.readouterr().out.replace("\n", "").isprintable()


def test_the_command_to_run_again_is_quoted(changed):
    run = rx.load(changed("provenance_asked", SHELL))
    assert run.provenance["asked"] == SHELL and "retrax run" not in again(run)
    for asked in ("--help", "; true", "a\\b.toml", "$(true)"):
        run.provenance["asked"] = asked
        assert "retrax run" not in again(run)
    for asked in ("my case.toml", "it's.py:make", f"{SHELL}.toml"):
        run.provenance["asked"] = asked
        command = again(run).split("<code>")[1].split("</code>")[0]
        command = html.unescape(command)
        assert shlex.split(command)[2] == asked


@pytest.mark.parametrize(
    "integrator",
    [
        "LieVerlet()); import os; os.system('true'",
        "LieVerlet(__import__('os').system('true'))",
        "LieVerlet()\nimport os",
        "Evil(lambda: 1)",
        "A().b()",
        "A[0]",
        f"A({'(' * 200}",
    ],
)
def test_the_lines_of_python_hold_no_code_of_a_file(changed, integrator):
    run = rx.load(changed("provenance_integrator", integrator))
    run.provenance["system"] = "top\nimport os"
    text = again(run).split("<code>")[-1].split("</code>")[0]
    tree = ast.parse(text.replace("&#x27;", "'").replace("&quot;", '"'))
    assert [type(node).__name__ for node in tree.body] == ["Import", "Assign"]
    assert "os" not in text.replace("# system", "").split("run = ")[1]


def test_markup_and_formulas_are_words(changed):
    for name in ("system", "group", "integrator", "case", "created"):
        assert "<script>alert" not in page(rx.load(changed(f"provenance_{name}", MARKUP)))
        assert "<img src=x" not in page(rx.load(changed(f"provenance_{name}", MARKUP)))
    for name in ("system", "group", "integrator"):
        overview(rx.load(changed(f"provenance_{name}", FORMULA))).canvas.draw()
    overview(rx.load(changed("long_name", FORMULA, of="energy"))).canvas.draw()


def test_a_group_of_a_billion_dimensions_draws_nothing(changed):
    for group in ("R^999999999999", "((SO(3)^999999)^999999)^9", "(" * 500):
        assert "<html" in page(rx.load(changed("provenance_group", group)))


@pytest.mark.parametrize("name", ["../mine", "/etc/mine", "papers/../../mine", ".."])
def test_a_gallery_deletes_nothing_outside_its_folder(tmp_path, name):
    folder = tmp_path / "gallery"
    folder.mkdir()
    (tmp_path / "mine").write_text("mine")
    part = f'{{"seconds": 1, "finished": "", "files": {{"{name}": "x"}}}}'
    told = '"format": "retrax-gallery", "mode": "quick", "version": "0", "code": "0"'
    (folder / "manifest.json").write_text(
        f'{{{told}, "parts": {{"kahan/a": {part}}}, "complete": []}}'
    )
    open_gallery(folder, ["kahan"], "quick", force=True)
    assert (tmp_path / "mine").read_text() == "mine"
