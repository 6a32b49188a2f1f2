"""One self-contained page of a run: the motion in 3-D, its invariants, and how it was made."""

import ast
import html
import json
import re
import shlex
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from retrax.cases.python_file import is_reference
from retrax.errors import printable
from retrax.files import write_text
from retrax.numerics.checks import require_flag
from retrax.show.curves import curves
from retrax.show.drawn import drawable, require_run
from retrax.show.live import live_data, stepper_script
from retrax.show.pictures.choose import picture
from retrax.show.pictures.own import Draw
from retrax.show.scene import plain, scene
from retrax.show.style import CYCLE, CYCLE_ON_DARK
from retrax.store.run_objects import encode_run
from retrax.systems.catalogue import CASES
from retrax.systems.integrators import INTEGRATORS, TOUCHING
from retrax.trajectory.energy_balance import balance_of
from retrax.trajectory.summary import name_counts
from retrax.trajectory.trajectory import Trajectory

_LIBRARIES = ("vendor/three.min.js", "vendor/uplot.min.js")
_STYLES = ("vendor/uplot.min.css", "page.css")
_SCRIPTS = (
    "data.js",
    "motion.js",
    "toggles.js",
    "stage.js",
    "shapes.js",
    "tube.js",
    "things.js",
    "around.js",
    "plots.js",
    "player.js",
)

# Parts of the provenance that the page uses but does not print.
_UNREAD = ("counted", "failure", "asked")


def write_page(
    run: Trajectory, path: str | Path, live: bool = False, draw: Draw | None = None
) -> Path:
    """Write the page to `path`; it opens without a network and without a server.

    With `live` it has the step of the run and sliders, and runs on. `draw` says what to draw.
    """
    return write_text(path, lambda: page(run, live, draw))


@drawable()
def page(run: Trajectory, live: bool = False, draw: Draw | None = None) -> str:
    """Return the page as text."""
    live = require_flag("live", live)
    made = require_run(run).provenance
    tables = Template(asset("run_tables.html")).substitute(
        summary=kept_table(run), made=made_table(run), again=again(run)
    )
    subtitle = (
        f"{made['integrator']}, {run.completed:,} steps of h = {run.h:g} s, "
        f"from t = {run.t[0]:g} s to {run.t[-1]:g} s"
    )
    shown = page_data(run, draw) | ({"live": live_data(run, draw)} if live else {})
    return fill_page(made["system"], subtitle, failure(run), tables, shown)


def fill_page(title: str, subtitle: str, failure: str, tables: str, shown: dict[str, Any]) -> str:
    """Return the page of something that moves: words, tables, and what is drawn and plotted.

    With `live` among what is shown it runs.
    """
    live = "live" in shown
    data = json.dumps(shown, separators=(",", ":"), allow_nan=False, default=plain)
    first, *others = _SCRIPTS
    names = [first, "live_motion.js", *others, "live.js"] if live else _SCRIPTS
    stepping = [stepper_script()] if live else []
    return Template(asset("page.html")).substitute(
        title=html.escape(title),
        subtitle=html.escape(subtitle),
        failure=failure,
        style="\n".join(asset(name) for name in (*_STYLES, *(["live.css"] if live else []))),
        live=asset("live.html") if live else "",
        tables=tables,
        data=data.replace("<", "\\u003c"),  # or a name with "</script>" in it would end the script
        libraries="\n".join(f"<script>{asset(name)}</script>" for name in _LIBRARIES),
        scripts="\n".join([*(asset(name) for name in names), *stepping]),
    )


def page_data(run: Trajectory, draw: Draw | None = None) -> dict[str, Any]:
    """Pack all that moves or is plotted, as small as it can be without losing an extreme."""
    return {
        "scene": scene(run, picture(run, draw)),
        "panels": curves(run),
        "colours": {"light": CYCLE, "dark": CYCLE_ON_DARK},
        "run": encode_run(run),
    }


def asset(name: str) -> str:
    """Read a part of a page."""
    return files("retrax.show").joinpath("assets", name).read_text(encoding="utf-8")


def kept_table(run: Trajectory) -> str:
    """Return each invariant: its value at the start, its largest error, its drift."""
    measures = run.measures()
    rows = [
        (name, f"{of['initial']:.10g}", f"{of['max_error']:.2e}", f"{of['drift']:+.2e}")
        for name, of in measures["invariants"].items()
    ]
    if measures["energy_balance"] is not None:
        rows += _balance_rows(run)
    defect = f"distance from {run.provenance['group']}"
    rows.append((defect, f"{run.group_defect()[0]:.2g}", f"{measures['group_defect']:.2e}", "–"))
    if run.multipliers.shape[1]:
        broken = run.constraint_violation()
        worst = f"{measures['constraint_violation']:.2e}"
        rows.append(("velocity across the constraint", f"{broken[0]:.2g}", worst, "–"))
    return table_rows(rows)


