"""Systems and integrators as data: back to the bit, and no code in a file."""

import importlib
import json
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.mechanics.remembered import RememberedSystem
from retrax.show.page import page_data
from retrax.show.scene import plain
from retrax.store.objects import (
    _MOVED,
    FOLDERS,
    Factory,
    NeedsImport,
    Unstorable,
    _in_retrax,
    decode,
    encode,
    find_definitions,
)
from retrax.store.run_objects import encode_objects
from retrax.systems.catalogue import CASES
from retrax.systems.integrators import INTEGRATORS, TOUCHING
from retrax.trajectory.observe import observe

QUICK = ("free-rigid-body", "pendulum3d", "suslov-paper", "kharlamova", "euler-top", "turntable")

MODULE = """
import jax.numpy as jnp
import retrax as rx

print("imported")


@rx.factory
def spring_body(stiffness, *, inertia):
    def potential(g):
        return stiffness * (g[0, 2] + g[1, 1] ** 2)

    body = rx.MechanicalSystem(rx.SO3(), inertia, potential)
    return body, body.state(jnp.eye(3), velocity=[0.3, -0.4, 0.9])


def unmarked(stiffness, *, inertia):
    raise AssertionError("this was called")
"""


def through_json(value):
    return decode(json.loads(json.dumps(encode(value, "value"), allow_nan=False)), None)


def same(one, other):
    leaves, tree = jax.tree.flatten(one)
    others, other_tree = jax.tree.flatten(other)
    assert tree == other_tree
    for a, b in zip(leaves, others, strict=True):
        assert type(a) is type(b) and a.dtype == b.dtype and np.array_equal(a, b)


@pytest.mark.parametrize("name", INTEGRATORS | TOUCHING)
def test_integrators_come_back(name):
    integrator = (INTEGRATORS | TOUCHING)[name]
    same(through_json(integrator), integrator)
    assert repr(through_json(integrator)) == repr(integrator)


@pytest.mark.parametrize("name", QUICK)
def test_systems_come_back(name):
    system, state, *_ = CASES[name].make()
    same(through_json(system), system)
    same(through_json(state), state)


def test_groups_spaces_nodes_and_odd_numbers_come_back():
    basis = np.array([[[0.0, -1.0], [1.0, 0.0]]])
    for value in (
        rx.Product(rx.SO3(), rx.Power(rx.SE3(), 3), rx.Translation(2), rx.MatrixGroup(basis)),
        (rx.Sphere(3), rx.Stiefel(4, 2), rx.Isospectral(3)),
        rx.Adaptive(rx.RKMK("dopri5"), 1e-8),
        rx.Collocation(rx.gauss(3)),
    ):
        same(through_json(value), value)
    odd = (
        float("inf"),
        -0.0,
        5e-324,
        2**80,
        True,
        None,
        "text",
        frozenset({"a", "b"}),
        [1, {2: 3}],
    )
    assert repr(through_json(odd)) == repr(odd)
    assert np.isnan(through_json((float("nan"),))[0])


def test_classes_are_named_by_folder_wherever_their_module_lies():
    assert encode(rx.SO3(), "group") == {"class": "groups:SO3", "fields": {}}
    assert decode({"class": "groups:SO3", "fields": {}}, None) == rx.SO3()
    with pytest.raises(rx.BadInput, match="not one of retrax's values"):
        decode({"class": "retrax.groups.so3:SO3", "fields": {}}, None)


@pytest.mark.parametrize("reference", _MOVED)
def test_files_name_classes_by_the_folder_they_once_were_in(reference):
    name = reference.split(":")[1]
    now = f"{_MOVED[reference]}:{name}"
    assert _in_retrax(reference) is _in_retrax(now)
    if reference.startswith("integrators:"):
        written = encode(getattr(rx, name)(), "integrator")
        assert written["class"] == now
        assert decode(written | {"class": reference}, None) == getattr(rx, name)()


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_of_what_a_file_can_hold_are_unique(folder):
    """A file names them by folder and name: two of one name could not be told apart."""

    def held(value):
        return isinstance(value, type) and issubclass(value, eqx.Module)

    names = find_definitions(folder).items()
    assert [name for name, found in names if len(found) > 1 and any(map(held, found))] == []


