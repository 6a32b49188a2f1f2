r"""What contacts did in a step: impulses, slip, and where the energy went.

A step gives the impulses $J = \sum_i W_i^Tz_i$ at its start and $J'$ at its end, with a step
without contact between them. At one place a kinetic energy changes by the impulse times the mean
of the velocities before and after it, so that contact $i$ does the work

$$ z_i\cdot\tfrac12W_i\bigl(\xi(\mu_k) + \xi(\mu_k + J)\bigr)
    + z_i'\cdot\tfrac12W_i'\bigl(\xi(\mu_{k+1} - J') + \xi(\mu_{k+1})\bigr), \tag{1} $$

its entries along the normal in impacts, those across in friction. What else the energy changes by
is the error of the step without contact.

What lands gets an impulse at both ends of a step, and one at the first turns the slip before the
other rubs. As one impulse in one place it does the work

$$ (z_i + z_i')\cdot\tfrac12\bigl(W_i\xi(\mu_k) + W_i'\xi(\mu_{k+1})\bigr), \tag{3} $$

whose entries across are those of friction; the impact has the rest of (1), and what joints seem to
do meanwhile. Both are as uncertain as places differ within the step.

A contact that slips along $d$ jams where its own push $p$ makes it sink faster, Painlevé's case:

$$ A_{nn} - f\,A_{nt}\cdot d \le 0, \qquad A = W_i\,\partial_\mu\xi\,W_i^T. \tag{2} $$
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from retrax.contact.solver.complementarity import OPEN, SLIPS, STICKS
from retrax.mechanics.contact import Gaps, Touch
from retrax.mechanics.reactions import answers
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem

# A gap below this, relative to the coordinates of the place, is closed, and a slip below this,
# relative to the speeds of the contact, is none: rounding errors are a millionth of that.
_SMALL = 1e-9


class ContactRecord(NamedTuple):
    """What contacts did in one step, an entry for each.

    **Attributes:** `gap`: at its end; `mode`: 0 open, 1 sticks, 2 slips; `normal`, `tangential`:
    impulses of both stages; `approach`: the normal velocity before; `slip`: velocity at the end;
    `friction_work`, `impact_work`: what friction and the normal impulses did; `friction_doubt`,
    `impact_doubt`: how far these may be off; `jams`: whether its slip at the start is Painlevé's
    case, in bodies without joints; `joint_work`: what all joints did together; `joint_doubt`: what
    of it those did that nobody drives; `tensions`: their forces at the two ends, rows of the
    constraint each.
    """

    gap: Gaps
    mode: Int[Array, " m"]
    normal: Gaps
    tangential: Float[Array, "m 2"]
    approach: Gaps
    slip: Float[Array, "m 2"]
    friction_work: Gaps
    friction_doubt: Gaps
    impact_work: Gaps
    impact_doubt: Gaps
    jams: Bool[Array, " m"]
    joint_work: Float[Array, ""]
    joint_doubt: Float[Array, ""]
    tensions: Float[Array, "2 k"]


class Given(NamedTuple):
    """The impulses at one end of a step: of contacts, a row each, and of joints along `ties`."""

    contacts: Float[Array, "m 3"]
    joints: Float[Array, " k"]
    ties: Float[Array, "k n"]


def record(
    system: AbstractGroupSystem,
    before: State,
    after: State,
    here: Touch,
    first: Given,
    last: Given,
    h: Float[Array, ""],
    extent: Float[Array, ""],
) -> ContactRecord:
    """Return what contacts did in a step of size `h` between two states, with impulses at both.

    `here` is how they touch at the first, `extent` how large the coordinates of the place are.
    """
    contact, now, then = system.contact, system.at_time(before.t), system.at_time(after.t)
    there = contact.look(after.g, here.frame)

    def speeds(rows: Float[Array, "m 3 n"], xi: Float[Array, " n"]) -> Float[Array, "m 3"]:
        return jnp.einsum("iak,k->ia", rows, xi)

    def total(rows: Float[Array, "m 3 n"], given: Given) -> Float[Array, " n"]:
        return jnp.einsum("iak,ia->k", rows, given.contacts) + given.joints @ given.ties

    xi0, xi1 = now.velocity(before.g, before.momentum), then.velocity(after.g, after.momentum)
    pushed = now.velocity(before.g, before.momentum + total(here.rows, first))
    free = then.velocity(after.g, after.momentum - total(there.rows, last))
    joints = (
        first.joints @ (first.ties @ (xi0 + pushed)) + last.joints @ (last.ties @ (free + xi1))
    ) / 2
    turned = speeds(there.rows - here.rows, xi0)
    u0, pushed = speeds(here.rows, xi0), speeds(here.rows, pushed)
    free, u1 = speeds(there.rows, free), speeds(there.rows, xi1)
    work = (first.contacts * (u0 + pushed) + last.contacts * (free + u1)) / 2  # (1)
    reach = jnp.einsum("iak,k->i", jnp.abs(there.rows), jnp.abs(xi0) + jnp.abs(xi1))
    size = reach + jnp.sum(jnp.abs(pushed - u0) + jnp.abs(u1 - free), axis=1)
    across = jnp.sqrt(jnp.sum(u1[:, 1:] ** 2, axis=1))
    moves = (across > _SMALL * size) | (contact.friction == 0)
    sinks = jnp.zeros(len(u0), bool)
    if not len(first.ties):
        own = answers(now, here.rows[:, 0], before.g, before.momentum)
        own = jnp.einsum("iak,ik->ia", here.rows, own)
        slip = jnp.sqrt(jnp.sum(u0[:, 1:] ** 2, axis=1))
        rubbed = contact.friction * jnp.sum(own[:, 1:] * u0[:, 1:], axis=1)
        sinks = (own[:, 0] * slip <= rubbed) & (slip > _SMALL * size)  # (2)
    closed = there.gap <= _SMALL * extent
    impulse = first.contacts + last.contacts
    lands = (impulse[:, 0] > 0) & (
        (here.gap > _SMALL * extent) | (u0[:, 0] < -_SMALL * size) | (u1[:, 0] > _SMALL * size)
    )
    most = jnp.where(lands, impulse[:, 0], 0.0)
    share = most / jnp.where(jnp.any(lands), jnp.sum(most), 1.0)
    passive = (
        joints + _drive_power(system, before, xi0, first) + _drive_power(system, after, xi1, last)
    )
    struck = jnp.where(jnp.any(lands), passive, 0.0)
    done = jnp.sum(work, axis=1) + share * struck
    once = impulse * (u0 + u1) / 2  # (3)
    rubbed = jnp.where(lands, once[:, 1] + once[:, 2], work[:, 1] + work[:, 2])
    off = jnp.where(lands, jnp.abs(jnp.sum((impulse * turned)[:, 1:], axis=1)) / 2, 0.0)
    return ContactRecord(
        there.gap,
        jnp.where(closed, jnp.where(moves, SLIPS, STICKS), OPEN),
        impulse[:, 0],
        impulse[:, 1:],
        u0[:, 0],
        u1[:, 1:],
        rubbed,
        off,
        done - rubbed,
        off + jnp.where(lands, done - jnp.sum(once, axis=1), 0.0),
        sinks,
        joints - struck,
        passive - struck,
        2 / h * jnp.stack([first.joints, last.joints]),
    )


def _drive_power(
    system: AbstractGroupSystem, at: State, xi: Float[Array, " n"], given: Given
) -> Float[Array, ""]:
    """Return what joints that move by themselves take from whoever drives them."""
    if system.constraint is None:
        return jnp.zeros(())
    rates = system.constraint.violation(at.g, xi, at.t) - given.ties @ xi
    return given.joints @ rates
