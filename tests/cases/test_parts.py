"""Objects from names and numbers are those that Python makes; everything else is refused."""

import inspect
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.cases import default_integrator, describe, fitting, make_integrator, make_state
from retrax.cases import make_system as system_of
from retrax.cases.names import READY, SYSTEMS
from retrax.mechanics.system import AbstractGroupSystem
from retrax.systems.catalogue import CASES


def _same(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


def test_every_ready_system_has_a_name_or_is_made_of_functions():
    classes = {
        name
        for name, value in ((name, getattr(rx.systems, name)) for name in dir(rx.systems))
        if inspect.isclass(value) and issubclass(value, AbstractGroupSystem)
    }
    assert classes - set(SYSTEMS) == {"CubicHamiltonian"}


def test_systems_are_those_that_python_makes():
    made = system_of({"name": "HeavyTop", "inertia": [1.2, 1.6, 0.8], "mass": 2, "arm": [0, 0, 1]})
    _same(made, rx.systems.HeavyTop([1.2, 1.6, 0.8], 2.0, [0.0, 0.0, 1.0]))
    weight = {"name": "Weight", "moment": [0.8, -0.5, 0.0]}
    made = system_of({"name": "Suslov", "inertia": [1.0, 2.0, 2.5], "potential": weight})
    _same(made, rx.systems.Suslov([1.0, 2.0, 2.5], rx.systems.Weight([0.8, -0.5, 0.0])))


def test_a_body_on_a_product_with_a_constraint():
    made = system_of(
        {
            "name": "MechanicalSystem",
            "group": {"name": "Product", "groups": ["SO3", {"name": "Translation", "n": 2}]},
            "inertia": [1.0, 2.0, 2.5, 3.0, 3.0],
            "constraint": {
                "name": "Distribution",
                "rows": [[1, 0, 0, 0, 0], [0, 1, 0, 0.5, 0], [0, 0, 0, 0, 1]],
            },
        }
    )
    rows = ((1.0, 0, 0, 0, 0), (0, 1.0, 0, 0.5, 0), (0, 0, 0, 0, 1.0))
    by_hand = rx.MechanicalSystem(
        rx.Product(rx.SO3(), rx.Translation(2)),
        inertia=[1.0, 2.0, 2.5, 3.0, 3.0],
        constraint=rx.Distribution(rows),
    )
    assert made.group == by_hand.group
    _same(made.state(made.group.identity(), velocity=[1.0, 2, 0, 1, 3]),
          by_hand.state(made.group.identity(), velocity=[1.0, 2, 0, 1, 3]))  # fmt: skip


def _spinning(constraint):
    return system_of(
        {
            "name": "MechanicalSystem",
            "group": "SO3",
            "inertia": [1.0, 2.0, 2.5],
            "constraint": {"name": "VelocityConstraint", **constraint},
        }
    )


@pytest.mark.parametrize("constraint", [{"A": [[0.1, 0, 1]]}, {"A": [[0.1, 0, 1]], "c": [0.5]}])
def test_a_body_with_a_constraint_in_equations(constraint):
    made = _spinning(constraint)
    by_hand = rx.MechanicalSystem(
        rx.SO3(), [1.0, 2.0, 2.5], constraint=rx.VelocityConstraint(**constraint)
    )
    _same(made, by_hand)
    _same(system_of(describe(made)), made)
    state = make_state(made, {"velocity": [1.0, 0.2, 0.0], "project": True})
    driven = constraint.get("c", [0.0])[0]
    xi = made.velocity_at(state)
    assert float(0.1 * xi[0] + xi[2]) == pytest.approx(driven, abs=1e-15)


@pytest.mark.parametrize(
    "constraint, sentence",
    [
        ({}, "VelocityConstraint needs the parameter 'A'"),
        ({"A": "R[2]"}, r"constraint: A = 'R\[2\]' must be a list of numbers: a run file holds"),
        ({"A": [[0, 0, 1]], "c": 0.5}, "c = 0.5 must be a list of numbers"),
        ({"A": [[0, 0, 1]], "c": [1, 2]}, r"c has shape \(2,\)"),
        ({"A": [[0, 0, 1], [0, 0, 2]]}, "has dependent rows"),
        ({"A": [[0, 1]]}, r"A\(g\) has shape \(1, 2\)"),
        ({"A": [[0, 0, "x"]]}, r"A = .* must be an array of real numbers"),
        ({"A": [[0, 0, 1]], "b": [1]}, "VelocityConstraint has no parameter 'b'"),
    ],
)
def test_constraints_that_are_no_data_are_refused(constraint, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        _spinning(constraint)


def test_integrators_are_those_that_python_makes():
    assert make_integrator("lie-verlet") == rx.LieVerlet()
    assert make_integrator({"name": "LieVerlet", "retraction": "Exp"}) == rx.LieVerlet(rx.Exp())
    cardan = {"name": "LieVerlet", "retraction": {"name": "SecondKind", "axes": [2, 0, 1]}}
    assert make_integrator(cardan) == rx.LieVerlet(rx.SecondKind([2, 0, 1]))
    composed = {"name": "Composition", "base": "lie-verlet-exp", "order": 6}
    assert make_integrator(composed) == rx.Composition(rx.LieVerlet(rx.Exp()), order=6)
    staged = {"name": "Collocation", "nodes": {"name": "radau", "s": 3}, "centred": True}
    assert make_integrator(staged) == rx.Collocation(rx.radau(3), centred=True)


def test_states_are_those_that_python_makes():
    top, start = CASES["heavy-top"].make()[:2]
    _same(make_state(top, {"exp": [1.0, 0, 0], "velocity": [0.6, 0.2, 8.0]}), start)
    rest = make_state(top, {})
    _same(rest, top.state(jnp.eye(3), velocity=[0.0, 0.0, 0.0]))
    sleigh = rx.systems.ChaplyginSleigh(mass=1.5, inertia=0.8, arm=0.6)
    given = {"velocity": [1.25, -0.6, 0.3], "project": True, "t": 2}
    by_hand = sleigh.state((jnp.eye(2), jnp.zeros(2)), velocity=[1.25, -0.6, 0.3], project=True)
    assert make_state(sleigh, given).t == 2.0
    np.testing.assert_array_equal(make_state(sleigh, given).momentum, by_hand.momentum)
    prey = rx.systems.LotkaVolterra.predator_prey()
    _same(make_state(prey, {"x": [2.0, 1.0]}), prey.at([2.0, 1.0]))


@pytest.mark.parametrize("name", READY)
def test_integrators_are_described_without_loss(name):
    described = json.loads(json.dumps(describe(READY[name])))
    assert make_integrator(described) == READY[name]


def test_systems_are_described_without_loss():
    for name in ("heavy-top", "suslov", "kharlamova", "turntable", "euler-top", "predator-prey"):
        system = CASES[name].make()[0]
        _same(system_of(json.loads(json.dumps(describe(system)))), system)


def test_what_no_table_says_has_no_description():
    assert describe(rx.MechanicalSystem(rx.SO3(), [1.0, 2.0, 2.5], lambda R: R[2, 2])) is None
    assert describe(CASES["henon-heiles"].make()[0]) is None


def test_each_kind_of_system_has_its_usual_integrator():
    for name in ("heavy-top", "suslov", "gyrostat", "kuramoto"):
        system = CASES[name].make()[0]
        assert default_integrator(system) == CASES[name].integrator
        assert CASES[name].integrator in fitting(system)
    assert "kahan" not in fitting(CASES["heavy-top"].make()[0])


BODY = {"name": "FreeRigidBody", "inertia": [1.0, 2.0, 2.5]}


@pytest.mark.parametrize(
    ("make", "given", "says"),
    [
        (system_of, {**BODY, "inertai": 1}, "FreeRigidBody has no parameter 'inertai': it has "
         "inertia, physical. Did you mean 'inertia'?"),
        (system_of, {"name": "freerigidbody"}, "Did you mean 'FreeRigidBody'?"),
        (system_of, {"name": "FreeRigidBody"}, "needs the parameter 'inertia'"),
        (system_of, {**BODY, "physical": "yes"}, "physical = 'yes' must be true or false"),
        (system_of, {**BODY, "inertia": "big"}, "inertia = 'big' must be an array of real numbers"),
        (system_of, {**BODY, "inertia": [1, 1, 5]}, "is not that of a rigid body"),
        (system_of, {"inertia": [1, 2, 3]}, "system needs the key 'name'"),
        (system_of, {"name": 3}, "system needs the key 'name', a text"),
        (system_of, {"name": "Toda", "n": 2.5}, "n = 2.5 must be a whole number"),
        (system_of, {"name": "clebsch", "a": [1, 2, 3], "rho": True, "sigma": 1},
         "rho = True must be a number"),
        (system_of, {"name": "Rod", "elements": 5, "length": 1, "stretching": 1, "bending": 1,
                     "mass": 1, "inertia": 1, "ends": 3}, "ends = 3 must be two words"),
        (system_of, {"name": "Suslov", "inertia": [1, 2, 2.5], "potential": {"name": "Weight"}},
         "potential: Weight needs the parameter 'moment'"),
        (system_of, {"name": "Suslov", "inertia": [1, 2, 2.5], "potential": "weight"},
         "potential = 'weight' is not known. Did you mean 'Weight'?"),
        (system_of, {"name": "MechanicalSystem", "group": "SO33", "inertia": [1, 2, 2.5]},
         "group = 'SO33' is not known. Did you mean 'SO3'?"),
        (system_of, {"name": "MechanicalSystem", "group": {"name": "Product", "groups": 2},
                     "inertia": [1]}, "group: groups = 2 must be a list of groups"),
        (make_integrator, "lie-verlett", "Did you mean 'lie-verlet'?"),
        (make_integrator, 3, "integrator = 3 must be a name, or a table"),
        (make_integrator, {"name": "composition-4", "order": 6}, "'composition-4' takes no "
         "parameters, but has order: it stands for Composition(LieVerlet(), order=4)"),
        (make_integrator, {"name": "Composition", "base": "LieVerlet", "order": 5}, "order = 5"),
        (make_integrator, {"name": "Kahan", "s": 1},
         "Kahan has no parameter 's': it has no parameters"),
    ],
)  # fmt: skip
def test_wrong_descriptions_are_refused_in_a_sentence(make, given, says):
    with pytest.raises(rx.BadInput) as refused:
        make(given)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"velocty": [1, 2, 3]}, "the start of the free rigid body has no key 'velocty'"),
        ({"velocty": [1, 2, 3]}, "Did you mean 'velocity'?"),
        ({"velocity": [1, 2]}, "velocity has shape (2,)"),
        ({"velocity": [1, 2, 3], "momentum": [1, 2, 3]}, "exactly one of"),
        ({"g": "identity", "exp": [1, 0, 0]}, "g and exp both say where the system starts"),
        ({"g": "hanging"}, "g = 'hanging' is not known. The choices are identity."),
        ({"g": [[2, 0, 0], [0, 1, 0], [0, 0, 1]]}, "g is not a rotation"),
        ({"exp": [1, 0]}, "exp has shape (2,)"),
        ({"project": 1}, "project = 1 must be true or false"),
        ({"t": "now"}, "t = 'now' must be a number"),
    ],
)
def test_wrong_starts_are_refused_in_a_sentence(given, says):
    with pytest.raises(rx.BadInput) as refused:
        make_state(system_of(BODY), given)
    assert says in str(refused.value)


