"""Groups, retractions, spaces, nodes, tableaus, integrators, solids."""

import numpy as np

import retrax as rx

from .entries import entry, simple

NODES = "nodes and tableaus"
ROTATIONS = [
    [[0.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]],
    [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 0.0]],
    [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
]

for name in ("SO2", "SO3", "SE2", "SE3"):
    simple("groups", name)
for name in ("Exp", "Cayley"):
    simple("retractions", name)
simple("retractions", "SecondKind", axes=[0, 1, 2], backwards=False)
simple("groups", "SO", n=4)
simple("groups", "Translation", n=3)
simple("groups", "Power", group=rx.SE3(), n=3)
entry("MatrixGroup", kind="groups", cheap=False, weight=0.1)(
    lambda: {"basis": ROTATIONS, "name": "turns"}
)
entry("Product", lambda first, second: rx.Product(first, second), kind="groups")(
    lambda: {"first": rx.SO3(), "second": rx.Translation(2)}
)

simple("spaces", "Sphere", n=3)
simple("spaces", "Torus", n=3)
simple("spaces", "Isospectral", n=3)
simple("spaces", "Stiefel", n=4, k=2)
simple("spaces", "Grassmann", n=4, k=2)
simple("spaces", "GroupItself", group=rx.SO3(), side=-1)
simple("spaces", "CoadjointOrbit", group=rx.SO3(), casimirs={"square": lambda mu: mu @ mu})

for name in ("gauss", "radau", "radau_left", "lobatto", "chebyshev", "chebyshev_lobatto"):
    simple(NODES, name, s=3)
simple(NODES, "nodes", c=[0.1, 0.5, 1.0])
# The parts of these are looked at where they are used.
entry("Nodes", lambda **given: rx.Collocation(rx.Nodes(**given)), kind=NODES)(
    lambda: {
        "name": "mid", "c": (0.5,), "A": ((0.5,),), "b": (1.0,), "order": 2, "symmetric": True,
    }
)  # fmt: skip
entry("Tableau", lambda **given: rx.RKMK(rx.Tableau(**given)), kind=NODES)(
    lambda: {"name": "mid", "order": 2, "a": ((), (0.5,)), "b": (0.0, 1.0), "embedded": ()}
)

for name in ("ContactDKD", "ContactMidpoint", "Kahan", "RollingDKD", "RollingVerlet"):
    simple("integrators", name)
for name in ("DiscreteGradient", "HamelMidpoint", "LieVerlet"):
    simple("integrators", name, retraction=rx.Exp())
for name in (
    "AdaptedLift", "CotangentLift", "LagrangeDAlembert", "ProjectedLift", "RetractionFlow",
    "TangentLift",
):  # fmt: skip
    simple("integrators", name, retraction=rx.Exp(), s=0.5)
simple("integrators", "Adaptive", base=rx.RKMK("dopri5"), tolerance=1e-8, most=1000)
simple("integrators", "Collocation", nodes=rx.gauss(2), centred=False, form="body")
simple("integrators", "Composition", base=rx.LieVerlet(), order=4)
simple("integrators", "GalerkinVariational", nodes=rx.gauss(2))
simple("integrators", "KahanAttitude", aligned=True, project=False)
simple("integrators", "Magnus", order=4)
simple("integrators", "PlainCollocation", nodes=[0.2, 0.8])
simple("integrators", "RKMK", tableau="rk4")
simple("integrators", "RungeKutta", tableau=rx.Tableau("mid", 2, ((), (0.5,)), (0.0, 1.0)))
simple("integrators", "RadialProjection", base=rx.Kahan())
simple("integrators", "Taylor", order=4)

ARM = [0.1, -0.2, 0.3]
simple("solids", "solids.about", inertia=np.diag([1.0, 1.2, 1.5]), mass=2.0, arm=ARM)
simple("solids", "solids.about_centre", inertia=np.diag([1.0, 1.2, 1.5]), mass=2.0, arm=ARM)
simple("solids", "solids.box", mass=2.0, edges=[1.0, 2.0, 3.0], arm=ARM)
simple("solids", "solids.cylinder", mass=2.0, radius=0.5, height=2.0, arm=ARM)
simple("solids", "solids.ellipsoid", mass=2.0, semi_axes=[1.0, 2.0, 3.0], arm=ARM)
simple("solids", "solids.elliptic_cylinder", mass=2.0, semi_axes=[1.0, 2.0], height=1.0, arm=ARM)
simple("solids", "solids.rod", mass=2.0, length=1.5, arm=ARM, thickness=0.1)
simple("solids", "solids.sphere", mass=2.0, radius=0.5, arm=ARM)
