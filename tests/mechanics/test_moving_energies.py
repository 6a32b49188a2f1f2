"""Energies that depend on time: order and structure of every method, against SciPy's DOP853."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import retrax as rx
from retrax.analysis import symplecticity

# A body of unequal moments on a pivot that goes along a closed curve in space.
J = np.array([[1.2, 0.1, -0.05], [0.1, 2.0, 0.2], [-0.05, 0.2, 2.6]])
MASS, ARM, WEIGHT = 1.3, np.array([0.2, -0.1, 0.7]), 9.81
T0, SPAN = 0.2, 1.0
R0 = np.asarray(rx.SO3().exp(jnp.array([0.3, 0.9, -0.4])))
W0 = np.array([0.5, -0.8, 1.1])


def pivot(t):
    return jnp.stack([0.3 * jnp.sin(3.1 * t), 0.2 * jnp.cos(1.7 * t), 0.1 * jnp.sin(2 * t + 0.4)])


def pivot_velocity(t):
    return jax.jvp(pivot, (t,), (jnp.ones_like(t),))[1]


def lagrangian(R, w, t):
    v = pivot_velocity(t)
    kinetic = w @ jnp.asarray(J) @ w / 2 + MASS * v @ (R @ jnp.cross(w, ARM)) + MASS * v @ v / 2
    return kinetic - MASS * WEIGHT * (pivot(t)[2] + R[2] @ ARM)


def hamiltonian(R, mu, t):
    v = pivot_velocity(t)
    p = mu - MASS * jnp.cross(ARM, R.T @ v)
    height = pivot(t)[2] + R[2] @ ARM
    return p @ jnp.linalg.inv(J) @ p / 2 - MASS * v @ v / 2 + MASS * WEIGHT * height


def potential(R, t):
    """The same body seen from its pivot, where inertia is a weight that turns about."""
    pull = jax.jvp(pivot_velocity, (t,), (jnp.ones_like(t),))[1]
    return MASS * (R @ ARM) @ (jnp.array([0.0, 0.0, WEIGHT]) + pull)


def pivot_acceleration(t):
    return np.array(
        [
            -0.3 * 3.1**2 * np.sin(3.1 * t),
            -0.2 * 1.7**2 * np.cos(1.7 * t),
            -0.4 * np.sin(2 * t + 0.4),
        ]
    )


@pytest.fixture(scope="module")
def reference():
    """Newton's and Euler's equations in NumPy."""

    def field(t, y):
        R, w = y[:9].reshape(3, 3), y[9:]
        turn = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        pull = -MASS * (np.array([0.0, 0.0, WEIGHT]) + pivot_acceleration(t))
        torque = np.cross(J @ w, w) + np.cross(ARM, R.T @ pull)
        return np.concatenate([(R @ turn).ravel(), np.linalg.solve(J, torque)])

    start = np.concatenate([R0.ravel(), W0])
    found = solve_ivp(field, (T0, T0 + SPAN), start, rtol=1e-13, atol=1e-14, method="DOP853")
    return found.y[:, -1]


SYSTEMS = {
    "lagrangian": lambda: rx.LagrangianSystem(rx.SO3(), lagrangian),
    "hamiltonian": lambda: rx.HamiltonianSystem(rx.SO3(), hamiltonian),
    "potential": lambda: rx.MechanicalSystem(rx.SO3(), J, potential),
}
ANY = [
    rx.LieVerlet(),
    rx.CotangentLift(),
    rx.CotangentLift(s=0.2),
    rx.TangentLift(),
    rx.LagrangeDAlembert(),
    rx.RKMK("rk4"),
    rx.RungeKutta("rk4"),
    rx.Collocation(rx.gauss(2)),
    rx.Collocation(rx.gauss(2), form="spatial"),
    rx.PlainCollocation(rx.gauss(2)),
    rx.GalerkinVariational(rx.gauss(2)),
    rx.Composition(rx.LieVerlet(), order=4),
    rx.Taylor(6),
    rx.Magnus(4),
]
VARIATIONAL = [rx.LieVerlet(), rx.CotangentLift(), rx.GalerkinVariational(rx.gauss(2))]
OF_ONE_INERTIA = [rx.DiscreteGradient(), rx.AdaptedLift(), rx.ProjectedLift()]


def start_of(system):
    return system.state(R0, velocity=W0, t=T0)


def error(system, integrator, steps, reference):
    run = rx.simulate(
        system, integrator, start_of(system), h=SPAN / steps, steps=steps, save_every=steps
    )
    assert run.provenance["backend"] == "native"
    return np.max(np.abs(np.concatenate([run.g[-1].ravel(), run.velocity[-1]]) - reference))


@pytest.mark.parametrize("kind", SYSTEMS)
@pytest.mark.parametrize("integrator", [*ANY, *OF_ONE_INERTIA], ids=repr)
def test_methods_keep_their_order(kind, integrator, reference):
    system = SYSTEMS[kind]()
    if integrator in OF_ONE_INERTIA and kind != "potential":
        with pytest.raises(rx.BadInput, match="inertia"):
            error(system, integrator, 20, reference)
        return
    coarse, fine = (error(system, integrator, n, reference) for n in (40, 80))
    assert fine < {1: 0.05, 2: 2e-3, 4: 2e-7, 6: 1e-10}[integrator.order]
    assert abs(np.log2(coarse / fine) - integrator.order) < 0.1


@pytest.mark.parametrize("kind", SYSTEMS)
def test_a_moving_system_is_what_its_energy_says(kind):
    rx.testing.check_system(SYSTEMS[kind]())


@pytest.mark.parametrize("integrator", VARIATIONAL, ids=repr)
@pytest.mark.parametrize("kind", ["lagrangian", "hamiltonian"])
def test_variational_steps_stay_symplectic(kind, integrator):
    system = SYSTEMS[kind]()
    assert symplecticity(system, integrator, start_of(system), h=0.05) < 1e-13


def lifted(R, w, t):
    """A pivot that goes up and down: turning the body about the vertical is a symmetry."""
    v = jnp.array([0.0, 0.0, 0.9 * jnp.cos(3 * t)])
    kinetic = w @ jnp.asarray(J) @ w / 2 + MASS * v @ (R @ jnp.cross(w, ARM))
    return kinetic - MASS * WEIGHT * (R[2] @ ARM)


@pytest.mark.parametrize(
    "integrator",
    [rx.LieVerlet(), rx.CotangentLift(), rx.GalerkinVariational(rx.gauss(2))],
    ids=repr,
)
def test_symmetries_are_found_and_their_momenta_kept(integrator):
    system = rx.LagrangianSystem(rx.SO3(), lifted)
    run = rx.simulate(system, integrator, start_of(system), h=0.01, steps=1000)
    (name,) = run.invariants()
    values = run.invariants()[name]
    assert name == "spatial momentum e3" and np.ptp(run.energy()) > 1
    assert np.max(np.abs(values - values[0])) < 1e-13


@pytest.mark.parametrize("kind", SYSTEMS)
def test_the_work_of_a_moving_energy_is_counted(kind):
    system = SYSTEMS[kind]()
    run = rx.simulate(system, rx.Taylor(12), start_of(system), h=2e-3, steps=500)
    balance = run.energy_balance()
    assert "energy" not in run.invariants() and abs(balance.change[-1]) > 0.5
    assert np.max(np.abs(balance.difference)) < 1e-9  # 1.0e-10, of the quadrature


@pytest.mark.parametrize("kind", SYSTEMS)
def test_back_ends_and_ensembles_agree(kind):
    system = SYSTEMS[kind]()
    start = start_of(system)
    native, xla = (
        rx.simulate(system, "lie-verlet", start, h=0.01, steps=100, backend=backend).final
        for backend in ("native", "xla")
    )
    states = jax.tree.map(lambda x: jnp.stack([x] * 4), start)
    many = rx.ensemble(system, "lie-verlet", states, h=0.01, steps=100)
    assert np.max(np.abs(native.g - xla.g)) < 1e-12
    assert np.max(np.abs(native.g - many["g"].values[-1, 1])) < 1e-12


def test_forces_and_potentials_move_together():
    """A force beside a moving potential, and the same force written into the potential."""
    pull = jnp.array([0.4, 0.0, -0.2])

    def torque(R, w, t):
        return -jnp.sin(t) * jnp.cross(ARM, R.T @ pull)

    both = rx.MechanicalSystem(rx.SO3(), J, potential, force=torque)
    one = rx.MechanicalSystem(
        rx.SO3(), J, lambda R, t: potential(R, t) + jnp.sin(t) * (R @ ARM) @ pull
    )
    ends = [rx.simulate(x, "lie-verlet", start_of(x), h=0.01, steps=100).final for x in (both, one)]
    assert np.max(np.abs(ends[0].g - ends[1].g)) < 1e-13


def test_constraints_on_moving_systems_hold():
    """A knife edge under a kinetic energy that moves: the reaction knows the moving velocity."""
    rows = rx.VelocityConstraint(lambda R: (R.T @ jnp.array([0.0, 0.6, 0.8]))[None])
    system = rx.LagrangianSystem(rx.SO3(), lagrangian, constraint=rows)
    start = system.state(R0, velocity=W0, t=T0, project=True)
    fine = rx.simulate(system, rx.RKMK("rk4"), start, h=SPAN / 1000, steps=1000)
    assert np.max(fine.constraint_violation()) < 1e-9
    step = rx.LagrangeDAlembert()
    errors = []
    for n in (50, 100):
        run = rx.simulate(system, step, start, h=SPAN / n, steps=n)
        assert np.max(run.constraint_violation()) < 1e-13
        errors.append(np.max(np.abs(run.final.g - fine.final.g)))
    assert abs(np.log2(errors[0] / errors[1]) - 2) < 0.1


def test_files_keep_a_moving_run(tmp_path):
    system = SYSTEMS["potential"]()
    run = rx.simulate(system, "lie-verlet", start_of(system), h=0.01, steps=50)
    again = rx.load(run.save(tmp_path / "run.nc"))
    assert np.array_equal(again.g, run.g) and np.array_equal(again.energy(), run.energy())
    assert np.array_equal(again.energy_balance().work, run.energy_balance().work)


def test_a_checkpoint_of_a_moving_run_is_resumed(tmp_path):
    system, path = SYSTEMS["lagrangian"](), tmp_path / "run.zarr"
    whole = rx.simulate(system, "lie-verlet", start_of(system), h=0.01, steps=60)
    with pytest.warns(UserWarning, match="keeps data, not code"):
        rx.simulate(system, "lie-verlet", start_of(system), h=0.01, steps=40, checkpoint=path)
    again = rx.resume(path, 60, system=system)
    assert np.array_equal(again.g, whole.g) and np.array_equal(again.momentum, whole.momentum)


def test_gradients_in_numbers_of_a_moving_energy():
    def swing(depth):
        def own(depth, R, t):
            return (1 + depth * jnp.sin(3 * t)) * MASS * WEIGHT * (R[2] @ ARM)

        system = rx.MechanicalSystem(rx.SO3(), J, jax.tree_util.Partial(own, depth))
        return rx.simulate(system, "lie-verlet", start_of(system), h=0.01, steps=50).final.g[0, 1]

    slope = jax.grad(swing)(0.3)
    assert abs(slope - (swing(0.3 + 1e-6) - swing(0.3 - 1e-6)) / 2e-6) < 1e-8


def test_what_is_asked_without_a_time_is_a_sentence():
    system = SYSTEMS["lagrangian"]()
    with pytest.raises(rx.BadInput, match="at_time"):
        system.momentum(jnp.asarray(R0), jnp.asarray(W0))
    now = system.at_time(jnp.asarray(T0))
    assert np.allclose(
        now.velocity(jnp.asarray(R0), now.momentum(jnp.asarray(R0), jnp.asarray(W0))), W0
    )
    with pytest.raises(rx.BadInput, match=r"potential\(g\) or potential\(g, t\)"):
        rx.MechanicalSystem(rx.SO3(), J, lambda R, t, x: x)
    with pytest.raises(rx.BadInput, match=r"lagrangian\(g, xi, t\)"):
        rx.LagrangianSystem(rx.SO3(), lambda R, w, t, x: x)


def test_an_argument_with_a_default_is_no_time_unless_it_is_called_so():
    still = rx.MechanicalSystem(rx.SO3(), J, lambda R, m=2.0: m * R[2, 2])
    timed = rx.MechanicalSystem(rx.SO3(), J, lambda R, t=0.0: (1 + t) * R[2, 2])
    assert not still.moving and timed.moving
