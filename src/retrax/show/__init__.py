"""Runs as pictures: figures for print, a page that moves. Needs the extra `show`."""

from importlib.util import find_spec

from retrax.errors import RetraxError

for _package in ("matplotlib", "plotly"):
    if find_spec(_package) is None:
        raise RetraxError(
            f"Figures and pages need {_package}, which is not there: pip install 'retrax[show]'."
        )
