"""A process that plants one mutant after another and says which check noticed it.

Reads the name of a module and the number of a change, line by line; answers in lines of JSON.
"""

import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # types are not checked: only tests may notice
ROOT = Path(__file__).parents[2]

import jax
import pytest
from checks import watching
from mutants import mutants, mutated, planted, source


def noticed_by(module: str) -> str | None:
    """The first check that fails, with its reason, or `None` where all pass."""
    checks, files = watching(module)
    with jax.disable_jit(), open(os.devnull, "w") as nowhere:
        for check in checks:
            try:
                check()
            except BaseException as reason:
                return f"{type(reason).__name__}: {str(reason)[:160]}"
        for file in files:
            arguments = ["-x", "-q", "-p", "no:cacheprovider", "-o", "addopts=", str(ROOT / file)]
            with redirect_stdout(nowhere), redirect_stderr(nowhere):
                code = pytest.main(arguments)
            if code != 0:
                return f"{file} (exit {int(code)})"
    return None


def main() -> None:
    for line in sys.stdin:
        module, number = line.split()
        found = list(mutants(module))
        # Without a change, nothing may be noticed.
        text = source(module) if number == "-" else mutated(found[int(number)])
        with planted(module, text):
            answer = noticed_by(module)
        print("answer", json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
