"""Problems that are none: each is told in a sentence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from craft import rest_to_rest, spacecraft, turned

import retrax as rx
from retrax.planning.explore import look_steps
from retrax.systems.driven_examples import paper_crane

BAD = {
    "duration zero": ({"duration": 0.0}, "duration = 0.0"),
    "duration NaN": ({"duration": float("nan")}, "duration = nan"),
    "no steps": ({"steps": 0}, "steps = 0"),
    "half a step": ({"steps": 2.5}, "steps = 2.5"),
    "crossed bounds": ({"bounds": (1.0, -1.0)}, "bounds of input 0 leave it no room"),
    "equal bounds": ({"bounds": (1.0, 1.0)}, "the bounds of every input are equal"),
    "too many bounds": ({"bounds": (-1.0, [1.0, 2.0])}, "one for each of the 3 inputs"),
    "bounds alone": ({"bounds": 1.0}, "must be a pair"),
    "off the group": ({"end": rx.Reach(2 * jnp.eye(3))}, "pose is not a rotation"),
    "short velocity": ({"end": rx.Reach(jnp.eye(3), velocity=[0.0])}, "velocity of the end"),
    "no end": ({"end": 3.0}, "neither a Reach"),
    "end of text": ({"end": lambda g, mu: jnp.zeros(0)}, "from 1 to 6 real numbers"),
    "long end": ({"end": lambda g, mu: jnp.zeros(7)}, "from 1 to 6 real numbers"),
    "vector cost": ({"cost": lambda g, xi, u, t: u}, "cost returns"),
    "cost of two": ({"cost": lambda g, xi: 1.0}, "cost cannot be evaluated"),
    "final cost": ({"final_cost": lambda g, mu: mu}, "final_cost returns"),
    "path of whole numbers": ({"path": lambda g, xi, u: 1}, "path returns"),
    "start": ({"start": jnp.eye(3)}, "not a State"),
    "guess": ({"guess": 3}, "guess = 3 is not a Plan"),
    "weights": (
        {"cost": rx.MinimumEffort([1.0, 2.0])},
        r"shape \(2,\), and the plant has 3 inputs",
    ),
    "steps": ({"steps": 1}, "the end has 6 equations, and 1 x 3 inputs .* give 2 steps or more"),
    "time of a fixed duration": ({"cost": rx.MinimumTime()}, r"MinimumTime\(\) is 1.5 s for every"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_a_sentence(name):
    changed, sentence = BAD[name]
    with pytest.raises(rx.BadInput, match=sentence):
        rest_to_rest(spacecraft(), (0.1, 0.0, 0.0), **changed)


def test_a_cost_without_a_gradient_is_told():
    def falling(g, xi, u, t):
        return jax.lax.while_loop(lambda x: x > 1.0, lambda x: x / 2, u @ u)

    with pytest.raises(rx.BadInput, match="a derivative that is needed here does not exist"):
        rx.optimise(rest_to_rest(spacecraft(), (0.1, 0.0, 0.0), cost=falling))


def test_parts_that_are_none():
    plant = spacecraft()
    start = plant.state(jnp.eye(3), velocity=jnp.zeros(3))
    options = {"start": start, "end": None, "duration": 1.0, "steps": 3, "cost": rx.MinimumEffort()}
    with pytest.raises(rx.BadInput, match="a plant"):
        rx.ControlProblem(plant.system, rx.LieVerlet(), **options)
    with pytest.raises(rx.BadInput, match="not a ControlProblem"):
        rx.optimise(plant)
    with pytest.raises(rx.BadInput, match="tries = 0"):
        rx.optimise(rx.ControlProblem(plant, rx.LieVerlet(), **options), tries=0)
    flat = rx.MechanicalSystem(rx.SE2(), [1.0, 1.0, 1.0], lambda g: 0.0)
    other = flat.state(rx.SE2().identity(), velocity=jnp.zeros(3))
    with pytest.raises(rx.BadInput):
        rx.ControlProblem(plant, rx.LieVerlet(), **options | {"start": other})


def test_bounds_beyond_those_of_the_plant():
    plant = rx.Actuated(spacecraft().system, inputs=jnp.eye(3), bounds=(-2.0, 2.0))
    with pytest.raises(rx.BadInput, match="saturates"):
        rest_to_rest(plant, (0.1, 0.0, 0.0), bounds=(-3.0, 2.0))
    own = rest_to_rest(plant, (0.1, 0.0, 0.0))
    assert np.array_equal(own.upper, np.full(3, 2.0))


def test_durations_and_ends_that_are_none():
    with pytest.raises(rx.BadInput, match="cross"):
        rx.Free(1.0, lower=3.0, upper=2.0)
    with pytest.raises(rx.BadInput, match="not between its bounds"):
        rx.Free(1.0, lower=2.0)
    with pytest.raises(rx.BadInput, match="guess of a free duration"):
        rx.Free(0.0)
    with pytest.raises(rx.BadInput, match="exactly one"):
        rx.Reach()
    with pytest.raises(rx.BadInput, match="exactly one"):
        rx.Reach(turned(0, 0, 0), axis=[0, 0, 1])
    with pytest.raises(rx.BadInput, match="no direction"):
        rx.Reach(axis=[0, 0, 0])
    with pytest.raises(rx.BadInput, match="weights"):
        rx.MinimumEffort([1.0, -1.0])


def test_an_end_out_of_reach_is_no_plan():
    problem = rest_to_rest(spacecraft(), (0.7, 1.1, -0.8), duration=1.0, bounds=(-1.0, 1.0))
    with pytest.raises(rx.NoPlan, match="the nearest to the end that was found in 1 s") as told:
        rx.optimise(problem)
    assert told.value.plan.status == "not converged"
    assert told.value.plan.controls.shape == (40, 3)


def test_too_few_iterations_are_no_plan():
    with pytest.raises(rx.NoPlan, match="after 1 iteration "):
        rx.optimise(rest_to_rest(spacecraft(), (0.7, 1.1, -0.8)), iterations=1)


def test_steps_that_no_plant_can_take():
    plant = paper_crane(elements=4)
    there, n = plant.hanging([0.8, 0.2]), plant.group.dim
    options = {
        "start": plant.hanging(),
        "end": rx.Reach(there.g, velocity=np.zeros(n)),
        "duration": 1.5,
        "cost": rx.MinimumEffort(),
        "bounds": (-5.0, 5.0),
    }
    with pytest.raises(rx.BadInput, match="is unstable on this crane"):
        rx.ControlProblem(plant, rx.LieVerlet(), steps=10, **options)
    problem = rx.ControlProblem(plant, rx.LieVerlet(), steps=1500, **options)
    limit = plant.system.longest_stable_step()
    assert 1.5 / look_steps(problem) < limit < 1.5 / 32


def test_guesses_whose_steps_fail_are_left_out():
    """Coarse steps turn by more than their chart covers: told, and nothing else is raised."""
    plant = rx.Actuated(spacecraft().system, inputs=jnp.eye(3), bounds=(-9.0, 9.0))
    spin = jnp.array([0.0, 0.0, 120.0])
    problem = rest_to_rest(
        plant, (0.0, 0.0, 0.0), start=plant.state(jnp.eye(3), velocity=spin), duration=2.0
    )
    with pytest.raises(rx.NoPlan, match="misses it by 354"):  # of 372, by 9 N m for 2 s
        rx.optimise(problem)