def test_fields_say_what_they_start_from():
    prey = rx.systems.LotkaVolterra.predator_prey()
    with pytest.raises(rx.BadInput, match="needs 'x' to start from"):
        make_state(prey, {})
    with pytest.raises(rx.BadInput, match="has no key 'y'"):
        make_state(prey, {"y": [1.0, 1.0]})


def test_rods_are_made_of_their_material_and_laid_across():
    rod = {"name": "Rod.from_material", "elements": 20, "length": 2.0, "young": 127.3,
           "poisson": 0.5, "density": 127.3, "radius": 0.05}  # fmt: skip
    held = rod | {"ends": ["clamped", "clamped"]}
    described = {"name": "RodsInContact", "radius": 0.05, "width": 0.1, "friction": 5.0,
                 "first": held, "second": held | {"gravity": [0, 0, -0.1]}}  # fmt: skip
    pair = system_of(described)
    by_hand = rx.systems.Rod.from_material(
        20, 2.0, young=127.3, poisson=0.5, density=127.3, radius=0.05, ends=("clamped", "clamped")
    )
    _same(pair.first, by_hand)
    start = make_state(pair, {"g": {"name": "crossed", "angle": 70.0, "meet": [0.9, 1.15]}})
    assert float(pair.gap(start.g)) == pytest.approx(0.1, abs=1e-15)
    assert make_state(pair, {"g": "crossed"}).g[2].tolist() == [1.0, 1.0]
    force = pair.contact_force(start.g, jax.jit(lambda p, s: p.multipliers(s))(pair, start))
    assert float(force["pressure"]) > 0
    with pytest.raises(rx.BadInput, match="crossed has no parameter 'corner'"):
        make_state(pair, {"g": {"name": "crossed", "corner": 1.0}})


