"""Runs as pictures: figures for print, a page that moves. Needs the extra `show`.

`import retrax` does not load this; `rx.show` does, when it is first used, and matplotlib comes with
the first figure: pages do without. Every function returns a matplotlib `Figure` that belongs to no
window; a notebook shows it, `save` writes it.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from retrax.errors import RetraxError

if find_spec("matplotlib") is None:
    raise RetraxError("Figures and pages need matplotlib: pip install 'retrax[show]'.")

if TYPE_CHECKING:
    from retrax.show.figures import invariants as invariants
    from retrax.show.figures import momentum_sphere as momentum_sphere
    from retrax.show.figures import overview as overview
    from retrax.show.figures import write_figures as write_figures
    from retrax.show.orders import convergence as convergence
    from retrax.show.orders import work_precision as work_precision
    from retrax.show.quantities import phase_portrait as phase_portrait
    from retrax.show.quantities import quantity as quantity
    from retrax.show.quantities import spectrum as spectrum
    from retrax.show.space_time_diagram import space_time as space_time
    from retrax.show.style import save as save

_FUNCTIONS = {
    "figures": ("invariants", "momentum_sphere", "overview", "write_figures"),
    "orders": ("convergence", "work_precision"),
    "quantities": ("phase_portrait", "quantity", "spectrum"),
    "space_time_diagram": ("space_time",),
    "style": ("save",),
}
_WHERE = {name: module for module, names in _FUNCTIONS.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a function when it is first used."""
    if name not in _WHERE:
        raise AttributeError(f"module 'retrax.show' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"retrax.show.{_WHERE[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted(_WHERE)
