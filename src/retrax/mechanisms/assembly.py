r"""Put a mechanism together: positions by Gauss-Newton from the drawing, then velocities.

Positions move by $g\exp(\delta)$ with the smallest $\delta$ in the metric of the kinetic energy
that solves the linearised equations. Asked coordinates are reached in small stages from the
drawing, so that the mechanism stays on the branch on which it was drawn.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import Coordinates, Element
from retrax.mechanics.placement import ALLOWED_GAP
from retrax.mechanics.state import State
from retrax.mechanisms.body import GROUND, Body
from retrax.mechanisms.elements import JointSpring
from retrax.mechanisms.joined import Connection, add_blocks, spread
from retrax.mechanisms.limits import find_winding, require_within, require_wound, wound_springs
from retrax.mechanisms.rank import inverse_root
from retrax.numerics.checks import (
    finite64,
    host_finite64,
    quote,
    require_double_precision,
    require_flag,
    require_instance,
)
from retrax.numerics.evaluate import Evaluated, evaluate_in_jax

if TYPE_CHECKING:
    from retrax.mechanisms.system import MechanismSystem

# A stage turns asked angles by at most this much, and moves asked positions by this part of the
# size of the mechanism.
_STAGE, _PART, _MOST_STAGES = 0.2, 0.05, 400
_FARTHEST = 1e9
_ITERATIONS = 30
# Singular values below this part of the largest are directions in which nothing can be moved.
_RANK = 1e-11
# A drawing is closed, up to rounding, where it is open by no more than this part of its size.
_CLOSED = 1e-15
# Equations hold a direction whose singular value is above this part of the largest, and lose it
# where it falls below that part of what it was.
_HELD, _LOST = 1e-8, 1e-6
# What was asked for is met where it is missed by no more than this.
_MET = 1e-10


class Asked(NamedTuple):
    """Coordinates of joints that are asked to have values: of which, which one, how much."""

    joint: Connection
    which: int
    value: float

    @property
    def is_angle(self) -> bool:
        """Whether an angle is asked for."""
        return self.joint.coordinates[self.which].is_angle


def assemble(
    system: "MechanismSystem",
    joints: Mapping[str, object],
    joint_rates: Mapping[str, object],
    velocities: Mapping[Body | str, object],
    project: bool,
    t: float,
) -> State:
    """Return the state that `MechanismSystem.assemble` describes."""
    require_double_precision()
    require_flag("project", project)
    for name, given in (
        ("joints", joints),
        ("joint_rates", joint_rates),
        ("velocities", velocities),
    ):
        require_instance(name, given, Mapping, "a dictionary with names and numbers")
    places = [one for name, value in joints.items() for one in _read_request(system, name, value)]
    rates = [
        one for name, value in joint_rates.items() for one in _read_request(system, name, value)
    ]
    g = _positions(system, places)
    require_within(system, g)
    xi = _velocity(system, g, rates, _bodies(system, velocities), project)
    when = finite64("t", t)
    return system.state(g, velocity=xi, t=when)


def _read_request(system: "MechanismSystem", name: str, value: object) -> list[Asked]:
    """Return what is asked of one joint, a coordinate each."""
    found = () if system.constraint is None else system.constraint.connections
    named = [c for c in found if c.name == name]
    if not named:
        known = ", ".join(repr(c.name) for c in found) or "none"
        raise BadInput(f"there is no joint {name!r}: this mechanism has {known}.")
    (joint,) = named
    lead = joint.lead
    count = len(joint.coordinates) if lead is None else 1
    if count == 0:
        raise BadInput(
            f"the {joint.kind} {name!r} has no single angle or position that could be asked for."
        )
    numbers = host_finite64(f"{name!r}", value, () if count == 1 else (count,))
    if np.any(np.abs(numbers) > _FARTHEST):
        raise BadInput(f"{name!r} = {quote(value)} is out of reach: at most {_FARTHEST:g} is.")
    asked = [Asked(joint, k, float(x)) for k, x in enumerate(np.atleast_1d(numbers))]
    if lead is not None:  # the travel tells the turns apart
        asked.append(Asked(joint, 1, float(lead) * asked[0].value))
    return asked


def _bodies(
    system: "MechanismSystem", velocities: Mapping[Body | str, object]
) -> dict[int, np.ndarray]:
    """Return the velocities that are asked of bodies, by their numbers."""
    each = system.group.dim // len(system.names)
    found = {}
    for body, value in velocities.items():
        k = system.index(body)
        if k == GROUND:
            raise BadInput("velocities names the ground, which does not move.")
        found[k] = host_finite64(f"the velocity of {system.names[k]!r}", value, (each,))
    return found


class _Equations(NamedTuple):
    """What positions break and its rows: joints first, then what is asked for."""

    broken: Float[Array, " k"]
    rows: Float[Array, "k dim"]


@Evaluated
def _equations(system: "MechanismSystem", g: Element, chosen: tuple[Connection, ...]) -> _Equations:
    """Return the equations of the joints, and the values and rows of all coordinates of some."""
    n = len(system.names)
    broken, rows = [jnp.zeros(0)], [jnp.zeros((0, system.group.dim))]
    if system.constraint is not None:
        broken.append(system.constraint.positions(g, jnp.zeros(())))
        rows.append(system.constraint.position_rows(g, jnp.zeros(())))
    for joint in chosen:
        for q in joint.measure(g):
            broken.append(q.value[None])
            rows.append(spread(add_blocks(joint.bodies[:2], (q.first[None], q.second[None])), n))
    return _Equations(jnp.concatenate(broken), jnp.concatenate(rows))


class _Problem:
    """The equations of an assembly, with some coordinates asked for."""

    def __init__(self, system: "MechanismSystem", asked: list[Asked]):
        self.system, self.asked = system, asked
        joints = {a.joint.name: a.joint for a in asked}
        self._chosen = tuple(joints.values())
        first, starts = 0, {}
        for name, joint in joints.items():
            starts[name], first = first, first + len(joint.coordinates)
        self._where = [starts[a.joint.name] + a.which for a in asked]
        self.count = 0 if system.constraint is None else system.constraint.position_count
        self.root = inverse_root(system)

    def at(self, g: Element, goal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what is broken, and the rows on velocities of unit energy."""
        broken, rows = _equations(self.system, g, self._chosen)
        where = [self.count + k for k in self._where]
        off = np.asarray(broken)[where] - goal
        angles = np.array([a.is_angle for a in self.asked], bool)
        off = np.where(angles, _nearest(off), off)
        kept = [*range(self.count), *where]
        return np.concatenate([broken[: self.count], off]), np.asarray(rows)[kept] @ self.root

    def values(self, g: Element) -> np.ndarray:
        """Return the asked coordinates as they are."""
        broken, _ = _equations(self.system, g, self._chosen)
        return np.asarray(broken)[[self.count + k for k in self._where]]

    def worst(self, broken: np.ndarray) -> tuple[str, str, float]:
        """Return the name and kind of the joint that is broken most, and by how much."""
        k = int(np.argmax(np.abs(broken)))
        if k >= self.count:
            asked = self.asked[k - self.count]
            return asked.joint.name, asked.joint.kind, float(broken[k])
        constraint = self.system.constraint
        assert constraint is not None
        owners = [c for c in constraint.connections for _ in range(c.law.count)]
        return owners[k].name, owners[k].kind, float(broken[k])


