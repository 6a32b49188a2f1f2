"""Contact against MuJoCo and PyElastica, in one run.

    python -m benchmarks.contact [slope slide bowling bounce cradle balls box rod]

One process, all in turn. What is timed of retrax is the whole `rx.simulate`, after a first call
that compiles; of MuJoCo its loop in C, of PyElastica its loop in Python after a first call. Errors
are against closed forms; those of the rod against much finer steps of the same library. A library
that is not installed is left out, with a sentence.
"""

import json
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import retrax as rx
from benchmarks.contact_many import balls, box, rod
from benchmarks.results import RESULTS, save
from benchmarks.turns import Case, in_turn, library

G, FRICTION = 9.81, 0.2
MASS, SIZE = 1.3, np.array([0.3, 0.2, 0.1])
BALL, RADIUS = 2.0, 0.1
UP = np.array([0.0, 0.0, 1.0])
FREE = rx.Product(rx.SO3(), rx.Translation(3))
# Steps of MuJoCo: its default, and much shorter ones.
LONG, SHORT = 2e-3, 2e-4


def slope() -> list[dict]:
    """Let a box rest on a slope below the angle of friction: how far it creeps in 10 s."""
    angle, friction, end = math.radians(20), 0.5, 10.0

    def crept(place: np.ndarray) -> dict[str, float]:
        return {"creep": float(np.hypot(place[0], place[1]))}

    return in_turn(_boxes(angle, friction, end, crept, crept))


def slide() -> list[dict]:
    """Let a box slide down a slope for 10 s: the relative error of its acceleration."""
    angle, end = math.radians(20), 10.0
    exact = G * (math.sin(angle) - FRICTION * math.cos(angle))

    def off(place: np.ndarray) -> dict[str, float]:
        return {"acceleration": float(abs(place[0] / (exact * end**2 / 2) - 1))}

    return in_turn(_boxes(angle, FRICTION, end, off, off))


def _boxes(angle: float, friction: float, end: float, ours: Callable, theirs: Callable):
    """Return a box on a slope in every library: gravity leans, and the floor is level."""
    gravity = G * np.array([math.sin(angle), 0.0, -math.cos(angle)])
    moments = MASS / 12 * (np.sum(SIZE**2) - SIZE**2)
    system = rx.MechanicalSystem(
        FREE,
        np.r_[moments, 3 * [MASS]],
        lambda g: -MASS * (gravity[0] * g[1][0] + gravity[2] * g[1][2]),
        contact=rx.Contacts([(rx.Box(SIZE, body=0), rx.Plane(name="floor"))], friction=friction),
    )
    start = system.state((np.eye(3), SIZE[2] / 2 * UP), velocity=np.zeros(6))
    steps = round(end / 5e-4)
    cases = [
        Case("retrax", end / steps, steps, _ours(system, start, end, steps), lambda x: ours(x[0]))
    ]
    mujoco = library("mujoco_contact")
    for h, settings in _settings(mujoco):
        body, n = mujoco.box(MASS, SIZE, SIZE[2] / 2 * UP), round(end / h)
        made = mujoco.scene(body, np.zeros(6), h, settings, gravity=gravity, friction=friction)
        cases.append(
            Case(settings.name, h, n, lambda m=made, n=n: m.run(n), lambda x: theirs(x.qpos[:3]))
        )
    return cases


def _system(balls: int, contact: rx.Contacts, weight: float):
    """Return balls with contacts and gravity."""
    group = rx.Product(*[rx.SO3(), rx.Translation(3)] * balls)
    moments = np.tile(np.r_[3 * [0.4 * BALL * RADIUS**2], 3 * [BALL]], balls)
    return rx.MechanicalSystem(
        group,
        moments,
        lambda g: BALL * weight * sum(g[2 * k + 1][2] for k in range(balls)),
        contact=contact,
    )


def bowling() -> list[dict]:
    """Throw a ball that slips and then rolls: its speed and its place after 3 s."""
    v, end = 6.0, 3.0
    rolls = 2 * v / (7 * FRICTION * G)
    place = v * rolls - FRICTION * G * rolls**2 / 2 + 5 / 7 * v * (end - rolls)

    def off(x: float, speed: float) -> dict[str, float]:
        return {"speed": abs(speed / (5 / 7 * v) - 1), "place": abs(x / place - 1)}

    lane = rx.Contacts([(rx.Ball(RADIUS, body=0), rx.Plane(name="lane"))], friction=FRICTION)
    system = _system(1, lane, G)
    start = system.state((np.eye(3), RADIUS * UP), velocity=[0, 0, 0, v, 0, 0])
    steps = 3000
    cases = [
        Case(
            "retrax",
            end / steps,
            steps,
            _ours(system, start, end, steps),
            lambda x: off(float(x[0][0]), float(x[1][3])),
        )
    ]
    mujoco = library("mujoco_contact")
    for h, settings in _settings(mujoco):
        body, n = mujoco.ball(BALL, RADIUS, RADIUS * UP), round(end / h)
        velocity = np.array([v, 0, 0, 0, 0, 0])
        made = mujoco.scene(body, velocity, h, settings, gravity=-G * UP, friction=FRICTION)
        cases.append(
            Case(
                settings.name,
                h,
                n,
                lambda m=made, n=n: m.run(n),
                lambda x: off(float(x.qpos[0]), float(x.qvel[0])),
            )
        )
    return in_turn(cases)


