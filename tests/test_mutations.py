"""Do the checks have teeth? Bugs planted one at a time, each of which some check must notice."""

import importlib
import inspect
import types

import numpy as np
import pytest

import retrax as rx
from retrax.numerics.newton import NewtonStatus
from retrax.testing import check_group, check_integrator, check_retraction, check_space
from retrax.testing.constrained import constrained_problem, suslov_body
from retrax.testing.integrators import check_order
from retrax.testing.measurements import Problem
from retrax.testing.problems import forced_top


def mutant(module: str, *changes: tuple[str, str], **replaced) -> types.ModuleType:
    """A copy of a module with some of its source text changed and some of its names replaced."""
    original = importlib.import_module(module)
    source = inspect.getsource(original)
    for old, new in changes:
        assert source.count(old) == 1, f"{old!r} is not, once, in {module}"
        source = source.replace(old, new)
    copy = types.ModuleType(f"{module}_mutant")
    exec(compile(source, f"<mutant of {module}>", "exec"), copy.__dict__)
    copy.__dict__.update(replaced)
    return copy


def verlet(*changes, **replaced):
    return mutant("retrax.integrators.lie_verlet", *changes, **replaced).LieVerlet()


def last_kick_twice():
    check_integrator(verlet(("turn + kick(g1, xi, t1)", "turn + 2 * kick(g1, xi, t1)")))


def first_kick_twice():
    check_integrator(verlet(("first = kick(g0, xi, t0)", "first = 2 * kick(g0, xi, t0)")))


def wrong_inverse_in_the_coadjoint_action():
    wrong = "group.coAdm1(tau.minus_identity(group, -h * xi)"
    check_integrator(verlet(("group.coAdm1(tau.minus_identity(group, h * xi)", wrong)))


def loose_newton():
    loose = mutant(
        "retrax.numerics.newton",
        ("_AIM, _ACCEPT = 2 * _EPS, 128 * _EPS", "_AIM = _ACCEPT = 1e-5"),
        NewtonStatus=NewtonStatus,
    )
    check_integrator(verlet(newton=loose.newton))


def right_tangent_map_for_left():
    check_integrator(verlet(("tau.dR_inv_dual(", "tau.dL_inv_dual(")))


def time_of_the_step_forgotten():
    check_order(verlet(("drift(xi), t0 + h", "drift(xi), t0")), Problem(*forced_top()))


def quadratic_term_of_dcay_inv_dropped():
    so3 = mutant(
        "retrax.groups.so3", ("cross(xi, eta) / 2 + (xi @ eta) / 4 * xi", "cross(xi, eta) / 2")
    )
    check_retraction(rx.Cayley(), so3.SO3())


def wrong_sign_in_dexp_inv():
    so3 = mutant(
        "retrax.groups.so3", ("return eta + turned / 2 + cotc", "return eta - turned / 2 + cotc")
    )
    check_group(so3.SO3())


def cayley_without_the_half():
    so3 = mutant(
        "retrax.groups.so3",
        ("x = self.hat(xi)\n        return 4 /", "x = self.hat(2 * xi)\n        return 4 /"),
    )
    check_retraction(rx.Cayley(), so3.SO3())


def small_angle_series_cut_short():
    short = ("polynomials.SINC3,", "polynomials.SINC3[:3],")
    series = mutant("retrax.numerics.series", short)
    check_group(mutant("retrax.groups.so3", sinc3=series.sinc3).SO3())


def d_alembert(*changes, **replaced):
    module = mutant("retrax.integrators.lagrange_d_alembert", *changes, **replaced)
    return module.LagrangeDAlembert()


HEAVY = constrained_problem("heavy Suslov body")


def force_forgotten_at_the_end_of_the_step():
    check_order(d_alembert(("lift.end(g, a + nu, h * xi)", "lift.end(g, a, h * xi)")), HEAVY)


def end_of_the_step_not_projected():
    change = ("mu1, after = admissible(", "_, after = admissible(")
    check_integrator(d_alembert(change), HEAVY)


def right_tangent_map_for_left_in_the_lift():
    lifted = mutant("retrax.integrators.lifted", ("tau.adjoint.dL_dual(", "tau.adjoint.dR_dual("))
    check_integrator(d_alembert(LiftedMap=lifted.LiftedMap), HEAVY)


def time_of_the_base_point_forgotten():
    forced = constrained_problem("forced body with a skew plane")
    check_order(d_alembert(("state.t + self.s * h", "state.t")), forced)


def gradient_of_the_midpoint_alone():
    change = ("return middle - share * p + h * outside", "return middle + h * outside")
    module = mutant("retrax.integrators.hamel_midpoint", change)
    check_integrator(module.DiscreteGradient(), HEAVY)


def coadjoint_term_reversed():
    """The mirror image of the equations has the same energy and the same order."""
    module = mutant("retrax.integrators.hamel_midpoint", ("h * group.coad(", "-h * group.coad("))
    agree_with_the_closed_form(module.HamelMidpoint())


