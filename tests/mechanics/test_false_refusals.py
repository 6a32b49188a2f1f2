"""What is right is taken, and what a user's function raises is told as it is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx


@pytest.mark.parametrize("method", [rx.HamelMidpoint(), rx.DiscreteGradient()], ids=repr)
def test_a_constant_matrix_is_a_distribution_whose_rows_are_kept(method):
    rows = [[0.0, 0.0, 2.0]]
    system = rx.MechanicalSystem(rx.SO3(), [1.0, 1.5, 2.0], constraint=rx.VelocityConstraint(rows))
    same = rx.MechanicalSystem(
        rx.SO3(), [1.0, 1.5, 2.0], constraint=rx.Distribution([[1.0, 0, 0], [0, 1.0, 0]])
    )
    np.testing.assert_array_equal(system.constraint.rows(jnp.eye(3), jnp.zeros(())), rows)
    ends = []
    for body in (system, same):
        start = body.state(jnp.eye(3), velocity=[1.0, 0.3, 0.0])
        ends.append(rx.simulate(body, method, start, h=0.05, steps=3))
    np.testing.assert_allclose(ends[0].momentum, ends[1].momentum, atol=1e-15)
    np.testing.assert_allclose(2 * ends[0].multipliers, ends[1].multipliers, atol=1e-15)


def test_dependent_rows_are_still_refused():
    with pytest.raises(rx.BadInput, match="has dependent rows"):
        rx.VelocityConstraint([[0, 0, 1.0], [0, 0, 2.0]])


def test_a_potential_may_be_undefined_wherever_nobody_starts():
    """-log(x - 5) is a number from 5 on: energies are kept there, and a start at 2 is refused."""
    system = rx.MechanicalSystem(rx.Translation(1), [1.0], lambda x: -jnp.log(x[0] - 5))
    run = rx.simulate(system, rx.LieVerlet(), system.state([7.0], velocity=[0.1]), h=0.01, steps=50)
    assert np.ptp(run.invariants()["energy"]) < 1e-5  # measured 2e-7
    with pytest.raises(rx.BadInput, match="potential is nan in this state"):
        system.state([2.0], velocity=[0.0])


@pytest.mark.parametrize(
    ("body", "dimension"),
    [("return missing * x", 1), ("a, b, c = x; return missing * a", 3)],
    ids=["everywhere", "in three dimensions"],
)
def test_a_name_that_is_not_defined_in_a_field_is_told(body, dimension):
    names = {}
    exec(f"def field(x): {body}", names)
    field = names["field"]
    with pytest.raises(rx.BadInput, match=f"dimension {dimension} it raised NameError: .*missing"):
        rx.QuadraticField(field)


def sphere(R, xi):
    """A pendulum of which only the direction R e3 moves: its spin has no energy."""
    v = R @ jnp.stack([xi[1], -xi[0], jnp.zeros(())])
    return v @ v / 2 - R[2, 2]


def test_a_degenerate_lagrangian_is_refused_and_its_direction_named():
    with pytest.raises(
        rx.BadInput, match=r"degenerate: d2L/dxi2 vanishes along xi = \[0., 0., 1.\]"
    ):
        rx.LagrangianSystem(rx.SO3(), sphere)
    rx.LagrangianSystem(rx.SO3(), lambda R, xi: sphere(R, xi) + xi[2] ** 2 / 2)


def test_a_lagrangian_that_is_degenerate_at_rest_only_is_taken():
    rx.LagrangianSystem(rx.Translation(1), lambda x, v: v[0] ** 4 / 4)


def test_check_system_says_why_a_degenerate_system_is_none():
    made = rx.LagrangianSystem(rx.SO3(), lambda R, xi: sphere(R, xi) + xi[2] ** 2 / 2)
    object.__setattr__(made, "lagrangian", jax.tree_util.Partial(sphere))  # past the door
    with pytest.raises(rx.BadInput, match="degenerate: d2L/dxi2 vanishes along"):
        rx.testing.check_system(made)


def test_a_velocity_without_a_momentum_is_refused():
    flat = rx.HamiltonianSystem(rx.Translation(2), lambda x, p: p[0] ** 2 / 2 + x @ x)
    with pytest.raises(rx.BadInput, match="has no finite momentum on the Hamiltonian system"):
        flat.state([0.0, 0.0], velocity=[1.0, 1.0])


@pytest.mark.parametrize(
    ("group", "g"),
    [
        (rx.SO3(), -np.eye(3)),
        (rx.SO3(), np.zeros((3, 3))),
        (rx.SO2(), np.diag([1.0, -1.0])),
        (rx.SO(4), np.zeros((4, 4))),
        (rx.SE3(), (-np.eye(3), np.zeros(3))),
        (rx.Product(rx.SO2(), rx.Translation(1)), (np.zeros((2, 2)), np.zeros(1))),
        (rx.Power(rx.SO3(), 2), np.stack([np.eye(3), -np.eye(3)])),
        (rx.SO3(), np.full((3, 3), np.nan)),
    ],
    ids=lambda x: repr(x) if isinstance(x, rx.SO3) else "",
)
def test_a_matrix_without_one_nearest_rotation_is_not_projected(group, g):
    with pytest.raises(rx.BadInput, match=r"no nearest rotation|must be finite"):
        group.project(jax.tree.map(jnp.asarray, g))


@pytest.mark.parametrize("space", [rx.Sphere(3), rx.Torus(2), rx.Stiefel(3, 2)], ids=repr)
def test_zero_has_no_nearest_point(space):
    with pytest.raises(rx.BadInput, match="no nearest point"):
        space.project(jax.tree.map(lambda x: jnp.zeros(x.shape), space.layout()))


def test_a_reflection_is_projected_to_the_nearest_rotation():
    M = np.diag([1.0, 1.0, -0.5])
    got = rx.SO3().project(jnp.asarray(M))
    np.testing.assert_allclose(got, np.eye(3), atol=1e-15)
    for scale in (1e-8, 1e8):
        np.testing.assert_allclose(rx.SO3().project(scale * jnp.eye(3)), np.eye(3), atol=1e-15)


def test_flows_take_a_place_for_a_state():
    flow = rx.GroupFlow(rx.SO3(), lambda R: jnp.stack([R[0, 0], R[1, 1], R[2, 2]]))
    state = flow.state(jnp.eye(3), t=2.0)
    assert float(state.t) == 2.0 and not state.momentum.any()
    for system, place in (
        (rx.systems.EulerTop([1.0, 2.0, 2.5]), [1.0, 0.0, 0.0]),
        (rx.systems.Toda(2), np.eye(2)),
    ):
        assert not system.state(place).momentum.any()
    with pytest.raises(rx.BadInput, match=r"the field of the flow on .* gives its velocity"):
        flow.state(jnp.eye(3), velocity=[1.0, 0.0, 0.0])