def _positions(system: "MechanismSystem", asked: list[Asked]) -> Element:
    """Return the configuration nearest to the drawing with the asked coordinates."""
    g = system.reference
    if not asked and float(_gap(system, g)) <= _CLOSED * (1 + _extent(system)):
        return g
    problem = _Problem(system, asked)
    goal = np.array([a.value for a in asked])
    drawn = problem.values(g) if asked else goal
    size = _extent(system)
    steps = [
        abs(a.value - q) / (_STAGE if a.is_angle else _PART * size)
        for a, q in zip(asked, drawn, strict=True)
    ]
    stages = min(max(1, math.ceil(max(steps, default=0.0))), _MOST_STAGES)
    winding = np.asarray(find_winding(system, g))
    require_wound(system, _as_asked(system, asked, winding))
    branch = _Branch()
    for k in range(stages + 1) if asked else (stages,):
        now = goal if k == stages else drawn + (goal - drawn) * k / stages
        there, broken, rows = _solve(problem, g, now, _ITERATIONS if k == stages else 6)
        if branch.meets_another(rows, broken) and k < stages:
            continue  # the next stage starts from before, where the way on is clear
        g = there
        winding = winding + _nearest(np.asarray(find_winding(system, g)) - winding)
    left = float(np.max(np.abs(broken), initial=0.0))
    if not left <= ALLOWED_GAP:
        _cannot(problem, broken)
    if branch.is_lost:
        told = _describe(asked)
        raise BadInput(
            f"the {system.name} is singular with {told}: branches meet there, and what is asked "
            "for does not say how the other joints stand. Ask for another joint, or for a value "
            "a little beside it."
        )
    require_wound(system, winding)
    return g