def bounce() -> list[dict]:
    """Drop a ball that gives back half of its speed: when the sixth bounce is all but over.

    That is when it falls below 1e-4 of the first height for the last time. At rest, after
    $3\\sqrt{2h_0/g}$, its speed.
    """
    high, part, end = 1.0, 0.5, 2.0
    fall = math.sqrt(2 * high / G)
    begun = fall * (1 + 2 * sum(part**j for j in range(1, 6)))
    rise = part**6 * G * fall
    last = begun + (rise + math.sqrt(rise**2 - 2 * G * 1e-4 * high)) / G

    def off(t: np.ndarray, z: np.ndarray, speed: float) -> dict[str, float]:
        k = int(np.nonzero(z > RADIUS + 1e-4 * high)[0][-1])
        return {"time": abs(float(t[k]) / last - 1), "speed": abs(speed)}

    contact = rx.Contacts([(rx.Ball(RADIUS, body=0), rx.Plane())], restitution=part)
    system = _system(1, contact, G)
    start = system.state((np.eye(3), (RADIUS + high) * UP), velocity=np.zeros(6))
    n = round(end / SHORT)

    def ours():
        run = rx.simulate(system, rx.NonsmoothRattle(), start, h=SHORT, steps=n, progress=False)
        return np.asarray(run.t), np.asarray(run.g[1][:, 2]), float(run.velocity[-1][5])

    cases = [Case("retrax", SHORT, n, ours, lambda x: off(*x))]
    mujoco = library("mujoco_contact")
    if mujoco is not None:
        for h in (SHORT, SHORT / 8):
            body = mujoco.ball(BALL, RADIUS, (RADIUS + high) * UP)
            made = mujoco.scene(
                body,
                np.zeros(6),
                h,
                mujoco.STIFF,
                gravity=-G * UP,
                friction=0.0,
                contact=mujoco.bouncing(part, h),
            )
            steps = round(end / h)
            cases.append(
                Case(
                    mujoco.STIFF.name,
                    h,
                    steps,
                    lambda m=made, k=steps: _heights(mujoco, m, k),
                    lambda x: off(*x),
                )
            )
    return in_turn(cases)


def _heights(mujoco, made, steps: int, stride: int = 10):
    """Return times and heights of a ball, and its speed at the end."""
    data, t, z = made.begun(), [], []
    for _ in range(steps // stride):
        mujoco.mujoco.mj_step(made.model, data, stride)
        t.append(data.time)
        z.append(data.qpos[2])
    return np.array(t), np.array(z), float(data.qvel[2])


def cradle() -> list[dict]:
    """Let an elastic ball hit another one: their momentum, their energy, the speed handed on."""
    v, end, apart = 1.0, 0.5, 0.05

    def off(one: float, two: float) -> dict[str, float]:
        return {
            "momentum": abs(one + two - v) / v,
            "energy": abs(one**2 + two**2 - v**2) / v**2,
            "speed": abs(two - v) / v,
        }

    first, second = (rx.Ball(RADIUS, body=k, name=f"ball {k}") for k in range(2))
    system = _system(2, rx.Contacts([(first, second)], restitution=1.0), 0.0)
    there = (2 * RADIUS + apart) * np.array([1.0, 0.0, 0.0])
    start = system.state(
        (np.eye(3), np.zeros(3), np.eye(3), there), velocity=np.r_[0, 0, 0, v, np.zeros(8)]
    )
    n = 500
    cases = [
        Case(
            "retrax",
            end / n,
            n,
            _ours(system, start, end, n),
            lambda x: off(float(x[1][3]), float(x[1][9])),
        )
    ]
    mujoco = library("mujoco_contact")
    if mujoco is not None:
        for h in (1e-3, SHORT):
            bodies = mujoco.ball(BALL, RADIUS, np.zeros(3)) + mujoco.ball(BALL, RADIUS, there)
            made = mujoco.scene(
                bodies,
                np.r_[v, np.zeros(11)],
                h,
                mujoco.STIFF,
                gravity=np.zeros(3),
                friction=0.0,
                contact=mujoco.bouncing(1.0, h),
                floor=False,
            )
            steps = round(end / h)
            cases.append(
                Case(
                    mujoco.STIFF.name,
                    h,
                    steps,
                    lambda m=made, k=steps: m.run(k),
                    lambda x: off(float(x.qvel[0]), float(x.qvel[6])),
                )
            )
    return in_turn(cases)


def _ours(system, start, end: float, steps: int) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    """Return a call that gives the place of the first body and all velocities at the end."""
    options = {"h": end / steps, "steps": steps, "save_every": steps, "progress": False}

    def call() -> tuple[np.ndarray, np.ndarray]:
        run = rx.simulate(system, rx.NonsmoothRattle(), start, **options)
        return np.asarray(run.final.g[1]), np.asarray(run.velocity[-1])

    return call


def _settings(mujoco) -> list[tuple[float, Any]]:
    return [] if mujoco is None else [(h, s) for s in mujoco.BOTH for h in (LONG, SHORT)]


PROBLEMS = {f.__name__: f for f in (slope, slide, bowling, bounce, cradle, balls, box, rod)}


def main() -> None:
    chosen = sys.argv[1:] or list(PROBLEMS)
    found = {}
    if (RESULTS / "contact.json").is_file():
        found = json.loads((RESULTS / "contact.json").read_text())["results"]
    for name in chosen:
        print(name)
        found[name] = PROBLEMS[name]()
        save("contact", {**found, "versions": _versions()})


def _versions() -> dict[str, str]:
    modules = map(library, ("mujoco_contact", "pyelastica_contact"))
    names = ("MuJoCo", "PyElastica")
    return {n: m.VERSION for n, m in zip(names, modules, strict=True) if m is not None}


if __name__ == "__main__":
    main()
