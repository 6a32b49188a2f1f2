"""What is refused of one body is refused of every member of a map, an ensemble or a sweep."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.numerics.known import read_numbers
from retrax.systems.rods.section import circular

ONE = jnp.eye(3)
MOMENTS = [1.0, 1.2, 0.9]


def triple(x):
    return jnp.stack([jnp.asarray(1.0), jnp.asarray(1.2), jnp.asarray(x, jnp.float64)])


def placed(group, system, velocity):
    return system, system.state(group.identity(), velocity=velocity)


def spun(system):
    return placed(rx.SO3(), system, [0.0, 0.0, 1.0])


def still(system):
    return placed(system.group, system, np.zeros(system.group.dim))


def skewed(x):
    return jnp.eye(3) + jnp.asarray(x, jnp.float64) * jnp.array([[0.0, 1, 0], [0, 0, 0], [0, 0, 0]])


def string(mass):
    return rx.systems.StringPendulum(
        1.0, 0.1, 100.0, 2, mass, [0.0, 0.0, 0.1], rx.solids.sphere(1.0, 0.2, [0.0, 0.0, 0.1])
    )


def rod(density):
    body = rx.systems.Rod(3, 1.0, **circular(1e4, 0.3, density, 0.05))
    return body, body.state(body.straight(), velocity=np.zeros(24))


def lagrangian(spin):
    def L(R, xi):
        return (xi[0] ** 2 + xi[1] ** 2 + spin * xi[2] ** 2) / 2 - R[2, 2]

    return rx.LagrangianSystem(rx.SO3(), L)


def mechanical(spin):
    return rx.MechanicalSystem(rx.SO3(), lambda R: triple(spin))


def tangent(x):
    return rx.SpaceFlow(
        rx.Sphere(3), field=lambda t, y: jnp.stack([-y[1], y[0], jnp.asarray(x, jnp.float64)])
    )


suslov = rx.systems.Suslov(MOMENTS)
field = rx.systems.LotkaVolterra.predator_prey()

# What makes a body of a number, a number that will do, and one that will not.
BODIES = {
    "HeavyTop": (lambda p: spun(rx.systems.HeavyTop(MOMENTS, p, [0.0, 0, 1])), 1.0, -1.0),
    "Pendulum3D": (lambda p: spun(rx.systems.Pendulum3D(MOMENTS, p, [0.0, 0, 1])), 1.0, 0.0),
    "FreeRigidBody": (lambda p: spun(rx.systems.FreeRigidBody(triple(p))), 1.0, 3.0),
    "a matrix": (lambda p: spun(rx.systems.FreeRigidBody(jnp.diag(triple(p)))), 1.0, 3.0),
    "EulerTop": (lambda p: (top := rx.systems.EulerTop(triple(p)), top.at(ONE[0])), 1.0, -2.0),
    "BodyOnSphere": (
        lambda p: (top := rx.systems.BodyOnSphere(MOMENTS, p), top.at(ONE[0])),
        1.0,
        -1.0,
    ),
    "HeavyTopOrbit": (
        lambda p: (top := rx.systems.HeavyTopOrbit(triple(p), ONE[2]), top.at(np.ones(6))),
        1.0,
        -1.0,
    ),
    "ChaplyginSleigh": (lambda p: still(rx.systems.ChaplyginSleigh(p, 1.0, 0.2)), 1.0, -1.0),
    "RollingDisk": (lambda p: still(rx.systems.RollingDisk(1.0, 0.2, p, 0.5)), 1.0, 0.0),
    "ChaplyginBall": (lambda p: still(rx.systems.ChaplyginBall(MOMENTS, 1.0, p)), 1.0, -0.5),
    "BallOnTurntable": (lambda p: still(rx.systems.BallOnTurntable(p, 0.5, 0.9)), 1.0, -1.0),
    "Blade": (lambda p: still(rx.systems.Blade(MOMENTS, p, [0.1, 0, 0])), 1.0, -1.0),
    "Suslov": (lambda p: placed(rx.SO3(), rx.systems.Suslov(triple(p)), [1.0, 0, 0]), 1.0, 3.0),
    "Veselova": (lambda p: placed(rx.SO3(), rx.systems.Veselova(triple(p)), [1.0, 0, 0]), 1.0, 3.0),
    "a velocity across the constraint": (
        lambda p: placed(rx.SO3(), suslov, [1.0, 0.0, p]),
        0.0,
        0.1,
    ),
    "Kuramoto": (
        lambda p: (flow := rx.systems.Kuramoto([0.1, 0.2], jnp.exp(p)), flow.at(ONE[:2, :2])),
        1.0,
        1e3,
    ),
    "LotkaVolterra": (lambda p: (field, field.at(jnp.stack([1.0 + 0 * p, p]))), 1.0, -1.0),
    "LiePoisson": (
        lambda p: (flow := rx.systems.LiePoisson(rx.SO3(), skewed(p)), flow.at(ONE[0])),
        0.0,
        0.3,
    ),
    "SubspaceFlow": (
        lambda p: (flow := rx.systems.SubspaceFlow(skewed(p), 1), flow.at(jnp.diag(ONE[0]))),
        0.0,
        0.3,
    ),
    "CubicHamiltonian": (
        lambda p: (
            flow := rx.systems.CubicHamiltonian(lambda z: z @ z / 2 + p * z[0] ** 4, 2),
            flow.at(ONE[0, :2]),
        ),
        0.0,
        0.3,
    ),
    "QuadraticField": (
        lambda p: (flow := rx.QuadraticField(lambda x: -x + p * x**3, 2), flow.at(ONE[0, :2])),
        0.0,
        0.3,
    ),
    "SpaceFlow": (lambda p: (flow := tangent(p), flow.at(ONE[0])), 0.0, 0.3),
    "Rod": (lambda p: rod(p), 1e3, -1.0),
    "StringPendulum": (lambda p: (body := string(p), body.hanging()), 1.0, -1.0),
    "StringsInContact": (
        lambda p: (pair := rx.systems.StringsInContact(p, 0.1, 32), pair.at([1.0, 2.0])),
        0.5,
        0.0,
    ),
    "MechanicalSystem": (lambda p: spun(mechanical(p)), 1.0, 3.0),
    "LagrangianSystem": (lambda p: spun(lagrangian(p)), 1.0, 0.0),
    "a potential": (
        lambda p: still(
            rx.MechanicalSystem(rx.Translation(1), [1.0], lambda x: jnp.log(p + x[0]))
        ),
        1.0,
        -1.0,
    ),
    "a place off the group": (
        lambda p: (suslov, suslov.state(p * ONE, velocity=[1.0, 0, 0])),
        1.0,
        1.1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_a_number_that_one_body_cannot_have_no_member_can_have(name, tmp_path):
    make, good, bad = BODIES[name]
    make(good)
    with pytest.raises(rx.BadInput) as single:
        make(bad)
    with pytest.raises(rx.BadInput, match="member 1: ") as among:
        jax.vmap(make)(jnp.array([good, bad]))
    assert str(among.value).split("member 1: ")[1][:20] == str(single.value)[:20]
    with pytest.raises(rx.BadInput, match=rf"make\(p = {bad}\)"):
        rx.sweep(make, rx.RKMK(), grid={"p": [good, bad]}, h=0.01, steps=1, store=tmp_path / "s")


def test_members_that_are_as_they_should_be_are_made(tmp_path):
    make, *_ = BODIES["HeavyTop"]
    tops, states = jax.vmap(make)(jnp.array([1.0, 2.0]))
    runs = rx.ensemble(tops, rx.LieVerlet(), states, h=0.01, steps=2)
    singly = rx.simulate(*make(2.0)[:1], rx.LieVerlet(), make(2.0)[1], h=0.01, steps=2)
    np.testing.assert_array_equal(runs["momentum"].values[-1, 1], singly.momentum[-1])


def test_a_mass_that_jit_hid_is_refused_when_the_ensemble_starts():
    make, good, bad = BODIES["HeavyTop"]
    tops, states = jax.jit(jax.vmap(make))(jnp.array([good, bad]))
    with pytest.raises(rx.BadInput, match=r"member 1: mass = -1.0 must be positive"):
        rx.ensemble(tops, rx.LieVerlet(), states, h=0.01, steps=2)


def test_plain_numbers_are_checked_while_jit_traces_others():
    with pytest.raises(rx.BadInput, match="every moment must be > 0"):
        jax.jit(lambda m: rx.systems.HeavyTop([1.0, 1.0, -1.0], m, [0.0, 0, 1]).mass)(1.0)


def test_a_derivative_does_not_hide_a_negative_mass():
    with pytest.raises(rx.BadInput, match=r"mass = -1.0 kg is not positive"):
        jax.grad(lambda m: rx.systems.HeavyTop(MOMENTS, m, [0.0, 0, 1]).mass)(-1.0)


def test_members_of_nested_maps_are_named_by_both_numbers():
    def make(a):
        return jax.vmap(lambda b: rx.systems.HeavyTop(MOMENTS, a * b, [0.0, 0, 1]).mass)(
            jnp.array([1.0, 2.0, -3.0])
        )

    with pytest.raises(rx.BadInput, match=r"member \(0, 2\): mass = -3.0"):
        jax.vmap(make)(jnp.array([1.0, 5.0]))


def test_numbers_are_known_in_the_order_of_their_maps():
    seen = []
    x = jnp.arange(24.0).reshape(2, 3, 4)

    def inner(a, b):
        seen.append(read_numbers(a, b))
        return a

    jax.vmap(lambda a: jax.vmap(lambda b: inner(b, a), in_axes=1)(a))(x)
    (b, a), members = seen[0]
    assert members == (2, 4)
    np.testing.assert_array_equal(b.reshape(2, 4, 3), np.swapaxes(np.asarray(x), 1, 2))
    np.testing.assert_array_equal(a[0], np.asarray(x[0]))


@pytest.mark.parametrize("shared", [True, False])
def test_starts_that_break_the_constraint_are_refused_also_where_nobody_looked(shared):
    """Stacked by hand: `system.state` has not seen them."""
    system, state = placed(rx.SO3(), suslov, [1.0, 0.5, 0.0])
    states = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    states = rx.State(states.g, states.momentum.at[1, 2].set(0.4), states.t)
    systems = system if shared else [system, rx.systems.Suslov([1.1, 1.2, 0.9])]
    with pytest.raises(rx.BadInput, match=r"member 1: velocity = .* breaks the constraint"):
        rx.ensemble(systems, rx.LagrangeDAlembert(), states, h=0.01, steps=2)
    one = jax.tree.map(lambda x: x[1], states)
    with pytest.raises(rx.BadInput, match="breaks the constraint"):
        rx.simulate(system, rx.LagrangeDAlembert(), one, h=0.01, steps=2)


def test_points_at_which_a_field_makes_no_sense_are_refused_in_an_ensemble():
    with pytest.raises(rx.BadInput, match=r"member 1: x = .* is not a point of the Lotka-Volterra"):
        rx.ensemble(field, rx.Kahan(), [[1.0, 1.0], [1.0, -1.0]], h=0.01, steps=2)


def test_a_time_that_does_not_advance_is_refused(tmp_path):
    top, state = BODIES["HeavyTop"][0](1.0)
    late = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    late = rx.State(late.g, late.momentum, jnp.array([0.0, 1e18]))
    soon = top.state(ONE, velocity=[0.0, 0, 1], t=1000.0)
    with pytest.raises(rx.BadInput, match=r"h = -9e-14 s is lost in rounding"):
        rx.simulate(top, rx.LieVerlet(), soon, h=-9e-14, steps=8)  # its second step would stand
    with pytest.raises(rx.BadInput, match=r"member 1: h = 0.01 s is lost in rounding"):
        rx.ensemble(top, rx.LieVerlet(), late, h=0.01, steps=2)

    def make(t):
        return top, top.state(ONE, velocity=[0.0, 0, 1], t=t)

    with pytest.raises(rx.BadInput, match=r"member 1: h = 0.01 s is lost in rounding"):
        rx.sweep(
            make, rx.LieVerlet(), grid={"t": [0.0, 1e18]}, h=0.01, steps=2, store=tmp_path / "s"
        )
