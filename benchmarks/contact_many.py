"""Many contacts: balls on a floor, and a rod that touches itself."""

from typing import Any

import numpy as np

import retrax as rx
from benchmarks.loop import GAP, THROUGH, loop, places
from benchmarks.turns import Case, in_turn, library, once

G, MASS, RADIUS, FRICTION = 9.81, 2.0, 0.1, 0.3
BALLS = {2: 300, 3: 300, 1000: 50}  # and how many steps they take
BOX = {27: 1000, 1000: 200}
END = 0.3  # of the rod, in s
# Room for pairs of near segments: as many as there are, and what retrax takes when not told.
ROOM = (40, None)
OURS, FINEST = (2e-4, 1e-4, 5e-5), 5e-6
# Steps of PyElastica, and the springs that are stable with them; the last is its reference.
THEIRS = {1e-4: (1e3, 1e4), 5e-5: (1e4, 1e5), 2e-5: (1e5, 1e6), 1e-5: (1e6,)}
HARDEST = (5e-6, 4e6)


def balls() -> list[dict]:
    """Time a step of balls that roll into each other on a floor."""
    mujoco, rows = library("mujoco_contact"), []
    for n, steps in BALLS.items():
        start = _row(n)
        cases = [_our_balls(n, steps, *start, [rx.Plane(name="floor")])]
        if mujoco is not None:
            cases.append(_their_balls(mujoco, steps, *start))
        rows += [{"balls": n, **row} for row in in_turn(cases)]
    return rows


def box() -> list[dict]:
    """Time a step of balls that fall into a box of five planes."""
    mujoco, rows = library("mujoco_contact"), []
    for n, steps in BOX.items():
        place, side = _stacked(n)
        still = np.zeros((n, 3))
        cases = [_our_balls(n, steps, place, still, _walls(side))]
        if mujoco is not None:
            cases.append(_their_balls(mujoco, steps, place, still, _their_walls(side)))
        rows += [{"balls": n, **row} for row in in_turn(cases)]
    return rows


def _their_balls(
    mujoco: Any, steps: int, place: np.ndarray, velocity: np.ndarray, walls: str = ""
) -> Case:
    bodies = "".join(mujoco.ball(MASS, RADIUS, x) for x in place)
    made = mujoco.scene(
        walls + bodies,
        np.concatenate([velocity, np.zeros_like(velocity)], axis=1).reshape(-1),
        1e-3,
        mujoco.DEFAULT,
        gravity=[0, 0, -G],
        friction=FRICTION,
    )

    def seen(data: Any) -> dict[str, float]:
        return {"overlap": _overlap(data.qpos.reshape(-1, 7)[:, :3])}

    return Case(mujoco.DEFAULT.name, 1e-3, steps, lambda: made.run(steps), seen)


def _stacked(n: int) -> tuple[np.ndarray, float]:
    """Return places near a lattice, and the side of a box around them."""
    side, k, rng = round(n ** (1 / 3)), np.arange(n), np.random.default_rng(0)
    lattice = np.stack([k % side, (k // side) % side, k // side**2], axis=1) + 0.5
    return 2.3 * RADIUS * lattice + rng.uniform(-0.01, 0.01, (n, 3)), 2.3 * RADIUS * side


def _walls(side: float) -> list[rx.Plane]:
    return [
        rx.Plane(name="floor"),
        rx.Plane((1.0, 0.0, 0.0), name="left"),
        rx.Plane((-1.0, 0.0, 0.0), (side, 0.0, 0.0), name="right"),
        rx.Plane((0.0, 1.0, 0.0), name="front"),
        rx.Plane((0.0, -1.0, 0.0), (0.0, side, 0.0), name="back"),
    ]


def _their_walls(side: float) -> str:
    turned = {"0 1 0 90": "0 0 0", "0 1 0 -90": f"{side} 0 0"}
    turned |= {"1 0 0 -90": "0 0 0", "1 0 0 90": f"0 {side} 0"}
    return "".join(
        f'<geom type="plane" size="100 100 1" axisangle="{turn}" pos="{at}"/>'
        for turn, at in turned.items()
    )


def _row(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return places and velocities of balls in a square, all on their way to its middle."""
    side = int(np.ceil(np.sqrt(n)))
    k = np.arange(n)
    flat = 2.2 * RADIUS * np.stack([k % side, k // side], axis=1) + 0.01 * np.sin(3.0 * k)[:, None]
    flat -= flat.mean(axis=0)
    place = np.concatenate([flat, np.full((n, 1), RADIUS)], axis=1)
    return place, -np.concatenate([flat, np.zeros((n, 1))], axis=1)


def _our_balls(
    n: int, steps: int, place: np.ndarray, velocity: np.ndarray, against: list[rx.Plane]
) -> Case:
    balls = rx.systems.Balls(RADIUS, MASS, count=n, friction=FRICTION, against=against)
    start = balls.state(place, velocity=velocity)

    def call() -> np.ndarray:
        options = {"h": 1e-3, "steps": steps, "save_every": steps, "progress": False}
        run = rx.simulate(balls, rx.NonsmoothRattle(), start, **options)
        return np.asarray(run.final.g[1])

    return Case("retrax", 1e-3, steps, call, lambda x: {"overlap": _overlap(x)})


def _overlap(place: np.ndarray) -> float:
    """Return by how much balls sink into the floor or each other."""
    i, j = np.triu_indices(len(place), 1)
    apart = np.linalg.norm(place[i] - place[j], axis=1) - 2 * RADIUS
    return float(max(0.0, -np.min(apart), -np.min(place[:, 2] - RADIUS)))


def rod() -> list[dict]:
    """Find how far off the tip of a rod in self-contact is, and time its steps."""
    exact = _our_rod(ROOM[0], FINEST).call()
    cases = [_our_rod(room, h, exact) for room in ROOM for h in OURS]
    rows = in_turn(cases)
    elastica = library("pyelastica_contact")
    if elastica is None:
        return rows
    start, rest = places(GAP), places(THROUGH)

    def theirs(h: float, stiffness: float, exact: np.ndarray | None = None) -> Case:
        def call() -> np.ndarray:
            return elastica.Loop(start, rest, stiffness, h).run(round(END / h))

        return Case("PyElastica", h, round(END / h), call, lambda x: _off(x, exact))

    exact = theirs(*HARDEST).call()
    for h, springs in THEIRS.items():
        tried = [{**once(theirs(h, k, exact)), "stiffness": k} for k in springs]
        stable = [row for row in tried if np.isfinite(row["tip"])]
        rows.append(min(stable, key=lambda row: row["tip"]))
        print(rows[-1], flush=True)
    return rows


def _our_rod(room: int | None, h: float, exact: np.ndarray | None = None) -> Case:
    system, start = loop(room)
    steps = round(END / h)

    def call() -> np.ndarray:
        options = {"h": h, "steps": steps, "save_every": steps, "progress": False}
        run = rx.simulate(system, rx.NonsmoothRattle(), start, **options)
        return np.asarray(run.final.g[1][-1])

    name = "retrax" if room is None else f"retrax, room for {room} pairs"
    return Case(name, h, steps, call, lambda x: _off(x, exact))


def _off(tip: np.ndarray, exact: np.ndarray | None) -> dict[str, float]:
    return {"tip": float(np.max(np.abs(tip - exact)))}
