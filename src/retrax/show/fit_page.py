"""One self-contained page of a fit: parameters, residuals, and what is determined."""

import base64
import html
import io
from pathlib import Path
from string import Template

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from retrax.estimation.result import Fit
from retrax.files import write_text
from retrax.show.page import asset, table_rows
from retrax.show.style import POINTS, extremes, literal, look, new_figure, style
from retrax.trajectory.provenance import versions

_BINS = 41
# The name of a combination lists at most so many unknowns, those that count most.
_SHOWN = 3


def write_fit_page(fit: Fit, path: str | Path) -> Path:
    """Write the page to `path`; it opens without a network and without a server."""
    return write_text(path, lambda: fit_page(fit))


def fit_page(fit: Fit) -> str:
    """Return the page as text."""
    title, subtitle, *_ = fit.lines()
    return Template(asset("fit.html")).substitute(
        title=html.escape(title),
        subtitle=html.escape(subtitle),
        style=asset("page.css"),
        doubts="\n".join(_doubt(note) for note in fit.notes),
        figures="\n".join(_plate(fit, name) for name in fit.residuals),
        parameters=table_rows(fit.rows()),
        names="".join(f'<th scope="col">{html.escape(name)}</th>' for name in fit.names),
        correlations=table_rows(
            [
                (name, *(f"{x:+.3f}" if np.isfinite(x) else "–" for x in row))
                for name, row in zip(fit.names, fit.correlations, strict=True)
            ]
        ),
        combinations=table_rows(_combinations(fit)),
        made=table_rows(_provenance(fit)),
    )


def residual_figure(fit: Fit, name: str) -> Figure:
    """Draw the residuals of a sensor over time, and how they are distributed."""
    t, values = fit.t[name], fit.residuals[name]
    with style():
        figure = new_figure(8.0, 2.9, literal(name))
        grid = figure.add_gridspec(1, 2, width_ratios=[5, 2])
        over_time, spread = figure.add_subplot(grid[0]), figure.add_subplot(grid[1])
        for k, column in enumerate(values.T):
            kept = extremes(column, POINTS)
            over_time.plot(
                t[kept],
                column[kept],
                linestyle="",
                marker=".",
                markersize=2,
                color=look(k)["color"],
            )
            spread.hist(
                column,
                bins=_BINS,
                histtype="step",
                orientation="horizontal",
                **look(k),
            )
        over_time.set_xlabel("time (s)")
        over_time.set_ylabel("residual")
        spread.set_xlabel("count")
    return figure


def _plate(fit: Fit, name: str) -> str:
    figure, stream = residual_figure(fit, name), io.BytesIO()
    with rc_context({"svg.fonttype": "path", "svg.hashsalt": "retrax"}):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    source = base64.b64encode(stream.getvalue()).decode()
    rms = np.sqrt(np.mean(fit.residuals[name] ** 2, axis=0))
    told = ", ".join(f"{x:.3g}" for x in rms)
    return (
        f'<figure><img alt="residuals of {html.escape(name)} over time" '
        f'src="data:image/svg+xml;base64,{source}"><figcaption>{html.escape(name)}: root mean '
        f"square {told}</figcaption></figure>"
    )


def _doubt(note: str) -> str:
    return f'<p class="failure"><strong>Note:</strong> {html.escape(note)}.</p>'


def _combinations(fit: Fit) -> list[tuple[str, ...]]:
    """Return each combination of unknowns, the worst known first."""
    known = fit.identifiability
    unknowns = fit.unknowns
    rows = []
    for k in reversed(range(len(known.singular_values))):
        row = known.combinations[k]
        part = np.argsort(-np.abs(row))[:_SHOWN]
        name = " ".join(f"{row[i]:+.2f} {unknowns[i]}" for i in part if abs(row[i]) > 0.05)
        error = known.relative_errors[k]
        told = f"{error:.1e}" if error < 1 else "not determined"
        rows.append((name, told, f"{known.singular_values[k]:.3g}"))
    return rows


def _provenance(fit: Fit) -> list[tuple[str, ...]]:
    run = fit.run
    return [
        ("system", run.provenance["system"]),
        ("integrator", run.provenance["integrator"]),
        ("step", f"h = {run.h:g} s, {run.steps:,} steps"),
        ("measurements", "; ".join(repr(one).strip("<>") for one in fit.data)),
        *((name, version) for name, version in versions().items()),
    ]
