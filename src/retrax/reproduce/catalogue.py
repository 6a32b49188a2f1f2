"""The papers that can be reproduced."""

from importlib import import_module

from retrax.reproduce.paper import Paper

# Each module has a `PAPER`; it is loaded when somebody asks for it.
PAPERS: dict[str, str] = {
    "nonholonomic": "retrax.reproduce.nonholonomic",
    "kahan": "retrax.reproduce.kahan",
    "pseudospectral": "retrax.reproduce.pseudospectral",
    "rods": "retrax.reproduce.rods",
    "string-pendulum": "retrax.reproduce.string_pendulum",
}


def paper(name: str) -> Paper:
    """The paper of that name."""
    return import_module(PAPERS[name]).PAPER
