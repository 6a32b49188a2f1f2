"""A second campaign: hostile calls of many bodies, of traced runs, backwards and at the edges.

Each call is made from a seed. It must end in a sentence, or in numbers that are finite and sound;
members of an ensemble may fail, and say so.
"""

import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import retrax as rx

from .entries import Entry
from .judge import Verdict, judge
from .values import JUNK, NUMBERS, WHOLES

EDGES = [np.nan, np.inf, -np.inf, 0.0, -1.0, -1e-9, 5e-324, 1e-300, 1e300, 1e308, 1e-12, 1e12, 1.0]
METHOD, ONE = rx.RKMK(), jnp.eye(3)
REFUSALS = (rx.BadInput, rx.StepFailed, rx.SweepStopped)

Call = tuple[str, Callable[[], Any]]


def moments(p: Any) -> Any:
    return jnp.stack([jnp.ones(()), jnp.full((), 1.2), jnp.asarray(p, jnp.float64)])


@lru_cache
def top() -> Any:
    return rx.systems.HeavyTop([1.0, 1.2, 0.9], 1.0, [0.0, 0.1, 0.6])


@lru_cache
def suslov() -> Any:
    return rx.systems.Suslov([1.0, 1.2, 0.9])


MAKERS: dict[str, Callable[[Any], Any]] = {
    "top by mass": lambda p: rx.systems.HeavyTop([1.0, 1.2, 0.9], p, [0.0, 0.1, 0.6]).inertia,
    "top by arm": lambda p: rx.systems.HeavyTop([1.0, 1.2, 0.9], 1.0, p * jnp.ones(3)).arm,
    "body by moment": lambda p: rx.systems.FreeRigidBody(moments(p)).inertia,
    "body by matrix": lambda p: rx.systems.FreeRigidBody(jnp.diag(moments(p))).inertia,
    "sleigh by inertia": lambda p: rx.systems.ChaplyginSleigh(1.0, p, 0.2).inertia_at(None),
    "ball by radius": lambda p: rx.systems.BallOnTurntable(1.0, p, 0.9).radius,
    "state by spin": lambda p: top().state(jnp.eye(3), velocity=p * jnp.ones(3)).momentum,
    "state by place": lambda p: top().state(p * jnp.eye(3), velocity=jnp.ones(3)).momentum,
    "state by time": lambda p: top().state(jnp.eye(3), velocity=jnp.ones(3), t=p).t,
    "suslov by spin": lambda p: (
        suslov().state(jnp.eye(3), velocity=jnp.stack([jnp.ones(()), jnp.ones(()), p])).momentum
    ),
    "rotation": lambda p: rx.SO3().project(jnp.diag(moments(p))),
}
TRANSFORMS: dict[str, Callable[[Any, Any], Any]] = {
    "vmap": lambda f, x: jax.vmap(f)(jnp.array([1.0, x])),
    "jvp": lambda f, x: jax.jvp(f, (jnp.asarray(x),), (jnp.ones(()),))[0],
    "vmap of vmap": lambda f, x: jax.vmap(jax.vmap(f))(jnp.array([[1.0], [x]])),
    "alone": lambda f, x: f(x),
}


def made(rng: np.random.Generator) -> Iterator[Call]:
    """Systems and states under transformations."""
    while True:
        maker, transform = rng.choice(list(MAKERS)), rng.choice(list(TRANSFORMS))
        x = rng.choice(EDGES) if rng.random() < 0.7 else rng.normal() * 10.0 ** rng.integers(-9, 9)
        yield (
            f"{transform} {maker} p={x}",
            lambda f=MAKERS[maker], t=TRANSFORMS[transform], x=float(x): t(f, x),
        )


def any_of(rng: np.random.Generator, *lists: list[Any]) -> Any:
    values = [v for some in lists for v in some]
    return values[rng.integers(len(values))]


def _short(value: Any) -> bool:
    return not (isinstance(value, int) and value > 10**4)


COUNTS = [v for v in (*JUNK, *WHOLES) if _short(v)]
SIZES = [v for v in (*JUNK, *NUMBERS) if not isinstance(v, rx.Exp)]


