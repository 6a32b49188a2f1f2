"""Mechanical systems on Lie groups, simulated so that the numbers stay true.

`import retrax` loads JAX and little else: each name below brings its part of retrax with it when it
is first used.
"""

import sys as _sys
from importlib import import_module as _import_module
from importlib.metadata import version as _version
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from retrax.cli.start import end_quietly as _end_quietly

_end_quietly()

import jax as _jax

_jax.config.update("jax_enable_x64", True)

if _TYPE_CHECKING:
    from retrax import analysis as analysis
    from retrax import draw as draw
    from retrax import systems as systems
    from retrax import testing as testing
    from retrax.citations import cite as cite
    from retrax.contact.contacts import Contacts as Contacts
    from retrax.contact.self_contact import SelfContact as SelfContact
    from retrax.contact.shapes import Ball as Ball
    from retrax.contact.shapes import Box as Box
    from retrax.contact.shapes import Capsule as Capsule
    from retrax.contact.shapes import Cylinder as Cylinder
    from retrax.contact.shapes import Plane as Plane
    from retrax.errors import BadInput as BadInput
    from retrax.errors import CheckFailed as CheckFailed
    from retrax.errors import CheckpointFailed as CheckpointFailed
    from retrax.errors import ContactDegenerate as ContactDegenerate
    from retrax.errors import ContactLeftRod as ContactLeftRod
    from retrax.errors import ContactLost as ContactLost
    from retrax.errors import ContactTooFast as ContactTooFast
    from retrax.errors import Interrupted as Interrupted
    from retrax.errors import NoEquilibrium as NoEquilibrium
    from retrax.errors import NoPlan as NoPlan
    from retrax.errors import NotWritten as NotWritten
    from retrax.errors import RetraxError as RetraxError
    from retrax.errors import Separation as Separation
    from retrax.errors import Slip as Slip
    from retrax.errors import StepFailed as StepFailed
    from retrax.errors import SweepStopped as SweepStopped
    from retrax.estimation.fit import fit as fit
    from retrax.estimation.measurements import Measurements as Measurements
    from retrax.estimation.result import Fit as Fit
    from retrax.estimation.smooth import smooth as smooth
    from retrax.estimation.smoothed import Smoothed as Smoothed
    from retrax.export.export import export as export
    from retrax.groups.matrix_group import MatrixGroup as MatrixGroup
    from retrax.groups.power import Power as Power
    from retrax.groups.product import Product as Product
    from retrax.groups.retractions import AbstractRetraction as AbstractRetraction
    from retrax.groups.retractions import Cayley as Cayley
    from retrax.groups.retractions import Exp as Exp
    from retrax.groups.se2 import SE2 as SE2
    from retrax.groups.se3 import SE3 as SE3
    from retrax.groups.second_kind import SecondKind as SecondKind
    from retrax.groups.so2 import SO2 as SO2
    from retrax.groups.so3 import SO3 as SO3
    from retrax.groups.so_n import SO as SO
    from retrax.groups.translation import Translation as Translation
    from retrax.importing.load_mjcf import load_mjcf as load_mjcf
    from retrax.importing.load_urdf import load_urdf as load_urdf
    from retrax.integrators.adapted_lift import AdaptedLift as AdaptedLift
    from retrax.integrators.adaptive import Adaptive as Adaptive
    from retrax.integrators.catalogue import INTEGRATORS as INTEGRATORS
    from retrax.integrators.collocation import Collocation as Collocation
    from retrax.integrators.collocation import PlainCollocation as PlainCollocation
    from retrax.integrators.composition import Composition as Composition
    from retrax.integrators.contact.nonsmooth_rattle import NonsmoothRattle as NonsmoothRattle
    from retrax.integrators.contact.rods import RollingDKD as RollingDKD
    from retrax.integrators.contact.rods import RollingVerlet as RollingVerlet
    from retrax.integrators.contact.strings import ContactDKD as ContactDKD
    from retrax.integrators.contact.strings import ContactMidpoint as ContactMidpoint
    from retrax.integrators.cotangent_lift import CotangentLift as CotangentLift
    from retrax.integrators.driven import Driven as Driven
    from retrax.integrators.galerkin_variational import GalerkinVariational as GalerkinVariational
    from retrax.integrators.hamel_midpoint import DiscreteGradient as DiscreteGradient
    from retrax.integrators.hamel_midpoint import HamelMidpoint as HamelMidpoint
    from retrax.integrators.kahan import Kahan as Kahan
    from retrax.integrators.kahan import RadialProjection as RadialProjection
    from retrax.integrators.kahan_attitude import KahanAttitude as KahanAttitude
    from retrax.integrators.lagrange_d_alembert import LagrangeDAlembert as LagrangeDAlembert
    from retrax.integrators.lie_verlet import LieVerlet as LieVerlet
    from retrax.integrators.magnus import Magnus as Magnus
    from retrax.integrators.projected_lift import ProjectedLift as ProjectedLift
    from retrax.integrators.retraction_flow import RetractionFlow as RetractionFlow
    from retrax.integrators.rkmk import RKMK as RKMK
    from retrax.integrators.rkmk import RungeKutta as RungeKutta
    from retrax.integrators.tangent_lift import TangentLift as TangentLift
    from retrax.integrators.taylor import Taylor as Taylor
    from retrax.mechanics import solids as solids
    from retrax.mechanics.actuated import Actuated as Actuated
    from retrax.mechanics.constraints import Distribution as Distribution
    from retrax.mechanics.constraints import VelocityConstraint as VelocityConstraint
    from retrax.mechanics.controls import Feedback as Feedback
    from retrax.mechanics.events import Event as Event
    from retrax.mechanics.events import Stop as Stop
    from retrax.mechanics.flow import GroupFlow as GroupFlow
    from retrax.mechanics.flow import SpaceFlow as SpaceFlow
    from retrax.mechanics.hamel import HamelFrame as HamelFrame
    from retrax.mechanics.hamiltonian import HamiltonianSystem as HamiltonianSystem
    from retrax.mechanics.holonomic import Holonomic as Holonomic
    from retrax.mechanics.lagrangian import LagrangianSystem as LagrangianSystem
    from retrax.mechanics.mechanical import MechanicalSystem as MechanicalSystem
    from retrax.mechanics.quadratic_field import QuadraticField as QuadraticField
    from retrax.mechanics.sampled import Sampled as Sampled
    from retrax.mechanics.signal import Signal as Signal
    from retrax.mechanics.state import State as State
    from retrax.mechanisms.couplings import Gear as Gear
    from retrax.mechanisms.couplings import Rack as Rack
    from retrax.mechanisms.joints import Cylindrical as Cylindrical
    from retrax.mechanisms.joints import Distance as Distance
    from retrax.mechanisms.joints import Fixed as Fixed
    from retrax.mechanisms.joints import Planar as Planar
    from retrax.mechanisms.joints import PointOnLine as PointOnLine
    from retrax.mechanisms.joints import PointOnPlane as PointOnPlane
    from retrax.mechanisms.joints import Prismatic as Prismatic
    from retrax.mechanisms.joints import Revolute as Revolute
    from retrax.mechanisms.joints import Screw as Screw
    from retrax.mechanisms.joints import Spherical as Spherical
    from retrax.mechanisms.joints import Universal as Universal
    from retrax.mechanisms.mechanism import Mechanism as Mechanism
    from retrax.mechanisms.motors import Motor as Motor
    from retrax.mechanisms.springs import Damper as Damper
    from retrax.mechanisms.springs import Spring as Spring
    from retrax.mechanisms.springs import TorsionDamper as TorsionDamper
    from retrax.mechanisms.springs import TorsionSpring as TorsionSpring
    from retrax.mechanisms.wheels import KnifeEdge as KnifeEdge
    from retrax.mechanisms.wheels import RollingBall as RollingBall
    from retrax.mechanisms.wheels import RollingWheel as RollingWheel
    from retrax.numerics.nodes import Nodes as Nodes
    from retrax.numerics.nodes import chebyshev as chebyshev
    from retrax.numerics.nodes import chebyshev_lobatto as chebyshev_lobatto
    from retrax.numerics.nodes import gauss as gauss
    from retrax.numerics.nodes import lobatto as lobatto
    from retrax.numerics.nodes import nodes as nodes
    from retrax.numerics.nodes import radau as radau
    from retrax.numerics.nodes import radau_left as radau_left
    from retrax.numerics.tableaus import Tableau as Tableau
    from retrax.planning.costs import MinimumEffort as MinimumEffort
    from retrax.planning.costs import MinimumTime as MinimumTime
    from retrax.planning.duration import Free as Free
    from retrax.planning.ends import Reach as Reach
    from retrax.planning.feedback import lqr as lqr
    from retrax.planning.optimise import optimise as optimise
    from retrax.planning.plan import Plan as Plan
    from retrax.planning.problem import ControlProblem as ControlProblem
    from retrax.run.ensemble import ensemble as ensemble
    from retrax.run.prepare import PreparedRun as PreparedRun
    from retrax.run.prepare import prepare as prepare
    from retrax.run.resume import resume as resume
    from retrax.run.simulate import simulate as simulate
    from retrax.run.step_by_step import Stepper as Stepper
    from retrax.spaces.base import AbstractHomogeneousSpace as AbstractHomogeneousSpace
    from retrax.spaces.base import AbstractSpace as AbstractSpace
    from retrax.spaces.coadjoint_orbit import CoadjointOrbit as CoadjointOrbit
    from retrax.spaces.grassmann import Grassmann as Grassmann
    from retrax.spaces.group_itself import GroupItself as GroupItself
    from retrax.spaces.isospectral import Isospectral as Isospectral
    from retrax.spaces.sphere import Sphere as Sphere
    from retrax.spaces.stiefel import Stiefel as Stiefel
    from retrax.spaces.torus import Torus as Torus
    from retrax.store.factory import factory as factory
    from retrax.store.netcdf import load as load
    from retrax.store.plan_file import load_plan as load_plan
    from retrax.sweep.sweep import sweep as sweep
    from retrax.trajectory.trajectory import Trajectory as Trajectory

