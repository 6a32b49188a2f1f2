"""A law of feedback for motors at joints."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import Coordinates, Element
from retrax.mechanics.actuated import Actuated
from retrax.mechanisms.joined import pose_of
from retrax.mechanisms.motors import MotorMatrix
from retrax.numerics.checks import ArrayLike, finite64, float64, positive64
from retrax.numerics.frozen import Frozen


class JointsTo(Frozen):
    r"""Move the joints of a mechanism from where they are to where they should be, and hold them.

    Each motor pulls its joint to a place that travels smoothly, in the time $T$,

    $$ u = -k(q - q_*(t)) - d\,(\dot q - \dot q_*(t)), \qquad
       q_* = q_0 + s^3(10 - 15s + 6s^2)\,(q_1 - q_0), \quad s = t/T. \tag{1} $$

    **Arguments:** `plant`: what `Mechanism.plant` returns; `start`, `end`: $q_0$ and $q_1$, one
    number a motor, between $-\pi$ and $\pi$ for angles; `time`: $T$ in s; `stiffness`, `damping`:
    $k$ and $d$, one number a motor.
    """

    motors: MotorMatrix
    start: Float[Array, " m"]
    end: Float[Array, " m"]
    time: Float[Array, ""]
    stiffness: Float[Array, " m"]
    damping: Float[Array, " m"]

    def __init__(
        self,
        plant: Actuated,
        start: ArrayLike,
        end: ArrayLike,
        time: ArrayLike,
        stiffness: ArrayLike,
        damping: ArrayLike,
    ):
        motors = plant.actuators.matrix if isinstance(plant, Actuated) else None
        if not isinstance(motors, MotorMatrix):
            raise BadInput("plant is not that of a mechanism: Mechanism.plant() makes one.")
        m = (len(motors.bodies),)
        self.motors = motors
        self.start, self.end = finite64("start", start, m), finite64("end", end, m)
        self.time = positive64("time", time)
        self.stiffness = _for_each("stiffness", stiffness, m)
        self.damping = _for_each("damping", damping, m)

    def __call__(self, g: Element, xi: Coordinates, t: Float[Array, ""]) -> Float[Array, " m"]:
        pairs = zip(self.motors.coordinates, self.motors.bodies, strict=True)
        q = jnp.stack([c.of(pose_of(g, a), pose_of(g, b)).value for c, (a, b) in pairs])
        s = jnp.clip(t / self.time, 0.0, 1.0)
        way = self.end - self.start
        wanted = self.start + s**3 * (10 - 15 * s + 6 * s**2) * way
        rate = 30 * (s * (1 - s)) ** 2 / self.time * way
        speeds = self.motors(g).T @ xi
        return -self.stiffness * (q - wanted) - self.damping * (speeds - rate)  # (1)


def _for_each(name: str, value: ArrayLike, shape: tuple[int]) -> Float[Array, " m"]:
    """Return a positive number for each motor; one is that of all."""
    given = float64(name, value)
    return positive64(name, jnp.full(shape, given) if given.shape == () else given, shape)
