"""`import retrax` is light and sets double precision."""

import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

HEAVY = ["numba", "xarray", "matplotlib", "plotly", "typer", "rich", "dask", "scipy", "h5netcdf"]
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

    text = Path(retrax.__file__).read_text()
    told = re.findall(r"^    from (retrax\.[\w.]+) import (\w+) as \2$", text, re.MULTILINE)
    assert {name: module for module, name in told if name != "solids"} == retrax._WHERE
    for name in dir(retrax):
        getattr(retrax, name)