def dual_basis_without_its_metric():
    change = ("solve(self.restricted_inertia(), self.basis @ self.inertia)", "self.basis")
    frame = mutant("retrax.mechanics.hamel", change).HamelFrame
    module = mutant("retrax.integrators.projected_lift", HamelFrame=frame)
    agree_with_the_closed_form(module.ProjectedLift())


def derivative_twice_in_kahan_s_step():
    change = ("jnp.eye(system.dim) - slope, rate", "jnp.eye(system.dim) - 2 * slope, rate")
    check_integrator(mutant("retrax.integrators.kahan", change).Kahan())


def projection_without_its_root():
    change = ("delta / (1 + jnp.sqrt(1 + delta)) * x", "delta * x")
    module = mutant("retrax.integrators.kahan", change)
    check_integrator(module.RadialProjection(module.Kahan()))


def attitude(*changes, **options):
    return mutant("retrax.integrators.kahan_attitude", *changes).KahanAttitude(**options)


def turn_from_one_end_only():
    check_integrator(attitude(("half @ n + half_end @ n_end", "2 * half @ n")))


def alignment_the_wrong_way_round():
    check_integrator(attitude(("cross(n_end, n)", "cross(n, n_end)"), project=True))


def agree_with_the_closed_form(integrator) -> None:
    body, state = suslov_body()
    run = rx.simulate(body, integrator, state, h=0.01, steps=200)
    error = np.max(np.abs(run.velocity[-1] - body.exact_velocity([1.0, 0.5, 0.0], 2.0)))
    if not error < 1e-5:
        raise rx.CheckFailed(f"{integrator!r} misses the closed form of Suslov's problem: {error}")


def wrong_side_of_the_sphere():
    change = ("side: ClassVar[int] = 1", "side: ClassVar[int] = -1")
    check_space(mutant("retrax.spaces.sphere", change).Sphere(3))


def generator_of_the_opposite_tangent():
    change = ("return cross(y, v)", "return cross(v, y)")
    check_space(mutant("retrax.spaces.sphere", change).Sphere(3))


def half_a_conjugation():
    change = ("half = right + delta @ right / 2", "half = right")
    conjugate = mutant("retrax.spaces.grassmann", change).conjugate
    module = mutant("retrax.spaces.isospectral", conjugate=conjugate)
    check_space(module.Isospectral(3))


def every_step_accepted():
    keep_to_the_tolerance(mutant("retrax.integrators.adaptive", ("& (ratio <= 1)", "")).Adaptive)


def error_measured_per_step_and_not_per_second():
    change = ("apart / (2.0**base.order - 1) / x", "apart / (2.0**base.order - 1) * x")
    keep_to_the_tolerance(mutant("retrax.integrators.adaptive", change).Adaptive)


def keep_to_the_tolerance(adaptive) -> None:
    body, state, _, _ = rx.systems.BodyOnSphere.example()
    run = rx.simulate(body, adaptive(rx.RKMK("rk4"), 1e-8), state, h=5.0, steps=2)
    error = np.max(np.abs(run.y - body.exact(state.g, run.t)))
    if not error < 1e-7:
        raise rx.CheckFailed(f"a run with the tolerance 1e-8 is wrong by {error:.1e}")


BUGS = [
    wrong_side_of_the_sphere,
    generator_of_the_opposite_tangent,
    half_a_conjugation,
    every_step_accepted,
    error_measured_per_step_and_not_per_second,
    derivative_twice_in_kahan_s_step,
    projection_without_its_root,
    turn_from_one_end_only,
    alignment_the_wrong_way_round,
    force_forgotten_at_the_end_of_the_step,
    end_of_the_step_not_projected,
    right_tangent_map_for_left_in_the_lift,
    time_of_the_base_point_forgotten,
    gradient_of_the_midpoint_alone,
    coadjoint_term_reversed,
    dual_basis_without_its_metric,
    last_kick_twice,
    first_kick_twice,
    wrong_inverse_in_the_coadjoint_action,
    loose_newton,
    right_tangent_map_for_left,
    time_of_the_step_forgotten,
    quadratic_term_of_dcay_inv_dropped,
    wrong_sign_in_dexp_inv,
    cayley_without_the_half,
    small_angle_series_cut_short,
]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_planted_bug_is_noticed(bug):
    with pytest.raises(rx.CheckFailed) as noticed:
        bug()
    print(f"{bug.__name__}: {noticed.value}")


def test_an_unchanged_copy_passes():
    """Without a bug the same machinery reports none: it is the bugs that are noticed."""
    check_order(verlet(), Problem(*forced_top()))
    check_retraction(rx.Cayley(), mutant("retrax.groups.so3").SO3())
    check_integrator(d_alembert(), HEAVY)
    check_integrator(attitude(project=True))
    agree_with_the_closed_form(mutant("retrax.integrators.hamel_midpoint").HamelMidpoint())
    keep_to_the_tolerance(mutant("retrax.integrators.adaptive").Adaptive)
