"""The step of balls that fly and touch; numbers of equations are those of `BallRattle`."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from retrax.contact.ball_contact import BallSpots
from retrax.contact.capsules import Numbers, Points
from retrax.contact.rows import FAR, Places, Rows, frames, impulses, speeds
from retrax.integrators.base import StepInfo, worse
from retrax.integrators.contact.ball_impacts import approach, goes_on
from retrax.integrators.contact.ball_record import recorded_balls
from retrax.integrators.contact.ball_solve import Solved, solve
from retrax.integrators.contact.ball_touch import BallTouch, fastest
from retrax.integrators.contact.contact_law import Law, Response, Seen, blocks
from retrax.integrators.contact.neighbours import far_gone, spots_of
from retrax.integrators.contact.rod_record import Ended, RodContactRecord
from retrax.integrators.kick_drift_kick import loaded
from retrax.mechanics.state import State
from retrax.mechanics.system import Coordinates
from retrax.numerics.newton import NewtonStatus
from retrax.systems.balls import Balls
from retrax.systems.rods.nodes import Flight, Placement

Scalar = Float[Array, ""]
_EPS = float(jnp.finfo(jnp.float64).eps)
# What is left of the law, relative to the coordinates of nodes: aimed at, and accepted.
_AIM, _ACCEPT = 4 * _EPS, 256 * _EPS
# A gap this small, relative to them, is closed.
_CLOSED = 64 * _EPS
# What friction of balls that lock each other may leave of the law, relative to the fastest speed.
_LOCKED = 1e-5
# Late sweeps go so many times as far as contacts ask for. Sweeps over more contacts than this are
# mixed; the code of mixing is long for arrays that are short.
_OVER, _MANY = 1.4, 200
# What would go in a step no further than this does not bounce.
_SOFT = 1e-12


class Faults(NamedTuple):
    """What may have gone wrong.

    **Attributes:** `number`: of pairs found; `skin`: how near they are; `moved`: the way of the
    fastest node; `left`: what is left of (2), as a length; `unsolved`: whether that is too much.
    """

    number: Scalar
    skin: Scalar
    moved: Scalar
    left: Numbers
    unsolved: Bool[Array, ""]


class _Start(NamedTuple):
    """The start of a step: velocities in space, their speeds at spots, which spots touch there."""

    w: Places
    v: Places
    u: Points
    gap: Numbers
    touched: Bool[Array, " m"]


Stepped = tuple[State, StepInfo, BallTouch, RodContactRecord, Faults]


def stepped(system: Balls, state: State, h: Scalar, memory: BallTouch) -> Stepped:
    """Take a step with the pairs that the lists have."""
    contact, g0, mu0, t1 = system.contact, state.g, state.momentum, state.t + h
    turned0, places = g0
    now, then = system.at_time(state.t), system.at_time(t1)
    w0, v0 = _in_space(system, turned0, now.velocity(g0, mu0))
    spots = spots_of(contact, memory.near)
    extent = jnp.max(jnp.abs(places)) + contact.extent
    kick, carried = h / 2 * memory.force, then.carried(g0, h)
    free, _ = _loaded(system, state, h, kick)
    lost = then.lost(g0, mu0 + free, h / 2, carried, dragged_first=True)

    there = spots.met(places, None)
    begun = Rows(spots.nodes, there.weights, there.arms, frames(there.normal), None)
    touched = there.gap <= _CLOSED * extent
    start = _Start(w0, v0, speeds(begun, v0, w0), there.gap, touched)
    law = _first_law(system, spots, state, h, free if lost is None else free + lost, start, begun)

    def look(z: Points, rows: Rows) -> tuple[Seen, Ended]:
        push, met_load = _loaded(system, state, h, kick + _given(system, turned0, rows, z))
        push = push if lost is None else push + lost
        flown = then.flight(g0, mu0 + push, h)  # (1)
        if met_load is not None:
            flown = flown._replace(status=worse(flown.status, met_load))
        turned = jnp.einsum("kij,kj->ki", turned0, flown.w)  # the same at both ends
        found = spots.met(flown.g[1], None)
        ends = Ended(
            flown, push, found.gap, found.weights, found.arms, frames(found.normal, rows.frame)
        )
        last = Rows(rows.nodes, found.weights, found.arms, ends.frame, None)
        slip = (speeds(rows, flown.v, turned) + speeds(last, flown.v, turned))[:, 1:] / 2
        slides = jnp.broadcast_to(law.slides[:, None] > 0, slip.shape)
        slip = jnp.where(slides, start.u[:, 1:], slip)
        u = jnp.concatenate([(found.gap / h)[:, None], slip], axis=1)  # (2)
        return Seen(u, found.normal), ends

    size, over = extent / jnp.abs(h), _hurried(spots)
    speed = fastest(v0) + fastest(w0) * contact.extent
    speed = speed + fastest(system.parts(system.mobility * kick)[1])
    first = solve(
        look,
        jnp.einsum("mij,mj->mi", begun.frame, memory.first * h),
        begun,
        _response(system),
        law,
        _AIM * size,
        _ACCEPT * size,
        over,
        _LOCKED * speed,
    )
    ends: Ended = first.found
    g1 = ends.flown.g
    change = ends.push + _flat(ends.flown.change)
    more = then.lost(g1, mu0 + change, h / 2, carried, dragged_first=False)
    change = change if more is None else change + more
    force = system.kick(g1, t1)
    pull = h / 2 * force
    if system.feedback:
        pull = pull + h / 2 * system.load(g1, then.velocity(g1, mu0 + change), t1)
    mu = mu0 + (change + pull)

    last = Rows(spots.nodes, ends.weights, ends.arms, ends.frame, None)
    closed = (ends.gap < FAR) & ((first.z[:, 0] > 0) | (ends.gap <= _CLOSED * extent))
    alone = mu0 + free
    before, bounce = _bounce(system, spots, places, alone, g1, mu, start, first, last, h, extent)

    def rebound(z: Points, last: Rows) -> tuple[Seen, Points]:
        xi = then.velocity(g1, mu + _given(system, g1[0], last, z))
        turned, moved = _in_space(system, g1[0], xi)
        u = speeds(last, moved, turned)
        along = jnp.where(closed, u[:, 0] + bounce, FAR)
        seen = jnp.concatenate([along[:, None], u[:, 1:]], axis=1)
        return Seen(seen, last.frame[:, 0]), u

    guess = jnp.where(closed[:, None], jnp.einsum("mij,mj->mi", last.frame, memory.last * h), 0.0)
    speed = speed + fastest(ends.flown.v)
    none = jnp.zeros_like(ends.gap)
    met = jnp.where(start.touched, 0.0, first.z[:, 0])
    second = solve(
        rebound,
        guess,
        last,
        _response(system),
        Law(jnp.broadcast_to(contact.friction, none.shape), met, none, none),
        _AIM * speed,
        _ACCEPT * (speed + size),
        over,
        _LOCKED * speed,
    )
    mu1 = mu + _given(system, g1[0], last, second.z)  # (3)
    info, faults = _went(system, memory, g1, h, ends.flown, first, second, extent, speed)
    hand_on = BallTouch(
        force, memory.near, _directed(first.rows, first.z) / h, _directed(last, second.z) / h
    )
    record = recorded_balls(spots, g1, ends, first.z, second.z, before, second.found, closed)
    return State(g1, mu1, t1), info, hand_on, record, faults


def _hurried(spots: BallSpots) -> float | None:
    """Return how many times as far late sweeps go, or `None` where they are mixed."""
    return None if len(spots.nodes) > _MANY else _OVER


def _first_law(
    system: Balls,
    spots: BallSpots,
    state: State,
    h: Scalar,
    free: Coordinates,
    start: _Start,
    rows: Rows,
) -> Law:
    """Return the law of (2): what meets in the step does not rub yet, what slips fast goes on."""
    none = jnp.zeros_like(start.gap)
    friction = jnp.broadcast_to(system.contact.friction, none.shape)
    places, block = state.g[1], blocks(rows, _response(system))
    _, v = system.parts(system.at_time(state.t).velocity(state.g, state.momentum + free))
    sinks = jnp.maximum(-spots.met(places + h * v, None).gap, 0.0) / h
    push = sinks / jnp.where(block.normal > 0, block.normal, 1.0)
    slides = start.touched & goes_on(start.u[:, 1:], push, friction, block.highest)
    slides = jnp.where(slides, 1.0, 0.0)
    return Law(jnp.where(start.touched, friction, 0.0), none, slides, none)


def _bounce(
    system: Balls,
    spots: BallSpots,
    places: Places,
    free: Coordinates,
    g1: Placement,
    mu: Coordinates,
    start: _Start,
    first: Solved,
    last: Rows,
    h: Scalar,
    extent: Scalar,
) -> tuple[Points, Numbers]:
    """Return speeds before the step, and those along normals that come back at its end."""
    contact = system.contact
    before = speeds(first.rows, start.v, start.w)
    moves = system.parts(system.mobility)[1]
    still = jnp.zeros_like(places)
    given, _ = impulses(first.rows, first.z, system.nodes)
    arrives = moves * system.parts(mu)[1]
    ahead, apart = (speeds(last, v, still)[:, 0] for v in (arrives, arrives - moves * given))
    down, on = (
        speeds(first.rows, v, still)[:, 0]
        for v in (moves * system.parts(free)[1], first.found.flown.v)
    )
    meets = approach(start.gap, before[:, 0], apart, h)
    meets = jnp.where(start.touched, jnp.minimum(before[:, 0], 0.0), meets)
    spare = jnp.maximum(ahead**2 + (down**2 - on**2), 0.0)  # (6) of `NonsmoothRattle`
    meets = jnp.maximum(meets, -jnp.sqrt(spare))
    return before, jnp.where(-h * meets > _SOFT * extent, contact.restitution * meets, 0.0)


def _went(
    system: Balls,
    memory: BallTouch,
    g1: Placement,
    h: Scalar,
    flown: Flight,
    first: Solved,
    second: Solved,
    extent: Scalar,
    speed: Scalar,
) -> tuple[StepInfo, Faults]:
    """Return how a step went; what only contacts can explain counts as out of the chart."""
    status = flown.status
    solved = first.status.converged & second.status.converged
    room = len(memory.near.first)
    moved = far_gone(memory.near, g1[1])
    ok = solved & (memory.near.number <= room) & (moved <= memory.near.skin / 2)
    residual = jnp.maximum(
        first.status.residual * jnp.abs(h) / extent, second.status.residual / (speed + _EPS)
    )
    iterations = first.status.iterations + second.status.iterations
    info = StepInfo(
        status.converged,
        jnp.maximum(status.residual, residual),
        iterations,
        jnp.max(jnp.abs(h * flown.w)),
        ok,
    )
    left = jnp.maximum(first.left * jnp.abs(h), second.left * jnp.abs(h))
    return info, Faults(memory.near.number, memory.near.skin, moved, left, ~solved)


def _loaded(
    system: Balls, state: State, h: Scalar, kick: Coordinates
) -> tuple[Coordinates, NewtonStatus | None]:
    """Return a kick with the loads that depend on velocities."""
    return loaded(system, state, h, kick) if system.feedback else (kick, None)


def _in_space(system: Balls, turned: Array, xi: Coordinates) -> tuple[Places, Places]:
    """Return spins and velocities of nodes in space."""
    w, v = system.parts(xi)
    return jnp.einsum("kij,kj->ki", turned, w), v


def _given(system: Balls, turned: Array, rows: Rows, z: Points) -> Coordinates:
    """Return the momenta that impulses give to nodes that are not held."""
    moved, turn = impulses(rows, z, system.nodes)
    spin = jnp.einsum("kji,kj->ki", turned, turn)
    return system.held(jnp.concatenate([spin, moved], axis=1).reshape(-1))


def _flat(spin: Places) -> Coordinates:
    return jnp.concatenate([spin, jnp.zeros_like(spin)], axis=1).reshape(-1)


def _response(system: Balls) -> Response:
    turns, moves = system.parts(system.mobility)
    return Response(moves[:, 0], turns[:, 0])


def _directed(rows: Rows, z: Points) -> Points:
    """Return impulses as vectors in space."""
    return sum((z[:, k, None] * rows.frame[:, k] for k in range(3)), jnp.zeros_like(z))
