"""The one list of integrators: every table, parametrised test and command reads it."""

from retrax.groups.retractions import Cayley, Exp
from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.composition import Composition
from retrax.integrators.cotangent_lift import CotangentLift
from retrax.integrators.lie_verlet import LieVerlet
from retrax.integrators.rkmk import RKMK
from retrax.integrators.runge_kutta import RungeKutta

INTEGRATORS: dict[str, AbstractIntegrator] = {
    "lie-verlet": LieVerlet(),
    "lie-verlet-exp": LieVerlet(Exp()),
    "cotangent-lift": CotangentLift(Cayley()),
    "cotangent-lift-exp": CotangentLift(Exp()),
    "cotangent-lift-s0": CotangentLift(Cayley(), s=0.0),
    "cotangent-lift-s1": CotangentLift(Cayley(), s=1.0),
    "composition-4": Composition(LieVerlet(), order=4),
    "composition-6": Composition(LieVerlet(), order=6),
    "composition-8": Composition(LieVerlet(), order=8),
    "rkmk-2": RKMK("midpoint"),
    "rkmk-4": RKMK("rk4"),
    "rkmk-5": RKMK("dopri5"),
    "runge-kutta-4": RungeKutta("rk4"),
}
