"""Mechanical systems on Lie groups, simulated so that the numbers stay true."""

import jax as _jax

_jax.config.update("jax_enable_x64", True)

from retrax import analysis as analysis
from retrax import systems as systems
from retrax import testing as testing
from retrax.errors import BadInput as BadInput
from retrax.errors import CheckFailed as CheckFailed
from retrax.errors import RetraxError as RetraxError
from retrax.errors import StepFailed as StepFailed
from retrax.groups.matrix_group import MatrixGroup as MatrixGroup
from retrax.groups.power import Power as Power
from retrax.groups.product import Product as Product
from retrax.groups.retractions import Cayley as Cayley
from retrax.groups.retractions import Exp as Exp
from retrax.groups.se2 import SE2 as SE2
from retrax.groups.se3 import SE3 as SE3
from retrax.groups.so2 import SO2 as SO2
from retrax.groups.so3 import SO3 as SO3
from retrax.groups.translation import Translation as Translation
from retrax.integrators.catalogue import INTEGRATORS as INTEGRATORS
from retrax.integrators.composition import Composition as Composition
from retrax.integrators.cotangent_lift import CotangentLift as CotangentLift
from retrax.integrators.discrete_gradient import DiscreteGradient as DiscreteGradient
from retrax.integrators.hamel_midpoint import HamelMidpoint as HamelMidpoint
from retrax.integrators.kahan import Kahan as Kahan
from retrax.integrators.kahan_attitude import KahanAttitude as KahanAttitude
from retrax.integrators.lagrange_d_alembert import LagrangeDAlembert as LagrangeDAlembert
from retrax.integrators.lie_verlet import LieVerlet as LieVerlet
from retrax.integrators.projected_lift import ProjectedLift as ProjectedLift
from retrax.integrators.radial_projection import RadialProjection as RadialProjection
from retrax.integrators.retraction_flow import RetractionFlow as RetractionFlow
from retrax.integrators.rkmk import RKMK as RKMK
from retrax.integrators.runge_kutta import RungeKutta as RungeKutta
from retrax.integrators.tangent_lift import TangentLift as TangentLift
from retrax.mechanics.constraints import Distribution as Distribution
from retrax.mechanics.constraints import VelocityConstraint as VelocityConstraint
from retrax.mechanics.flow import GroupFlow as GroupFlow
from retrax.mechanics.hamel import HamelFrame as HamelFrame
from retrax.mechanics.hamiltonian import HamiltonianSystem as HamiltonianSystem
from retrax.mechanics.lagrangian import LagrangianSystem as LagrangianSystem
from retrax.mechanics.mechanical import MechanicalSystem as MechanicalSystem
from retrax.mechanics.quadratic_field import QuadraticField as QuadraticField
from retrax.mechanics.state import State as State
from retrax.numerics.tableaus import Tableau as Tableau
from retrax.simulate.ensemble import ensemble as ensemble
from retrax.simulate.simulate import simulate as simulate
from retrax.trajectory.storage import load as load
from retrax.trajectory.trajectory import Trajectory as Trajectory
