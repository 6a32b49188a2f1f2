"""What a notebook shows of itself: figures, and the moving page of a run."""

import io
from html import escape

from matplotlib import rc_context
from matplotlib.figure import Figure


class NotebookFigure(Figure):
    """A figure that a notebook shows where it ends a cell, without any setting."""

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        with rc_context({"savefig.dpi": 110}):
            self.savefig(stream, format="png")
        return stream.getvalue()


class Animation:
    """The page of a run in a cell of a notebook: it moves, and needs no network.

    **Attributes:** `page`: the page as text; `height`: of the cell, in pixels.
    """

    def __init__(self, page: str, height: int):
        self.page, self.height = page, height

    def __repr__(self) -> str:
        return f"<Animation: a page of {len(self.page) / 1e6:.1f} MB, shown by notebooks>"

    def _repr_html_(self) -> str:
        # What is in the frame cannot reach the notebook.
        return (
            f'<iframe sandbox="allow-scripts" srcdoc="{escape(self.page)}" '
            f'style="width: 100%; height: {self.height}px; border: 0"></iframe>'
        )
