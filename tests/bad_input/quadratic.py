"""Ready systems: quadratic fields and flows on spaces."""

import jax.numpy as jnp
import numpy as np

import retrax as rx

from .entries import entry, simple

KIND = "ready systems"
SYMMETRIC = [[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 3.0]]


def cubic(x):
    return x[0] ** 2 / 2 + x[1] ** 2 / 2 + x[0] ** 3 / 3


simple(KIND, "systems.EulerTop", inertia=[1.0, 2.0, 2.5], physical=True)
simple(KIND, "systems.BodyOnSphere", inertia=[1.0, 2.0, 2.5], length=1.0)
simple(KIND, "systems.ContinuousQR", matrix=SYMMETRIC, columns=2)
simple(KIND, "systems.SubspaceFlow", matrix=SYMMETRIC, dimension=1)
entry("systems.CubicHamiltonian", kind=KIND, weight=0.3)(
    lambda: {"hamiltonian": cubic, "dim": 2, "name": "cubic"}
)
simple(KIND, "systems.HeavyTopOrbit", inertia=[1.0, 1.2, 1.5], weight=[0.1, 0.2, 1.0])
simple(KIND, "systems.Kuramoto", frequencies=[0.1, 0.2, 0.3], coupling=0.5)
simple(KIND, "systems.LiePoisson", algebra=rx.SO3(), quadratic=SYMMETRIC, linear=[0.1, 0.0, 0.2],
       name="gyrostat")  # fmt: skip
simple(KIND, "systems.LotkaVolterra", rates=[1.0, -1.0], interactions=[[0.0, -1.0], [1.0, 0.0]])
simple(KIND, "systems.LotkaVolterra.predator_prey", a=1.0, b=2.0, c=1.0, d=0.5)
simple(KIND, "systems.Nambu", first=SYMMETRIC, second=np.diag([1.0, 2.0, 3.0]), linear=None)
simple(KIND, "systems.Toda", n=3)
simple(KIND, "systems.clebsch", a=[1.0, 2.0, 3.0], rho=0.5, sigma=0.25)
simple(KIND, "systems.euler_poisson", inertia=[1.0, 2.0, 2.5], weight=[0.1, 0.2, 0.3])
simple(KIND, "systems.kirchhoff", a=[1.0, 2.0, 3.0], b=[3.0, 1.0, 2.0])
simple(KIND, "systems.lagrange_top", across=1.0, along=0.5, weight=2.0)
simple(KIND, "systems.zhukovski_volterra", inertia=[3.0, 2.0, 1.0], rotor=[0.7, -0.3, 0.4])
for name in (
    "henon_heiles", "EulerTop.paper", "BodyOnSphere.example", "ContinuousQR.example",
    "HeavyTopOrbit.example", "Kuramoto.example", "SubspaceFlow.example", "Toda.example",
    "LotkaVolterra.cyclic", "Pendulum3D.paper", "Suslov.paper", "Suslov.kharlamova",
):  # fmt: skip
    entry(f"systems.{name}", kind=KIND, weight=0.05)(dict)


@entry("systems.exact_momentum", kind="helpers")
def _exact_momentum():
    return {"top": rx.systems.EulerTop([1.0, 2.0, 2.5]), "start": jnp.array([0.3, 0.2, 0.9]),
            "t": [0.0, 0.5, 1.0]}  # fmt: skip


@entry("systems.period", kind="helpers")
def _period():
    return {"top": rx.systems.EulerTop([1.0, 2.0, 2.5]), "start": [0.3, 0.2, 0.9]}


@entry("systems.four_dimensional_body", kind=KIND, cheap=False, weight=0.02)
def _body():
    return {"quadratic": np.diag([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])}


@entry("systems.manakov", kind=KIND, cheap=False, weight=0.02)
def _manakov():
    return {"a": [1.0, 2.0, 3.0, 4.0], "b": [4.0, 3.0, 1.0, 2.0]}