def test_a_name_that_is_given_twice_is_not_stored(monkeypatch):
    known = {"SO3": (rx.SO3, rx.SO3)}
    monkeypatch.setattr("retrax.store.objects.find_definitions", lambda folder: known)
    with pytest.raises(Unstorable, match="a name that retrax gives twice"):
        encode(rx.SO3(), "group")
    with pytest.raises(rx.BadInput, match="which this retrax does not have in groups"):
        decode({"class": "groups:SO3", "fields": {}}, None)


def test_functions_of_the_user_are_named_and_not_stored():
    system = rx.MechanicalSystem(rx.SO3(), [1.0, 2.0, 2.5], lambda g: g[2, 2])
    with pytest.raises(Unstorable, match=r"system\.potential is the function .*<lambda>"):
        encode(system, "system")


def body_run(potential=None, **keywords):
    body = rx.MechanicalSystem(rx.SO3(), [1.0, 2.0, 2.5], potential)
    state = body.state(jnp.eye(3), velocity=[0.3, -0.4, 0.9])
    return rx.simulate(body, rx.LieVerlet(), state, h=0.1, steps=12, progress=False, **keywords)


@pytest.mark.parametrize("name", ["heavy-top", "suslov-paper", "euler-top", "turntable"])
def test_a_loaded_run_is_measured_drawn_and_continued_as_the_fresh_one(tmp_path, name):
    system, state, h, _ = CASES[name].make()
    method = INTEGRATORS[CASES[name].integrator]
    fresh = rx.simulate(system, method, state, h=h, steps=20, progress=False)
    run = rx.load(fresh.save(tmp_path / "run.nc"))
    same(run.system, system)
    same(run.integrator, method)
    assert run.summary() == fresh.summary() and run.invariants().keys() == fresh.invariants().keys()
    for found, wanted in ((run.velocity, fresh.velocity), (run.energy(), fresh.energy())):
        np.testing.assert_array_equal(found, wanted)
    again = observe(run.system, run.states, run.integrator, run.h)
    np.testing.assert_array_equal(again.velocity, fresh.velocity)
    texts = [json.dumps(page_data(one), default=plain) for one in (run, fresh)]
    assert texts[0] == texts[1]
    kept = page_data(run)["run"]
    same(decode(kept["system"], None), system)
    begun = jax.tree.map(jnp.asarray, (decode(kept["state"], None), state))
    same(*begun)
    assert kept["plan"] == {"h": h, "steps": 20, "save_every": 1}
    more = rx.simulate(run.system, run.integrator, run.final, h=run.h, steps=10, progress=False)
    whole = rx.simulate(system, method, state, h=h, steps=30, progress=False)
    np.testing.assert_allclose(more.momentum[-1], whole.momentum[-1], rtol=1e-12, atol=1e-12)


def test_a_file_of_a_lambda_keeps_what_was_measured_and_can_be_drawn(tmp_path):
    fresh = body_run(lambda g: 0.4 * g[2, 2])
    run = rx.load(fresh.save(tmp_path / "run.nc"))
    assert type(run.system) is RememberedSystem and repr(run.integrator) == "LieVerlet()"
    np.testing.assert_array_equal(run.energy(), fresh.energy())
    scenes = [json.dumps(page_data(one)["scene"], default=plain) for one in (run, fresh)]
    assert scenes[0] == scenes[1]
    for use in (
        lambda: rx.simulate(run.system, run.integrator, run.final, h=0.1, steps=3),
        lambda: run.along(run.system.energy),
        lambda: run.system.state(jnp.eye(3), velocity=[0.0, 0.0, 1.0]),
    ):
        with pytest.raises(rx.BadInput, match="give the system yourself"):
            use()
    assert rx.load(run.save(tmp_path / "again.nc")).system.functions == run.system.functions


