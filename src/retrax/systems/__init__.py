"""Ready systems: a class or a function each, with its invariants declared."""

from typing import Any as _Any

from retrax.systems.balls import Balls as Balls
from retrax.systems.cubic_hamiltonian import CubicHamiltonian as CubicHamiltonian
from retrax.systems.cubic_hamiltonian import henon_heiles as henon_heiles
from retrax.systems.euler_top import BodyOnSphere as BodyOnSphere
from retrax.systems.euler_top import EulerTop as EulerTop
from retrax.systems.euler_top import exact_momentum as exact_momentum
from retrax.systems.euler_top import period as period
from retrax.systems.flying_body import FlyingBody as FlyingBody
from retrax.systems.heavy_top_orbit import HeavyTopOrbit as HeavyTopOrbit
from retrax.systems.kuramoto import Kuramoto as Kuramoto
from retrax.systems.laws import HoverAt as HoverAt
from retrax.systems.laws import PointTo as PointTo
from retrax.systems.laws import TrolleyTo as TrolleyTo
from retrax.systems.lie_poisson import LiePoisson as LiePoisson
from retrax.systems.lie_poisson import clebsch as clebsch
from retrax.systems.lie_poisson import euler_poisson as euler_poisson
from retrax.systems.lie_poisson import four_dimensional_body as four_dimensional_body
from retrax.systems.lie_poisson import kirchhoff as kirchhoff
from retrax.systems.lie_poisson import lagrange_top as lagrange_top
from retrax.systems.lie_poisson import manakov as manakov
from retrax.systems.lie_poisson import zhukovski_volterra as zhukovski_volterra
from retrax.systems.lotka_volterra import LotkaVolterra as LotkaVolterra
from retrax.systems.matrix_flows import ContinuousQR as ContinuousQR
from retrax.systems.matrix_flows import SubspaceFlow as SubspaceFlow
from retrax.systems.matrix_flows import Toda as Toda
from retrax.systems.mechanisms.andrews import andrews_squeezer as andrews_squeezer
from retrax.systems.mechanisms.bicycle import bicycle as bicycle
from retrax.systems.mechanisms.bricard import bricard as bricard
from retrax.systems.mechanisms.chain import chain as chain
from retrax.systems.mechanisms.chain import double_pendulum as double_pendulum
from retrax.systems.mechanisms.following import JointsTo as JointsTo
from retrax.systems.mechanisms.four_bar import four_bar as four_bar
from retrax.systems.mechanisms.robot_arm import driven_arm as driven_arm
from retrax.systems.mechanisms.robot_arm import robot_arm as robot_arm
from retrax.systems.mechanisms.strandbeest import strandbeest_leg as strandbeest_leg
from retrax.systems.nambu import Nambu as Nambu
from retrax.systems.orbiting_body import OrbitingBody as OrbitingBody
from retrax.systems.plants import Thrusters as Thrusters
from retrax.systems.plants import Wheels as Wheels
from retrax.systems.plants import crane as crane
from retrax.systems.plants import quadrotor as quadrotor
from retrax.systems.plants import spacecraft as spacecraft
from retrax.systems.plants import steered_sleigh as steered_sleigh
from retrax.systems.plants import upright_pendulum as upright_pendulum
from retrax.systems.rigid_body import FreeRigidBody as FreeRigidBody
from retrax.systems.rigid_body import HeavyTop as HeavyTop
from retrax.systems.rigid_body import Pendulum3D as Pendulum3D
from retrax.systems.rods.crossing import crossed_rods as crossed_rods
from retrax.systems.rods.dispersion import dispersion as dispersion
from retrax.systems.rods.dispersion import printed_dispersion as printed_dispersion
from retrax.systems.rods.dispersion import wave_speeds as wave_speeds
from retrax.systems.rods.pair import RodsInContact as RodsInContact
from retrax.systems.rods.pressing import press as press
from retrax.systems.rods.rod import Rod as Rod
from retrax.systems.rods.section import Ellipse as Ellipse
from retrax.systems.rods.section import Rectangle as Rectangle
from retrax.systems.rods.section import Tube as Tube
from retrax.systems.rods.several import Rods as Rods
from retrax.systems.rods.statics import equilibrium as equilibrium
from retrax.systems.rods.statics import modes as modes
from retrax.systems.rolling_bodies import BallOnTurntable as BallOnTurntable
from retrax.systems.rolling_bodies import ChaplyginBall as ChaplyginBall
from retrax.systems.rolling_bodies import RollingDisk as RollingDisk
from retrax.systems.sliding_bodies import Blade as Blade
from retrax.systems.sliding_bodies import ChaplyginSleigh as ChaplyginSleigh
from retrax.systems.strings.chain import StringDamping as StringDamping
from retrax.systems.strings.characteristics import CharacteristicPath as CharacteristicPath
from retrax.systems.strings.characteristics import characteristic_path as characteristic_path
from retrax.systems.strings.closed_form import exact_force as exact_force
from retrax.systems.strings.closed_form import exact_path as exact_path
from retrax.systems.strings.closed_form import first_echo as first_echo
from retrax.systems.strings.crane import Crane as Crane
from retrax.systems.strings.string_pendulum import StringPendulum as StringPendulum
from retrax.systems.strings.strings_in_contact import StringsInContact as StringsInContact
from retrax.systems.suslov import Suslov as Suslov
from retrax.systems.suslov import Veselova as Veselova
from retrax.systems.suslov import Weight as Weight
from retrax.systems.wheeled_body import WheeledBody as WheeledBody


def __getattr__(name: str) -> _Any:
    from retrax.numerics.meant import no_attribute

    raise no_attribute("module 'retrax.systems'", name, (n for n in globals() if n[0] != "_"))
