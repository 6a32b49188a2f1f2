"""Measurements, and fits to them."""

import tempfile
from functools import lru_cache
from pathlib import Path

import numpy as np
import xarray as xr

import retrax as rx

from .entries import entry
from .runs import MAY_FAIL, few, start, top

KIND = "estimation"


def measured(data) -> bool:
    """Rotations on the group, at times in order."""
    several = data if isinstance(data, list) else [data]
    return all(np.all(np.diff(one.t) >= 0) and np.isfinite(one.values).all() for one in several)


@lru_cache
def motion() -> rx.Trajectory:
    return rx.simulate(top(), rx.LieVerlet(), start(), h=0.01, steps=40, save_every=2)


@entry("Measurements", kind=KIND, sound=measured)
def _measurements():
    return {
        "t": motion().t, "values": np.asarray(motion().g), "of": "attitude", "noise": 0.01,
        "order": None, "unit": None, "time_unit": None, "missing": "refuse", "name": None,
    }  # fmt: skip


@lru_cache
def table() -> Path:
    path = Path(tempfile.mkdtemp()) / "record.csv"
    path.write_text("t,x,y\n0,1,2\n1,2,3\n2,3,4\n")
    return path


@entry("Measurements.read", kind=KIND, sound=measured, weight=0.3)
def _read():
    return {"path": table(), "noise": 0.1, "missing": "refuse", "time_unit": None}


@entry("Measurements.from_dataset", kind=KIND, sound=measured, weight=0.3)
def _from_dataset():
    place = ("time", "axis")
    data = xr.Dataset({"position": (place, np.ones((5, 3)))}, {"time": np.arange(5.0)})
    return {"data": data, "noise": 0.1, "missing": "refuse", "time_unit": None}


def heavy(p):
    return rx.systems.HeavyTop(p["inertia"], 1.0, [0.0, 0.1, 0.6])


@entry("fit", kind=KIND, refusals=MAY_FAIL, pairs=False, values=few, cheap=False, weight=0.02)
def _fit():
    data = rx.Measurements(motion().t, np.asarray(motion().g), noise=0.01)
    return {
        "system_of": heavy, "data": data, "start": {"inertia": [1.2, 1.6, 0.8]}, "state": start(),
        "free_state": True, "integrator": "lie-verlet", "h": 0.02, "method": "auto", "most": 10,
    }  # fmt: skip


@entry("smooth", kind=KIND, refusals=MAY_FAIL, pairs=False, values=few, cheap=False, weight=0.02)
def _smooth():
    data = rx.Measurements(motion().t, np.asarray(motion().g), noise=0.01)
    return {
        "system": top(), "data": data, "noise": 0.1, "h": 0.02, "state": start(),
        "integrator": "rkmk-4", "most": 5,
    }  # fmt: skip


@entry("analysis.modified_energy", kind=KIND, refusals=MAY_FAIL, weight=0.2)
def _modified():
    return {"run": motion(), "samples": 4, "reach": 3, "nodes": 8}


@entry("analysis.poincare", kind=KIND, refusals=MAY_FAIL, weight=0.2)
def _poincare():
    return {"run": motion(), "section": lambda state: state.g[0, 0] - 0.5, "direction": 0}


@entry(
    "analysis.work_precision", kind=KIND, refusals=MAY_FAIL, pairs=False, cheap=False, weight=0.1
)
def _work_precision():
    return {
        "systems": (top(), start()), "methods": ["lie-verlet"], "time": 0.1, "h": [0.02],
        "reference": rx.RKMK("rk4"), "repeats": 1,
    }  # fmt: skip
