"""States, runs of one body and of many, and what is measured on them."""

import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

import retrax as rx

from .entries import entry
from .rods import rod
from .values import JUNK, NUMBERS, WHOLES, raises, wrong

MAY_FAIL = (rx.BadInput, rx.StepFailed)
MAY_BREAK = (*MAY_FAIL, rx.CheckFailed)
# Runs so long that they would go on for hours are no mistake, so they are not asked for.


def _as_step(value: Any) -> bool:
    single = isinstance(value, float | np.floating) and np.isfinite(value)
    return not single or value <= 0.5 or value == 1e300


def short(value: Any) -> bool:
    return not (isinstance(value, int) and 10**4 < value)


few = {
    name: st.sampled_from([v for v in (*JUNK, *WHOLES) if short(v)]) | st.integers(-3, 40)
    for name in ("steps", "save_every", "skip", "halvings")
}


@lru_cache
def top() -> rx.systems.HeavyTop:
    return rx.systems.HeavyTop([1.2, 1.6, 0.8], 1.0, [0.0, 0.1, 0.6])


@lru_cache
def start() -> rx.State:
    return top().state(rx.SO3().exp(jnp.array([1.0, 0.0, 0.2])), velocity=[0.6, 0.2, 3.0])


def on_the_group(run: rx.Trajectory) -> bool:
    """A run that was accepted is one: on the group, times in order, energies finite."""
    energy = run.invariants()["energy"]
    in_order = bool(np.all(np.diff(run.t) * np.sign(run.h) > 0))
    return (
        in_order and bool(np.all(run.group_defect() < 1e-9)) and bool(np.all(np.isfinite(energy)))
    )


OTHERS = st.sampled_from(
    [
        rx.RKMK(), rx.Kahan(), rx.LagrangeDAlembert(), rx.RollingVerlet(), rx.ContactDKD(),
        rx.KahanAttitude(), rx.HamelMidpoint(), rx.RadialProjection(rx.Kahan()),
        rx.ContactMidpoint(), rx.ProjectedLift(), rx.RollingDKD(),
    ]
)  # fmt: skip


# Steps that are too long: each is looked into, which takes a second, so there are few of them.
STEPS = st.sampled_from([v for v in (*JUNK, *NUMBERS) if _as_step(v)]) | st.floats(1e-9, 0.05)
# A function that is called as a run goes on may raise what it likes, and it is heard.
CALLED = st.sampled_from(
    [v for v in (*JUNK, *NUMBERS) if v is not raises and not isinstance(v, rx.Exp)]
)


def systems() -> st.SearchStrategy[Any]:
    """Systems that do not fit the state or the integrator."""
    other = [
        lambda: rx.systems.Suslov([1.0, 2.0, 2.5]), lambda: rx.systems.EulerTop([1.0, 2.0, 2.5]),
        lambda: rx.systems.Kuramoto([0.1, 0.2], 0.5), lambda: rod(), lambda: rx.systems.Toda(3),
        lambda: rx.systems.ChaplyginSleigh(1.0, 0.5, 0.2),
        lambda: rx.systems.StringsInContact(n=32),
    ]  # fmt: skip
    return st.sampled_from(other).map(lambda make: make())


@entry(
    "simulate", kind="runs", refusals=MAY_FAIL, sound=on_the_group, pairs=False,
    values=few | {
        "integrator": wrong(None) | OTHERS,
        "system": wrong(None) | systems(),
        "h": STEPS,
        "progress": CALLED,
    },
)  # fmt: skip
def _simulate():
    return {
        "system": top(), "integrator": rx.LieVerlet(), "state": start(), "h": 0.01, "steps": 5,
        "save_every": 2, "progress": False, "backend": "native",
    }  # fmt: skip


@entry(
    "prepare", kind="runs", refusals=MAY_FAIL, pairs=False,
    values=few | {
        "integrator": wrong(None) | OTHERS,
        "system": wrong(None) | systems(),
        "h": STEPS,
        "progress": CALLED,
    },
)  # fmt: skip
def _prepare():
    return {
        "system": top(), "integrator": rx.LieVerlet(), "h": 0.01, "save_every": 2,
        "progress": False, "backend": "native",
    }  # fmt: skip


def _from_state(**given: Any) -> rx.Trajectory:
    return rx.simulate(top(), rx.LieVerlet(), rx.State(**given), h=0.01, steps=5)


@entry("State", _from_state, kind="runs", refusals=MAY_FAIL, sound=on_the_group)
def _state():
    return {"g": np.asarray(start().g), "momentum": np.asarray(start().momentum), "t": 0.0}


def _from_fields(system: Any, x: Any) -> Any:
    return rx.simulate(system, rx.Kahan(), x, h=0.05, steps=5)


@entry("simulate (field)", _from_fields, kind="runs", refusals=MAY_FAIL, weight=0.5)
def _field():
    return {"system": rx.systems.EulerTop([1.0, 2.0, 2.5]), "x": [0.3, 0.2, 0.9]}


