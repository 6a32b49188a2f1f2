"""One system of every kind, to be run with every integrator that takes it."""

import warnings
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

import retrax as rx
from retrax.cases.names import fits
from retrax.systems.catalogue import CASES
from retrax.systems.integrators import TOUCHING
from retrax.testing import constrained
from retrax.testing.problems import FIELDS, PROBLEMS

# Besides the catalogue: few stages and many, which the engine treats in different ways.
INTEGRATORS = {
    **rx.INTEGRATORS,
    **TOUCHING,
    "collocation-2": rx.Collocation(rx.gauss(1)),
    "collocation-8": rx.Collocation(rx.gauss(4)),
    "galerkin-2": rx.GalerkinVariational(rx.gauss(1)),
    "magnus-2": rx.Magnus(2),
    "adaptive": rx.Adaptive(rx.RKMK("rk4"), tolerance=1e-8),
}
COLLOCATION = [
    name for name in INTEGRATORS if name.startswith(("collocation", "galerkin", "magnus", "plain"))
]


def _case(name):
    return lambda: CASES[name].make()[:2]


def double_pendulum():
    """Two links in a plane, by their angles: the inertia depends on the second."""

    def lagrangian(q, v):
        first, both = v[0], v[0] + v[1]
        kinetic = first**2 + 0.5 * both**2 + first * both * jnp.cos(q[1])
        return kinetic + 0.05 * both**4 + 2.0 * jnp.cos(q[0]) + jnp.cos(q[0] + q[1])

    system = rx.LagrangianSystem(rx.Translation(2), lagrangian)
    return system, system.state([0.4, -0.9], velocity=[0.7, 1.1])


KINDS = {
    "double pendulum": double_pendulum,
    "MechanicalSystem": PROBLEMS["asymmetric top"],
    "free rigid body": constrained.asymmetric_free_body,
    "LagrangianSystem": PROBLEMS["gyroscopic body"],
    "HamiltonianSystem": PROBLEMS["quartic body"],
    "constrained": constrained.heavy_suslov_body,
    "constraint that turns": constrained.veselova_body,
    "SpaceFlow": _case("toda"),
    "GroupFlow": constrained.flow,
    "QuadraticField": FIELDS["gyrostat on R^3"],
    "field with a radial level": FIELDS["Euler top on R^3"],
    "rod": _case("rod"),
    "rods in contact": _case("rods-in-contact"),
    "body that touches": _case("bowling-ball"),
    "strings": constrained.strings,
    "string pendulum": _case("string-pendulum"),
}
# Integrators that take two rods in contact but have nothing for their contact.
_ONLY = {"rods in contact": tuple(TOUCHING)}


@cache
def made(kind):
    return KINDS[kind]()


def integrators_of(kind):
    """The names of all integrators that take a system of this kind."""
    system, _ = made(kind)
    names = _ONLY.get(kind, INTEGRATORS)
    return [name for name in names if fits(system, INTEGRATORS[name])]


def runs(kind, name, backends=("auto", "xla"), members=("auto", "xla"), steps=3):
    """The last state of a few steps, by back end: of one body, and of the middle of three."""
    system, state = made(kind)
    h = 1e-4 if "string" in kind or "rod" in kind else 0.01
    copies = jax.tree.map(lambda x: jnp.stack([jnp.asarray(x)] * 3), state)
    ends = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for backend in backends:
            run = rx.simulate(system, INTEGRATORS[name], state, h=h, steps=steps, backend=backend)
            ends[f"one body, {run.provenance['backend']}"] = flat(run.final)
        for backend in members:
            run = rx.ensemble(system, INTEGRATORS[name], copies, h=h, steps=steps, backend=backend)
            parts = [
                run[variable].values[-1, 1].ravel()
                for variable, data in run.data_vars.items()
                if data.attrs.get("kind") == "configuration" or variable == "momentum"
            ]
            used = run.attrs["provenance_backend"]
            ends[f"member, {used} as {backend}"] = np.concatenate(parts)
    return ends


def flat(state):
    leaves = [np.ravel(x) for x in jax.tree.leaves((state.g, state.momentum))]
    return np.concatenate(leaves)


def disagreement(ends):
    """By how much any two back ends differ, relative to the largest number."""
    first, *others = ends.values()
    size = np.max(np.abs(first))
    assert np.all(np.isfinite(first))
    return max(float(np.max(np.abs(first - x))) for x in others) / size
