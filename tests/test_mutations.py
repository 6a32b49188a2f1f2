"""Do the checks have teeth? Bugs planted one at a time, each of which some check must notice."""

import importlib
import inspect
import types

import pytest

import retrax as rx
from retrax.numerics.newton import NewtonStatus
from retrax.testing import check_group, check_integrator, check_retraction
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
    short = ("factorial(2 * k + 3) for k in _TERMS]", "factorial(2 * k + 3) for k in range(3)]")
    series = mutant("retrax.numerics.series", short)
    check_group(mutant("retrax.groups.so3", sinc3=series.sinc3).SO3())


BUGS = [
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