@lru_cache
def sphere_flow() -> rx.SpaceFlow:
    return rx.SpaceFlow(rx.Sphere(3), lambda t, y: jnp.stack([y[2], 0.0 * t, 1.0 + y[0]]))


def _from_point(y: Any, h: Any, steps: Any) -> Any:
    return rx.simulate(sphere_flow(), rx.RKMK(), y, h=h, steps=steps)


@entry("simulate (point)", _from_point, kind="runs", refusals=MAY_FAIL, values=few, weight=0.5)
def _point():
    return {"y": [0.0, 0.6, 0.8], "h": 0.05, "steps": 4}


@lru_cache
def velocities() -> jax.Array:
    return jnp.asarray(np.random.default_rng(0).normal(size=(4, 3)))


@lru_cache
def members() -> rx.State:
    return jax.vmap(lambda v: top().state(start().g, velocity=v))(velocities())


def failed_or_finite(runs: Any) -> bool:
    """Members that did not fail have finite numbers."""
    momentum = runs["momentum"].values.reshape(-1, runs.sizes["member"], 3)
    kept = runs["failed_step"].values < 0
    return bool(np.isfinite(momentum[:, kept]).all())


@entry(
    "ensemble", kind="runs", refusals=MAY_FAIL, sound=failed_or_finite, pairs=False, weight=0.7,
    values=few | {
        "integrator": wrong(None) | OTHERS, "system": wrong(None) | systems(), "h": STEPS,
        "progress": CALLED,
    },
)  # fmt: skip
def _ensemble():
    return {
        "system": top(), "integrator": rx.LieVerlet(), "states": members(), "h": 0.01, "steps": 5,
        "save_every": 2, "backend": "native", "devices": None, "progress": False,
    }  # fmt: skip


def _from_members(**given: Any) -> Any:
    return rx.ensemble(top(), rx.LieVerlet(), rx.State(**given), h=0.01, steps=5)


@entry("ensemble (states)", _from_members, kind="runs", refusals=MAY_FAIL, sound=failed_or_finite)
def _states():
    return {
        "g": np.asarray(members().g), "momentum": np.asarray(members().momentum),
        "t": np.asarray(members().t),
    }  # fmt: skip


BODIES = {
    "HeavyTop": lambda: (top(), start().g, [0.6, 0.2, 3.0]),
    "Suslov": lambda: (rx.systems.Suslov([1.0, 2.0, 2.5]), jnp.eye(3), [0.3, 0.7, 0.0]),
    "ChaplyginSleigh": lambda: (
        rx.systems.ChaplyginSleigh(1.5, 0.8, 0.6), (jnp.eye(2), jnp.zeros(2)), [1.2, -0.6, 0.0],
    ),
    "Blade": lambda: (
        rx.systems.Blade([1.0, 1.3, 0.9], 1.4, [0.2, -0.1, 0.3]), (jnp.eye(3), jnp.zeros(3)),
        [0.7, -0.4, 1.1, 0.9, 0.0, 0.0],
    ),
    "Rod": lambda: (rod(), rod().straight(), np.zeros(24)),
    "LagrangianSystem": lambda: (
        rx.LagrangianSystem(rx.SO3(), lambda R, xi: xi @ xi - R[2, 2]), jnp.eye(3), [0.1, 0.2, 0.3]
    ),
}  # fmt: skip


def _register_states() -> None:
    for name, make in BODIES.items():

        def given(make=make):
            _, g, velocity = make()
            return {"g": g, "velocity": velocity, "momentum": None, "t": 0.0, "project": False}

        def state(make=make, **arguments):
            return make()[0].state(**arguments)

        quick = name == "HeavyTop"
        entry(f"{name}.state", state, kind="states", cheap=quick, weight=1 if quick else 0.2)(given)


_register_states()


def make(mass: float) -> tuple[Any, Any]:
    body = rx.systems.HeavyTop([1.2, 1.6, 0.8], mass, [0.0, 0.1, 0.6])
    return body, body.state(jnp.eye(3), velocity=[0.6, 0.2, 3.0])


@entry(
    "sweep", kind="runs", refusals=(rx.BadInput, rx.SweepStopped), pairs=False, weight=0.1,
    cheap=False,
    values=few | {
        "client": st.sampled_from([v for v in JUNK if not isinstance(v, str | None)]),
        "integrator": wrong(None) | OTHERS, "h": STEPS, "progress": CALLED,
        "store": st.sampled_from([v for v in JUNK if not isinstance(v, str)]),
        "retries": few["steps"],
    },
)  # fmt: skip
def _sweep():
    store = Path(tempfile.mkdtemp(prefix="retrax-bad-input-")) / "sweep.zarr"
    return {
        "make": make, "integrator": rx.LieVerlet(), "grid": {"mass": [1.0, 2.0]}, "h": 0.01,
        "steps": 5, "save_every": 2, "store": store, "measure": None, "client": "serial",
        "chunk": 1, "retries": 1, "backend": "native", "progress": False,
    }  # fmt: skip
