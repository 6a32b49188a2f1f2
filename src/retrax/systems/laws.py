"""Laws of feedback for the ready plants: proportional and derivative, on the group.

Each is a function of `g`, `xi` and `t` for `rx.Feedback` and `rx.Sampled`, made of numbers: gains
can be differentiated, differ between the members of an ensemble, and lie in a file.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.so3 import SO3
from retrax.mechanics.system import Coordinates, Element
from retrax.numerics.checks import ArrayLike, finite64, float64, positive64, require_shape
from retrax.numerics.evaluate import evaluate_in_jax
from retrax.numerics.frozen import Frozen
from retrax.systems.flying_body import Pose

_SO3 = SO3()


class PointTo(Frozen):
    r"""Turn a body to a target attitude, by the shortest way:
    $\tau = -k\log(R_*^TR) - d\,\Omega$.

    **Arguments:**

    - `target`: $R_*$, body axes to space axes.
    - `stiffness`, `damping`: $k$ in N m/rad and $d$ in N m s/rad.
    - `axes`: of reaction wheels, a row for each. With them the law returns the motor torques of
        least size whose reaction is $\tau$; without, $\tau$ itself.
    """

    target: Float[Array, "3 3"]
    stiffness: Float[Array, ""]
    damping: Float[Array, ""]
    mixing: Float[Array, "m 3"] | None

    def __init__(
        self,
        target: ArrayLike,
        stiffness: ArrayLike,
        damping: ArrayLike,
        axes: ArrayLike | None = None,
    ):
        self.target = finite64("target", target, (3, 3))
        _SO3.check("target", self.target)
        self.stiffness = positive64("stiffness", stiffness)
        self.damping = positive64("damping", damping)
        self.mixing = None
        if axes is not None:
            rows = float64("axes", axes)
            require_shape("axes", rows, (*rows.shape[:1], 3))
            self.mixing = evaluate_in_jax(lambda a: -jnp.linalg.pinv(a.T), rows)

    def __call__(self, g: Element, xi: Coordinates, t: Float[Array, ""]) -> Float[Array, " m"]:
        R = g[0] if isinstance(g, tuple) else g
        torque = -self.stiffness * _SO3.log(self.target.T @ R) - self.damping * xi[:3]
        return torque if self.mixing is None else self.mixing @ torque


class HoverAt(Frozen):
    r"""Fly a quadrotor to a place and hold it there.

    The force that is wanted in space, $f = m(g\,e_3 - k_x(x - x_*) - d_x\dot x)$, is given by the
    rotors along body $e_3$, and the body turns towards it:
    $\tau = J(k_R\,e_3\times R^Tf/|f| - d_R\,\Omega)$.

    **Arguments:**

    - `mixing`: from the four thrusts to the torques and the thrust, `B[[0, 1, 2, 5]]`.
    - `inertia`, `mass`, `gravity`: of the body.
    - `place`: $x_*$ in m.
    - `stiffness`, `damping`: $k_x, d_x$ of the place, in 1/s^2 and 1/s.
    - `righting`, `turning`: $k_R, d_R$ of the attitude, in 1/s^2 and 1/s.
    """

    inverse: Float[Array, "4 4"]
    inertia: Float[Array, "3"]
    mass: Float[Array, ""]
    gravity: Float[Array, ""]
    place: Float[Array, "3"]
    stiffness: Float[Array, ""]
    damping: Float[Array, ""]
    righting: Float[Array, ""]
    turning: Float[Array, ""]

    def __init__(
        self,
        mixing: ArrayLike,
        inertia: ArrayLike,
        mass: ArrayLike,
        place: ArrayLike,
        *,
        gravity: ArrayLike = 9.81,
        stiffness: ArrayLike = 1.0,
        damping: ArrayLike = 1.8,
        righting: ArrayLike = 60.0,
        turning: ArrayLike = 14.0,
    ):
        self.inverse = evaluate_in_jax(jnp.linalg.inv, finite64("mixing", mixing, (4, 4)))
        self.inertia = positive64("inertia", inertia, (3,))
        self.mass = positive64("mass", mass)
        self.gravity = finite64("gravity", gravity)
        self.place = finite64("place", place, (3,))
        self.stiffness = positive64("stiffness", stiffness)
        self.damping = positive64("damping", damping)
        self.righting = positive64("righting", righting)
        self.turning = positive64("turning", turning)

    def __call__(self, g: Pose, xi: Coordinates, t: Float[Array, ""]) -> Float[Array, "4"]:
        R, x = g
        pulled = -self.stiffness * (x - self.place) - self.damping * (R @ xi[3:])
        force = R.T @ (self.mass * (pulled + self.gravity * jnp.array([0.0, 0.0, 1.0])))
        size = jnp.sqrt(force @ force)
        tilt = jnp.stack([-force[1], force[0], jnp.zeros(())]) / size  # e3 x f/|f|
        torque = self.inertia * (self.righting * tilt - self.turning * xi[:3])
        return self.inverse @ jnp.concatenate([torque, force[2:]])


class TrolleyTo(Frozen):
    r"""Bring the trolley of a crane to a place: $u = -k(X - X_*) - d\,\dot X$.

    It takes energy out of the load as well: the swing dies away.

    **Arguments:** `place`: $X_*$ in m; `stiffness`, `damping`: $k$ in N/m and $d$ in N s/m.
    """

    place: Float[Array, "2"]
    stiffness: Float[Array, ""]
    damping: Float[Array, ""]

    def __init__(self, place: ArrayLike, stiffness: ArrayLike, damping: ArrayLike):
        self.place = finite64("place", place, (2,))
        self.stiffness = positive64("stiffness", stiffness)
        self.damping = positive64("damping", damping)

    def __call__(self, g: Element, xi: Coordinates, t: Float[Array, ""]) -> Float[Array, "2"]:
        return -self.stiffness * (g[-1] - self.place) - self.damping * xi[-2:]