def _nearest(angle: np.ndarray) -> np.ndarray:
    """Return angles without whole turns."""
    return np.arctan2(np.sin(angle), np.cos(angle))


def _as_asked(system: "MechanismSystem", asked: list[Asked], winding: np.ndarray) -> np.ndarray:
    """Return how far springs are wound, those at joints that are asked for with all turns."""
    found = winding.copy()
    for k, spring in enumerate(wound_springs(system)):
        for one in asked:
            own = one.joint.coordinates[one.which]
            element = spring.element
            if (
                isinstance(element, JointSpring)
                and spring.bodies == one.joint.bodies[:2]
                and eqx.tree_equal(own, element.coordinate)
            ):
                found[k] = one.value - float(element.rest)
    return found


@Evaluated
def _gap(system: "MechanismSystem", g: Element) -> Float[Array, ""]:
    """Return by how much joints are open."""
    constraint = system.constraint
    return jnp.zeros(()) if constraint is None else constraint.gap(g, jnp.zeros(()))


class _Branch:
    """How well the equations of an assembly tell, stage after stage, where the mechanism stands."""

    def __init__(self) -> None:
        self.rank, self.usual, self.is_lost = 0, 0.0, False

    def meets_another(self, rows: np.ndarray, broken: np.ndarray) -> bool:
        """Tell whether they have lost a direction in which earlier stages were held."""
        if not len(rows) or float(np.max(np.abs(broken))) > ALLOWED_GAP:
            return False
        singular = np.linalg.svd(rows, compute_uv=False)
        rank = int(np.sum(singular > _HELD * singular[0]))
        if rank > self.rank:
            self.rank, self.usual = rank, 0.0
        weakest = float(singular[self.rank - 1])
        self.is_lost = weakest < _LOST * self.usual
        self.usual = max(self.usual, weakest)
        return self.is_lost


def _solve(
    problem: _Problem, g: Element, goal: np.ndarray, iterations: int
) -> tuple[Element, np.ndarray, np.ndarray]:
    """Take damped Gauss-Newton steps until round-off; return what is broken, and the rows."""
    broken, rows = problem.at(g, goal)
    error = _far(broken, rows)
    for _ in range(iterations):
        if error == 0:
            break
        delta = -problem.root @ _least(rows, broken)
        share, better = 1.0, None
        while better is None and share > 1e-3:
            near = evaluate_in_jax(_advance, problem.system, g, share * delta)
            there, slopes = problem.at(near, goal)
            if _far(there, slopes) < error:
                better = (near, there, slopes)
            share /= 2
        if better is None:
            break
        size = 1 + float(np.max(np.abs(np.asarray(g[1])), initial=0.0))
        small = float(np.linalg.norm(broken)) < 1e-13 * size
        (g, broken, rows), error = better, _far(*better[1:])
        if small:
            break
    return g, broken, rows


