"""Accelerations of a robot from its URDF by Lagrange's equations, with nothing of retrax."""

from pathlib import Path
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import numpy as np


class Lagrangian:
    """The tree of a URDF in the coordinates of its joints; mimic joints follow theirs."""

    def __init__(self, path: Path, gravity=(0.0, 0.0, -9.81)):
        root = ElementTree.parse(path).getroot()
        self.gravity = jnp.array(gravity)
        self.links = {e.get("name"): e.find("inertial") for e in root.findall("link")}
        self.joints = root.findall("joint")
        children = {j.find("child").get("link") for j in self.joints}
        (self.root,) = set(self.links) - children
        moving = [j for j in self.joints if j.get("type") != "fixed"]
        self.names = [j.get("name") for j in moving if j.find("mimic") is None]
        self.damping = jnp.array([_number(j.find("dynamics"), "damping") for j in moving
                                  if j.find("mimic") is None])  # fmt: skip
        self.mimics = {
            j.get("name"): j.find("mimic") for j in moving if j.find("mimic") is not None
        }

    def angles(self, q):
        """Return the value of every joint."""
        found = dict(zip(self.names, q, strict=True))
        for name, mimic in self.mimics.items():
            ratio, offset = (float(mimic.get(k, d)) for k, d in (("multiplier", 1), ("offset", 0)))
            found[name] = ratio * found[mimic.get("joint")] + offset
        return found

    def poses(self, q):
        """Return rotation and origin of every link."""
        angles = self.angles(q)
        found, waiting = {self.root: (jnp.eye(3), jnp.zeros(3))}, list(self.joints)
        while waiting:
            joint = next(j for j in waiting if j.find("parent").get("link") in found)
            waiting.remove(joint)
            R, x = found[joint.find("parent").get("link")]
            turn, place = _origin(joint)
            x, R = x + R @ place, R @ turn
            if joint.get("type") != "fixed":
                axis = _vector(joint.find("axis"), "xyz")
                axis = axis / np.linalg.norm(axis)
                value = angles[joint.get("name")]
                if joint.get("type") == "prismatic":
                    x = x + R @ axis * value
                else:
                    K = jnp.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]],
                                   [-axis[1], axis[0], 0]])  # fmt: skip
                    R = R @ (jnp.eye(3) + jnp.sin(value) * K + (1 - jnp.cos(value)) * K @ K)
            found[joint.find("child").get("link")] = R, x
        return found

    def lagrangian(self, q, v):
        """Return kinetic minus potential energy."""
        poses, rates = jax.jvp(self.poses, (q,), (v,))
        total = 0.0
        for name, inertial in self.links.items():
            if inertial is None or name == self.root:
                continue
            (R, x), (dR, dx) = poses[name], rates[name]
            mass = float(inertial.find("mass").get("value"))
            turn, centre = _origin(inertial)
            spin = R.T @ dR
            omega = jnp.array([spin[2, 1], spin[0, 2], spin[1, 0]])
            J = turn @ _tensor(inertial.find("inertia")) @ turn.T
            speed = dx + dR @ centre
            total += mass / 2 * speed @ speed + omega @ J @ omega / 2
            total += mass * self.gravity @ (x + R @ centre)
        return total

    def accelerations(self, q, v, torque=0.0):
        """Return the second derivatives of the coordinates."""
        M = jax.hessian(self.lagrangian, 1)(q, v)
        mixed = jax.jacfwd(jax.grad(self.lagrangian, 1), 0)(q, v)
        force = jax.grad(self.lagrangian)(q, v) - self.damping * v + torque
        return jnp.linalg.solve(M, force - mixed @ v)


def _number(element, name):
    return 0.0 if element is None else float(element.get(name, 0.0))


def _vector(element, name):
    text = None if element is None else element.get(name)
    return np.zeros(3) if text is None else np.array([float(x) for x in text.split()])


def _origin(element):
    origin = element.find("origin")
    a, b, c = _vector(origin, "rpy")
    R = np.eye(3)
    for k, angle in ((2, c), (1, b), (0, a)):
        i, j = (k + 1) % 3, (k + 2) % 3
        turn = np.eye(3)
        turn[[i, j, i, j], [i, j, j, i]] = [
            np.cos(angle),
            np.cos(angle),
            -np.sin(angle),
            np.sin(angle),
        ]
        R = R @ turn
    return R, _vector(origin, "xyz")


def _tensor(element):
    xx, xy, xz, yy, yz, zz = (
        float(element.get(k)) for k in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    )
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
