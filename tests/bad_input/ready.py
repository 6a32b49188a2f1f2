"""Ready systems: bodies."""

from .energies import heavy
from .entries import simple

KIND = "ready systems"
MOMENTS = [1.0, 1.3, 0.9]
ARM = [0.2, -0.1, 0.3]
FULL = [[2.0, 0.3, -0.6], [0.3, 3.0, 0.8], [-0.6, 0.8, 4.0]]

simple(KIND, "systems.BallOnTurntable", mass=1.0, radius=0.5, rate=0.9)
simple(KIND, "systems.Blade", inertia=MOMENTS, mass=1.4, centre=ARM, physical=True)
simple(KIND, "systems.ChaplyginBall", inertia=MOMENTS, mass=1.2, radius=0.8, physical=True)
simple(KIND, "systems.ChaplyginSleigh", mass=1.5, inertia=0.8, arm=0.6)
simple(KIND, "systems.FreeRigidBody", inertia=MOMENTS, physical=True)
simple(KIND, "systems.HeavyTop", inertia=MOMENTS, mass=1.0, arm=ARM, gravity=9.81, physical=True)
simple(KIND, "systems.Pendulum3D", inertia=FULL, mass=1.0, arm=ARM, gravity=9.81, physical=False)
simple(KIND, "systems.RollingDisk", mass=2.0, turning=0.25, rolling=0.5, radius=0.7)
simple(KIND, "systems.Suslov", inertia=FULL, potential=None, physical=False)
simple(KIND, "systems.Veselova", inertia=MOMENTS, potential=heavy, physical=True)
simple(KIND, "systems.Weight", moment=ARM)