def _balance_rows(run: Trajectory) -> list[tuple[str, ...]]:
    """Return an energy that is not conserved: how it changed, and the work that was done."""
    found = balance_of(run)
    assert found is not None
    end = found.at_the_end()
    return [
        ("energy", f"{run.energy()[0]:.10g}", f"not conserved: {end['change']:+.3e}", "–"),
        ("work done on the system, of the saved states", "0", f"{end['work']:+.3e}", "–"),
        ("change of energy less work", "0", f"{end['difference']:+.2e}", "–"),
    ]


def made_table(run: Trajectory) -> str:
    """Return how the run was made: names and versions, the step, the time it took."""
    measures = run.measures()
    iterations = int(np.sum(run.info.iterations))
    rows = {
        **{key: value for key, value in run.provenance.items() if key not in _UNREAD},
        "step": f"h = {run.h:g} s",
        "steps": f"{run.completed:,} of {run.steps:,}; {len(run.t):,} states saved, "
        f"one every {run.save_every:,}",
        "time": f"{run.seconds:.3g} s, {measures['steps_per_second']:,.0f} steps/s; "
        f"compiled in {run.compile_seconds:.2g} s",
        "solver": f"{iterations / max(run.completed, 1):.2f} {name_counts(run)} a step",
        **{f"event {printable(name)}": told for name, told in run.events.words().items()},
    }
    return table_rows(list(rows.items()))


def again(run: Trajectory) -> str:
    """Return the command and the Python lines that make the run again, if they are known."""
    made = run.provenance
    asked = printable(made.get("asked", made.get("case", "")))
    known = {repr(method): name for name, method in (INTEGRATORS | TOUCHING).items()}
    name = known.get(made["integrator"], "")
    numbers = f"h={float(run.h)!r}, steps={run.steps}, save_every={run.save_every}"
    blocks = []
    if _can_be_typed(asked) and (name or asked.endswith(".toml")):
        chosen = f" --integrator {name}" if name else ""
        options = f"--h {float(run.h)!r} --steps {run.steps} --save-every {run.save_every}"
        command = f"retrax run {shlex.quote(asked)}{chosen} {options}"
        blocks.append(block("On the command line", command))
    if asked in CASES and name:
        lines = (
            "import retrax as rx",
            "from retrax.systems.integrators import INTEGRATORS, TOUCHING",
            "from retrax.systems.catalogue import CASES",
            "",
            f'system, state, _, _ = CASES["{asked}"].make()',
            f'integrator = (INTEGRATORS | TOUCHING)["{name}"]',
            f"run = rx.simulate(system, integrator, state, {numbers})",
        )
        return blocks[0] + block("In Python", "\n".join(lines))
    integrator, missing = "integrator", "system, integrator and state"
    if _is_constructed(made["integrator"]):
        integrator = re.sub(r"\b([A-Z]\w*\()", r"rx.\1", made["integrator"])
        missing = "system and state"
    lines = (
        "import retrax as rx",
        "",
        f"# {missing}: the {printable(made['system'])} of this run, and its start",
        f"run = rx.simulate(system, {integrator}, state, {numbers})",
    )
    heading = "In Python, with the system and the start it was made from"
    return "".join([*blocks, block(heading, "\n".join(lines))])


def _can_be_typed(asked: str) -> bool:
    """Return whether the name of a run is a case, a run file or a function in a file.

    It becomes part of a command to copy, but it comes from a file: any other text is left out, and
    the name is quoted.
    """
    file = asked.endswith(".toml") or is_reference(asked)
    return asked in CASES or (file and not asked.startswith("-") and "\\" not in asked)


def _is_constructed(text: str) -> bool:
    """Return whether a text is calls of names like classes, with numbers and words in them."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return "\n" not in text and all(_is_plain(node) for node in ast.walk(tree))


def _is_plain(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id[:1].isupper()
    return isinstance(
        node,
        ast.Expression
        | ast.Name
        | ast.Constant
        | ast.keyword
        | ast.Tuple
        | ast.List
        | ast.UnaryOp
        | ast.USub
        | ast.Load,
    )


def failure(run: Trajectory) -> str:
    """Say where and why a run stopped before its end; empty if it did not."""
    if run.completed >= run.steps:
        return ""
    done = f"{run.completed:,} of {run.steps:,} steps"
    where = f"The run stopped after {done}, at t = {run.t[-1]:g} s."
    why = run.provenance.get("failure", "")
    said = f" {html.escape(why)}" if why else ""
    return f'<p class="failure" role="alert"><strong>{where}</strong>{said}</p>'


def block(heading: str, text: str) -> str:
    return (
        f'<div class="again"><h3>{heading}</h3><button type="button" class="copy">Copy</button>'
        f'<pre tabindex="0"><code>{html.escape(text)}</code></pre></div>'
    )


def table_rows(rows: list[tuple[str, ...]]) -> str:
    """Return table rows, the first cell of each a heading."""
    lines = []
    for heading, *cells in rows:
        rest = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
        lines.append(f'<tr><th scope="row">{html.escape(heading)}</th>{rest}</tr>')
    return "\n".join(lines)
