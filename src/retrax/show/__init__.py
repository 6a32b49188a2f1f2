"""Runs as pictures: figures for print, a page that moves. Needs the extra `show`.

`import retrax` does not load this; `rx.show` does, when it is first used. Every function returns a
matplotlib `Figure` that belongs to no window; a notebook shows it, `save` writes it.
"""

from importlib.util import find_spec

from retrax.errors import RetraxError

if find_spec("matplotlib") is None:
    raise RetraxError("Figures and pages need matplotlib: pip install 'retrax[show]'.")

from retrax.show.figures import invariants as invariants
from retrax.show.figures import momentum_sphere as momentum_sphere
from retrax.show.figures import overview as overview
from retrax.show.figures import write_figures as write_figures
from retrax.show.orders import convergence as convergence
from retrax.show.orders import work_precision as work_precision
from retrax.show.quantities import phase_portrait as phase_portrait
from retrax.show.quantities import quantity as quantity
from retrax.show.quantities import spectrum as spectrum
from retrax.show.space_time import space_time as space_time
from retrax.show.style import save as save
