"""Runs as pictures: figures for print, a page that moves. Needs the extra `show`."""

from importlib.util import find_spec

from retrax.errors import RetraxError

if find_spec("matplotlib") is None:
    raise RetraxError(
        "Figures and pages need matplotlib, which is not there: pip install 'retrax[show]'."
    )