def stacked(count: int = 3) -> rx.State:
    one = top().state(jnp.eye(3), velocity=[0.3, 0.2, 1.0])
    return jax.tree.map(lambda x: jnp.stack([x] * count), one)


def runs_of_many(rng: np.random.Generator) -> Iterator[Call]:
    """Ensembles with one thing wrong."""
    while True:
        given: dict[str, Any] = {"system": top(), "integrator": METHOD, "states": stacked(),
                                 "h": 0.01, "steps": 3, "save_every": None}  # fmt: skip
        what = rng.choice(["system", "integrator", "states", "h", "steps", "save_every", "t",
                           "momentum", "g", "size"])  # fmt: skip
        states, edge = given["states"], rng.choice(EDGES)
        if what in ("t", "momentum"):
            array = np.array(getattr(states, what))
            array[1] = edge
            parts = {"g": states.g, "momentum": states.momentum, "t": states.t}
            given["states"] = rx.State(**(parts | {what: jnp.asarray(array)}))
        elif what == "g":
            given["states"] = rx.State(edge * states.g, states.momentum, states.t)
        elif what == "size":
            given["h"] = float(rng.choice([-1, 1]) * 10.0 ** rng.uniform(-12, 0.5))
        elif what in ("steps", "save_every"):
            given[what] = any_of(rng, COUNTS)
        else:
            given[what] = any_of(rng, SIZES if what == "h" else JUNK)
        yield f"ensemble {what}={str(given.get(what, edge))[:40]}", lambda g=given: _ensemble(**g)


def _ensemble(**given: Any) -> Any:
    runs = rx.ensemble(**given)
    lost = runs["failed_step"].values > 0
    return runs["momentum"].values[:, ~lost], runs["time"].values


def single_runs(rng: np.random.Generator) -> Iterator[Call]:
    """Runs of one body, forward and backward, at the edges of numbers."""
    while True:
        h = float(rng.choice([-1, 1]) * 10.0 ** rng.uniform(-15, 1))
        if rng.random() < 0.3:
            h = any_of(rng, SIZES)
        spin = rng.normal(size=3) * 10.0 ** rng.uniform(-12, 12)
        t = float(rng.choice([0.0, 1e3, 1e9, 1e15, 1e18, -1e18, np.nan, 1e308]))
        steps = any_of(rng, COUNTS) if rng.random() < 0.2 else int(rng.integers(1, 20))
        yield (
            f"simulate h={str(h)[:30]} spin={spin} t={t} steps={str(steps)[:20]}",
            lambda h=h, spin=spin, t=t, steps=steps: _run(h, spin, t, steps),
        )


def _run(h: Any, spin: Any, t: float, steps: Any) -> Any:
    state = top().state(jnp.eye(3), velocity=spin, t=t)
    run = rx.simulate(top(), METHOD, state, h=h, steps=steps)
    assert np.all(np.diff(run.t) * np.sign(run.h) > 0), "times stand still"
    assert np.all(run.group_defect() < 1e-9), "left the group"
    return run


def traced_runs(rng: np.random.Generator) -> Iterator[Call]:
    """Runs under transformations; the steps are few, the numbers hostile."""
    line = rx.Translation(1)
    free = rx.MechanicalSystem(line, [1.0])
    start = free.state([0.3], velocity=[0.5])

    def f(k: Any, h: Any) -> Any:
        system = rx.MechanicalSystem(line, [1.0], lambda x: k * x[0] ** 2 / 2)
        run = rx.simulate(system, METHOD, start, h=h, steps=2)
        return jnp.where(run.failed[-1], 0.0, run.final.g[0])

    while True:
        name, x = rng.choice(["vmap", "jvp", "vmap of vmap"]), float(rng.choice(EDGES))
        hidden = rng.random() < 0.5
        yield (
            f"traced {name} {'k' if hidden else 'h'}={x}",
            lambda t=TRANSFORMS[name], x=x, hidden=hidden: t(
                (lambda k: f(k, 0.1)) if hidden else (lambda h: f(1.0, h)), x
            ),
        )


