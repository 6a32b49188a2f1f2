"""Ready-made systems, one file each, invariants declared."""

from retrax.systems.blade import Blade as Blade
from retrax.systems.chaplygin_sleigh import ChaplyginSleigh as ChaplyginSleigh
from retrax.systems.cubic_hamiltonian import CubicHamiltonian as CubicHamiltonian
from retrax.systems.cubic_hamiltonian import henon_heiles as henon_heiles
from retrax.systems.euler_solution import exact_momentum as exact_momentum
from retrax.systems.euler_solution import period as period
from retrax.systems.euler_top import EulerTop as EulerTop
from retrax.systems.heavy_body import HeavyTop as HeavyTop
from retrax.systems.heavy_body import Pendulum3D as Pendulum3D
from retrax.systems.lie_poisson import LiePoisson as LiePoisson
from retrax.systems.lie_poisson_fields import clebsch as clebsch
from retrax.systems.lie_poisson_fields import euler_poisson as euler_poisson
from retrax.systems.lie_poisson_fields import four_dimensional_body as four_dimensional_body
from retrax.systems.lie_poisson_fields import kirchhoff as kirchhoff
from retrax.systems.lie_poisson_fields import lagrange_top as lagrange_top
from retrax.systems.lie_poisson_fields import manakov as manakov
from retrax.systems.lie_poisson_fields import zhukovski_volterra as zhukovski_volterra
from retrax.systems.lotka_volterra import LotkaVolterra as LotkaVolterra
from retrax.systems.nambu import Nambu as Nambu
from retrax.systems.rigid_body import FreeRigidBody as FreeRigidBody
from retrax.systems.rolling_ball import BallOnTurntable as BallOnTurntable
from retrax.systems.rolling_ball import ChaplyginBall as ChaplyginBall
from retrax.systems.rolling_disk import RollingDisk as RollingDisk
from retrax.systems.suslov import Suslov as Suslov
from retrax.systems.suslov import Weight as Weight
from retrax.systems.veselova import Veselova as Veselova
