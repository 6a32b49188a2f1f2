"""Parallelograms in a row, which move as one pendulum."""

from retrax.mechanisms.joints import Revolute
from retrax.mechanisms.mechanism import Mechanism
from retrax.mechanisms.system import MechanismSystem
from retrax.numerics.checks import require_number, require_whole
from retrax.numerics.meant import explain_keywords

_LENGTH, _MASS = 1.0, 1.0
# More would take minutes to write down.
MOST_LOOPS = 1000


@explain_keywords
def four_bar(N: int = 1, *, gravity: float = 9.81) -> MechanismSystem:
    r"""Return `N` square four-bar linkages side by side, in the plane: problem A02 of IFToMM.

    `N + 1` cranks stand upright on pins `A0`, `A1`, ... that are 1 m apart, and `N` couplers join
    their upper ends. All are bars of 1 m and 1 kg. They have one freedom, the angle $\varphi$ of
    the cranks, and move as a pendulum,

    $$ a\,\ddot\varphi = -b\cos\varphi, \qquad a = \tfrac{N+1}3 + N, \quad
       b = g\,(\tfrac{N+1}2 + N). \tag{1} $$

    Where all bars lie in one line the linkage is singular: it may go on as a parallelogram or fold.
    The benchmark starts upright, `assemble(joint_rates={"A0": -1.0})`, and passes that place
    several times within 10 s.

    References: [GonzalezDopicoLugrisCuadrado2006].
    """
    N = require_whole("N", N, 1, MOST_LOOPS)
    gravity = require_number("gravity", gravity)
    linkage = Mechanism(gravity=[0.0, -gravity])
    moment = _MASS * _LENGTH**2 / 12
    cranks = [
        linkage.body(f"crank {i}", _MASS, moment, at=[i, 0.5], turned=[[0.0, -1.0], [1.0, 0.0]])
        for i in range(N + 1)
    ]
    couplers = [linkage.body(f"coupler {i}", _MASS, moment, at=[i + 0.5, 1.0]) for i in range(N)]
    for i, crank in enumerate(cranks):
        linkage.join(Revolute(linkage.ground, crank, at=[i, 0.0], name=f"A{i}"))
    for i, coupler in enumerate(couplers):
        linkage.join(
            Revolute(cranks[i], coupler, at=[i, 1.0], name=f"B{i} right"),
            Revolute(cranks[i + 1], coupler, at=[i + 1, 1.0], name=f"B{i + 1} left"),
        )
    return linkage.system()
