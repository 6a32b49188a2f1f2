"""Functions that draw, and where they are."""

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
