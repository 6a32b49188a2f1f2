"""Joints, wheels, springs, motors and shapes that touch; robots from files."""

from typing import Any

import numpy as np

import retrax as rx

from .entries import entry, simple
from .files import PATHS, folder
from .values import wrong

KIND = "mechanisms and contact"
HERE, UP, PAIR = [0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
BETWEEN: dict[str, dict[str, Any]] = {
    "Revolute": {"at": HERE, "axis": UP, "limits": (-1.0, 1.0), "restitution": 0.5},
    "Prismatic": {"at": HERE, "axis": UP, "limits": (-1.0, 1.0), "restitution": 0.5},
    "Spherical": {"at": HERE},
    "Fixed": {"at": HERE},
    "Cylindrical": {"at": HERE, "axis": UP},
    "Universal": {"at": HERE, "axes": PAIR},
    "Planar": {"at": HERE, "normal": UP},
    "Screw": {"at": HERE, "axis": UP, "pitch": 0.1},
    "Distance": {"at": PAIR},
    "PointOnLine": {"at": HERE, "axis": UP},
    "PointOnPlane": {"at": HERE, "normal": UP},
    "Spring": {"at": PAIR, "stiffness": 1.0, "length": 0.5},
    "Damper": {"at": PAIR, "damping": 1.0},
}
for name, rest in BETWEEN.items():
    simple(KIND, name, a="ground", b="wheel", name="joint", **rest)

simple(KIND, "Gear", first="one", second="other", teeth=(20, 40), name="gear")
simple(KIND, "Rack", pinion="one", rack="other", radius=0.1, name="rack")
simple(KIND, "Motor", joint="hinge", bounds=(-1.0, 1.0), name="motor")
simple(KIND, "TorsionSpring", joint="hinge", stiffness=1.0, rest=0.1, name="spring")
simple(KIND, "TorsionDamper", joint="hinge", damping=1.0, name="damper")
simple(KIND, "KnifeEdge", body="blade", at=HERE, direction=[1.0, 0.0, 0.0], plane=(HERE, UP))
simple(KIND, "RollingBall", body="ball", radius=0.1, at=HERE, plane=(HERE, UP))
simple(KIND, "RollingWheel", body="wheel", radius=0.1, axis=[0.0, 1.0, 0.0], at=HERE)
simple(KIND, "Mechanism", gravity=[0.0, 0.0, -9.81])

simple(KIND, "Ball", radius=0.1, at=HERE, body=0, name="ball")
simple(KIND, "Plane", normal=UP, at=HERE, body=None, name="floor")
simple(KIND, "Capsule", radius=0.1, length=1.0, axis=UP, at=HERE, body=0, name="rod")
simple(KIND, "Cylinder", radius=0.1, length=1.0, axis=UP, at=HERE, body=0, name="drum")
simple(
    KIND, "Box", size=[1.0, 0.5, 0.3], radius=0.01, at=HERE, turned=np.eye(3), body=0, name="box"
)
entry("Contacts", kind=KIND, sound=lambda made: bool(made.pairs), values={"pairs": wrong(None)})(
    lambda: {"pairs": [(rx.Ball(0.1, body=0), rx.Plane())], "friction": 0.3, "restitution": 0.5}
)
entry("SelfContact", kind=KIND, values={"against": wrong(None)})(
    lambda: {
        "radius": 0.01, "friction": 0.3, "restitution": 0.0, "against": [rx.Plane()],
        "itself": True, "closed": False, "skin": 0.02, "capacity": 100,
    }
)  # fmt: skip
entry("systems.Balls", kind=KIND, values={"against": wrong(None)})(
    lambda: {"radius": [0.1, 0.2], "mass": [1.0, 2.0], "friction": 0.2, "against": [rx.Plane()]}
)
simple("integrators", "NonsmoothRattle", retraction=rx.Cayley())

ROBOT = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint>
</robot>"""


@entry("load_urdf", kind="files", values={"path": PATHS, "motors": wrong(None)}, weight=0.4)
def _urdf():
    path = folder() / "robot.urdf"
    path.write_text(ROBOT)
    return {
        "path": path, "gravity": [0.0, 0.0, -9.81], "floating": False, "motors": ["j"],
        "density": 1000.0, "meshes": True, "packages": {"arm": "."},
    }  # fmt: skip


@entry(
    "load_mjcf", kind="files", values={"path": PATHS}, weight=0.2,
    refusals=(rx.BadInput, rx.RetraxError),
)  # fmt: skip
def _mjcf():
    path = folder() / "robot.xml"
    path.write_text(
        '<mujoco><worldbody><body><joint type="hinge"/><geom size="0.1"/></body></worldbody>'
        "</mujoco>"
    )
    return {"path": path}
