"""What smoothing found: states with their covariances, and the impulses that were needed."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from retrax.files import as_path, require_place
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.trajectory.observe import along

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


class Smoothed(NamedTuple):
    r"""The most likely motion, and how well it is known.

    **Attributes:**

    - `t`, `states`: times and states at every step, stacked.
    - `covariances`: of each state, of left-trivialised changes $(\eta, \alpha)$ of $(g, \mu)$, with
        everything that was measured, before it and after it.
    - `controls`: the impulse at the end of each step, in body coordinates; `control_noise`: the
        standard deviation that was given for it.
    - `residuals`, `times`: by sensor, in its units; `chi2`: their sum of squares over their noise.
    - `converged`, `looks`: whether the linearisations came to rest, and how many there were.
    - `system`, `integrator`: the objects.
    """

    t: Float[np.ndarray, " time"]
    states: State
    covariances: Float[np.ndarray, "time n n"]
    controls: Float[np.ndarray, "step dim"]
    control_noise: Float[np.ndarray, " dim"]
    residuals: dict[str, np.ndarray]
    times: dict[str, np.ndarray]
    chi2: float
    converged: bool
    looks: int
    system: AbstractGroupSystem
    integrator: AbstractIntegrator

    def __repr__(self) -> str:
        return (
            f"<Smoothed motion of the {self.system.name}: {len(self.t)} states from t = "
            f"{self.t[0]:g} to {self.t[-1]:g} s, chi2 = {self.chi2:.4g} of "
            f"{sum(r.size for r in self.residuals.values())} residuals>"
        )

    @property
    def standard_errors(self) -> Float[np.ndarray, "time n"]:
        r"""Of each state, for $\eta$ and then $\alpha$."""
        return np.sqrt(np.einsum("kii->ki", self.covariances))

    @property
    def force(self) -> Float[np.ndarray, "step dim"]:
        """The force that the system lacks: impulses over the time of their steps."""
        return self.controls / np.diff(self.t)[:, None]

    def along(self, function: Any) -> np.ndarray:
        """Return the values of a function of the state, written in JAX, at every state."""
        return along(function, self.states)

    def dataset(self) -> "xr.Dataset":
        """Return momenta, covariances, controls and residuals as an `xarray.Dataset`."""
        import jax
        import xarray as xr

        found: dict[str, Any] = {
            f"g{k or ''}": (("time", *(f"g{k or ''}_{i}" for i in range(x.ndim - 1))), x)
            for k, x in enumerate(jax.tree.leaves(self.states.g))
        }
        found["momentum"] = (("time", "body"), self.states.momentum)
        found["covariance"] = (("time", "change", "with_change"), self.covariances)
        found["control"] = (("step", "body"), self.controls)
        for name, values in self.residuals.items():
            found[f"residual of {name}"] = ((f"t of {name}", f"component of {name}"), values)
        places: dict[str, Any] = {"time": self.t}
        places |= {f"t of {name}": t for name, t in self.times.items()}
        told = {"system": self.system.name, "integrator": repr(self.integrator), "chi2": self.chi2}
        return xr.Dataset(found, places, told)

    def save(self, path: str | Path) -> Path:
        """Write `dataset()` to a NetCDF file, whole; `xarray.open_dataset` reads it."""
        from retrax.store.netcdf import write_netcdf

        path = as_path(path)
        require_place(path)
        write_netcdf(self.dataset(), path)
        return path

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Draw velocities, the force that the system lacks, and residuals; write it to `path`."""
        from retrax.show.figures import smoothing
        from retrax.show.style import save

        figure = smoothing(self)
        if path is not None:
            save(figure, path)
        return figure