_PLACES: dict[str, tuple[str, ...]] = {
    "retrax.citations": ("cite",),
    "retrax.errors": (
        "BadInput",
        "CheckFailed",
        "CheckpointFailed",
        "ContactDegenerate",
        "ContactLeftRod",
        "ContactLost",
        "ContactTooFast",
        "Interrupted",
        "NoEquilibrium",
        "NoPlan",
        "NotWritten",
        "RetraxError",
        "Separation",
        "Slip",
        "StepFailed",
        "SweepStopped",
    ),
    "retrax.estimation.fit": ("fit",),
    "retrax.estimation.measurements": ("Measurements",),
    "retrax.estimation.result": ("Fit",),
    "retrax.estimation.smooth": ("smooth",),
    "retrax.estimation.smoothed": ("Smoothed",),
    "retrax.export.export": ("export",),
    "retrax.groups.matrix_group": ("MatrixGroup",),
    "retrax.groups.power": ("Power",),
    "retrax.groups.product": ("Product",),
    "retrax.groups.retractions": (
        "AbstractRetraction",
        "Cayley",
        "Exp",
    ),
    "retrax.groups.se2": ("SE2",),
    "retrax.groups.se3": ("SE3",),
    "retrax.groups.second_kind": ("SecondKind",),
    "retrax.groups.so2": ("SO2",),
    "retrax.groups.so3": ("SO3",),
    "retrax.groups.so_n": ("SO",),
    "retrax.groups.translation": ("Translation",),
    "retrax.importing.load_mjcf": ("load_mjcf",),
    "retrax.importing.load_urdf": ("load_urdf",),
    "retrax.integrators.adapted_lift": ("AdaptedLift",),
    "retrax.integrators.adaptive": ("Adaptive",),
    "retrax.integrators.catalogue": ("INTEGRATORS",),
    "retrax.integrators.collocation": (
        "Collocation",
        "PlainCollocation",
    ),
    "retrax.integrators.composition": ("Composition",),
    "retrax.integrators.contact.rods": (
        "RollingDKD",
        "RollingVerlet",
    ),
    "retrax.integrators.contact.strings": (
        "ContactDKD",
        "ContactMidpoint",
    ),
    "retrax.integrators.cotangent_lift": ("CotangentLift",),
    "retrax.integrators.driven": ("Driven",),
    "retrax.integrators.galerkin_variational": ("GalerkinVariational",),
    "retrax.integrators.hamel_midpoint": (
        "DiscreteGradient",
        "HamelMidpoint",
    ),
    "retrax.integrators.kahan": (
        "Kahan",
        "RadialProjection",
    ),
    "retrax.integrators.kahan_attitude": ("KahanAttitude",),
    "retrax.integrators.lagrange_d_alembert": ("LagrangeDAlembert",),
    "retrax.integrators.lie_verlet": ("LieVerlet",),
    "retrax.integrators.contact.nonsmooth_rattle": ("NonsmoothRattle",),
    "retrax.contact.contacts": ("Contacts",),
    "retrax.contact.self_contact": ("SelfContact",),
    "retrax.contact.shapes": ("Ball", "Box", "Capsule", "Cylinder", "Plane"),
    "retrax.integrators.magnus": ("Magnus",),
    "retrax.integrators.projected_lift": ("ProjectedLift",),
    "retrax.integrators.retraction_flow": ("RetractionFlow",),
    "retrax.integrators.rkmk": (
        "RKMK",
        "RungeKutta",
    ),
    "retrax.integrators.tangent_lift": ("TangentLift",),
    "retrax.integrators.taylor": ("Taylor",),
    "retrax.mechanics.actuated": ("Actuated",),
    "retrax.mechanics.constraints": (
        "Distribution",
        "VelocityConstraint",
    ),
    "retrax.mechanics.controls": ("Feedback",),
    "retrax.mechanics.events": (
        "Event",
        "Stop",
    ),
    "retrax.mechanics.flow": (
        "GroupFlow",
        "SpaceFlow",
    ),
    "retrax.mechanics.hamel": ("HamelFrame",),
    "retrax.mechanics.hamiltonian": ("HamiltonianSystem",),
    "retrax.mechanics.holonomic": ("Holonomic",),
    "retrax.mechanics.lagrangian": ("LagrangianSystem",),
    "retrax.mechanics.mechanical": ("MechanicalSystem",),
    "retrax.mechanics.quadratic_field": ("QuadraticField",),
    "retrax.mechanics.sampled": ("Sampled",),
    "retrax.mechanics.signal": ("Signal",),
    "retrax.mechanics.state": ("State",),
    "retrax.mechanisms.couplings": (
        "Gear",
        "Rack",
    ),
    "retrax.mechanisms.joints": (
        "Cylindrical",
        "Distance",
        "Fixed",
        "Planar",
        "PointOnLine",
        "PointOnPlane",
        "Prismatic",
        "Revolute",
        "Screw",
        "Spherical",
        "Universal",
    ),
    "retrax.mechanisms.mechanism": ("Mechanism",),
    "retrax.mechanisms.motors": ("Motor",),
    "retrax.mechanisms.springs": (
        "Damper",
        "Spring",
        "TorsionDamper",
        "TorsionSpring",
    ),
    "retrax.mechanisms.wheels": (
        "KnifeEdge",
        "RollingBall",
        "RollingWheel",
    ),
    "retrax.numerics.nodes": (
        "Nodes",
        "chebyshev",
        "chebyshev_lobatto",
        "gauss",
        "lobatto",
        "nodes",
        "radau",
        "radau_left",
    ),
    "retrax.numerics.tableaus": ("Tableau",),
    "retrax.planning.costs": (
        "MinimumEffort",
        "MinimumTime",
    ),
    "retrax.planning.duration": ("Free",),
    "retrax.planning.ends": ("Reach",),
    "retrax.planning.feedback": ("lqr",),
    "retrax.planning.optimise": ("optimise",),
    "retrax.planning.plan": ("Plan",),
    "retrax.planning.problem": ("ControlProblem",),
    "retrax.run.ensemble": ("ensemble",),
    "retrax.run.prepare": (
        "PreparedRun",
        "prepare",
    ),
    "retrax.run.resume": ("resume",),
    "retrax.run.simulate": ("simulate",),
    "retrax.run.step_by_step": ("Stepper",),
    "retrax.spaces.base": (
        "AbstractHomogeneousSpace",
        "AbstractSpace",
    ),
    "retrax.spaces.coadjoint_orbit": ("CoadjointOrbit",),
    "retrax.spaces.grassmann": ("Grassmann",),
    "retrax.spaces.group_itself": ("GroupItself",),
    "retrax.spaces.isospectral": ("Isospectral",),
    "retrax.spaces.sphere": ("Sphere",),
    "retrax.spaces.stiefel": ("Stiefel",),
    "retrax.spaces.torus": ("Torus",),
    "retrax.store.factory": ("factory",),
    "retrax.store.netcdf": ("load",),
    "retrax.store.plan_file": ("load_plan",),
    "retrax.sweep.sweep": ("sweep",),
    "retrax.trajectory.trajectory": ("Trajectory",),
}
_WHERE = {name: module for module, names in _PLACES.items() for name in names}
# Modules that are names of this one.
_MODULES = {
    "analysis": "retrax.analysis",
    "draw": "retrax.draw",
    "show": "retrax.show",
    "solids": "retrax.mechanics.solids",
    "systems": "retrax.systems",
    "testing": "retrax.testing",
}

