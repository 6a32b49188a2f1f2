"""All entries."""

from . import basics, energies, measures, quadratic, ready, rods, runs, strings  # noqa: F401
from .entries import REGISTRY as REGISTRY