def test_a_checkpoint_of_a_lambda_is_looked_at_without_it(tmp_path):
    inertia = np.array([[2.0, 0.3, -0.2], [0.3, 2.5, 0.1], [-0.2, 0.1, 3.0]])
    body = rx.MechanicalSystem(rx.SO3(), inertia, lambda R: -9.0 * R[2, 2] + R[0, 1])
    state = body.state(rx.SO3().exp(jnp.array([0.3, -0.7, 0.5])), velocity=[0.5, 0.2, 0.3])
    with pytest.warns(UserWarning, match="keeps data, not code"):
        run = rx.simulate(
            body,
            "lie-verlet",
            state,
            h=0.01,
            steps=40,
            save_every=5,
            checkpoint=tmp_path / "k.zarr",
        )
    again = rx.load(tmp_path / "k.zarr")
    assert np.max(np.abs(again.velocity - run.velocity)) < 5e-15  # measured 4e-16
    assert np.array_equal(again.group_defect(), run.group_defect())
    assert "Energy and invariants are not known" in again.summary()
    assert again.measures()["constraint_violation"] is None
    for ask in (again.invariants, again.energy, again.energy_balance, again.observables):
        with pytest.raises(rx.BadInput, match=r"is made of, but not its functions"):
            ask()
    again.plot(tmp_path / "k.png")
    again.report(tmp_path / "k.html")
    later = rx.load(again.save(tmp_path / "k.nc"))
    assert np.array_equal(later.velocity, again.velocity)
    with pytest.raises(rx.BadInput, match=r"potential = .*lambda.* rx\.resume\(path, system="):
        rx.simulate(later.system, later.integrator, later.final, h=0.01, steps=1)


def test_the_functions_inside_a_constraint_are_named():
    pushed = rx.VelocityConstraint(
        lambda g, t: jnp.stack([g[2]]), lambda g, t: jnp.array([0.1 * jnp.cos(t)])
    )
    body = rx.MechanicalSystem(rx.SO3(), [2.0, 2.5, 3.0], constraint=pushed)
    data, _ = encode_objects(body, rx.LieVerlet())
    names = [name for name, _ in decode(data["remembered"], None).functions]
    assert names == ["constraint.A", "constraint.c"]


def test_what_a_file_does_not_keep_is_asked_for(tmp_path):
    body = rx.systems.FreeRigidBody([1.0, 1.7, 2.3])
    state = body.state(jnp.eye(3), velocity=[0.3, -0.2, 0.9])
    with pytest.raises(rx.BadInput, match=r"system = None .* on a group or space of your own"):
        rx.simulate(None, "lie-verlet", state, h=0.1, steps=1)
    with pytest.raises(rx.BadInput, match=r"keeps no integrator of your own.*provenance"):
        rx.simulate(body, None, state, h=0.1, steps=1)
    run = rx.simulate(body, "lie-verlet", state, h=0.1, steps=2)
    with pytest.raises(rx.BadInput, match=r"which is a folder, but a file.*run\.final"):
        rx.resume(run.save(tmp_path / "run.nc"))
    with pytest.raises(rx.BadInput, match=r"is a page to look at; rx\.load reads"):
        rx.load(run.report(tmp_path / "run.html"))


def test_the_store_of_a_sweep_holds_its_system(tmp_path):
    def top(mass):
        system = rx.systems.HeavyTop([1.2, 1.6, 0.8], mass, [0.0, 0.0, 0.6])
        return system, system.state(jnp.eye(3), velocity=jnp.array([0.1, 0.2, 4.0]))

    path, masses = tmp_path / "sweep.zarr", {"mass": [1.0, 1.5]}
    settings = {"h": 0.01, "steps": 4, "store": path, "client": "serial", "progress": False}
    runs = rx.sweep(top, rx.LieVerlet(), grid=masses, **settings)
    kept = json.loads(runs.attrs["run"])
    same(decode(kept["system"], None), top(1.0)[0])
    assert repr(decode(kept["integrator"], None)) == "LieVerlet()"
    for read in (rx.load, rx.resume):
        with pytest.raises(rx.BadInput, match=r"holds a sweep: read it with xarray\.open_zarr"):
            read(path)


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "bodies_of_mine.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("bodies_of_mine")
    sys.modules.pop("bodies_of_mine", None)


