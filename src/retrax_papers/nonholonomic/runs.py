r"""The runs behind the figures of the paper on nonholonomic retraction maps.

Suslov's problem with $\mathbb I = \mathrm{diag}(1, 10, 100)$, $\Pi = (1, 1, 0)$, $h = 0.01$ s and
180,000 steps. The exact motion is a steady turn: $\Pi$ is constant and $R = \exp(t\,\hat\Omega)$.
"""

import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.groups.retractions import Cayley, Exp
from retrax.groups.so3 import SO3
from retrax.integrators.adapted_lift import AdaptedLift
from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.composition import Composition
from retrax.integrators.cotangent_lift import CotangentLift
from retrax.integrators.hamel_midpoint import DiscreteGradient, HamelMidpoint
from retrax.integrators.lagrange_d_alembert import LagrangeDAlembert
from retrax.integrators.projected_lift import ProjectedLift
from retrax.mechanics.mechanical import MechanicalSystem
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.run.simulate import simulate
from retrax.systems.rigid_body import FreeRigidBody
from retrax.systems.suslov import Suslov
from retrax.trajectory.trajectory import Trajectory
from retrax_papers.nonholonomic.printed import PrintedSuslov
from retrax_papers.report import Kept, kept

MOMENTS = np.array([1.0, 10.0, 100.0])
FULL = ((2.0, 0.3, -0.6), (0.3, 3.0, 0.8), (-0.6, 0.8, 4.0))

# What Fig. 1 shows.
FIGURE_1: dict[str, AbstractIntegrator] = {
    "(18), exponential": PrintedSuslov(),
    "(19), Cayley": PrintedSuslov(cayley=True),
}
ADAPTED: dict[str, AbstractIntegrator] = {
    **FIGURE_1,
    "(17), s = 0, exponential": ProjectedLift(Exp(), s=0.0),
    "(17), s = 0, Cayley": ProjectedLift(Cayley(), s=0.0),
    "(17), s = 1/2, exponential": ProjectedLift(Exp()),
    "(17), s = 1/2, Cayley": ProjectedLift(Cayley()),
    "Lagrange-d'Alembert, s = 0, exponential": LagrangeDAlembert(Exp(), s=0.0),
    "Lagrange-d'Alembert, s = 0, Cayley": LagrangeDAlembert(Cayley(), s=0.0),
    "(11) inverted, s = 1/2, exponential": AdaptedLift(Exp()),
    "(11) inverted, s = 1/2, Cayley": AdaptedLift(Cayley()),
    "Hamel midpoint, exponential": HamelMidpoint(Exp()),
}
AS_READ: dict[str, AbstractIntegrator] = {
    "(18), as read": PrintedSuslov(as_read=True),
    "(19), as read": PrintedSuslov(cayley=True, as_read=True),
}
UNADAPTED: dict[str, AbstractIntegrator] = {
    "(10), exponential": CotangentLift(Exp(), s=0.0),
    "(10), Cayley": CotangentLift(Cayley(), s=0.0),
}
WITH_MULTIPLIER = "(10) with the multiplier as a force"


class Measured(NamedTuple):
    """One scheme on the example of the figures; the arrays are along time."""

    energy_error: float
    momentum: tuple[float, float, float]
    constraint: float
    largest_third: float
    group_defect: float
    attitude_error: float
    t: np.ndarray
    energy: np.ndarray
    path: np.ndarray
    across: np.ndarray
    defect: np.ndarray

    def kept(self, name: str) -> list[Kept]:
        """The rows of what the exact motion keeps.

        The energy, and both momenta in the plane of the constraint; of the free body the length of
        the momentum.
        """
        first, second = self.path[:, 0], self.path[:, 1]
        rows = {"energy": self.energy + 0.55}
        if name in UNADAPTED:
            rows["length of Pi"] = np.linalg.norm(self.path, axis=1)
        else:
            rows |= {"Pi_1": first, "Pi_2": second}
        rows["distance from SO(3)"] = self.defect
        return [kept(name, what, self.t, values) for what, values in rows.items()]

    def numbers(self) -> dict[str, Any]:
        names = self._fields[:6]
        return {name: getattr(self, name) for name in names}


def constrained_runs(
    schemes: dict[str, AbstractIntegrator], steps: int | None = None
) -> dict[str, Measured]:
    """Schemes for the constrained body, on the example of Fig. 1; `steps` instead of 180,000."""
    suslov, state, h, count = Suslov.paper()
    steps = count if steps is None else steps
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is of order 1 under a constraint")
        return {
            name: _measure(simulate(suslov, scheme, state, h=h, steps=steps, progress=False), h)
            for name, scheme in schemes.items()
        }


