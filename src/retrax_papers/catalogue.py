"""The papers that can be reproduced, each a list of parts to make one after the other."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from retrax_papers.report import Reproduction


class Part(NamedTuple):
    """A piece of work that leaves its own findings, numbers and figures.

    **Attributes:**

    - `name`: unique in its paper; `what`: a few words for the progress bar and the page.
    - `make(folder, quick)`: does it, and writes its files into `folder`. `quick` asks for shorter
        runs and coarser samples that still fill every figure.
    - `cost`: about how many seconds it takes, quick and in full, for the estimate of the time left.
    """

    name: str
    what: str
    make: Callable[[Path, bool], Reproduction]
    cost: tuple[float, float] = (1.0, 1.0)


class Paper(NamedTuple):
    """A paper: its name here, its title, one sentence on what was found, and its parts."""

    name: str
    title: str
    about: str
    parts: tuple[Part, ...]
    cover: str
    """The figure that stands for the paper on the index page, if there is no motion to watch."""
    authors: str = ""
    """As the copy that was used names them; empty where it does not."""
    published: str = ""
    """Where and when, as far as it is known."""
    link: str = ""
    """An address where the paper is found."""
    seen: str = ""
    """What one sees in the motion: one sentence."""


# The module whose `PAPER` is loaded when somebody asks for it.
PAPERS: dict[str, str] = {
    "nonholonomic": "retrax_papers.nonholonomic.paper",
    "kahan": "retrax_papers.kahan.paper",
    "pseudospectral": "retrax_papers.pseudospectral.paper",
    "rods": "retrax_papers.rods.paper",
    "string-pendulum": "retrax_papers.string_pendulum.paper",
    "touching": "retrax_papers.touching.paper",
}


def paper(name: str) -> Paper:
    """Load the paper of that name."""
    return import_module(PAPERS[name]).PAPER
