"""The step of nodes that fly and touch; numbers of equations are those of `NodeContact`."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, PyTree

from retrax.contact.capsules import Numbers, Points, dot
from retrax.contact.node_contact import AbstractSpots
from retrax.contact.rows import FAR, Places, Rows, frames, impulses, speeds
from retrax.contact.steps.contact_law import Law, Response, Seen, blocks
from retrax.contact.steps.gauss_seidel import Solved, solve
from retrax.contact.steps.impacts import Bounced, approach, goes_on, initial_bracket, narrow
from retrax.contact.steps.last_touch import LastTouch, fastest
from retrax.contact.steps.neighbours import farthest_move, spots_of
from retrax.contact.steps.node_record import Ended
from retrax.integrators.base import StepInfo, worse
from retrax.integrators.kick_drift_kick import kick_with_loads
from retrax.mechanics.state import State
from retrax.mechanics.system import Coordinates
from retrax.nodal.nodes import AbstractNodes, Flight, Placement
from retrax.nodal.supports import mean_rates
from retrax.numerics.newton import NewtonStatus

Scalar = Float[Array, ""]
_EPS = float(jnp.finfo(jnp.float64).eps)
# What is left of the law, relative to the coordinates of nodes: aimed at, and accepted.
_AIM, _ACCEPT = 4 * _EPS, 256 * _EPS
# How far points may overlap that nobody has looked at, relative to them.
_DEEP = 256 * _EPS
# A gap this small, relative to them, is closed.
_CLOSED = 64 * _EPS
# What friction of balls that lock each other may leave of the law, relative to the fastest speed.
_LOCKED = 1e-5
# Late sweeps go so many times as far as contacts ask for: those of rods stand in a row. Sweeps over
# this many contacts and more are mixed; the code of mixing is long for arrays that are short.
_OVER_RODS, _OVER_BALLS, _MANY = 1.8, 1.4, 200
# What would go in a step no further than this does not bounce.
_SOFT = 1e-12
# What impacts may add to the energy, relative to the terms of their work: rounding.
_GAINED = 1e-13
# The slip of what goes on slipping counts as so much faster in (2), so that friction is against it.
_FIRM = 1e3


class Faults(NamedTuple):
    """What may have gone wrong.

    **Attributes:** `number`: of pairs found; `skin`: how near they are; `moved`: the way of the
    fastest node; `left`: what is left of (2), as a length; `unsolved`: whether that is too much;
    `adds`: whether friction adds energy.
    """

    number: Scalar
    skin: Scalar
    moved: Scalar
    left: Numbers
    unsolved: Bool[Array, ""]
    adds: Bool[Array, ""]


class _Start(NamedTuple):
    """The start of a step: velocities in space, their speeds at spots, which spots touch there.

    **Attributes:** `slip`: in space.
    """

    w: Places
    v: Places
    u: Points
    slip: Points
    gap: Numbers
    touched: Bool[Array, " m"]


Stepped = tuple[State, StepInfo, LastTouch, Faults]


def step_pairs(system: AbstractNodes, state: State, h: Scalar, memory: LastTouch) -> Stepped:
    """Take a step with the pairs that the lists have."""
    contact, g0, mu0, t1 = system.contact, state.g, state.momentum, state.t + h
    turned0, places = g0
    now, then = system.at_time(state.t), system.at_time(t1)
    w0, v0 = _in_space(system, turned0, now.velocity(g0, mu0))
    spots = spots_of(contact, memory.near)
    extent = jnp.max(jnp.abs(places)) + contact.extent
    kick, carried = h / 2 * memory.force, then.support_velocities(g0, h)
    free, _ = _load(system, state, h, kick)
    lost = then.loss(g0, mu0 + free, h / 2, carried, dragged_first=True)
    led = [mean_rates(pose, turned0, places, h) for pose in then.poses()]

    here = spots.nearest(places)

    def rows_of(near: object) -> Rows:
        found = spots.measure_gaps(places, spots.start_points(here, near))
        return Rows(spots.nodes, found.weights, found.arms, frames(found.normal), near)

    begun = rows_of(spots.nearest(places + h * v0))
    gap0, u0 = spots.measure_gaps(places, begun.near).gap, speeds(begun, v0, w0)
    slip0 = u0[:, 1, None] * begun.frame[:, 1] + u0[:, 2, None] * begun.frame[:, 2]
    start = _Start(w0, v0, u0, slip0, gap0, gap0 <= _CLOSED * extent)
    pushed = dot(begun.frame[:, 0], memory.first * h)
    alone = free if lost is None else free + lost
    law = _first_law(system, spots, state, h, alone, start, begun, pushed)

    def look(slides: Numbers, z: Points, rows: Rows) -> tuple[Seen, Ended]:
        push, met_load = _load(system, state, h, kick + _give_momenta(system, turned0, rows, z))
        push = push if lost is None else push + lost
        flown = then.flight(g0, mu0 + push, h)  # (1)
        for rates in led:  # supports that move
            turning, moving = system.parts(rates)
            flown = flown._replace(w=flown.w + turning, v=flown.v + moving)
        if met_load is not None:
            flown = flown._replace(status=worse(flown.status, met_load))
        turned = jnp.einsum("kij,kj->ki", turned0, flown.w)  # the same at both ends
        found = spots.measure_gaps(flown.g[1], rows.near)
        last = Rows(
            rows.nodes, found.weights, found.arms, frames(found.normal, rows.frame), rows.near
        )
        slip = (speeds(rows, flown.v, turned) + speeds(last, flown.v, turned))[:, 1:] / 2
        ahead = jnp.stack([dot(rows.frame[:, k], start.slip) for k in (1, 2)], axis=1)
        turns = (slides > 0) & (z[:, 0] > 0) & (jnp.sum(slip * ahead, axis=1) < 0)
        ends = Ended(flown, push, found.gap, found.weights, found.arms, last.frame, turns)
        slip = jnp.where(slides[:, None] > 0, _FIRM * ahead, slip)
        u = jnp.concatenate([(found.gap / h)[:, None], slip], axis=1)  # (2)
        return Seen(u, found.normal, found.weights), ends

    def overlapping(
        ends: Ended, z: Points, rows: Rows, early: Bool[Array, ""]
    ) -> tuple[Bool[Array, ""], Rows]:
        found = spots.renew(ends.flown.g[1], rows.near, z[:, 0], _DEEP * extent, early)
        assert found is not None
        return found[0], rows_of(found[1])

    size, over = extent / jnp.abs(h), _over_relaxation(spots)
    speed = fastest(v0) + fastest(w0) * contact.extent
    speed = speed + fastest(system.parts(system.mobility * kick)[1])

    def rub(slides: Numbers, friction: Numbers) -> Solved:
        return solve(
            partial(look, slides),
            jnp.einsum("mij,mj->mi", begun.frame, memory.first * h),
            begun,
            _response(system, turned0),
            law._replace(slides=slides, friction=friction),
            _AIM * size,
            (_ACCEPT * size, _ACCEPT * size),
            over,
            _LOCKED * speed if spots.lasting else None,
            None if spots.lasting else overlapping,
        )

    def gain(first: Solved) -> Scalar:
        xi = now.velocity(g0, mu0 + alone)
        (w, v), flown, rows = _in_space(system, turned0, xi), first.found.flown, first.rows
        ends = speeds(rows, flown.v, jnp.einsum("kij,kj->ki", turned0, flown.w))
        both = speeds(rows, v, w) + ends
        fast = h / contact.extent * (fastest(v) + fastest(flown.v))
        allowed = fast**2 * jnp.abs((mu0 + alone) @ xi) + _GAINED * jnp.sum(jnp.abs(first.z * both))
        allowed = allowed + _LOCKED * speed * jnp.sum(jnp.abs(first.z))
        return jnp.sum(first.z * both) / 2 - allowed

    first, adds = _dissipative(rub, gain, law, spots.lasting)
    ends: Ended = first.found
    g1 = ends.flown.g
    change = ends.push + _flat(ends.flown.change)
    more = then.loss(g1, mu0 + change, h / 2, carried, dragged_first=False)
    change = change if more is None else change + more
    force = system.kick(g1, t1)
    pull = h / 2 * force
    if system.feedback:
        pull = pull + h / 2 * system.load(g1, then.velocity(g1, mu0 + change), t1)
    mu = mu0 + (change + pull)

    last = Rows(spots.nodes, ends.weights, ends.arms, ends.frame, first.rows.near)
    closed = (ends.gap < FAR) & ((first.z[:, 0] > 0) | (ends.gap <= _CLOSED * extent))
    alone = mu0 + free
    bounce = _bounce(system, spots, places, here, alone, g1, mu, start, first, last, h, extent)

    guess = jnp.where(closed[:, None], jnp.einsum("mij,mj->mi", last.frame, memory.last * h), 0.0)
    speed = speed + fastest(ends.flown.v)
    none = jnp.zeros_like(ends.gap)
    met = jnp.where(start.touched, 0.0, first.z[:, 0]) if spots.lasting else none

    def separate(part: Scalar, guess: Points) -> Solved:
        def rebound(z: Points, last: Rows) -> tuple[Seen, Points]:
            xi = then.velocity(g1, mu + _give_momenta(system, g1[0], last, z))
            turned, moved = _in_space(system, g1[0], xi)
            u = speeds(last, moved, turned)
            along = jnp.where(closed, u[:, 0] + part * bounce, FAR)
            seen = jnp.concatenate([along[:, None], u[:, 1:]], axis=1)
            return Seen(seen, last.frame[:, 0], last.weights), u

        return solve(
            rebound,
            guess,
            last,
            _response(system, g1[0]),
            Law(jnp.broadcast_to(contact.friction, none.shape), met, none, none, FAR + none),
            _AIM * speed,
            (_ACCEPT * (speed + size if spots.lasting else speed), _ACCEPT * (speed + size)),
            over,
            _LOCKED * speed if spots.lasting else None,
        )

    def impact(part: Scalar, z: Points) -> tuple[Bounced, Scalar]:
        J, K = (
            _give_momenta(system, turned0, first.rows, first.z),
            _give_momenta(system, g1[0], last, z),
        )
        begins, departs = (now.velocity(g0, mu0 + x) for x in (jnp.zeros_like(J), J))
        arrives, goes = (then.velocity(g1, mu + x) for x in (jnp.zeros_like(K), K))
        gain = (J @ (begins + departs) + K @ (arrives + goes)) / 2
        sizes = jnp.abs(J) @ (jnp.abs(begins) + jnp.abs(departs))
        sizes = sizes + jnp.abs(K) @ (jnp.abs(arrives) + jnp.abs(goes))
        return Bounced(part, gain, goes, K), _GAINED * sizes

    one = jnp.ones(())
    second = _lossy(separate, impact, guess, mu, bounce) if spots.lasting else separate(one, guess)
    mu1 = mu + _give_momenta(system, g1[0], last, second.z)  # (3)
    info, faults = _went(system, memory, g1, h, ends.flown, first, second, extent, speed, adds)
    hand_on = LastTouch(
        force,
        memory.near,
        _to_space(first.rows, first.z) / h,
        _to_space(last, second.z) / h,
        spots.where(last.near),
    )
    return State(g1, mu1, t1), info, hand_on, faults


def _dissipative(
    rubbed: Callable[[Numbers, Numbers], Solved],
    gained: Callable[[Solved], Scalar],
    law: Law,
    lasting: bool,
) -> tuple[Solved, Bool[Array, ""]]:
    """Return impulses of (2) in which friction adds no energy, and whether these do all the same.

    A contact that goes on slipping rubs against its slip at the start. Where others push so hard
    that it turns round all the same, every contact may stick; where that adds energy too, or
    nothing solves (2), nothing rubs until the end of the step.
    """
    none, no = jnp.zeros_like(law.slides), jnp.asarray(False)
    if not lasting:
        return rubbed(law.slides, law.friction), no
    shape = jax.eval_shape(rubbed, none, none)
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shape)

    def try_at(at: tuple) -> tuple:
        slides, friction, _, _, _ = at
        found = rubbed(slides, friction)
        adds = jnp.any(found.found.turns) | (gained(found) > 0)
        good = found.status.converged & ~adds
        last = ~jnp.any((slides > 0) | (friction > 0))
        friction = jnp.where(jnp.any(slides > 0), friction, none)
        return none, friction, found, adds, good | last

    begun = law.slides, law.friction, nothing, no, no
    return lax.while_loop(lambda at: ~at[-1], try_at, begun)[2:4]


def _lossy(
    parted: Callable[[Scalar, Points], Solved],
    impact: Callable[[Scalar, Points], tuple[Bounced, Scalar]],
    guess: Points,
    mu: Coordinates,
    bounce: Numbers,
) -> Solved:
    """Return an impact of which so much bounces that it adds no energy."""
    one = jnp.ones(())
    shape = jax.eval_shape(parted, one, guess)
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shape)
    begun = one, nothing._replace(z=guess), initial_bracket(mu), jnp.asarray(False)

    def try_at(at: tuple) -> tuple:
        part, found, past, _ = at
        found = parted(part, found.z)
        verdict = narrow(past, *impact(part, found.z))
        return verdict.choice[0], found, verdict.past, verdict.good | ~jnp.any(bounce < 0)

    return lax.while_loop(lambda at: ~at[-1], try_at, begun)[1]


def _over_relaxation(spots: AbstractSpots) -> float | None:
    """Return how many times as far late sweeps go, or `None` where they are mixed."""
    if not spots.lasting:
        return _OVER_RODS
    return None if len(spots.nodes) > _MANY else _OVER_BALLS


def _first_law(
    system: AbstractNodes,
    spots: AbstractSpots,
    state: State,
    h: Scalar,
    free: Coordinates,
    start: _Start,
    rows: Rows,
    pushed: Numbers,
) -> Law:
    """Return the law of (2): what slips fast goes on, what meets in the step does not rub yet.

    How hard points of chains push is taken from the step before, in which they `pushed`.
    """
    none = jnp.zeros_like(start.gap)
    friction = jnp.broadcast_to(system.contact.friction, none.shape)
    if not spots.lasting:
        turns, moves = system.parts(system.mobility)
        gives = 2 * (jnp.max(moves) + system.contact.extent**2 * jnp.max(turns))  # at most
        slides = goes_on(start.u[:, 1:], pushed, friction, jnp.broadcast_to(gives, none.shape))
        return Law(friction, none, jnp.where(slides, 1.0, 0.0), none, FAR + none)
    places, block = state.g[1], blocks(rows, _response(system, state.g[0]))
    _, v = system.parts(system.at_time(state.t).velocity(state.g, state.momentum + free))
    sinks = jnp.maximum(-spots.measure_gaps(places + h * v, rows.near).gap, 0.0) / h
    push = sinks / jnp.where(block.normal > 0, block.normal, 1.0)
    slides = start.touched & goes_on(start.u[:, 1:], push, friction, block.highest)
    slides = jnp.where(slides, 1.0, 0.0)
    return Law(jnp.where(start.touched, friction, 0.0), none, slides, none, FAR + none)


def _bounce(
    system: AbstractNodes,
    spots: AbstractSpots,
    places: Places,
    here: PyTree,
    free: Coordinates,
    g1: Placement,
    mu: Coordinates,
    start: _Start,
    first: Solved,
    last: Rows,
    h: Scalar,
    extent: Scalar,
) -> Numbers:
    """Return the speeds along normals that come back at the end of the step."""
    contact = system.contact
    before = speeds(first.rows, start.v, start.w)
    if not spots.lasting:
        meets = (
            spots.measure_gaps(places, spots.start_points(here, first.rows.near)).gap
            > _CLOSED * extent
        )
        return jnp.where(meets, contact.restitution * jnp.minimum(before[:, 0], 0.0), 0.0)
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
    return jnp.where(-h * meets > _SOFT * extent, contact.restitution * meets, 0.0)


def _went(
    system: AbstractNodes,
    memory: LastTouch,
    g1: Placement,
    h: Scalar,
    flown: Flight,
    first: Solved,
    second: Solved,
    extent: Scalar,
    speed: Scalar,
    adds: Bool[Array, ""],
) -> tuple[StepInfo, Faults]:
    """Return how a step went; what only contacts can explain counts as out of the chart."""
    status, contact = flown.status, system.contact
    solved = first.status.converged & second.status.converged
    ok = system.is_unfolded(g1) & solved & ~adds
    moved, room = jnp.zeros(()), contact.room(system.nodes)
    if contact.listed:
        moved = farthest_move(memory.near, g1[1])
        ok = ok & (memory.near.number <= room) & (moved <= memory.near.skin / 2)
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
    return info, Faults(memory.near.number, memory.near.skin, moved, left, ~solved, adds)


def _load(
    system: AbstractNodes, state: State, h: Scalar, kick: Coordinates
) -> tuple[Coordinates, NewtonStatus | None]:
    """Return a kick with the loads that depend on velocities."""
    return kick_with_loads(system, state, h, kick) if system.feedback else (kick, None)


def _in_space(system: AbstractNodes, turned: Array, xi: Coordinates) -> tuple[Places, Places]:
    """Return spins and velocities of nodes in space."""
    w, v = system.parts(xi)
    return jnp.einsum("kij,kj->ki", turned, w), v


def _give_momenta(system: AbstractNodes, turned: Array, rows: Rows, z: Points) -> Coordinates:
    """Return the momenta that impulses give to nodes that are not held."""
    moved, turn = impulses(rows, z, system.nodes)
    spin = jnp.einsum("kji,kj->ki", turned, turn)
    return system.without_held(jnp.concatenate([spin, moved], axis=1).reshape(-1))


def _flat(spin: Places) -> Coordinates:
    return jnp.concatenate([spin, jnp.zeros_like(spin)], axis=1).reshape(-1)


def _response(system: AbstractNodes, turned: Array) -> Response:
    turns, moves = system.parts(system.mobility)
    if system.round:
        return Response(moves[:, 0], turns[:, 0])
    return Response(moves[:, 0], jnp.einsum("kij,kj,klj->kil", turned, turns, turned))


def _to_space(rows: Rows, z: Points) -> Points:
    """Return impulses as vectors in space."""
    return sum((z[:, k, None] * rows.frame[:, k] for k in range(3)), jnp.zeros_like(z))
