r"""A step of two rods under Coulomb's law: the rods stick, slip, part and meet again.

The step of `RollingVerlet` with other impulses. At the start of it $P = -pn_k + q$ acts on rod 1
and minus that on rod 2, at the end $P' = -p'n_{k+1} + q'$; with $\gamma = |d| - 2a$, the speed
$u = -n\cdot C$ at which the gap opens, friction $f$ and restitution $e$,

$$
\begin{aligned}
0 &\le \gamma_{k+1} \perp p \ge 0, \qquad
    |q| \le fp \text{ against } \bar C = \tfrac12[A_kv + A_{k+1}v]_t             &&\text{(1)}\\
0 &\le u_{k+1} + e\min(u_k, 0) \perp p' \ge 0, \qquad
    |q'| \le fp' \text{ against } C_{k+1,t}, \quad\text{where } \gamma_{k+1} = 0, &&\text{(2)}
\end{aligned}
$$

with $v$ the velocities of the flight. While the contact sticks these are the equations of
`RollingVerlet`, to the last row. A contact that slips so fast that a step cannot stop it rubs
against its slip $C_{k,t}$ at the start of the step in (1), as against that at the end in (2): so
the step is its own adjoint, and of order 2 while the rods slip.

(1) is solved by iteration: a change of $P$ changes opening and slip by $SP$ up to $O(h)$, and since
a push changes no slip, the law with $S$ is solved for $p$ first, then for $q$
(`contact/solver/friction.py`). (2) is linear, and solved at once.

The impulses work on the velocities before and after them,

$$ \Delta E = P\cdot(C_k + \tfrac12S_kP) + P'\cdot(C_{k+1} - \tfrac12S_{k+1}P') + O(h^3), \tag{3} $$

$O(h^3)$ being the error of the step itself, also where the rods meet. The parts of (3) across the
contact are the work of friction, those along $n$ the loss of an impact. A contact that sticks does
no work, and one that stays closed has no impact: there (3) is among the errors of the step.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from retrax.contact.solver.complementarity import OPEN, SLIPS, STICKS
from retrax.contact.solver.friction import Across
from retrax.contact.steps.records import ContactRecord
from retrax.groups.so3 import Vector
from retrax.integrators.base import StepInfo
from retrax.mechanics.state import State
from retrax.mechanics.system import Coordinates
from retrax.numerics.newton import NewtonStatus, Sizes, to_stagnation
from retrax.numerics.small_matrices import solve
from retrax.systems.rods.pair import RodsInContact
from retrax.systems.rods.pair_flight import Rows, Scalar, along, flight, forces
from retrax.systems.rods.unilateral import Meeting, friction_within, is_closed, meeting

_EPS = float(jnp.finfo(jnp.float64).eps)
_AIM, _ACCEPT, _MOST = _EPS / 4, 64 * _EPS, 50
# Friction within this part of its limit slips.
_LIMIT = 1e-9
# What slips this many times faster than the friction of a stage can stop it goes on slipping.
_FAST = 8.0

# What a unit push opens the gap by, and unit forces across the contact let it slip by.
_Gives = tuple[Scalar, Float[Array, "2 2"]]


class _Tried(NamedTuple):
    """Impulses, the points of contact at the end, and the impulses to try next."""

    p: Scalar
    q: Across
    slips: Bool[Array, ""]
    s: Float[Array, "2"]
    next_p: Scalar
    next_q: Across
    next_slips: Bool[Array, ""]


class _Stage(NamedTuple):
    """The contact at one end of a step: where, its impulses, velocities there, and work (3)."""

    where: Meeting
    p: Scalar
    q: Across
    slips: Bool[Array, ""]
    opening: Scalar
    across: Across
    struck: Scalar
    rubbed: Scalar

    @property
    def impulse(self) -> Vector:
        return self.where.force(self.p, self.q)


class CoulombStep(NamedTuple):
    """A step, how it went, and what the contact does at its two ends."""

    state: State
    info: StepInfo
    first: _Stage
    second: _Stage


def record(
    system: RodsInContact, before: State, after: State, first: Vector, last: Vector
) -> ContactRecord:
    """Return what the contact does in a step with these impulses on rod 1; it never jams.

    Nothing is solved again. There are no joints.
    """
    one, two = _look(system, before, first, 0.5), _look(system, after, last, -0.5)
    push = one.p + two.p
    slips = one.slips | two.slips
    lands = ~is_closed(system, one.where.gap) & (push > 0)
    return ContactRecord(
        gap=two.where.gap[None],
        mode=jnp.where(push > 0, jnp.where(slips, SLIPS, STICKS), OPEN)[None],
        normal=push[None],
        tangential=(one.where.turn_to(two.where, one.q) + two.q)[None],
        approach=one.opening[None],
        slip=two.across[None],
        friction_work=jnp.where(slips | lands, one.rubbed + two.rubbed, 0.0)[None],
        impact_work=jnp.where(lands, one.struck + two.struck, 0.0)[None],
        friction_doubt=jnp.zeros(1),
        impact_doubt=jnp.zeros(1),
        jams=jnp.zeros(1, bool),
        joint_work=jnp.zeros(()),
        joint_doubt=jnp.zeros(()),
        tensions=jnp.zeros((2, 0)),
    )


def _look(system: RodsInContact, state: State, impulse: Vector, half: float) -> _Stage:
    """Look at the contact at one end of a step, with the impulse there."""
    where = meeting(system, state.g)
    gives = where.give(system.yielding(system.reactions(state.g)))
    parts = where.axes @ impulse
    p, q = -parts[0], parts[1:]
    slips = jnp.asarray(False)
    if system.friction is not None:
        slips = (p > 0) & (jnp.sqrt(q @ q) >= (1 - _LIMIT) * system.friction * p)
    velocity = where.parts(system.slip(state.g, system.mobile(state.momentum)))
    return _stage(where, gives, (p, q, slips), velocity, half)


def coulomb_step(system: RodsInContact, state: State, h: Scalar) -> CoulombStep:
    """Take one step of size `h`."""
    g, rows = state.g, system.reactions(state.g)
    here = meeting(system, g)
    opening, across = here.parts(system.slip(g, system.mobile(state.momentum)))
    pushed = state.momentum + h / 2 * forces(system, g, state.momentum, state.t)
    gives = here.give(system.yielding(rows))
    tried, met = _first(system, state, (here, gives, rows), across, pushed, h)
    first = _stage(here, gives, (tried.p, tried.q, tried.slips), (opening, across), 0.5)

    kicked = pushed + along(first.impulse, rows)
    places, change, u, status = flight(system, g, kicked, h)
    g1 = (*places, tried.s)
    mu = kicked + change
    mu = mu + h / 2 * forces(system, g1, mu, state.t + h)

    there, rows1 = meeting(system, g1), system.reactions(g1)
    stiff, give = there.give(system.yielding(rows1))
    came, slid = there.parts(system.slip(g1, system.mobile(mu)))
    touches = is_closed(system, there.gap) | (tried.p > 0)
    bounced = -system.restitution * jnp.minimum(opening, 0.0)
    p = jnp.where(touches, jnp.maximum(bounced - came, 0.0) / stiff, 0.0)  # (2)
    q, slips = friction_within(system, give, -solve(give, slid), p)
    slips = slips & (p > 0)
    after = came + stiff * p, slid + give @ q
    second = _stage(there, (stiff, give), (p, q, slips), after, -0.5)
    mu = mu + along(second.impulse, rows1)
    info = StepInfo(
        status.converged & met.converged,
        jnp.maximum(status.residual, met.residual),
        met.iterations,
        jnp.max(jnp.abs(h * u[:-2])),
        h > 0,
    )
    return CoulombStep(State(g1, mu, state.t + h), info, first, second)


def _stage(
    where: Meeting,
    gives: _Gives,
    impulse: tuple[Scalar, Across, Bool[Array, ""]],
    velocity: tuple[Scalar, Across],
    half: float,
) -> _Stage:
    """Book the work of an impulse, from the velocity at that end of the step: (3)."""
    (stiff, give), (p, q, slips), (opening, across) = gives, impulse, velocity
    struck = p * (opening + half * stiff * p)
    rubbed = q @ (across + half * (give @ q))
    return _Stage(where, p, q, slips, opening, across, struck, rubbed)


def _first(
    system: RodsInContact,
    state: State,
    start: tuple[Meeting, _Gives, Rows],
    slid: Across,
    pushed: Coordinates,
    h: Scalar,
) -> tuple[_Tried, NewtonStatus]:
    """Find the impulses of (1) and the points of contact at the end of the step.

    **Arguments:** `slid`: the slip at its start; `pushed`: momenta after the forces there.
    """
    here, (stiff, give), rows = start
    g0, n0 = state.g, here.axes[0]
    # Places are as large as the rods are long: so are the terms that cancel in the gap.
    terms = system.first.length + system.second.length

    def predict(
        p: Scalar, q: Across, gap: Scalar, slip: Across
    ) -> tuple[Scalar, Across, Bool[Array, ""]]:
        """Return the impulses that obey the law, predicted by S."""
        push = jnp.maximum(p - gap / (h * stiff), 0.0)
        friction, slips = friction_within(system, give, q - solve(give, slip), push)
        if system.friction is None:
            return push, friction, slips & (push > 0)
        fast = jnp.sqrt(slid @ slid)
        stops = _FAST * system.friction * push * (give[0, 0] + give[1, 1])
        goes_on = is_closed(system, here.gap) & (fast > stops)
        against = -system.friction * push * slid / jnp.where(fast > 0, fast, 1.0)
        return push, jnp.where(goes_on, against, friction), (slips | goes_on) & (push > 0)

    def improve(tried: _Tried) -> tuple[_Tried, Sizes]:
        p, q, slips, s = tried.next_p, tried.next_q, tried.next_slips, tried.s
        g1, _, u, _ = flight(system, g0, pushed + along(here.force(p, q), rows), h)
        at = (*g1, s)
        s = s - solve(system.curvature_of_gap(at), system.tangency(at))
        at = (*g1, s)
        d = system.gap_vector(at)
        far = jnp.sqrt(d @ d)
        middle = n0 + d / far
        middle = middle / jnp.sqrt(middle @ middle)
        mean = (system.slip(g0, u) + system.slip(at, u)) / 2
        mean = mean - (mean @ middle) * middle
        # Turned from the plane half-way into that of the friction.
        slip = here.axes[1:] @ (mean - (mean @ n0) / (1 + middle @ n0) * (middle + n0))
        after = predict(p, q, far - 2 * system.radius, slip)
        missed = stiff * jnp.abs(after[0] - p) + jnp.sum(jnp.abs(give @ (after[1] - q)))
        skew = jnp.sum(jnp.abs(system.tangency(at))) * system.width / (2 * system.radius)
        size = (missed * jnp.abs(h) + skew) / terms
        return _Tried(p, q, slips, s, *after), (size, jnp.ones(()))

    opening, across = here.parts(system.slip(g0, system.mobile(pushed)))
    none, still = jnp.zeros(()), jnp.zeros(2)
    guess = predict(none, still, here.gap + h * opening, across)
    s = g0[2] + h * system.travel(g0, *system.split(system.mobile(state.momentum)))
    tried = _Tried(none, still, jnp.asarray(False), s, *guess)
    sizes = jnp.asarray(jnp.inf), jnp.ones(())
    return to_stagnation(improve, tried, sizes, aim=_AIM, accept=_ACCEPT, most=_MOST)
