"""Andrews' squeezing mechanism: seven bodies in the plane, driven by a motor."""

import math
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.groups.base import Coordinates, Element
from retrax.mechanisms.joints import Revolute
from retrax.mechanisms.mechanism import Mechanism
from retrax.mechanisms.springs import Spring
from retrax.mechanisms.system import MechanismSystem

# Masses in kg and moments of inertia in kg m^2 of the bodies K1 to K7.
_MASSES = (0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498)
_MOMENTS = (2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5)
# Where it is held, and lengths in m as the problem names them.
_A, _B, _C = np.array([-0.06934, -0.00227]), np.array([-0.03635, 0.03273]), np.array([0.014, 0.072])
_D, _DA, _E, _EA = 0.028, 0.0115, 0.02, 0.01421
_RR, _RA, _SS, _SA, _SB, _SC, _SD = 0.007, 0.00092, 0.035, 0.01874, 0.01043, 0.018, 0.02
_TA, _TB, _U, _UA, _UB, _ZF, _ZT, _FA = (
    0.02308,
    0.00916,
    0.04,
    0.01228,
    0.00449,
    0.02,
    0.04,
    0.01421,
)
_STIFFNESS, _SLACK, _TORQUE = 4530.0, 0.07785, 0.033
# The angles of the bodies at the start.
_BETA, _THETA, _GAMMA = -0.0617138900142764496, 0.0, 0.45527981916307038
_PHI, _DELTA, _OMEGA, _EPSILON = (
    0.222668390165885885,
    0.48736497954384255,
    -0.222668390165885885,
    1.23054744454982119,
)


@dataclass(frozen=True)
class ConstantTorque:
    """A torque that does not change, on one body of a mechanism in the plane."""

    body: int
    bodies: int
    torque: float

    def __call__(self, g: Element, xi: Coordinates, t: Float[Array, ""]) -> Coordinates:
        return self.torque * jnp.asarray(np.eye(3 * self.bodies)[3 * self.body])


def andrews_squeezer() -> MechanismSystem:
    r"""Return Andrews' squeezer in the plane: seven bodies, ten pins, a spring and a motor.

    A motor drives the body `K1` with 0.033 N m from rest; within 0.03 s it makes two and a half
    turns. There is no gravity. Bodies are called `K1` to `K7`, and their angles are those of the
    problem: $\beta$, $\beta + \Theta$, $\gamma$, $\Phi + \delta$, $\delta$, $\Omega +
    \epsilon$, $\epsilon$. Start with `assemble()`.

    References: [HairerWanner1996] VI.5, VII.7, [MazziaMagherini2008].
    """
    angles = (
        _BETA,
        _BETA + _THETA,
        _GAMMA,
        _PHI + _DELTA,
        _DELTA,
        _OMEGA + _EPSILON,
        _EPSILON,
    )
    # Of each body: its angle's direction, and the one that is a quarter turn behind.
    one, two, three, four, five, six, seven = (_axes(angle) for angle in angles)
    crank, ring = _RR * one[0], _RR * one[0] - _D * two[0]
    upper, lower = _A + _ZT * five[0], _A + _U * seven[1]
    centres = (
        _RA * one[0],
        crank - _DA * two[0],
        _B + _SA * three[1] + _SB * three[0],
        upper + (_E - _EA) * four[1],
        _A + _TA * five[0] - _TB * five[1],
        lower + (_ZF - _FA) * six[0],
        _A + _UA * seven[1] - _UB * seven[0],
    )
    squeezer = Mechanism(gravity=[0.0, 0.0])
    K = [
        squeezer.body(f"K{k + 1}", mass, moment, at=centre, turned=_rotation(angle))
        for k, (mass, moment, centre, angle) in enumerate(
            zip(_MASSES, _MOMENTS, centres, angles, strict=True)
        )
    ]
    squeezer.join(
        Revolute(squeezer.ground, K[0], at=[0.0, 0.0], name="O"),
        Revolute(K[0], K[1], at=crank, name="F"),
        Revolute(K[1], K[2], at=ring, name="E3"),
        Revolute(K[1], K[3], at=ring, name="E4"),
        Revolute(K[1], K[5], at=ring, name="E6"),
        Revolute(squeezer.ground, K[2], at=_B, name="B"),
        Revolute(K[3], K[4], at=upper, name="G"),
        Revolute(K[5], K[6], at=lower, name="H"),
        Revolute(squeezer.ground, K[4], at=_A, name="A5"),
        Revolute(squeezer.ground, K[6], at=_A, name="A7"),
    )
    hook = _B + _SD * three[0] + _SC * three[1]
    squeezer.add(Spring(squeezer.ground, K[2], [_C, hook], _STIFFNESS, _SLACK, name="spring"))
    return squeezer.system(force=ConstantTorque(0, len(K), _TORQUE))


def _axes(angle: float) -> tuple[np.ndarray, np.ndarray]:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([c, s]), np.array([s, -c])


def _rotation(angle: float) -> Float[np.ndarray, "2 2"]:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s], [s, c]])
