"""Analysis of methods and of runs, and the checks of laws."""

from functools import lru_cache
from typing import Any

import jax
import numpy as np

import retrax as rx

from .entries import entry
from .runs import MAY_BREAK, MAY_FAIL, few, members, start, top

KIND = "analysis"


def one_step() -> dict[str, Any]:
    return {"system": top(), "integrator": rx.LieVerlet(), "state": start(), "h": 0.02}


@entry(
    "analysis.convergence",
    kind=KIND,
    refusals=MAY_BREAK,
    pairs=False,
    values=few,
    cheap=False,
    weight=0.2,
)
def _convergence():
    return {**one_step(), "h": 0.1, "time": 0.4, "halvings": 2}


@entry("analysis.symplecticity", kind=KIND, refusals=MAY_FAIL, pairs=False, cheap=False, weight=0.1)
def _symplecticity():
    return one_step()


@entry("analysis.reversibility", kind=KIND, refusals=MAY_FAIL, pairs=False, values=few, weight=0.3)
def _reversibility():
    return {**one_step(), "steps": 2}


@entry(
    "analysis.lyapunov",
    kind=KIND,
    refusals=MAY_FAIL,
    pairs=False,
    values=few,
    cheap=False,
    weight=0.4,
)
def _lyapunov():
    return {
        **one_step(), "steps": 40, "skip": 2, "blocks": 4, "history": 20,
        "direction": np.ones(6), "seed": 0,
    }  # fmt: skip


@entry("analysis.kahan_integrals", kind=KIND, values={"degree": few["steps"]}, weight=0.3)
def _integrals():
    return {
        "field": rx.systems.EulerTop([1.0, 2.0, 2.5]), "degree": 2, "functions": None, "seed": 0,
    }  # fmt: skip


@entry("analysis.spectrum", kind=KIND)
def _spectrum():
    t = np.linspace(0.0, 3.0, 31)
    return {"t": t, "values": np.sin(5 * t)}


@entry("analysis.drift", kind=KIND)
def _drift():
    t = np.linspace(0.0, 3.0, 31)
    return {"t": t, "values": np.sin(5 * t)}


def walk() -> np.ndarray:
    return np.cumsum(np.random.default_rng(1).normal(size=40))


@entry("analysis.bias", kind=KIND, weight=0.5)
def _bias():
    return {"t": np.linspace(0.0, 3.0, 40), "errors": walk()}


@entry("analysis.growth_exponent", kind=KIND, weight=0.5)
def _growth():
    return {"errors": walk()}


@lru_cache
def several():
    return rx.ensemble(top(), rx.LieVerlet(), members(), h=0.01, steps=5, save_every=2)


@entry("analysis.observe_members", kind=KIND, cheap=False, weight=0.05)
def _observe():
    return {"system": top(), "runs": several()}


LAWS = {
    "check_group": lambda: {"group": rx.SO2()},
    "check_retraction": lambda: {"retraction": rx.Exp(), "group": rx.SO2()},
    "check_space": lambda: {"space": rx.Sphere(3)},
    "check_system": lambda: {"system": top(), "state": start()},
}
for name, right in LAWS.items():
    entry(f"testing.{name}", kind=KIND, refusals=MAY_BREAK, cheap=False, weight=0.01)(
        lambda right=right: {**right(), "key": jax.random.key(0)}
    )


@entry("testing.check_integrator", kind=KIND, refusals=MAY_BREAK, cheap=False, weight=0.02)
def _check_integrator():
    return {"integrator": rx.RungeKutta("euler"), "problem": None}
