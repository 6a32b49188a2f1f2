"""All entries."""

from . import (  # noqa: F401
    basics,
    commands,
    energies,
    files,
    measures,
    quadratic,
    ready,
    rods,
    runs,
    strings,
)
from .entries import REGISTRY as REGISTRY
