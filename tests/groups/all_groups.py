"""The groups that every law is tested on, made when first asked for."""

from functools import cache

import numpy as np
import pytest

import retrax as rx


def unit(n, i, j):
    e = np.zeros((n, n))
    e[i, j] = 1.0
    return e


SO4 = [unit(4, i, j) - unit(4, j, i) for i in range(4) for j in range(i)]
SL3 = [unit(3, i, j) for i in range(3) for j in range(3) if i != j]
SL3 += [unit(3, 0, 0) - unit(3, 1, 1), unit(3, 1, 1) - unit(3, 2, 2)]
HEISENBERG = [unit(3, 0, 1), unit(3, 1, 2), unit(3, 0, 2)]
SCALING = [np.diag([1.0, 2.0])]  # no tensor of low degree singles this group out

MAKE = {
    "SO2": rx.SO2,
    "SO3": rx.SO3,
    "SE2": rx.SE2,
    "SE3": rx.SE3,
    "R3": lambda: rx.Translation(3),
    "SO3 x R2": lambda: rx.Product(rx.SO3(), rx.Translation(2)),
    "SE3 x SO2": lambda: rx.Product(rx.SE3(), rx.SO2()),
    "SE3^3": lambda: rx.Power(rx.SE3(), 3),
    "SO4": lambda: rx.MatrixGroup(SO4, name="SO(4)"),
    "SL3": lambda: rx.MatrixGroup(SL3, name="SL(3)"),
    "Heisenberg": lambda: rx.MatrixGroup(HEISENBERG),
    "scaling": lambda: rx.MatrixGroup(SCALING),
}
CLOSED_FORMS = ["SO2", "SO3", "SE2", "SE3", "R3", "SO3 x R2", "SE3 x SO2", "SE3^3"]
SLOW = {"SO4", "SL3", "Heisenberg", "scaling", "SE3 x SO2", "SE3^3"}


@cache
def group(name):
    return MAKE[name]()


def named(*names):
    """Parameters of a test, those that take long to compile marked as slow."""
    return [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in names]
