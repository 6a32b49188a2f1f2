"""`import retrax` is light and sets double precision."""

import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

HEAVY = ["numba", "xarray", "matplotlib", "plotly", "typer", "rich", "dask", "scipy", "h5netcdf"]
# Measured: 150.
MOST_MODULES = 150
SCRIPT = """
import json, sys
import jax
bare = set(sys.modules)
import retrax
print(json.dumps({"loaded": sorted(set(sys.modules) - bare), "x64": jax.config.jax_enable_x64}))
"""


def test_import_loads_nothing_heavy_and_switches_on_float64():
    out = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    result = json.loads(out.stdout)
    assert result["x64"]
    assert not {name.split(".")[0] for name in result["loaded"]} & set(HEAVY)


def test_the_version_is_that_of_the_package():
    import retrax

    assert retrax.__version__ == version("retrax")


def test_names_are_found_where_editors_are_told_that_they_are():
    import retrax

    text = Path(retrax.__file__).with_suffix(".pyi").read_text()
    told = re.findall(r"^from (retrax[\w.]*) import (\w+) as \2$", text, re.MULTILINE)
    assert {name: module for module, name in told} == retrax._WHERE
    for package in (retrax, retrax.systems):
        for name in dir(package):
            getattr(package, name)


COUNT = """
import sys
import retrax
retrax.simulate
print(sum(name.startswith("retrax.") for name in sys.modules))
"""


def test_to_simulate_loads_no_system_that_nobody_asked_for():
    out = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    assert int(out.stdout) <= MOST_MODULES
