"""Ready-made systems, one file each, invariants declared."""

from retrax.systems.blade import Blade as Blade
from retrax.systems.chaplygin_sleigh import ChaplyginSleigh as ChaplyginSleigh
from retrax.systems.heavy_body import HeavyTop as HeavyTop
from retrax.systems.heavy_body import Pendulum3D as Pendulum3D
from retrax.systems.rigid_body import FreeRigidBody as FreeRigidBody
from retrax.systems.rolling_ball import BallOnTurntable as BallOnTurntable
from retrax.systems.rolling_ball import ChaplyginBall as ChaplyginBall
from retrax.systems.rolling_disk import RollingDisk as RollingDisk
from retrax.systems.suslov import Suslov as Suslov
from retrax.systems.suslov import Weight as Weight
from retrax.systems.veselova import Veselova as Veselova
