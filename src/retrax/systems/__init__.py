"""Ready-made systems, one file each, invariants declared."""

from retrax.systems.heavy_body import HeavyTop as HeavyTop
from retrax.systems.heavy_body import Pendulum3D as Pendulum3D
from retrax.systems.rigid_body import FreeRigidBody as FreeRigidBody
