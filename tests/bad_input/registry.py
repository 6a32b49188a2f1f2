"""All entries."""

from . import (  # noqa: F401
    basics,
    commands,
    energies,
    files,
    measures,
    quadratic,
    ready,
    restarts,
    rods,
    runs,
    strings,
)
from .entries import REGISTRY as REGISTRY