def sweeps(rng: np.random.Generator) -> Iterator[Call]:
    """Sweeps with one thing wrong; they run in this process."""

    def make(mass: Any) -> Any:
        body = rx.systems.HeavyTop([1.0, 1.2, 0.9], mass, [0.0, 0.1, 0.6])
        return body, body.state(jnp.eye(3), velocity=[0.3, 0.2, 1.0])

    while True:
        given: dict[str, Any] = {"make": make, "integrator": METHOD, "grid": {"mass": [1.0, 2.0]},
                                 "h": 0.01, "steps": 2, "client": "serial"}  # fmt: skip
        what = rng.choice(["make", "integrator", "grid", "mass", "samples", "h", "steps", "chunk"])
        if what == "mass":
            given["grid"] = {"mass": [1.0, any_of(rng, EDGES[:6], JUNK)]}
        else:
            given[what] = any_of(rng, COUNTS if what in ("steps", "chunk") else SIZES)
        yield f"sweep {what}={str(given.get(what))[:40]}", lambda g=given: _sweep(**g)


def _sweep(**given: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        runs = rx.sweep(store=Path(folder) / "s", **given)
        lost = runs["failed_step"].values > 0
        return runs["momentum"].values[..., 0][..., ~lost.reshape(-1)] if lost.ndim == 1 else 0.0


def methods(rng: np.random.Generator) -> Iterator[Call]:
    """What is public on groups, systems and runs, with wrong kinds and shapes."""
    run = rx.simulate(top(), METHOD, top().state(jnp.eye(3), velocity=[0.3, 0.2, 1.0]), h=0.01,
                      steps=2)  # fmt: skip
    groups = [rx.SO2(), rx.SO3(), rx.SE2(), rx.SE3(), rx.SO(4)]
    while True:
        junk = any_of(rng, JUNK, NUMBERS)
        group = groups[rng.integers(len(groups))]
        calls: list[Call] = [
            (f"{group}.check({str(junk)[:40]})", lambda j=junk, G=group: G.check("g", j)),
            (f"state({str(junk)[:40]})", lambda j=junk: top().state(j, velocity=[1.0, 0.0, 0.0])),
            (f"velocity={str(junk)[:40]}", lambda j=junk: top().state(jnp.eye(3), velocity=j)),
            (f"t={str(junk)[:40]}", lambda j=junk: top().state(ONE, velocity=[0, 0, 1], t=j)),
            (f"save({str(junk)[:40]})", lambda j=junk: run.save(j)),
            (f"rotation {str(junk)[:40]}", lambda j=junk: rx.SO3().project(j)),
            (f"constraint {str(junk)[:40]}", lambda j=junk: rx.VelocityConstraint(j)),
        ]  # fmt: skip
        yield calls[rng.integers(len(calls))]


# How many of each; those that compile for each call are few.
CAMPAIGN = {
    made: 400, runs_of_many: 150, single_runs: 150, methods: 200, sweeps: 70, traced_runs: 30,
}  # fmt: skip


def hostile_calls(seed: int = 16) -> Iterator[Call]:
    for kind, count in CAMPAIGN.items():
        calls = kind(np.random.default_rng(seed))
        for _ in range(count):
            yield next(calls)


def judged(what: str, function: Callable[[], Any]) -> Verdict:
    return judge(Entry(what, lambda: function(), dict, refusals=REFUSALS, sound=_taken), {})


def _taken(result: Any) -> bool:
    return True


def main() -> int:
    wrong, counts = 0, {"accepted": 0, "refused": 0, "python": 0, "wrong": 0}
    with tempfile.TemporaryDirectory() as folder:
        import os

        os.chdir(folder)  # paths that are accepted are written here
        for what, call in hostile_calls():
            verdict = judged(what, call)
            counts[verdict.outcome] += 1
            if verdict.outcome == "wrong":
                wrong += 1
                print(f"WRONG {what}: {verdict.detail}", flush=True)
    print(counts)
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
