"""Runs as pictures: figures for print, a page that moves. Needs the extra `show`.

`import retrax` does not load this; `rx.show` does, when it is first used, and matplotlib comes with
the first figure: pages do without. Every function returns a matplotlib `Figure` that belongs to no
window; a notebook shows it, `save` writes it.
"""

from importlib.util import find_spec
from typing import Any

from retrax.errors import RetraxError
from retrax.lazy import load, places

if find_spec("matplotlib") is None:
    raise RetraxError("Figures and pages need matplotlib: pip install 'retrax[show]'.")

_WHERE = places(__file__)


def __getattr__(name: str) -> Any:
    """Load a function when it is first used."""
    if name not in _WHERE:
        raise AttributeError(f"module 'retrax.show' has no attribute {name!r}")
    found = globals()[name] = load(_WHERE[name], name)
    return found


def __dir__() -> list[str]:
    return sorted(_WHERE)
