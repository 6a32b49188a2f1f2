"""Collocation on groups: reference errors, orders, signs, structure, solver, refusals."""

from functools import partial
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.analysis.symplecticity import symplecticity
from retrax.integrators.collocation import lie_step
from retrax.integrators.forms import Flow, SpatialPhase
from retrax.integrators.magnus import magnus_step
from retrax.spaces.group_itself import GroupItself
from retrax.testing.constrained import flow
from retrax.testing.problems import asymmetric_top, gyrostat
from retrax_papers.pseudospectral.runs import REFERENCE

PENDULUM, START, _, _ = rx.systems.Pendulum3D.paper()


def ended(method, time, h, backend="xla"):
    """The largest error of (R, omega) at `time`."""
    n = round(time / h)
    run = rx.simulate(
        PENDULUM, method, START, h=time / n, steps=n, save_every=n, backend=backend, progress=False
    )
    R, omega = REFERENCE[time]
    return max(np.max(np.abs(run.g[-1] - R)), np.max(np.abs(run.velocity[-1] - omega)))


def test_the_native_program_meets_the_reference_solution():
    assert ended(rx.Collocation(rx.gauss(3)), 1.0, 0.05, "native") < 3e-10  # measured: 2.5e-10


@pytest.mark.parametrize(
    "nodes",
    [
        rx.radau(2),
        rx.radau_left(2),
        rx.lobatto(3),
        rx.chebyshev(3),
        rx.chebyshev_lobatto(4),
        rx.nodes([0.1, 0.5, 0.7]),
    ],
    ids=repr,
)
def test_order_of_every_family(nodes):
    coarse, fine = (ended(rx.Collocation(nodes), 1.0, h) for h in (0.02, 0.01))
    assert np.log2(coarse / fine) == pytest.approx(nodes.order, abs=0.1)


def test_first_order_flows_and_fields_have_the_order_of_the_nodes():
    for system, state in (flow(), gyrostat()):
        ends = [
            rx.simulate(system, rx.Collocation(rx.gauss(2)), state, h=2 / n, steps=n).final.g
            for n in (16, 32, 64)
        ]
        leaves = [np.concatenate([np.ravel(x) for x in jax.tree.leaves(end)]) for end in ends]
        gaps = [np.max(np.abs(a - b)) for a, b in pairwise(leaves)]
        assert np.log2(gaps[0] / gaps[1]) == pytest.approx(4, abs=0.1)


SIGNS = [(rx.SO3(), -1), (rx.SO3(), 1), (rx.SE3(), -1), (rx.SE3(), 1)]


def product_flow(group, side):
    """The flow of g(t) = exp(ta) exp(tb), seen from the right or from the left."""
    rng = np.random.default_rng(7)
    a, b = 0.8 * jnp.asarray(rng.standard_normal((2, group.dim)))

    def generator(t, y):
        if side < 0:
            return group.Ad(group.exp(-t * b), a) + b
        return jnp.concatenate([a + group.Ad(group.exp(t * a), b), jnp.zeros(group.dim)])

    one, n = group.identity(), group.dim
    start = one if side < 0 else (one, jnp.zeros(n))
    space = GroupItself(group) if side < 0 else SpatialPhase(group)
    exact = group.compose(group.exp(a), group.exp(b))
    return Flow(space, generator, start, lambda y: y, None), exact


def order_seen(problem, exact, step):
    """The order, from the errors of 4 and of 8 steps to t = 1."""

    @jax.jit
    def end(n):
        def advanced(_, carried):
            y, t = carried
            return step(problem._replace(start=y), t, 1.0 / n).y, t + 1.0 / n

        return jax.lax.fori_loop(0, n, advanced, (problem.start, jnp.zeros(())))[0]

    def error(n):
        y = end(n)
        g = y if problem.space.side < 0 else y[0]
        pairs = zip(jax.tree.leaves(g), jax.tree.leaves(exact), strict=True)
        return max(float(jnp.max(jnp.abs(a - b))) for a, b in pairs)

    return np.log2(error(4) / error(8))


@pytest.mark.parametrize("group, side", SIGNS, ids=lambda x: getattr(x, "name", f"side {x}"))
def test_sign_of_the_side(group, side):
    """With the wrong sign the order is 2; one stage would not notice."""
    problem, exact = product_flow(group, side)
    order = order_seen(problem, exact, partial(lie_step, nodes=rx.gauss(3)))
    assert order == pytest.approx(6, abs=0.25)


@pytest.mark.parametrize("claimed, within", [(2, 0.02), (6, 0.02), (8, 0.3)])
@pytest.mark.parametrize("group, side", SIGNS[:2], ids=lambda x: getattr(x, "name", f"side {x}"))
def test_magnus_from_both_sides(group, side, claimed, within):
    """The bracket changes sign with the side; stages without brackets would give order 3."""
    problem, exact = product_flow(group, side)
    order = order_seen(problem, exact, partial(magnus_step, order=claimed))
    assert order == pytest.approx(claimed, abs=within)


