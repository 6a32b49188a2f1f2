"""Methods that keep constraints on positions: what they claim, measured where it is hard."""

import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.testing import measurements
from retrax.testing.held import HELD, held_problem
from retrax.testing.integrators import check_integrator, check_order

NAMES = [name for name, i in rx.INTEGRATORS.items() if "positions" in i.preserves]
CLAIMS_ON, *ORDERS_ON = HELD


def test_the_methods_are_verlet_and_its_compositions():
    expected = ["lie-verlet", "lie-verlet-exp", "composition-4", "composition-6", "composition-8"]
    assert expected == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_claims_on_a_body_that_is_held_twice(name):
    check_integrator(rx.INTEGRATORS[name], held_problem(CLAIMS_ON))


@pytest.mark.parametrize("title", ORDERS_ON)
@pytest.mark.parametrize("name", NAMES)
def test_order_with_forces_a_clock_and_what_rolls(name, title):
    check_order(rx.INTEGRATORS[name], held_problem(title))


@pytest.mark.parametrize("title", ORDERS_ON)
def test_positions_and_velocities_hold_on_every_problem(title):
    kept = measurements.constraint_errors(rx.LieVerlet(), held_problem(title))
    assert kept.constraint < 5e-14  # measured: 8.5e-15, of an inertia of full matrix, and 1.6e-16


class Boastful(rx.RKMK):
    """A method that drifts, and claims not to."""

    def __init__(self, words):
        super().__init__("rk4")
        self.preserves = frozenset(words)


def test_a_claim_that_does_not_hold_is_found_out():
    with pytest.raises(rx.CheckFailed, match="constraint on positions: the defect is"):
        check_integrator(Boastful({"positions"}))


def test_the_measurements_under_constraints_can_fail():
    """RKMK drifts off the sphere, and is neither symplectic there nor symmetric."""
    problem, method = held_problem(), Boastful({"positions"})
    assert measurements.constraint_errors(method, problem).constraint > 1e-6
    assert measurements.symplectic_defect(method, problem) > 1e-6
    assert measurements.symmetry_defect(method, problem) > 1e-8


def test_without_an_asymmetric_retraction_the_order_is_one():
    problem = held_problem()
    method = rx.LieVerlet(rx.SecondKind())
    assert method.order == 1
    check_integrator(method, problem)


def test_other_kinds_of_inertia_and_energy_give_the_same_motion():
    """A constant inertia as numbers, as a function, in a Lagrangian and in a Hamiltonian."""
    inertia = jnp.array([[1.2, 0.2, -0.3], [0.2, 1.5, 0.25], [-0.3, 0.25, 2.0]])

    def weight(R):
        return R[2] @ jnp.array([0.4, -0.3, 1.1])

    def phi(R):
        return R[0, 1] - 0.2 * R[2, 0] ** 2 - 0.3

    held = rx.Holonomic(phi)
    systems = [
        rx.MechanicalSystem(rx.SO3(), inertia, weight, constraint=held),
        rx.MechanicalSystem(rx.SO3(), lambda R: inertia, weight, constraint=held),
        rx.LagrangianSystem(
            rx.SO3(), lambda R, w: w @ inertia @ w / 2 - weight(R), constraint=held
        ),
        rx.HamiltonianSystem(
            rx.SO3(),
            lambda R, m: m @ jnp.linalg.solve(inertia, m) / 2 + weight(R),
            constraint=held,
        ),
    ]
    start = systems[0].assembled(rx.SO3().exp(jnp.array([0.7, -0.4, 0.2])))
    ends = []
    for system in systems:
        state = system.state(start, velocity=[0.6, -0.5, 0.8], project=True)
        run = rx.simulate(system, rx.LieVerlet(), state, h=0.05, steps=100)
        assert run.constraint_violation().max() < 5e-15
        ends.append(np.asarray(run.g[-1]))
    assert max(np.abs(end - ends[0]).max() for end in ends) < 4e-14  # measured: 4e-15
