"""How contacts meet, slip on and settle: speeds and guesses beside the equations of a step."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from retrax.contact.solver.body_sweeps import Joints, Laws, sweep_over
from retrax.contact.solver.complementarity import Impulses, Verdict
from retrax.contact.solver.coupled_blocks import Couples, speeds_along
from retrax.groups.base import AbstractLieGroup, Coordinates, Element
from retrax.groups.retractions import AbstractRetraction
from retrax.mechanics.contact import AbstractContacts, Frames, Gaps
from retrax.mechanics.reactions import answers
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.small_matrices import cross, partly_ordered_solve

Scalar = Float[Array, ""]
# What slips this many times faster than the friction of a stage can stop it goes on slipping.
_FAST = 8.0
# Tangents that turn by an angle with a smaller cosine in a step are those at its end.
_TURNS = 0.98
# Cosine and sine of how much farther round a rim a step is tried where none was found.
_FARTHER = (0.96, 0.28)
# Joints may be redundant: this part of their diagonal is added to it.
_PROXIMAL = 1e-13
# Rounds of impacts for each contact, sweeps over those of one round, and what no longer hits.
_ROUNDS, _HIT_SWEEPS, _SLOW_SPEED = 4, 40, 1e-12
# So many solutions are looked at before nothing comes back; of what (1) says the second takes so
# much less, the third three times as much, and so on, for contacts do not stay as they are.
_MOST_PARTS, _LESS = 8, 0.01


class Bounced(NamedTuple):
    """An impact in which a part of what should bounce does, and what energy it adds."""

    part: Scalar
    gain: Scalar
    xi: Coordinates
    impulse: Coordinates


class Bracket(NamedTuple):
    """Two impacts, one that loses energy and one that gains some, and how many there were."""

    low: Bounced
    high: Bounced
    count: Int[Array, ""]


def initial_bracket(xi: Coordinates) -> Bracket:
    """Return a bracket that nothing is known of."""
    none = Bounced(jnp.zeros(()), jnp.zeros(()), jnp.zeros_like(xi), jnp.zeros_like(xi))
    return Bracket(none, none, jnp.asarray(0))


def narrow(past: Bracket, new: Bounced, rounding: Scalar) -> Verdict:
    r"""Return whether an impact may stay; if it adds energy, which part to try next.

    Without a bounce it adds none. Between that and one that does, velocities and impulses are
    linear in the part while contacts stay as they are, and the energy that is added is

    $$ E(\beta) = E_0 + b\beta + c\beta^2, \qquad
        c = \tfrac12(J_1 - J_0)\cdot(\xi_1 - \xi_0). \tag{1} $$
    """
    first, second = past.count == 0, past.count == 1
    low = jax.tree.map(lambda x, y: jnp.where(second, x, y), new, past.low)
    high = jax.tree.map(lambda x, y: jnp.where(second, x, y), past.high, new)
    c = (high.impulse - low.impulse) @ (high.xi - low.xi) / 2
    b = high.gain - low.gain - c
    root = b + jnp.sqrt(jnp.maximum(b * b - 4 * c * low.gain, 0.0))
    share = jnp.where(root > 0, -2 * low.gain / jnp.where(root > 0, root, 1.0), 0.0)  # (1)
    less = jnp.maximum(1 - _LESS * (2.0 ** (past.count - 1) - 1), 0.0)
    part = low.part + less * jnp.clip(share, 0.0, 1.0) * (high.part - low.part)
    part = jnp.where(first | (past.count == _MOST_PARTS), 0.0, part)
    good = (new.gain <= rounding) & ~second
    good = good | (second & (new.gain >= 0)) | (past.count > _MOST_PARTS)
    return Verdict(good, ~good, part[None], Bracket(low, high, past.count + 1))


def goes_on(
    slip: Float[Array, "m 2"], push: Gaps, friction: Gaps, answer: Gaps
) -> Bool[Array, " m"]:
    """Return which contacts slip too fast for friction to stop them in this step.

    **Arguments:** `slip`: at its start; `push`: how hard they push in it, nearly; `answer`: the
    speed that a unit of friction changes.
    """
    stops = _FAST * friction * push * answer
    return (push > 0) & (jnp.sum(slip**2, axis=1) > stops**2)


def damp_guess(before: Impulses, found: Impulses, repair: Scalar) -> Impulses:
    """Return what to begin the next iteration with.

    Impulses that repair rounding errors of gaps are no guess for the next step, where they would
    make such errors anew. In the mean with the guesses before they die out.
    """
    near = jnp.sum(jnp.abs(found - before)) <= repair
    return jnp.where(near, (3 * before + found) / 4, found)


def go_round(before: Frames, after: Frames) -> Bool[Array, "m 1 1"]:
    """Return which points go so far round a rim that others of its quarters are nearer to them."""
    c, _ = _in_quarter(before, after)
    return (c < _TURNS)[:, None, None]


def between(before: Frames, after: Frames) -> Frames:
    """Return frames half-way from some to those of the quarters nearest to them."""
    c, s = _in_quarter(before, after)
    middle = (1 + c)[:, None] * before[:, 1] + s[:, None] * before[:, 2]
    way = middle / jnp.sqrt(jnp.sum(middle * middle, axis=1, keepdims=True))
    n = before[:, 0]
    return jnp.stack([n, way, jax.vmap(cross)(n, way)], axis=1)


def round_(along: Frames) -> Frames:
    """Return frames a little farther round."""
    way, side = along[:, 1], along[:, 2]
    c, s = _FARTHER
    return jnp.stack([along[:, 0], c * way + s * side, c * side - s * way], axis=1)


def _in_quarter(before: Frames, after: Frames) -> tuple[Gaps, Gaps]:
    """Return cosine and sine of the angle between tangents, less whole quarters of a turn."""
    c, s = (jnp.sum(before[:, k] * after[:, 1], axis=1) for k in (1, 2))
    near, up = jnp.abs(c) >= jnp.abs(s), s > 0
    cosine = jnp.maximum(jnp.abs(c), jnp.abs(s))
    return cosine, jnp.where(near, jnp.where(c > 0, s, -s), jnp.where(up, -c, c))


def turn_of(contact: AbstractContacts, before: Frames, ahead: Element) -> Scalar:
    """Return by what square of an angle the points where bodies touch go round them in a step."""
    if not contact.follows:
        return jnp.zeros(())
    return jnp.max(jnp.sum((contact.reach(ahead).frame - before)[:, 1] ** 2, axis=1))


def separation_speeds(
    u: Gaps,
    rows: Float[Array, "m 1 _"],
    give: Float[Array, "m 1 _"],
    joints: Joints,
    closed: Bool[Array, " m"],
    restitution: Gaps,
    couples: Couples | None,
) -> Gaps:
    """Return the speeds at which contacts part that hit one after the other in a step.

    Those that approach each other hit at once; their impulses may let others approach, which hit
    after them. After as many rounds as a row of impacts takes to go through and back nothing more
    bounces.

    In derivatives speeds grow with the fastest of those before; their ratios stay as they are.

    **Arguments:** `u`: at which they approach before; `rows`: what takes velocities to these;
    `give`: what impulses change velocities by; `joints`: what holds meanwhile.
    """
    fastest = jnp.max(jnp.abs(u))
    u, rows, give, joints, restitution = lax.stop_gradient((u, rows, give, joints, restitution))
    most = _ROUNDS * len(u)
    diagonal = jnp.sum(rows * give, axis=2)
    gives = jnp.where(diagonal > 0, 1 / jnp.where(diagonal > 0, diagonal, 1.0), 0.0)
    slow = _SLOW_SPEED * jnp.max(jnp.abs(u))
    scale = jnp.where(slow > 0, jnp.max(jnp.abs(u)), 1.0)
    smooth, sweeps = jnp.zeros_like(u), jnp.asarray(_HIT_SWEEPS)
    begun = jnp.zeros(joints.G.shape[1]), jnp.zeros_like(gives), jnp.zeros(len(joints.G))

    def approaching(u: Gaps) -> Bool[Array, " m"]:
        return closed & (u < -slow)

    def hit(at: tuple[Gaps, Int[Array, ""]]) -> tuple[Gaps, Int[Array, ""]]:
        u, count = at
        back = jnp.where(count < most, restitution, 0.0)
        laws = Laws(gives, ((1 + back) * u)[:, None], rows, smooth, smooth, approaching(u))
        move, _, _ = sweep_over(begun, laws, give, joints, sweeps, couples)
        return u + speeds_along(rows, move, couples)[:, 0], count + 1

    u, _ = lax.while_loop(
        lambda at: jnp.any(approaching(at[0])) & (at[1] < 2 * most), hit, (u, jnp.asarray(0))
    )
    return jnp.maximum(u, 0.0) / scale * fastest


def coadjoint(
    group: AbstractLieGroup, tau: AbstractRetraction, move: Coordinates, mu: Coordinates
) -> Coordinates:
    r"""Return $\mathrm{Ad}^*_{\tau(x)}\mu$."""
    return mu + group.coAdm1(tau.minus_identity(group, move), mu)


def project_to_joints(
    system: AbstractGroupSystem,
    xi: Coordinates,
    ties: Float[Array, "k n"],
    g: Element,
    mu: Coordinates,
    t: Scalar,
) -> Coordinates:
    """Return velocities after the impulses of joints that they need to stay together."""
    pulls = answers(system, ties, g, mu)
    S = ties @ pulls.T
    S = S + _PROXIMAL * jnp.diag(jnp.diag(S))
    assert system.constraint is not None
    return xi - partly_ordered_solve(S, system.constraint.violation(g, xi, t), len(S)) @ pulls


def approach(gap: Gaps, start: Gaps, end: Gaps, h: Scalar) -> Gaps:
    """Return the speeds at which contacts meet: between those at both ends of a step.

    `end` is the speed that there would be at its end without contact. The part of the step until
    they meet is that of their gap in the way on which they close.
    """
    way = -h * (start + end) / 2
    part = jnp.where(way > gap, gap / jnp.where(way > gap, way, 1.0), 1.0)
    return start + part * (end - start)
