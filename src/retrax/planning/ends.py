r"""Where a plan is to end: equations $\psi(g, \mu) = 0$, and a place nearby to aim at."""

import abc

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.arguments import element
from retrax.groups.base import AbstractLieGroup, Coordinates, Element
from retrax.groups.se3 import SE3
from retrax.groups.so3 import SO3
from retrax.mechanics.functions import Function, as_pytree
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import (
    ArrayLike,
    finite64,
    float64,
    output,
    quote,
    require_direction,
)
from retrax.numerics.evaluate import evaluate, evaluate_in_jax
from retrax.numerics.frozen import Frozen
from retrax.numerics.meant import explain_keywords
from retrax.numerics.series import atanc
from retrax.numerics.small_matrices import cross, null_space


class Reach:
    r"""An end to be reached: a pose, or all poses in which an axis points somewhere.

    ```python
    rx.Reach(pose)                                  # there, at any velocity
    rx.Reach(pose, velocity=jnp.zeros(3))           # there, at rest
    rx.Reach(axis=[0, 0, 1], velocity=jnp.zeros(3)) # upright, whatever the heading
    ```

    **Arguments:**

    - `pose`: the configuration at the end.
    - `velocity`: the body velocity at the end; free unless it is given.
    - `axis`, `along`: instead of a pose, an axis of the body and the direction in space that it is
        to have at the end, `[0, 0, 1]` unless another is given. The rotation about it stays free,
        and on SE(3) the position.
    """

    @explain_keywords
    def __init__(
        self,
        pose: Element | None = None,
        *,
        velocity: ArrayLike | None = None,
        axis: ArrayLike | None = None,
        along: ArrayLike | None = None,
    ):
        if (pose is None) == (axis is None):
            raise BadInput("Reach(...) needs exactly one of a pose and an axis.")
        if along is not None and axis is None:
            raise BadInput("Reach(along=...) is the direction of an axis=... .")
        self.pose = None if pose is None else _pose(pose)
        self.velocity = None if velocity is None else float64("velocity of the end", velocity)
        self.axis = None if axis is None else _direction("axis", axis)
        given = (0.0, 0.0, 1.0) if along is None else along
        self.along = None if axis is None else _direction("along", given)

    def __repr__(self) -> str:
        what = "pose" if self.axis is None else f"axis={self.axis.tolist()}"
        rest = "" if self.velocity is None else f", velocity={np.asarray(self.velocity).tolist()}"
        return f"Reach({what}{rest})"

    def equations(self, system: AbstractGroupSystem, t: float, free: bool = False) -> "AbstractEnd":
        """Return what the end means for a system; reject a pose or a velocity that is not one.

        **Arguments:** `t`: the time at the end; `free`: whether that is only a guess.
        """
        group = system.group
        velocity = self.velocity
        if velocity is not None:
            velocity = finite64("velocity of the end", velocity, (group.dim,))
            if free and system.constraint is not None and system.constraint.moving:
                raise BadInput(
                    f"the constraint of the {system.name} depends on time, so that the velocity of "
                    "the end means something else for every duration: give a duration in seconds, "
                    "or the end as a function psi(g, mu) that is to be zero."
                )
        if self.axis is not None and self.along is not None:
            if not isinstance(group, SO3 | SE3):
                raise BadInput(
                    f"Reach(axis=...) is for bodies on SO(3) and SE(3), not on {group.name}: give "
                    "the end as a function psi(g, mu) that is to be zero."
                )
            return self._axis_end(group, system, velocity, t)
        pose = element("pose", self.pose, group.layout())
        group.check("pose", pose)
        if velocity is None:
            return PoseEnd(group, pose, None, None, None)
        momentum = system.state(pose, velocity=velocity, t=t).momentum
        return PoseEnd(group, pose, velocity, momentum, _admissible(system, pose, t))

    def _axis_end(
        self,
        group: SO3 | SE3,
        system: AbstractGroupSystem,
        velocity: Coordinates | None,
        t: float,
    ) -> "AxisEnd":
        axis, along = np.asarray(self.axis), np.asarray(self.along)
        end = AxisEnd(
            group, system, jnp.asarray(axis), jnp.asarray(along), _across(axis), velocity, None
        )
        if velocity is None or system.constraint is None:
            return end
        there = evaluate_in_jax(AxisEnd.align, end, group.identity())
        spans = []
        for angle in _HEADINGS:
            turn = np.zeros(group.dim)
            turn[:3] = angle * axis
            pose = evaluate_in_jax(_turn, group, there, turn)
            system.state(pose, velocity=velocity, t=t)  # is it admissible?
            spans.append(_admissible(system, pose, t))
        if any(not np.allclose(spans[0], x, rtol=0.0, atol=_SAME) for x in spans):
            raise BadInput(
                f"the velocities that the constraint of the {system.name} admits depend on the "
                "rotation about the axis, which Reach(axis=...) leaves free: give a pose, or the "
                "end as a function psi(g, mu) that is to be zero."
            )
        return AxisEnd(
            group, system, jnp.asarray(axis), jnp.asarray(along), _across(axis), velocity, spans[0]
        )


# Rotations about an axis at which a constraint is looked at, and how well it must agree.
_HEADINGS, _SAME = (0.0, 1.0, 2.5), 1e-9


