"""How a run is shown: figures, the page, a cell of a notebook, a movie, a sound."""

import abc
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Array

from retrax.errors import RetraxError
from retrax.mechanics.state import State
from retrax.numerics.checks import require_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from retrax.show.notebook import Animation
    from retrax.show.pictures.own import Draw
    from retrax.trajectory.trajectory import Trajectory


class AbstractShown(abc.ABC):
    """What a trajectory can draw of itself. Matplotlib is loaded when it is first asked for."""

    @abc.abstractmethod
    def _with_numbers(self, what: str) -> "Trajectory":
        """Return the run; reject `what` while JAX is tracing it."""

    def _inline_image(self) -> str | None:
        """Return the address of a small picture, where matplotlib is there."""
        try:
            from retrax.show.figures import inline_image
        except RetraxError:
            return None
        return inline_image(self._with_numbers("plot()"))

    def plot(self, path: str | Path | None = None, draw: "Draw | None" = None) -> "Figure":
        """Draw the invariants and the motion as one matplotlib figure; write it to `path`.

        The suffix chooses the format: `.svg` and `.pdf` hold vectors, `.png` pixels.
        `retrax.show` has more figures.

        **Arguments:** `draw`: how the system looks, shapes of `rx.draw` on its bodies or a function
        of the configuration that returns shapes, instead of what the system itself says.
        """
        from retrax.show import overview, save

        figure = overview(self._with_numbers("plot()"), draw)
        if path is not None:
            save(figure, path)
        return figure

    def report(self, path: str | Path, live: bool = False, draw: "Draw | None" = None) -> Path:
        """Write one self-contained HTML page: the motion in 3-D with its invariants beside it.

        With `live` the page has the step of the run as WebAssembly: sliders for start and
        parameters, and the motion goes on from there. `draw` is that of `plot`.
        """
        from retrax.show.page import write_page

        return write_page(self._with_numbers("report(path)"), path, live, draw)

    def animate(self, height: int = 640, draw: "Draw | None" = None) -> "Animation":
        """Show the page of the run in a cell of a notebook, `height` pixels high.

        `draw` is that of `plot`.
        """
        from retrax.show.notebook import Animation
        from retrax.show.page import page

        height = require_whole("height", height, 100, 10_000)
        return Animation(page(self._with_numbers("animate()"), draw=draw), height)

    def movie(self, path: str | Path, **settings: Any) -> Path:
        """Write the motion as a GIF, an MP4 or a PNG; see `retrax.show.movie.write_movie`."""
        from retrax.show.movie import write_movie

        return write_movie(self._with_numbers("movie(path)"), path, **settings)

    def sound(
        self,
        path: str | Path,
        observable: Callable[[State], Array] | np.ndarray | None = None,
        **settings: Any,
    ) -> Path:
        """Write a quantity along the run as a WAV file; see `retrax.show.sound.write_sound`."""
        from retrax.show.sound import write_sound

        return write_sound(self._with_numbers("sound(path)"), path, observable, **settings)
