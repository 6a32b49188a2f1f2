"""All entries."""

from . import basics, energies, quadratic, ready, rods, strings  # noqa: F401
from .entries import REGISTRY as REGISTRY
