"""The one list of integrators: all tables and commands read it."""

from retrax.contact.steps.nonsmooth_rattle import NonsmoothRattle
from retrax.groups.retractions import Cayley, Exp
from retrax.integrators.adapted_lift import AdaptedLift
from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.collocation import Collocation, PlainCollocation
from retrax.integrators.composition import Composition
from retrax.integrators.cotangent_lift import CotangentLift
from retrax.integrators.galerkin_variational import GalerkinVariational
from retrax.integrators.hamel_midpoint import DiscreteGradient, HamelMidpoint
from retrax.integrators.kahan import Kahan, RadialProjection
from retrax.integrators.lagrange_d_alembert import LagrangeDAlembert
from retrax.integrators.lie_verlet import LieVerlet
from retrax.integrators.magnus import Magnus
from retrax.integrators.projected_lift import ProjectedLift
from retrax.integrators.retraction_flow import RetractionFlow
from retrax.integrators.rkmk import RKMK, RungeKutta
from retrax.integrators.tangent_lift import TangentLift
from retrax.integrators.taylor import Taylor
from retrax.numerics.nodes import gauss
from retrax.systems.kahan_attitude import KahanAttitude
from retrax.systems.rods.rolling_verlet import RollingDKD, RollingVerlet
from retrax.systems.strings.contact_dkd import ContactDKD, ContactMidpoint

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
    "taylor-4": Taylor(4),
    "tangent-lift": TangentLift(Exp()),
    "tangent-lift-s0": TangentLift(Exp(), s=0.0),
    "retraction-flow": RetractionFlow(Exp()),
    "retraction-flow-s0": RetractionFlow(Exp(), s=0.0),
    "lagrange-d-alembert": LagrangeDAlembert(Exp()),
    "lagrange-d-alembert-cayley": LagrangeDAlembert(Cayley()),
    "lagrange-d-alembert-s0": LagrangeDAlembert(Exp(), s=0.0),
    "lagrange-d-alembert-4": Composition(LagrangeDAlembert(Exp()), order=4),
    "lagrange-d-alembert-6": Composition(LagrangeDAlembert(Exp()), order=6),
    "hamel-midpoint": HamelMidpoint(Exp()),
    "hamel-midpoint-4": Composition(HamelMidpoint(Exp()), order=4),
    "discrete-gradient": DiscreteGradient(Exp()),
    "discrete-gradient-4": Composition(DiscreteGradient(Exp()), order=4),
    "adapted-lift": AdaptedLift(Exp()),
    "projected-lift": ProjectedLift(Exp()),
    "projected-lift-s0": ProjectedLift(Exp(), s=0.0),
    "kahan": Kahan(),
    "kahan-4": Composition(Kahan(), order=4),
    "kahan-6": Composition(Kahan(), order=6),
    "kahan-projected": RadialProjection(Kahan()),
    "kahan-projected-4": RadialProjection(Composition(Kahan(), order=4)),
    "kahan-projected-6": RadialProjection(Composition(Kahan(), order=6)),
    "kahan-attitude": KahanAttitude(),
    "kahan-attitude-exp": KahanAttitude(aligned=False),
    "kahan-attitude-projected": KahanAttitude(project=True),
    "contact-dkd": ContactDKD(),
    "contact-midpoint": ContactMidpoint(),
    "collocation-4": Collocation(gauss(2)),
    "collocation-centred-4": Collocation(gauss(2), centred=True),
    "collocation-spatial-4": Collocation(gauss(2), form="spatial"),
    "magnus-4": Magnus(4),
    "galerkin-4": GalerkinVariational(gauss(2)),
    "plain-collocation-4": PlainCollocation(gauss(2)),
}
"""Every integrator, by its name on the command line and in the verification ledger."""

# These step what touches and nothing else, so that none of the common problems fits them.
TOUCHING: dict[str, AbstractIntegrator] = {
    "rolling-verlet": RollingVerlet(),
    "rolling-dkd": RollingDKD(),
    "nonsmooth-rattle": NonsmoothRattle(),
}