def test_a_lambda_is_said_to_be_no_data_before_the_run_and_can_be_given_again(tmp_path):
    def body(weight):
        made = rx.MechanicalSystem(rx.SO3(), [1.0, 2.0, 2.5], lambda g: weight * g[2, 2])
        return made, made.state(jnp.eye(3), velocity=[0.3, -0.4, 0.9])

    path, (system, state) = tmp_path / "run.zarr", body(1.3)
    with pytest.warns(UserWarning, match=r"potential is the function .* marked with @rx\.factory"):
        rx.simulate(system, rx.LieVerlet(), state, h=0.1, steps=40, checkpoint=path)
    found = rx.load(path)
    assert found.system.group == rx.SO3() and len(found) == 41
    assert found.system.numbers["inertia"].tolist() == [1.0, 2.0, 2.5]
    assert repr(found.integrator) == "LieVerlet()"
    with pytest.raises(rx.BadInput, match=r"not its functions \(potential = .*<lambda> of"):
        found.invariants()
    with pytest.raises(rx.BadInput, match=r"give the system yourself, as in rx\.resume\(path, sy"):
        rx.simulate(found.system, found.integrator, found.final, h=0.1, steps=3)
    with pytest.raises(rx.BadInput, match=r"does not hold its system.* rx\.resume\(path, system="):
        rx.resume(path, steps=80)
    with pytest.raises(rx.BadInput, match="was made of other steps"):
        rx.resume(path, steps=80, system=body(1.4)[0])
    longer = rx.resume(path, steps=80, system=body(1.3)[0])
    whole = rx.simulate(system, rx.LieVerlet(), state, h=0.1, steps=80)
    assert np.array_equal(longer.momentum, whole.momentum)


def test_a_factory_is_called_again_by_resume_and_never_by_load(tmp_path, module, capsys):
    system, state = module.spring_body(0.7, inertia=np.array([1.0, 2.0, 2.5]))
    path = tmp_path / "run.zarr"
    rx.simulate(system, rx.LieVerlet(), state, h=0.1, steps=40, checkpoint=path)
    sys.modules.pop("bodies_of_mine")
    capsys.readouterr()
    found = rx.load(path)
    assert "bodies_of_mine" not in sys.modules and capsys.readouterr().out == ""
    assert type(found.system) is RememberedSystem and len(found) == 41
    with pytest.raises(rx.BadInput, match="the function 'spring_body' of the module 'bodies_of_"):
        rx.resume(path, steps=80)
    with pytest.raises(rx.BadInput, match="none is imported unless you name it"):
        rx.resume(path, steps=80, trust=["os", "bodies_of_mine.more"])
    assert "bodies_of_mine" not in sys.modules and capsys.readouterr().out == ""
    longer = rx.resume(path, steps=80, trust="bodies_of_mine")
    assert capsys.readouterr().out == "imported\n"
    assert type(rx.load(path, trust="bodies_of_mine").system) is rx.MechanicalSystem
    copied = rx.load(path).save(tmp_path / "copied.nc")
    with pytest.raises(
        rx.BadInput, match=r"rx\.load\(path, trust='bodies_of_mine'\) makes it again"
    ):
        rx.load(copied).system.symmetries()
    assert type(rx.load(copied, trust="bodies_of_mine").system) is rx.MechanicalSystem
    whole = rx.simulate(system, rx.LieVerlet(), state, h=0.1, steps=80)
    assert np.array_equal(longer.momentum, whole.momentum)
    assert set(longer.invariants()) == set(whole.invariants())


def test_only_marked_functions_are_called(module):
    recipe = encode(module.spring_body(0.7, inertia=[1.0, 2.0, 2.5])[0], "system")
    assert recipe["factory"] == "bodies_of_mine:spring_body" and recipe["part"] == 0
    for nobody in (None, frozenset(), frozenset({"os", "bodies_of_mine.more"})):
        with pytest.raises(NeedsImport):
            decode(recipe, nobody)
    trust = frozenset({"bodies_of_mine", "os", "no_such_module_anywhere"})
    for name, sentence in [
        ("bodies_of_mine:unmarked", "does not carry the mark @rx.factory and is therefore not"),
        ("os:system", "does not carry the mark"),
        ("bodies_of_mine:missing", "cannot be imported here"),
        ("no_such_module_anywhere:f", "cannot be imported here"),
        ("bodies_of_mine:spring_body.__init__; x", "is not a function in a module"),
    ]:
        with pytest.raises(rx.BadInput, match=sentence):
            decode({**recipe, "factory": name}, trust)
    for change, sentence in [
        ({"part": 5}, "has no result with number 5"),
        ({"args": ["text"]}, "called as the file says, raised BadInput: potential"),
    ]:
        with pytest.raises(rx.BadInput, match=sentence):
            decode({**recipe, **change}, trust)


