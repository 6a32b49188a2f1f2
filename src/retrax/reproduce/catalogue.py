"""The papers that can be reproduced."""

from collections.abc import Callable
from pathlib import Path

from retrax.reproduce.report import Reproduction


def _nonholonomic(folder: Path) -> Reproduction:
    from retrax.reproduce.nonholonomic import reproduce

    return reproduce(folder)


def _kahan(folder: Path) -> Reproduction:
    from retrax.reproduce.kahan import reproduce

    return reproduce(folder)


def _pseudospectral(folder: Path) -> Reproduction:
    from retrax.reproduce.pseudospectral import reproduce

    return reproduce(folder)


def _rods(folder: Path) -> Reproduction:
    from retrax.reproduce.rods import reproduce

    return reproduce(folder)


def _string_pendulum(folder: Path) -> Reproduction:
    from retrax.reproduce.string_pendulum import reproduce

    return reproduce(folder)


PAPERS: dict[str, Callable[[Path], Reproduction]] = {
    "nonholonomic": _nonholonomic,
    "kahan": _kahan,
    "pseudospectral": _pseudospectral,
    "rods": _rods,
    "string-pendulum": _string_pendulum,
}