def _far(broken: np.ndarray, rows: np.ndarray) -> float:
    """Return how far off metres and radians are together, as motions that would close them."""
    size = np.linalg.norm(rows, axis=1)
    return float(np.linalg.norm(broken / np.where(size > 0, size, 1.0)))


def _advance(system: "MechanismSystem", g: Element, delta: Coordinates) -> Element:
    group = system.group
    return group.project(group.advance(g, group.expm1(delta)))


def _least(rows: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the least-squares solution of least norm."""
    if not len(rows):
        return np.zeros(rows.shape[1])
    return np.linalg.lstsq(rows, right, rcond=_RANK)[0]


def _extent(system: "MechanismSystem") -> float:
    """Return the size of the drawing."""
    x = np.asarray(system.reference[1])
    points = [x, np.zeros_like(x[:1])]
    return max(float(np.max(np.ptp(np.concatenate(points), axis=0))), 1e-3)


def _describe(asked: list[Asked]) -> str:
    return ", ".join(f"{a.joint.name!r} = {a.value:.6g}" for a in asked)


def _cannot(problem: _Problem, broken: np.ndarray) -> None:
    """Say which joint stays open, and what was asked for."""
    name, kind, left = problem.worst(broken)
    asked = ""
    if problem.asked:
        asked = f" with {_describe(problem.asked)}"
    where = "singular there or cannot reach so far"
    raise BadInput(
        f"the {problem.system.name} cannot be assembled{asked}: the {kind} joint {name!r} stays "
        f"open by {abs(left):.3g} (m or rad), allowed {ALLOWED_GAP:.0e}; the mechanism is {where} "
        "on the branch on which it was drawn."
    )


def _velocity(
    system: "MechanismSystem",
    g: Element,
    rates: list[Asked],
    bodies: dict[int, np.ndarray],
    project: bool,
) -> np.ndarray:
    """Return the velocity of least energy with the asked rates, or the nearest admissible one."""
    dim = system.group.dim
    if not rates and not bodies:
        return np.zeros(dim)
    problem = _Problem(system, rates)
    root = problem.root
    fixed = _all_rows(system, g) @ root
    asked = problem.at(g, np.zeros(len(rates)))[1][problem.count :]
    goal = [np.array([a.value for a in rates])]
    parts, owners = [asked], [f"the rate of the joint {a.joint.name!r}" for a in rates]
    each = dim // len(system.names)
    for k, value in bodies.items():
        # In velocities of unit energy, so that the nearest is that in the kinetic metric.
        own = np.linalg.inv(root[k * each : (k + 1) * each, k * each : (k + 1) * each])
        rows = np.zeros((each, dim))
        rows[:, k * each : (k + 1) * each] = np.eye(each)
        parts.append(rows)
        goal.append(own @ value)
        owners += [f"the velocity of {system.names[k]!r}"] * each
    rows, right = np.concatenate(parts), np.concatenate(goal)
    inside = _null(fixed)
    z = inside @ _least(rows @ inside, right)
    missed = rows @ z - right
    if len(missed) and not project:
        worst = int(np.argmax(np.abs(missed)))
        if abs(missed[worst]) > _MET * max(1.0, float(np.max(np.abs(right)))):
            raise BadInput(
                f"{owners[worst]} cannot be what is asked: the joints and wheels of the "
                f"{system.name} allow no velocity that comes nearer than {abs(missed[worst]):.3g}; "
                "assemble(..., project=True) takes the nearest one that they allow."
            )
    return root @ z


def _all_rows(system: "MechanismSystem", g: Element) -> np.ndarray:
    if system.constraint is None:
        return np.zeros((0, system.group.dim))
    return np.asarray(_rows(system, g))


@Evaluated
def _rows(system: "MechanismSystem", g: Element) -> Float[Array, "k dim"]:
    assert system.constraint is not None
    return system.constraint.rows(g, jnp.zeros(()))


def _null(rows: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the velocities that no row forbids, one a column."""
    if not len(rows):
        return np.eye(rows.shape[1])
    _, singular, basis = np.linalg.svd(rows)
    rank = int(np.sum(singular > 1e-9 * singular[0]))
    return basis[rank:].T