_NAMES = ["__version__", *_WHERE, *(name for name in _MODULES if name != "show")]
globals()["__all__"] = _NAMES  # made from the tables above, which type checkers do not follow
__version__ = _version("retrax")


def __getattr__(name: str) -> _Any:
    """Load what a name stands for when it is first used; `rx.show` needs an extra."""
    if name in _MODULES:
        found = _import_module(_MODULES[name])
    elif name in _WHERE:
        found = getattr(_import_module(_WHERE[name]), name)
    else:
        raise _no_attribute(name)
    globals()[name] = found
    return found


def _no_attribute(name: str) -> AttributeError:
    """Return what to raise for a name that is not here: it says where it is or what was meant."""
    from retrax.numerics.meant import no_attribute

    if not name.startswith("_"):
        places = [
            f"{place}.{word}"
            for place in ("systems", "solids", "analysis", "draw", "testing")
            for word in dir(_import_module(_MODULES[place]))
            if word.lower().replace("_", "") == name.lower().replace("_", "")
        ]
        places.sort(key=lambda where: not where.endswith(f".{name}"))
        if places:
            where = f"rx.{places[0]}"
            return AttributeError(f"module 'retrax' has no attribute {name!r}: use {where}.")
    return no_attribute("module 'retrax'", name, _NAMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})


class _Retrax(_ModuleType):
    """This module: `rx.sweep` and `rx.export` are functions, not the folders of these names."""

    @property
    def sweep(self) -> _Any:
        return _import_module("retrax.sweep.sweep").sweep

    @sweep.setter
    def sweep(self, folder: _ModuleType) -> None:
        """Python names a folder here when it is imported."""

    @property
    def export(self) -> _Any:
        return _import_module("retrax.export.export").export

    @export.setter
    def export(self, folder: _ModuleType) -> None:
        """Python names a folder here when it is imported."""


_sys.modules[__name__].__class__ = _Retrax
