"""Ready plants: bodies with the motors, thrusters and rotors that move them.

Each function returns an `rx.Actuated`: a system and what its inputs do to it.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.mechanics.actuated import Actuated
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import (
    ArrayLike,
    finite64,
    float64,
    is_traced,
    positive64,
    require_choice,
    require_instance,
)
from retrax.numerics.evaluate import as_jax, evaluate_in_jax
from retrax.numerics.frozen import Frozen
from retrax.numerics.meant import explain_keywords
from retrax.systems.flying_body import FlyingBody
from retrax.systems.orbiting_body import OrbitingBody
from retrax.systems.rigid_body import FreeRigidBody, Pendulum3D
from retrax.systems.sliding_bodies import ChaplyginSleigh
from retrax.systems.strings.crane import Crane
from retrax.systems.strings.string_pendulum import StringPendulum
from retrax.systems.wheeled_body import WheeledBody, unit_vectors

# Where the first rotor of a quadrotor sits, by the name of the layout.
LAYOUTS = {"+": (1.0, 0.0), "x": (math.sqrt(0.5), math.sqrt(0.5))}


class Wheels(Frozen):
    r"""Reaction wheels of a spacecraft.

    **Arguments:**

    - `axes`: the axis of each wheel in body axes, a row for each, of any length but zero.
    - `spin`: the moment of inertia about the axis, one for all or one for each (kg m^2).
    - `torque`: the largest torque of a motor, one for all or one for each (N m); `None` for no
        limit.
    """

    axes: Float[Array, "n 3"]
    spin: Float[Array, " n"]
    torque: Float[Array, " n"] | None

    def __init__(self, axes: ArrayLike, spin: ArrayLike, torque: ArrayLike | None = None):
        self.axes = unit_vectors("axes", axes)
        self.spin = _for_each("spin", spin, len(self.axes))
        self.torque = None if torque is None else _for_each("torque", torque, len(self.axes))


class Thrusters(Frozen):
    r"""Thrusters of a spacecraft, which push and never pull.

    **Arguments:**

    - `positions`: where each thruster sits, from the centre of mass, in body axes (m).
    - `directions`: which way each pushes **the craft**, in body axes; a row for each, of any length
        but zero. The exhaust goes the other way.
    - `thrust`: the largest thrust, one for all or one for each (N); `None` for no limit.
    """

    positions: Float[Array, "n 3"]
    directions: Float[Array, "n 3"]
    thrust: Float[Array, " n"] | None

    def __init__(
        self, positions: ArrayLike, directions: ArrayLike, thrust: ArrayLike | None = None
    ):
        self.directions = unit_vectors("directions", directions)
        count = len(self.directions)
        self.positions = finite64("positions", positions, (count, 3))
        self.thrust = None if thrust is None else _for_each("thrust", thrust, count)

    @property
    def torques(self) -> Float[Array, "3 n"]:
        """The torque about the centre of mass of a newton of each, in body axes: the columns."""
        return jnp.cross(self.positions, self.directions).T


@explain_keywords
def spacecraft(
    inertia: ArrayLike,
    *,
    wheels: Wheels | None = None,
    thrusters: Thrusters | None = None,
    torque: ArrayLike | None = None,
    mass: ArrayLike | None = None,
    rate: ArrayLike | None = None,
) -> Actuated:
    r"""Make a spacecraft with wheels, with thrusters, with both, or with plain torques.

    The inputs are the motor torques of the wheels (N m), then the thrusts (N); without either, the
    torques about the body axes (N m). A motor torque accelerates its wheel and turns the craft the
    other way; thrusts are not negative.

    **Arguments:**

    - `inertia`: principal moments, or the matrix, of the craft with its wheels locked, about the
        centre of mass (kg m^2).
    - `wheels`, `thrusters`: what moves it.
    - `torque`: the largest plain torque, one for all axes or one for each (N m).
    - `mass`: in kg. With it the craft also travels: it moves on $SE(3)$, a `FlyingBody` without
        weight, and thrusters push it along.
    - `rate`: of a circular orbit (rad/s). With it the gradient of gravity turns the craft, and
        attitudes are those against the orbiting axes of `OrbitingBody`.

    **Returns:** an `rx.Actuated` of a `FreeRigidBody`, `WheeledBody`, `OrbitingBody` or
    `FlyingBody`.
    """
    if wheels is not None:
        require_instance("wheels", wheels, Wheels, "an rx.systems.Wheels")
    if thrusters is not None:
        require_instance("thrusters", thrusters, Thrusters, "an rx.systems.Thrusters")
    if mass is not None and (wheels is not None or rate is not None):
        other = "wheels" if wheels is not None else "rate"
        raise BadInput(
            f"mass and {other} are both given: a craft that travels has thrusters or plain "
            "torques; leave mass out to follow its attitude."
        )
    if torque is not None and (wheels is not None or thrusters is not None):
        raise BadInput(
            "torque is the limit of plain torques about the body axes, but wheels or thrusters "
            "are given: these have limits of their own."
        )
    system = _craft(inertia, wheels, mass, rate)
    columns: list[Any] = []
    lower: list[Any] = []
    upper: list[Any] = []
    if wheels is not None:
        count = len(wheels.axes)
        columns.append(np.concatenate([np.zeros((3, count)), np.eye(count)]))
        most = _limit(wheels.torque, count)
        lower, upper = [_negative(most)], [most]
    if thrusters is not None:
        columns.append(_thruster_columns(system, thrusters))
        count = len(thrusters.directions)
        lower.append(as_jax(np.zeros(count)))
        upper.append(_limit(thrusters.thrust, count))
    if not columns:
        most = _limit(None if torque is None else _for_each("torque", torque, 3), 3)
        columns, lower, upper = [np.eye(system.group.dim, 3)], [_negative(most)], [most]
    return Actuated(system, _together(columns, 1), _bounds(lower, upper))


def _craft(
    inertia: ArrayLike, wheels: Wheels | None, mass: ArrayLike | None, rate: ArrayLike | None
) -> AbstractGroupSystem:
    if mass is not None:
        return FlyingBody(inertia, mass, 0.0)
    body = FreeRigidBody(inertia)
    if wheels is not None:
        body = WheeledBody(inertia, wheels.axes, wheels.spin)
    return body if rate is None else OrbitingBody(body, rate)


def _thruster_columns(system: AbstractGroupSystem, thrusters: Thrusters) -> Float[Array, "dim n"]:
    """Return the columns of thrusters: a torque, and a force where the craft travels."""
    if isinstance(system, FlyingBody):
        return _together([thrusters.torques, evaluate_in_jax(jnp.transpose, thrusters.directions)])
    others = np.zeros((system.group.dim - 3, len(thrusters.directions)))
    return _together([thrusters.torques, others])


@explain_keywords
def quadrotor(
    inertia: ArrayLike,
    mass: ArrayLike,
    arm: ArrayLike,
    drag: ArrayLike,
    *,
    thrust: ArrayLike | None = None,
    layout: str = "+",
    gravity: ArrayLike = 9.81,
) -> Actuated:
    r"""Make a quadrotor: a `FlyingBody` under four rotors. $e_3$ points up.

    The inputs are the thrusts $u_1, \dots, u_4$ (N) along body $e_3$, not negative. Rotor $i$ sits
    at $l(\cos\varphi_i, \sin\varphi_i, 0)$ with $\varphi_i = 0°, 90°, 180°, 270°$, or with the
    layout `"x"` 45 degrees further; rotors 1 and 3 drag the body round $+e_3$ as they push, 2 and 4
    round $-e_3$. So thrust and torque in body axes are

    $$ f = \sum_iu_i\,e_3, \qquad
       \tau = \sum_iu_i\bigl\{l(\sin\varphi_i, -\cos\varphi_i, 0) - (-1)^ic\,e_3\bigr\}. \tag{1} $$

    **Arguments:**

    - `inertia`: principal moments, or the matrix, about the centre of mass (kg m^2).
    - `mass`: in kg.
    - `arm`: $l$, from the centre of mass to a rotor (m).
    - `drag`: $c$, the torque of a rotor about its axis by its thrust (m).
    - `thrust`: the largest thrust of a rotor, one for all or one for each (N); `None` for no limit.
    - `layout`: `"+"`, a rotor ahead, or `"x"`, two of them.
    - `gravity`: $g$ in m/s^2.

    **Returns:** an `rx.Actuated`. It hovers with a quarter of its weight on each rotor.
    """
    arm, drag = positive64("arm", arm), positive64("drag", drag)
    ahead = LAYOUTS[require_choice("layout", layout, tuple(LAYOUTS))]
    x, y = np.array([ahead, [-ahead[1], ahead[0]], [-ahead[0], -ahead[1]], [ahead[1], -ahead[0]]]).T
    turning = np.array([1.0, -1.0, 1.0, -1.0])

    def mixing(arm: Float[Array, ""], drag: Float[Array, ""]) -> Float[Array, "6 4"]:
        pushed = jnp.concatenate([jnp.zeros((2, 4)), jnp.ones((1, 4))])
        return jnp.concatenate([arm * np.stack([y, -x]), drag * turning[None, :], pushed])  # (1)

    places = evaluate_in_jax(lambda arm: arm * np.stack([x, y, 0 * x], axis=1), arm)
    body = FlyingBody(inertia, mass, gravity, rotors=places)
    most = _limit(None if thrust is None else _for_each("thrust", thrust, 4), 4)
    return Actuated(
        body, evaluate_in_jax(mixing, arm, drag), _bounds([as_jax(np.zeros(4))], [most])
    )


@explain_keywords
def crane(
    string: StringPendulum, trolley: ArrayLike, *, force: ArrayLike | None = None
) -> Actuated:
    r"""Make a crane: a string pendulum on a trolley, pushed along its rails. $e_3$ points down.

    The inputs are the forces on the trolley along $e_1$ and $e_2$ (N). They change the horizontal
    momentum of everything, and nothing else: `Crane` has the balances.

    **Arguments:**

    - `string`: a `StringPendulum` without damping; that of the paper is
        `StringPendulum.paper(elements=4)[0]`.
    - `trolley`: its mass (kg).
    - `force`: the largest force, one for both or one for each (N); `None` for no limit.
    """
    system = Crane(string, trolley)
    most = _limit(None if force is None else _for_each("force", force, 2), 2)
    return Actuated(system, np.eye(system.group.dim)[:, -2:], _bounds([_negative(most)], [most]))


@explain_keywords
def upright_pendulum(
    inertia: ArrayLike,
    mass: ArrayLike,
    arm: ArrayLike,
    gravity: ArrayLike = 9.81,
    *,
    torque: ArrayLike | None = None,
) -> Actuated:
    r"""Make a `Pendulum3D` with torques about its body axes, to be held upright.

    $e_3$ points down. The inputs are the torques about the body axes at the pivot (N m).
    `plant.upright()` is the state at rest with the centre of mass straight above the pivot,
    `plant.hanging()` that below.

    **Arguments:**

    - `inertia`: principal moments, or the matrix, about the **pivot** (kg m^2).
    - `mass`: in kg.
    - `arm`: from the pivot to the centre of mass in body axes (m).
    - `gravity`: in m/s^2.
    - `torque`: the largest torque, one for all axes or one for each (N m); `None` for no limit.
    """
    body = Pendulum3D(inertia, mass, arm, gravity)
    most = _limit(None if torque is None else _for_each("torque", torque, 3), 3)
    return Actuated(body, np.eye(3), _bounds([_negative(most)], [most]))


@explain_keywords
def steered_sleigh(
    mass: ArrayLike,
    inertia: ArrayLike,
    arm: ArrayLike = 0.0,
    *,
    torque: ArrayLike | None = None,
    thrust: ArrayLike | None = None,
) -> Actuated:
    r"""Make a `ChaplyginSleigh` that is steered and pushed; step it with `LagrangeDAlembert()`.

    The inputs are the torque about the vertical (N m), positive to the left, and the thrust along
    the skate (N), positive ahead, which acts where the skate touches.

    **Arguments:**

    - `mass`: in kg.
    - `inertia`: about the centre of mass (kg m^2).
    - `arm`: how far the centre of mass lies ahead of the skate (m); 0 for a knife edge.
    - `torque`, `thrust`: the largest of each (N m, N); `None` for no limit.
    """
    limits = {"torque": torque, "thrust": thrust}
    most = _together(
        [_limit(None if x is None else _for_each(name, x, 1), 1) for name, x in limits.items()]
    )
    return Actuated(
        ChaplyginSleigh(mass, inertia, arm), np.eye(3, 2), _bounds([_negative(most)], [most])
    )


def _for_each(name: str, value: ArrayLike, count: int) -> Float[Array, " n"]:
    """Return one number for each, all above zero, from one number for all or one for each."""
    given = float64(name, value)
    if given.shape == ():
        given = evaluate_in_jax(lambda x: jnp.broadcast_to(x, (count,)), given)
    return positive64(name, given, (count,))


def _limit(most: Float[Array, " n"] | None, count: int) -> Float[Array, " n"]:
    return as_jax(np.full(count, np.inf)) if most is None else most


def _negative(most: Float[Array, " n"]) -> Float[Array, " n"]:
    return evaluate_in_jax(jnp.negative, most)


def _together(
    parts: Sequence[Float[Array | np.ndarray, "..."]], axis: int = 0
) -> Float[Array, "..."]:
    """Join arrays; nothing is compiled for those whose numbers are known."""
    return evaluate_in_jax(lambda parts: jnp.concatenate(parts, axis), list(parts))


def _bounds(
    lower: list[Float[Array | np.ndarray, " _"]], upper: list[Float[Array | np.ndarray, " _"]]
) -> tuple[Float[Array, " m"], Float[Array, " m"]] | None:
    """Return the bounds of all inputs; `None` if no input is bounded."""
    low, high = _together(lower), _together(upper)
    limited = is_traced(low, high) or bool(np.any(np.isfinite(low)) or np.any(np.isfinite(high)))
    return (low, high) if limited else None
