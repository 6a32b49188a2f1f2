"""Folders import only from folders before them, and so each floor only from those below."""

import ast
from pathlib import Path

import retrax

# Three floors, and the folders of each in their order. The core knows no body, and bodies know
# nothing of what is made of runs.
FLOORS = {
    "core": (
        "lazy errors citations numerics files groups spaces mechanics integrators engine trajectory"
        " store derivatives run"
    ).split(),
    "bodies": "draw nodal contact mechanisms systems importing".split(),
    "studio": (
        "cases exporting sweeps estimation planning analysis testing show cli __main__"
    ).split(),
}
LAYERS = [folder for floor in FLOORS.values() for folder in floor]
# Imports within functions, for names that users ask for where they expect them: opened when
# somebody goes through.
DOORS = {
    ("integrators/base.py", "systems"),  # integrators by name: "lie-verlet"
    ("trajectory/reactions.py", "contact"),  # run.contacts, run.energy_book()
    ("trajectory/reactions.py", "mechanisms"),  # run.joints
    ("trajectory/shown.py", "show"),  # run.plot()
    ("trajectory/trajectory.py", "store"),  # run.save()
    ("estimation/result.py", "show"),  # fit.report()
    ("estimation/smoothed.py", "show"),
    ("planning/plan.py", "show"),  # plan.report()
}
# These see each other's layer but never each other.
APART = {("testing", "show"), ("show", "testing")}


def imports(file: Path):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "retrax":
            parts = (node.module or "").split(".")[1:]
            yield from [parts[0]] if parts else [alias.name for alias in node.names]
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("retrax."):
                    yield alias.name.split(".")[1]


def test_imports_point_one_way():
    root = Path(retrax.__file__).parent
    wrong, opened = [], set()
    for file in root.rglob("*.py"):
        name = file.relative_to(root).as_posix()
        here = name.removesuffix(".py").split("/")[0]
        if here == "__init__":
            continue
        for there in imports(file):
            upwards = LAYERS.index(there) > LAYERS.index(here) or (here, there) in APART
            if upwards and (name, there) in DOORS:
                opened.add((name, there))
            elif upwards:
                wrong.append(f"{name} imports retrax.{there}")
    assert not wrong, "\n".join(wrong)
    assert opened == DOORS


def test_every_folder_has_a_layer():
    root = Path(retrax.__file__).parent
    folders = {path.parent.name for path in root.glob("*/*.py")}
    assert folders <= set(LAYERS)


def test_a_door_is_opened_by_who_goes_through():
    """Imports at the top of a module load what stands above it: only those in functions do not."""
    root = Path(retrax.__file__).parent
    for name, there in DOORS:
        top = [
            node
            for node in ast.parse((root / name).read_text()).body
            if isinstance(node, ast.ImportFrom)
        ]
        assert not [node for node in top if f"retrax.{there}" in (node.module or "")]


def test_nothing_knows_the_papers():
    root = Path(retrax.__file__).parent
    assert not [file for file in root.rglob("*.py") if "retrax_papers" in file.read_text()]