def test_magnus_of_order_two_and_six_on_the_pendulum():
    """Measured at h = 0.02: 1.49e-4 and 2.97e-13, a fourth and a 64th of those at twice the h."""
    for order, coarse, fine in ((2, 5.93e-4, 1.491e-4), (6, 1.897e-11, 2.97e-13)):
        assert ended(rx.Magnus(order), 1.0, 0.04, "native") == pytest.approx(coarse, rel=0.01)
        assert ended(rx.Magnus(order), 1.0, 0.02, "native") == pytest.approx(fine, rel=0.05)


def test_the_form_on_se3_has_the_order_of_the_nodes_and_its_own_error():
    """A motion of SE(3): a fourth of the error in body coordinates, at every step size."""
    form = rx.Collocation(rx.gauss(2), form="se3")
    coarse, fine = (ended(form, 1.0, h, "native") for h in (0.02, 0.01))
    assert np.log2(coarse / fine) == pytest.approx(4, abs=0.01)  # measured: 4.003
    assert fine == pytest.approx(1.396e-10, rel=0.01)  # 5.77e-10 in body coordinates


def test_the_symplectic_defect_falls_with_the_power_2s_plus_1():
    """Collocation on a group is not symplectic; it comes as close as its order."""
    top, state = asymmetric_top()
    for s in (1, 2):  # measured: 3.03 and 5.06; 7.10 with three
        method = rx.Collocation(rx.gauss(s))
        defects = [symplecticity(top, method, state, h=h) for h in (0.1, 0.05)]
        assert np.log2(defects[0] / defects[1]) == pytest.approx(2 * s + 1, abs=0.1)


def test_iterations():
    """Alternating sweeps take fewer than a joint sweep (11, 14, 19, 31 for these steps)."""
    # Measured: 7.45, 9.05, 11.9 and 18.85.
    for h, most in ((0.05, 8), (0.1, 10), (0.2, 12.5), (0.4, 19.5)):
        run = rx.simulate(PENDULUM, rx.Collocation(rx.gauss(2)), START, h=h, steps=20)
        assert np.mean(run.info.iterations[1:]) < most
        assert np.max(run.info.residual) < 2e-16  # measured: up to 4e-17


def test_newton_takes_over_where_sweeps_would_not_converge():
    one = rx.simulate(PENDULUM, rx.Collocation(rx.gauss(1)), START, h=0.8, steps=20)
    assert np.mean(one.info.iterations[1:]) < 10  # measured: 9.05; sweeps diverge
    two = rx.simulate(PENDULUM, rx.Collocation(rx.gauss(2)), START, h=0.8, steps=20)
    assert np.max(two.info.residual) < 2e-16  # measured: 3e-17


def test_the_chart_is_watched():
    body = rx.systems.FreeRigidBody([1.0, 2.0, 2.5])
    state = body.state(jnp.eye(3), velocity=[0.0, 0.0, 14.0])
    with pytest.raises(rx.StepFailed, match="turns by 2 pi or more"):
        rx.simulate(body, rx.Collocation(rx.gauss(2)), state, h=0.5, steps=3)


def test_forms_are_refused_where_they_do_not_apply():
    tumbling = rx.MechanicalSystem(rx.SO3(), [1.0, 1.7, 2.3], lambda R: R[0, 1] + R[2, 0])
    still = tumbling.state(jnp.eye(3), velocity=[0.1, 0.2, 0.3])
    with pytest.raises(rx.BadInput, match="about the vertical"):
        rx.simulate(tumbling, rx.Collocation(rx.gauss(2), form="se3"), still, h=0.1, steps=1)
    system, state = flow()
    for form in ("spatial", "se3"):
        with pytest.raises(rx.BadInput, match="does not have"):
            rx.simulate(system, rx.Collocation(rx.gauss(2), form=form), state, h=0.1, steps=1)
    with pytest.raises(rx.BadInput, match="action"):
        rx.simulate(system, rx.GalerkinVariational(rx.gauss(2)), state, h=0.1, steps=1)


def test_derivatives_of_a_step():
    """Forward and reverse against a difference quotient, along momentum and inertia."""
    method = rx.Collocation(rx.gauss(2))
    along = jnp.array([0.3, -0.7, 0.5])
    top, start = asymmetric_top()

    def outcome(e):
        body = eqx.tree_at(lambda top: top.inertia, top, top.inertia + e)
        end, _ = method.step(body, rx.State(start.g, start.momentum + e * along), jnp.asarray(0.2))
        return end.g[0, 1] + 0.3 * end.g[2, 0] + end.momentum @ along

    both = jax.jit(lambda e: (outcome(e), jax.jvp(outcome, (e,), (1.0,))[1], jax.grad(outcome)(e)))
    _, forward, reverse = both(0.0)
    e = 1e-3
    values = {k: float(both(k * e)[0]) for k in (-2, -1, 1, 2)}
    slope = (values[-2] - 8 * values[-1] + 8 * values[1] - values[2]) / (12 * e)
    assert abs(float(forward) - float(reverse)) < 1e-14
    assert float(forward) == pytest.approx(slope, abs=1e-11)  # the quotient errs by 1e-12