def free_runs(steps: int | None = None) -> dict[str, Measured]:
    """The schemes of Fig. 2: the free body, and with the multiplier as a force."""
    _, state, h, count = Suslov.paper()
    steps = count if steps is None else steps
    free = FreeRigidBody(MOMENTS, physical=False)
    held = MechanicalSystem(SO3(), MOMENTS, force=_multiplier_field, physical=False)
    jobs: dict[str, tuple[AbstractGroupSystem, AbstractIntegrator]]
    jobs = {name: (free, scheme) for name, scheme in UNADAPTED.items()}
    jobs[WITH_MULTIPLIER] = (held, CotangentLift(Exp(), s=0.0))
    return {
        name: _measure(simulate(system, scheme, state, h=h, steps=steps, progress=False), h)
        for name, (system, scheme) in jobs.items()
    }


def order_runs() -> dict[str, list[tuple[float, float]]]:
    """Pairs (h, error at t = 2) on Suslov's problem with a full inertia, from its closed form."""
    body = Suslov(FULL, physical=False)
    state = body.state(jnp.eye(3), velocity=[1.0, 0.5, 0.0])
    exact = np.asarray(body.exact_velocity([1.0, 0.5, 0.0], 2.0))
    schemes: dict[str, AbstractIntegrator] = {
        "(17), s = 0": ProjectedLift(Exp(), s=0.0),
        "(17), s = 1/2": ProjectedLift(Exp()),
        "Lagrange-d'Alembert": LagrangeDAlembert(Exp()),
        "(11) inverted, s = 1/4": AdaptedLift(Exp(), s=0.25),
        "Hamel midpoint": HamelMidpoint(Exp()),
        "discrete gradient, order 4": Composition(DiscreteGradient(Exp()), order=4),
        "Lagrange-d'Alembert, order 6": Composition(LagrangeDAlembert(Exp()), order=6),
    }
    out: dict[str, list[tuple[float, float]]] = {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is of order 1 under a constraint")
        for name, scheme in schemes.items():
            coarsest = 5 if isinstance(scheme, Composition) else 20
            sizes = [coarsest * 2**k for k in range(5)]
            out[name] = [(2 / n, _end_error(body, scheme, state, n, exact)) for n in sizes]
    return out


def _end_error(
    body: Suslov, scheme: AbstractIntegrator, state: State, n: int, exact: np.ndarray
) -> float:
    run = simulate(body, scheme, state, h=2 / n, steps=n, save_every=n, progress=False)
    end = jax.tree.map(jnp.asarray, run.final)
    return float(np.max(np.abs(np.asarray(body.velocity(end.g, end.momentum)) - exact)))


def _multiplier_field(
    rotation: Float[Array, "3 3"], omega: Float[Array, "3"], t: Float[Array, ""]
) -> Float[Array, "3"]:
    """The torque about e3 that the constraint would exert in continuous time."""
    momentum = jnp.asarray(MOMENTS) * omega
    across = momentum[0] * omega[1] - momentum[1] * omega[0]
    return jnp.stack([jnp.zeros(()), jnp.zeros(()), -across])


def _measure(run: Trajectory, h: float) -> Measured:
    rotations, path, t = np.asarray(run.g), np.asarray(run.momentum), np.asarray(run.t)
    energy = np.sum(path**2 / MOMENTS, axis=1) / 2
    step = np.einsum("tji,tjk->tik", rotations[:-1], rotations[1:])
    across = np.abs(step[:, 1, 0] - step[:, 0, 1]) / (2 * h)
    defect = np.asarray(run.group_defect())
    exact = SO3().exp(jnp.asarray(t[-1] * path[0] / MOMENTS))
    return Measured(
        energy_error=float(np.max(np.abs(energy - energy[0]))),
        momentum=(float(path[-1, 0]), float(path[-1, 1]), float(path[-1, 2])),
        constraint=float(np.max(across)),
        largest_third=float(np.max(np.abs(path[:, 2]))),
        group_defect=float(np.max(defect)),
        attitude_error=float(np.linalg.norm(rotations[-1] - np.asarray(exact))),
        t=t,
        energy=energy - energy[0],
        path=path,
        across=across,
        defect=defect,
    )