def test_contacts_are_made_of_shapes():
    ball = {"name": "Ball", "radius": 0.1, "body": 0}
    described = {"name": "MechanicalSystem", "inertia": [0.1, 0.1, 0.1, 2.0, 2.0, 2.0],
                 "group": {"name": "Product", "groups": ["SO3", {"name": "Translation", "n": 3}]},
                 "contact": {"name": "Contacts", "pairs": [[ball, "Plane"]]}}  # fmt: skip
    body = system_of(described)
    assert body.contact.names == ("ball on plane",)
    assert default_integrator(body) == "nonsmooth-rattle"
    rod = {"name": "Rod.from_material", "elements": 6, "length": 0.3, "young": 1e6, "poisson": 0.5,
           "density": 1e3, "radius": 0.01}  # fmt: skip
    touching = {"name": "SelfContact", "radius": 0.01, "against": ["Plane", ball | {"body": None}]}
    (floor, post) = system_of(rod | {"contact": touching}).contact.against
    assert isinstance(floor, rx.Plane) and float(post.radius) == 0.1
    both = system_of({"name": "Rods", "rods": [rod, rod | {"elements": 4}], "contact": touching})
    assert both.sizes == (7, 5) and default_integrator(both) == "nonsmooth-rattle"
    with pytest.raises(rx.BadInput, match=r"contact: .*'Bal' is not known. Did you mean 'Ball'"):
        system_of(rod | {"contact": touching | {"against": [{"name": "Bal"}]}})


def test_contacts_without_momentum_are_offered_no_step_that_solves_for_it():
    for name in ("rods-in-contact", "strings-in-contact"):
        offered = fitting(CASES[name].make()[0])
        assert not [one for one in offered if one.startswith("lagrange-d-alembert")]
        assert "rkmk-4" in offered
    with pytest.raises(rx.BadInput, match=r"points of contact .* have no momentum"):
        rx.LagrangeDAlembert(rx.Exp()).check(CASES["strings-in-contact"].make()[0])
