"""Bugs that somebody thought of: other text in a module, and a check that must notice it."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from mutants import source

import retrax as rx
from retrax.testing import check_group, check_integrator, check_retraction, check_space
from retrax.testing.constrained import constrained_problem, suslov_body
from retrax.testing.integrators import check_order
from retrax.testing.measurements import Problem
from retrax.testing.problems import forced_top


class Bug(NamedTuple):
    """A change of `module` from `old` text to `new`, and the check that raises `CheckFailed`."""

    name: str
    module: str
    old: str
    new: str
    check: Callable[[], object]

    def text(self) -> str:
        """The module with the bug in it."""
        right = source(self.module)
        assert right.count(self.old) == 1, f"{self.old!r} is not, once, in {self.module}"
        return right.replace(self.old, self.new)


def forced() -> Problem:
    return Problem(*forced_top())


def heavy() -> Problem:
    return constrained_problem("heavy Suslov body")


def skew() -> Problem:
    return constrained_problem("forced body with a skew plane")


def claims(integrator, problem=None) -> Callable[[], object]:
    return lambda: check_integrator(integrator, *([problem()] if problem else []))


def order(integrator, problem) -> Callable[[], object]:
    return lambda: check_order(integrator, problem())


def agree_with_the_closed_form(integrator) -> None:
    body, state = suslov_body()
    run = rx.simulate(body, integrator, state, h=0.01, steps=200)
    error = np.max(np.abs(run.velocity[-1] - body.exact_velocity([1.0, 0.5, 0.0], 2.0)))
    if not error < 1e-5:
        raise rx.CheckFailed(f"{integrator!r} misses the closed form of Suslov's problem: {error}")


def keep_to_the_tolerance() -> None:
    body, state, _, _ = rx.systems.BodyOnSphere.example()
    run = rx.simulate(body, rx.Adaptive(rx.RKMK("rk4"), 1e-8), state, h=5.0, steps=2)
    error = np.max(np.abs(run.y - body.exact(state.g, run.t)))
    if not error < 1e-7:
        raise rx.CheckFailed(f"a run with the tolerance 1e-8 is wrong by {error:.1e}")


SO3_LAWS = partial(check_group, rx.SO3())
CAYLEY_LAWS = partial(check_retraction, rx.Cayley(), rx.SO3())
VERLET = claims(rx.LieVerlet())
LIE_VERLET = "retrax.integrators.lie_verlet"
D_ALEMBERT = "retrax.integrators.lagrange_d_alembert"

BUGS = (
    Bug(
        "the sphere turns the wrong way round",
        "retrax.spaces.sphere",
        "side: ClassVar[int] = 1",
        "side: ClassVar[int] = -1",
        partial(check_space, rx.Sphere(3)),
    ),
    Bug(
        "the generator of the opposite tangent",
        "retrax.spaces.sphere",
        "return cross(y, v)",
        "return cross(v, y)",
        partial(check_space, rx.Sphere(3)),
    ),
    Bug(
        "half a conjugation",
        "retrax.spaces.grassmann",
        "half = right + delta @ right / 2",
        "half = right",
        partial(check_space, rx.Isospectral(3)),
    ),
    Bug(
        "every step is accepted",
        "retrax.integrators.adaptive",
        "& (ratio <= 1)",
        "",
        keep_to_the_tolerance,
    ),
    Bug(
        "the error is measured per step and not per second",
        "retrax.integrators.adaptive",
        "apart / (2.0**base.order - 1) / x",
        "apart / (2.0**base.order - 1) * x",
        keep_to_the_tolerance,
    ),
    Bug(
        "the derivative counts twice in Kahan's step",
        "retrax.integrators.kahan",
        "jnp.eye(system.dim) - slope, rate",
        "jnp.eye(system.dim) - 2 * slope, rate",
        claims(rx.Kahan()),
    ),
    Bug(
        "a projection without its root",
        "retrax.integrators.kahan",
        "delta / (1 + jnp.sqrt(1 + delta)) * x",
        "delta * x",
        claims(rx.RadialProjection(rx.Kahan())),
    ),
    Bug(
        "the attitude turns by one end of the step only",
        "retrax.systems.kahan_attitude",
        "half @ n + half_end @ n_end",
        "2 * half @ n",
        claims(rx.KahanAttitude()),
    ),
    Bug(
        "the attitude is aligned the wrong way round",
        "retrax.systems.kahan_attitude",
        "cross(n_end, n)",
        "cross(n, n_end)",
        claims(rx.KahanAttitude(project=True)),
    ),
    Bug(
        "the force is forgotten at the end of the step",
        D_ALEMBERT,
        "lift.end(g, a + nu, h * xi)",
        "lift.end(g, a, h * xi)",
        order(rx.LagrangeDAlembert(), heavy),
    ),
    Bug(
        "the end of the step is not projected",
        D_ALEMBERT,
        "mu1, after = admissible(",
        "_, after = admissible(",
        claims(rx.LagrangeDAlembert(), heavy),
    ),
    Bug(
        "the right tangent map for the left one in the lift",
        "retrax.integrators.lifted",
        "tau.adjoint.dL_dual(",
        "tau.adjoint.dR_dual(",
        claims(rx.LagrangeDAlembert(), heavy),
    ),
    Bug(
        "the time of the base point is forgotten",
        D_ALEMBERT,
        "state.t + self.s * h",
        "state.t",
        order(rx.LagrangeDAlembert(), skew),
    ),
    Bug(
        "the gradient of the midpoint alone",
        "retrax.integrators.hamel_midpoint",
        "return middle - share * p + h * outside",
        "return middle + h * outside",
        claims(rx.DiscreteGradient(), heavy),
    ),
    Bug(
        "the coadjoint term is reversed: the mirror image has the same energy and the same order",
        "retrax.integrators.hamel_midpoint",
        "h * group.coad(",
        "-h * group.coad(",
        partial(agree_with_the_closed_form, rx.HamelMidpoint()),
    ),
    Bug(
        "the dual basis without its metric",
        "retrax.mechanics.hamel",
        "solve(self.restricted_inertia(), self.basis @ self.inertia)",
        "self.basis",
        partial(agree_with_the_closed_form, rx.ProjectedLift()),
    ),
    Bug(
        "the last kick counts twice",
        LIE_VERLET,
        "turn + kick(last, g1, xi, t1)",
        "turn + 2 * kick(last, g1, xi, t1)",
        VERLET,
    ),
    Bug(
        "the first kick counts twice",
        LIE_VERLET,
        "pushed = kick(first, g0, xi, t0)",
        "pushed = 2 * kick(first, g0, xi, t0)",
        VERLET,
    ),
    Bug(
        "the wrong inverse in the coadjoint action",
        LIE_VERLET,
        "group.coAdm1(tau.minus_identity(group, h * xi)",
        "group.coAdm1(tau.minus_identity(group, -h * xi)",
        VERLET,
    ),
    Bug(
        "Newton's iteration stops early",
        "retrax.numerics.newton",
        "jnp.where(settled, 0.0, size), terms",
        "jnp.where(size <= 1e-5 * terms, 0.0, size), terms",
        VERLET,
    ),
    Bug(
        "the right tangent map for the left one",
        LIE_VERLET,
        "tau.dR_inv_dual(",
        "tau.dL_inv_dual(",
        VERLET,
    ),
    Bug(
        "the time of the step is forgotten",
        LIE_VERLET,
        "state.t, state.t + h\n",
        "state.t, state.t\n",
        order(rx.LieVerlet(), forced),
    ),
    Bug(
        "the quadratic term of dcay_inv is dropped",
        "retrax.groups.so3",
        "cross(xi, eta) / 2 + (xi @ eta) / 4 * xi",
        "cross(xi, eta) / 2",
        CAYLEY_LAWS,
    ),
    Bug(
        "the wrong sign in dexp_inv",
        "retrax.groups.so3",
        "return eta + turned / 2 + cotc",
        "return eta - turned / 2 + cotc",
        SO3_LAWS,
    ),
    Bug(
        "the Cayley map without the half",
        "retrax.groups.so3",
        "x = self.hat(xi)\n        return 4 /",
        "x = self.hat(2 * xi)\n        return 4 /",
        CAYLEY_LAWS,
    ),
    Bug(
        "the series for small angles is cut short",
        "retrax.numerics.series",
        "_even(t2, SINC3,",
        "_even(t2, SINC3[:4],",
        SO3_LAWS,
    ),
)