def test_no_module_is_imported_where_one_of_several_is_not_trusted(tmp_path, monkeypatch, capsys):
    (tmp_path / "good_bodies.py").write_text("print('good')")
    (tmp_path / "evil_bodies.py").write_text("print('evil')")
    monkeypatch.syspath_prepend(tmp_path)
    call = {"args": [], "keywords": {"dict": []}, "part": None}
    inner = {**call, "factory": "evil_bodies:f"}
    for where in ({"args": [inner]}, {"keywords": {"dict": [["x", {"list": [inner]}]]}}):
        recipe = [
            {**call, "factory": "good_bodies:f"},
            {**call, "factory": "good_bodies:f", **where},
        ]
        with pytest.raises(NeedsImport, match="'evil_bodies'"):
            decode(recipe, frozenset({"good_bodies"}))
    assert capsys.readouterr().out == "" and "good_bodies" not in sys.modules


@pytest.mark.parametrize("trust", [3, "os; x", "", ["my_bodies", None], b"os", [["os"]]])
def test_trust_names_modules(tmp_path, trust):
    with pytest.raises(rx.BadInput, match=r"trust = .* must be the name of a module"):
        rx.resume(tmp_path / "run.zarr", trust=trust)


def test_a_factory_of_the_script_itself_or_of_a_function_cannot_be_stored():
    def local():
        return rx.MechanicalSystem(rx.SO3(), [1.0, 2.0, 2.5], lambda g: g[2, 2])

    made = rx.factory(local)
    assert isinstance(made, Factory) and made.__name__ == "local"
    with pytest.raises(Unstorable, match=r"made by the factory .*local.* cannot import"):
        encode(made(), "system")
    with pytest.raises(rx.BadInput, match="is not a function that makes a system"):
        rx.factory(3)


@pytest.mark.parametrize(
    "data",
    [
        {"class": "os:environ", "fields": {}},
        {"class": "retrax.cli.main:Sentences", "fields": {}},
        {"class": "retrax.systems.rigid_body:FreeRigidBody", "fields": {"mass": 1}},
        {"class": "retrax.systems.rigid_body:jnp", "fields": {}},
        {"class": "retrax.groups.so3:SO3.exp", "fields": {}},
        {"class": "groups:SO3.__class__", "fields": {}},
        {"class": "groups:eqx.Module", "fields": {}},
        {"class": "engine:Packing", "fields": {}},
        {"class": "retrax.engine.groups:SO3", "fields": {}},
        {"class": "groups:" + "S" * 10_000, "fields": {}},
        {"class": "groups:Translation", "fields": {"n": 3, "more": 1}},
        {"class": "groups:Translation"},
        {"class": 3, "fields": {}},
        {"function": "builtins:eval"},
        {"function": "retrax.store.netcdf:save"},
        {"function": "retrax.systems.catalogue:CASES"},
        {"function": "retrax.systems.catalogue:jnp.load"},
        {"partial": {"function": "os:system"}, "args": ["true"], "keywords": {}},
        {"partial": 3, "args": [], "keywords": {}},
        {"array": {"dtype": "object", "shape": [1], "data": "", "jax": False}},
        {"array": {"dtype": "float64", "shape": [5], "data": "AAAA", "jax": False}},
        {"array": 3},
        {"number": "many"},
        {"unheard": "of"},
        {},
    ],
)
def test_data_that_names_anything_else_is_refused(data):
    with pytest.raises(rx.BadInput):
        decode(data, frozenset({"os", "builtins"}))
