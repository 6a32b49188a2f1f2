"""Every group satisfies the laws of a Lie group, and a group that does not is found out."""

import jax
import jax.numpy as jnp
import pytest
from all_groups import CLOSED_FORMS, MAKE, group, named

import retrax as rx
from retrax.numerics.series import cotc
from retrax.testing.groups import check_group
from retrax.testing.retractions import check_retraction


@pytest.mark.parametrize("name", named(*MAKE))
def test_group_laws(name):
    # Allowed is 1e-14. Measured: 1.8e-15 (closed forms), 2.5e-15 (matrix groups).
    check_group(group(name))


@pytest.mark.parametrize("name", named("SO3", "SE3", "SE3^3", "Heisenberg"))
def test_exp_is_a_retraction(name):
    check_retraction(rx.Exp(), group(name))  # measured 1.8e-15


@pytest.mark.parametrize("name", named(*CLOSED_FORMS, "SO4", "Heisenberg"))
def test_cayley_is_a_retraction(name):
    check_retraction(rx.Cayley(), group(name))  # measured 1.4e-15


def test_another_key_gives_other_samples():
    first, second = (check_group(rx.SO2(), key) for key in (None, jax.random.key(7)))
    assert first.keys() == second.keys()
    assert first != second


class ForgetsATerm(rx.SO3):
    """dexp_inv with one coefficient off by a hundredth: right at 0, wrong everywhere else."""

    def dexp_inv(self, xi, eta):
        turned = self.ad(xi, eta)
        return eta + turned / 2 + 0.99 * cotc(xi @ xi) * self.ad(xi, turned)


class Cancels(rx.SO3):
    """expm1 from exp: right to round-off, but not relative to a small angle."""

    def expm1(self, xi):
        return (jnp.eye(3) + rx.SO3().expm1(xi)) - jnp.eye(3)


class WrongBelowAThreshold(rx.SE3):
    """A small-angle branch with a wrong coefficient, as other libraries have had."""

    def expm1(self, xi):
        F, f = rx.SE3().expm1(xi)
        small = xi[:3] @ xi[:3] < 1e-10
        return F, jnp.where(small, xi[3:] + jnp.cross(xi[:3], xi[3:]), f)


class ForgetsAFactor(rx.SE3):
    """dcay_dual with the shift of the moment forgotten: right when v = 0."""

    def dcay_dual(self, xi, mu):
        still = xi.at[3:].set(0.0)
        return rx.SE3().dcay_dual(still, mu)


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (ForgetsATerm(), "the derivative of log is dexp_inv"),
        (Cancels(), "expm1"),
        (WrongBelowAThreshold(), "exp"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_broken_group_is_found_out(broken, law):
    with pytest.raises(rx.CheckFailed, match=rf"{type(broken).__name__}.* breaks the law '.*{law}"):
        check_group(broken)


def test_a_broken_retraction_is_found_out():
    law = r"at xi = \[.*\], breaks the law 'dL_dual is the transpose of dL'"
    with pytest.raises(rx.CheckFailed, match=f"(?s){law}"):
        check_retraction(rx.Cayley(), ForgetsAFactor())