def _admissible(system: AbstractGroupSystem, g: Element, t: float) -> Float[Array, "m dim"] | None:
    """Return a basis of velocities that the constraint leaves at `g`; `None` for all."""
    constraint = system.constraint
    if constraint is None:
        return None
    rows = np.asarray(evaluate(type(constraint).rows, constraint, g, np.asarray(t)))
    return jnp.asarray(null_space(rows, 1e-10 * float(np.linalg.norm(rows))))


def _turn(group: AbstractLieGroup, g: Element, turn: Coordinates) -> Element:
    return group.compose(g, group.exp(turn))


def _pose(pose: object) -> Element:
    """Return a configuration, whatever its group: arrays of numbers, however nested."""
    if isinstance(pose, tuple):
        return tuple(_pose(part) for part in pose)
    return float64("pose", pose)


def _direction(name: str, vector: ArrayLike) -> np.ndarray:
    given = np.asarray(finite64(name, vector, (3,)))
    return given / require_direction(name, given)


class AbstractEnd(Frozen):
    """Equations at the end that know a place where they hold."""

    @abc.abstractmethod
    def __call__(self, g: Element, mu: Coordinates) -> Float[Array, " p"]:
        """Return what is to be zero."""

    @abc.abstractmethod
    def target(self, g: Element) -> tuple[Element, Coordinates | None]:
        """Return the place that is nearest to `g`, and the velocity there if it is given."""


class PoseEnd(AbstractEnd):
    r"""$\psi = \log(g_e^{-1}g)$ and, where a velocity is given, $\mu - \mu_e$.

    Momenta under a constraint have fewer directions, and as many equations: $E^T(\mu - \mu_e)$
    with a basis $E$ of the velocities that are admissible at the pose.

    **Attributes:** `directions`: $E^T$, or `None` without a constraint.
    """

    group: AbstractLieGroup
    pose: Element
    velocity: Coordinates | None
    momentum: Coordinates | None
    directions: Float[Array, "m dim"] | None

    def __call__(self, g: Element, mu: Coordinates) -> Float[Array, " p"]:
        group = self.group
        miss = group.log(group.compose(group.inverse(self.pose), g))
        if self.momentum is None:
            return miss
        return jnp.concatenate([miss, _along(self.directions, mu - self.momentum)])

    def target(self, g: Element) -> tuple[Element, Coordinates | None]:
        return self.pose, self.velocity


class AxisEnd(AbstractEnd):
    r"""An axis $a$ of the body points along $b$: no rotation leads from $a$ to $R^Tb$."""

    group: SO3 | SE3
    system: AbstractGroupSystem
    axis: Float[Array, "3"]
    along: Float[Array, "3"]
    frame: Float[Array, "2 3"]  # directions across the axis
    velocity: Coordinates | None
    directions: Float[Array, "m dim"] | None  # of admissible velocities, as in `PoseEnd`

    def _turn(self, g: Element) -> Float[Array, "3"]:
        """Return the shortest rotation, in the body, that takes the axis to where it should be."""
        there = _rotation(g).T @ self.along
        v = cross(self.axis, there)
        w = 1.0 + self.axis @ there  # the quaternion (w, v), not normalised
        flat = w < 1e-12  # half a turn, about any axis across
        v, w = jnp.where(flat, self.frame[0], v), jnp.where(flat, 0.0, w)
        size = jnp.sqrt(v @ v + w * w)
        v, w = v / size, w / size
        return 2 * atanc(v @ v, w) * v

    def __call__(self, g: Element, mu: Coordinates) -> Float[Array, " p"]:
        miss = self.frame @ self._turn(g)
        if self.velocity is None:
            return miss
        rest = self.system.velocity(g, mu) - self.velocity
        return jnp.concatenate([miss, _along(self.directions, rest)])

    def target(self, g: Element) -> tuple[Element, Coordinates | None]:
        return self.align(g), self.velocity

    def align(self, g: Element) -> Element:
        """Return the nearest configuration in which the axis is where it should be."""
        group = self.group
        turn = self._turn(g)
        move = turn if isinstance(group, SO3) else jnp.concatenate([turn, jnp.zeros(3)])
        return group.compose(g, group.exp(move))


def _along(directions: Float[Array, "m dim"] | None, vector: Coordinates) -> Float[Array, " m"]:
    return vector if directions is None else directions @ vector


def _rotation(g: Element) -> Float[Array, "3 3"]:
    return g[0] if isinstance(g, tuple) else g


def _across(axis: np.ndarray) -> Float[Array, "2 3"]:
    """Return two directions across an axis and across each other."""
    first = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    first = first / np.linalg.norm(first)
    return jnp.asarray(np.stack([first, np.cross(axis, first)]))


def end_function(
    end: object, system: AbstractGroupSystem, t: float, free: bool = False
) -> Function | None:
    """Return the equations of an end: a `Reach`, a function, or `None` where it is free.

    **Arguments:** `t`: the time at the end; `free`: whether that is only a guess.
    """
    if end is None:
        return None
    if isinstance(end, Reach):
        return end.equations(system, t, free)
    if not callable(end):
        raise BadInput(
            f"end = {quote(end)} is neither a Reach(...), nor a function psi(g, mu) that is to be "
            "zero, nor None for a free end."
        )
    coordinates = jax.ShapeDtypeStruct((system.group.dim,), jnp.float64)
    found = output("end", end, (system.group.layout(), coordinates))
    if found.dtype != jnp.float64 or found.size < 1 or found.size > 2 * system.group.dim:
        raise BadInput(
            f"end returns {found.dtype} of shape {found.shape}, but it must return from 1 to "
            f"{2 * system.group.dim} real numbers that are to be zero."
        )
    return as_pytree(end)
