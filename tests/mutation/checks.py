"""Which checks look at which module: the quick ones first, the test files for what they pass.

Everything runs without compiling through XLA (`jax.disable_jit`): operations one by one, or a step
as machine code by the native back end. A check passes or raises.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import retrax as rx
from retrax.groups.base import AbstractLieGroup
from retrax.integrators.base import AbstractIntegrator
from retrax.testing import check_group, check_integrator, check_retraction
from retrax.testing.constrained import constrained_problem, flow
from retrax.testing.integrators import check_order
from retrax.testing.measurements import Problem
from retrax.testing.problems import asymmetric_top, forced_top, quartic_body

Check = Callable[[], object]


class Watched(NamedTuple):
    """The checks of a module, and the test files that are run where these see nothing."""

    module: str
    checks: tuple[Check, ...] = ()
    files: tuple[str, ...] = ()


def _laws(group: AbstractLieGroup) -> tuple[Check, ...]:
    return (
        partial(check_group, group),
        partial(check_retraction, rx.Exp(), group),
        partial(check_retraction, rx.Cayley(), group),
    )


def _claims(*integrators: AbstractIntegrator) -> tuple[Check, ...]:
    return tuple(partial(check_integrator, integrator) for integrator in integrators)


def _orders(problem: Callable[[], Problem], *integrators: AbstractIntegrator):
    return tuple(partial(_order, problem, integrator) for integrator in integrators)


def _order(problem: Callable[[], Problem], integrator: AbstractIntegrator) -> float:
    return check_order(integrator, problem())


def top() -> Problem:
    return Problem(*asymmetric_top())


def forced() -> Problem:
    return Problem(*forced_top())


def on_flow() -> Problem:
    return Problem(*flow())


def skew() -> Problem:
    return constrained_problem("forced body with a skew plane")


def heavy_suslov() -> Problem:
    return constrained_problem("heavy Suslov body")


def hamiltonian() -> Problem:
    return Problem(*quartic_body())


CORRECTIONS = "tests/groups/test_corrections.py"
COVERS = "tests/groups/test_covers.py"
STEPS = "tests/integrators/test_single_steps.py"
WATCHED = (
    Watched("retrax.groups.so2", _laws(rx.SO2()), (CORRECTIONS, COVERS)),
    Watched(
        "retrax.groups.so3", _laws(rx.SO3()), (CORRECTIONS, COVERS, "tests/groups/test_so3.py")
    ),
    Watched("retrax.groups.se2", _laws(rx.SE2()), (CORRECTIONS, COVERS)),
    Watched(
        "retrax.groups.se3", _laws(rx.SE3()), (CORRECTIONS, COVERS, "tests/groups/test_se3.py")
    ),
    Watched(
        "retrax.groups.retractions",
        _laws(rx.SO3())[1:],
        (COVERS, "tests/integrators/test_diagnosis.py"),
    ),
    Watched("retrax.numerics.newton", (), ("tests/numerics/test_newton.py",)),
    Watched("retrax.numerics.small_matrices", (), ("tests/numerics/test_solve.py",)),
    Watched("retrax.numerics.series", _laws(rx.SO3())[:1], ("tests/numerics/test_series.py",)),
    Watched("retrax.numerics.tableaus", (), ("tests/numerics/test_coefficients.py",)),
    Watched("retrax.numerics.compositions", (), ("tests/numerics/test_coefficients.py",)),
    Watched("retrax.numerics.nodes", (), ("tests/numerics/test_nodes.py",)),
    Watched("retrax.numerics.tridiagonal", (), ("tests/numerics/test_tridiagonal.py",)),
    Watched("retrax.numerics.tridiagonal", (), ("tests/numerics/test_tridiagonal.py",)),
    Watched(
        "retrax.integrators.lie_verlet",
        (*_claims(rx.LieVerlet()), *_orders(forced, rx.LieVerlet())),
        (STEPS,),
    ),
    Watched(
        "retrax.integrators.lifted", _claims(rx.CotangentLift(), rx.CotangentLift(s=0.0)), (STEPS,)
    ),
    Watched(
        "retrax.integrators.cotangent_lift",
        (
            *_claims(rx.CotangentLift()),
            *_orders(forced, rx.CotangentLift(s=0.0), rx.CotangentLift()),
            *_orders(hamiltonian, rx.CotangentLift()),
        ),
        (STEPS,),
    ),
    Watched(
        "retrax.integrators.lagrange_d_alembert",
        (*_claims(rx.LagrangeDAlembert()), *_orders(skew, rx.LagrangeDAlembert())),
        (STEPS, "tests/integrators/test_nonholonomic_claims.py"),
    ),
    Watched(
        "retrax.integrators.hamel_midpoint",
        (*_claims(rx.DiscreteGradient()), *_orders(skew, rx.DiscreteGradient())),
        (STEPS,),
    ),
    Watched(
        "retrax.integrators.composition",
        _orders(top, rx.Composition(rx.LieVerlet(), 4)),
        (STEPS, "tests/integrators/test_diagnosis.py"),
    ),
    Watched(
        "retrax.integrators.kahan", _claims(rx.Kahan()), (STEPS, "tests/integrators/test_kahan.py")
    ),
    Watched(
        "retrax.integrators.rkmk",
        (
            *_orders(top, rx.RKMK("rk4")),
            *_orders(forced, rx.RKMK("heun3")),
            *_orders(on_flow, rx.RKMK("rk4")),
        ),
        (STEPS,),
    ),
    Watched(
        "retrax.integrators.collocation",
        _orders(top, rx.Collocation(rx.gauss(2)), rx.Collocation(rx.gauss(2), centred=True)),
        ("tests/integrators/test_collocation.py",),
    ),
)


def watching(module: str) -> tuple[list[Check], list[str]]:
    """The checks and the test files that look at a module."""
    rows = [row for row in WATCHED if row.module == module]
    return [c for row in rows for c in row.checks], [f for row in rows for f in row.files]


MODULES = tuple(dict.fromkeys(row.module for row in WATCHED))
