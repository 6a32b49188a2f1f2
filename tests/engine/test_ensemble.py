"""Members of an ensemble take the steps they would take alone, on every back end."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.numerics.reuse import forget
from retrax.run.member_checks import require_ensemble, stack_systems
from retrax.systems.catalogue import CASES
from retrax.systems.rods.dispersion import fastest
from retrax.testing.constrained import claims_problem
from retrax.testing.problems import PROBLEMS

ON_GPU = jax.default_backend() == "gpu"
BACKENDS = [
    "native",
    "xla",
    pytest.param("gpu", marks=pytest.mark.skipif(not ON_GPU, reason="needs an NVIDIA GPU")),
]
# A thousand steps; compositions, whose steps are many, take fewer.
H, STEPS = 0.002, 1000
# Every problem, every integrator on the problem that measures its claims, every ready system.
SETTINGS = {
    **{(problem, "lie-verlet"): make for problem, make in PROBLEMS.items()},
    **{
        ("claims", name): lambda integrator=integrator: claims_problem(integrator)[1][:2]
        for name, integrator in rx.INTEGRATORS.items()
        if name != "lie-verlet"
    },
    **{
        (f"case {case.name}", case.integrator): lambda c=case: c.make()[:2]
        for case in CASES.values()
        if case.integrator in rx.INTEGRATORS
    },
}
# Of each class of integrators the first in the catalogue, and of each class of systems one case;
# XLA takes seconds to compile each setting, and `make test-all` compiles them all.
FIRST = {type(integrator): name for name, integrator in reversed(rx.INTEGRATORS.items())}
OTHERS = {("claims", name) for name in set(rx.INTEGRATORS) - set(FIRST.values())}
OTHERS |= {
    (f"case {name}", CASES[name].integrator)
    for name in ("pendulum3d", "suslov-paper", "kharlamova")
}
# Compiling arrays of members takes XLA long: one case for each kind of loop in a program.
ON_ARRAYS = {("asymmetric top", "lie-verlet"), ("claims", "composition-4"), ("claims", "rkmk-4")}
OTHERS -= ON_ARRAYS


def spread(state, members, by=0.1):
    """Copies of a state whose momenta differ by a factor of up to 1 + `by`."""
    factors = jnp.linspace(1 - by, 1 + by, members)
    copies = jax.tree.map(lambda x: jnp.stack([jnp.asarray(x)] * members), state)
    return rx.State(copies.g, copies.momentum * factors[:, None], copies.t)


@pytest.mark.filterwarnings("ignore:ProjectedLift.* is of order 1")
@pytest.mark.parametrize(
    "problem, name",
    [pytest.param(*s, marks=pytest.mark.campaign) if s in OTHERS else s for s in SETTINGS],
    ids=lambda x: x,
)
def test_all_back_ends_agree(problem, name):
    """One body on both loops, and as the middle member of an ensemble."""
    system, state = SETTINGS[problem, name]()
    integrator = rx.INTEGRATORS[name]
    steps = STEPS // 10 if isinstance(integrator, rx.Composition) else STEPS
    h = 1e-4 if "string" in problem else H  # elastic waves need short steps
    native, xla = (
        rx.simulate(system, integrator, state, h=h, steps=steps, save_every=steps, backend=backend)
        for backend in ("native", "xla")
    )
    assert native.provenance["backend"] == "native"
    expected = jax.tree.leaves(native.final)
    for ours, theirs in zip(expected, jax.tree.leaves(xla.final), strict=True):
        size = max(1.0, np.max(np.abs(theirs)))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-11 * size)
    iterations = [int(np.sum(run.info.iterations)) for run in (native, xla)]
    if "string" in problem:
        # Its equation is solved after one iteration, or two: a matter of rounding.
        assert all(steps <= count <= 2 * steps for count in iterations)
    else:
        assert iterations[0] == pytest.approx(iterations[1], rel=0.02, abs=5)
    np.testing.assert_allclose(native.info.increment, xla.info.increment, rtol=0, atol=1e-13)

    arrays = ["xla"] * ((problem, name) in ON_ARRAYS) + ["gpu"] * ON_GPU
    driven = system.constraint is not None and system.constraint.driven
    states = spread(state, 9, by=0.0 if driven else 0.1)
    for backend in ["native", *arrays]:
        runs = rx.ensemble(system, integrator, states, h=h, steps=steps, backend=backend)
        assert runs.attrs["provenance_backend"] == backend
        names = [n for n, v in runs.data_vars.items() if v.attrs.get("kind") == "configuration"]
        for name_of, theirs in zip([*names, "momentum"], expected[:-1], strict=True):
            ours = runs[name_of].values[-1, 4]
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-11)


@pytest.mark.parametrize("backend", BACKENDS)
def test_members_may_have_their_own_systems(backend):
    inertias = jnp.array([[1.0, 2.0, 2.5], [1.5, 2.0, 3.0], [2.0, 2.2, 2.4]])
    bodies = jax.vmap(rx.systems.FreeRigidBody)(inertias)
    states = jax.vmap(lambda body: body.state(jnp.eye(3), velocity=jnp.array([0.4, 0.1, 0.9])))(
        bodies
    )
    runs = rx.ensemble(
        bodies, rx.LieVerlet(), states, h=0.01, steps=250, save_every=100, backend=backend
    )
    assert runs["time"].values.tolist() == [0.0, 1.0, 2.0, 2.5]
    for k, inertia in enumerate(inertias):
        body = rx.systems.FreeRigidBody(inertia)
        start = body.state(jnp.eye(3), velocity=[0.4, 0.1, 0.9])
        alone = rx.simulate(body, rx.LieVerlet(), start, h=0.01, steps=250, save_every=100)
        np.testing.assert_allclose(runs["g"][:, k], alone.g, rtol=0, atol=1e-13)
        np.testing.assert_allclose(runs["momentum"][:, k], alone.momentum, rtol=0, atol=1e-13)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_member_that_fails_does_not_stop_the_others(backend):
    wall = rx.MechanicalSystem(rx.Translation(1), [1.0], lambda x: -jnp.sqrt(1.0 - x[0]))
    speeds = jnp.linspace(0.0, 3.0, 11)[:, None]
    states = jax.vmap(lambda v: wall.state(jnp.zeros(1), velocity=v))(speeds)
    with pytest.warns(
        UserWarning, match=r"\d of 11 members failed, the first of them member \d+ at step"
    ):
        runs = rx.ensemble(
            wall, rx.RKMK("euler"), states, h=0.2, steps=8, save_every=2, backend=backend
        )
    failed = runs["failed_step"].values
    assert failed[0] == -1 and 3 < np.sum(failed > 0) < 9
    assert set(runs["failure"].values[failed > 0]) == {3}
    for member in np.nonzero(failed > 0)[0]:
        start = jax.tree.map(lambda x, k=member: x[k], states)
        with pytest.raises(rx.StepFailed) as alone:
            rx.simulate(wall, rx.RKMK("euler"), start, h=0.2, steps=8)
        assert alone.value.trajectory.completed == failed[member] - 1
        lost = np.isnan(runs["g"].values[:, member, 0])
        assert lost.tolist() == [2 * k >= failed[member] for k in range(5)]
    assert np.isfinite(runs["g"].values[:, failed < 0]).all()


@pytest.mark.parametrize("members", [1, 7, 8, 65])
def test_any_number_of_members(members):
    """Blocks that are not full, and the copies that fill them, do not show."""
    system, state = PROBLEMS["asymmetric top"]()
    states = spread(state, members)
    runs = rx.ensemble(system, rx.LieVerlet(), states, h=0.05, steps=10)
    assert runs.sizes["member"] == members
    last = jax.tree.map(lambda x: x[-1], states)
    alone = rx.simulate(system, rx.LieVerlet(), last, h=0.05, steps=10)
    np.testing.assert_allclose(runs["g"].values[-1, -1], alone.g[-1], rtol=0, atol=1e-14)


def test_a_long_record_runs_in_pieces(monkeypatch):
    from retrax.engine.backends.members import Members

    system, state = PROBLEMS["asymmetric top"]()
    states = spread(state, 5)

    def run():
        seen = []
        runs = rx.ensemble(
            system, rx.LieVerlet(), states, h=0.05, steps=50,
            progress=lambda done, total: seen.append(done),
        )  # fmt: skip
        return runs, seen

    whole, one = run()
    monkeypatch.setattr(Members, "at_once", 100.0)
    pieces, several = run()
    assert one == [50] and several == [20, 40, 50]
    for name in ("g", "momentum", "iterations", "increment"):
        np.testing.assert_array_equal(whole[name], pieces[name])


def test_invariants_of_all_members():
    top, state = PROBLEMS["asymmetric top"]()
    runs = rx.ensemble(top, rx.LieVerlet(), spread(state, 4), h=0.01, steps=200, save_every=50)
    seen = rx.analysis.observe_members(top, runs)
    energy = seen["energy"]
    assert energy.dims == ("time", "member") and energy.shape == (5, 4)
    start = top.energy(jax.tree.map(lambda x: x[2], spread(state, 4)))
    assert float(energy[0, 2]) == pytest.approx(float(start), rel=1e-14)
    assert float(np.max(np.abs(energy - energy[0]))) < 1e-3
    assert float(seen["group_defect"].max()) < 1e-15


REFUSED = {
    "one state": (lambda top, s: (top, jax.tree.map(lambda x: x[0], s), {}), "first axis of one"),
    "no system for each": (
        lambda top, s: (jax.tree.map(lambda x: jnp.stack([x] * 3), top), s, {}),
        "neither one .* system for all 4 members nor one for each",
    ),
    "off the group": (
        lambda top, s: (top, rx.State(s.g.at[2, 0, 0].set(1.5), s.momentum, s.t), {}),
        "g of member 2",
    ),
    "not finite": (
        lambda top, s: (top, rx.State(s.g, s.momentum.at[3, 1].set(jnp.nan), s.t), {}),
        "member 3 of states has numbers that are not finite",
    ),
    "devices for native": (
        lambda top, s: (top, s, {"backend": "native", "devices": jax.devices()}),
        "takes no devices",
    ),
    "no GPU": (
        lambda top, s: (top, s, {"backend": "gpu", "devices": jax.devices("cpu")}),
        "needs an NVIDIA GPU",
    ),
    "no step": (lambda top, s: (top, s, {"steps": 0}), "steps = 0 must be a whole number"),
    "no end": (lambda top, s: (top, s, {"h": 1e308}), "end at a time beyond all numbers"),
    "too much": (
        lambda top, s: (top, s, {"steps": 10**15, "save_every": 1}),
        "need .* GB of memory, but .* are free: save at most",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_run_is_refused(name):
    make, sentence = REFUSED[name]
    top, state = PROBLEMS["asymmetric top"]()
    system, states, options = make(top, spread(state, 4))
    with pytest.raises(rx.BadInput, match=sentence):
        rx.ensemble(system, rx.LieVerlet(), states, **{"h": 0.01, "steps": 5} | options)


def test_as_many_members_as_dimensions():
    """A 3 x 3 inertia may be a matrix or three rows: a list of systems leaves no doubt."""
    inertias = [[1.0, 2.0, 2.5], [2.0, 3.0, 4.0], [2.5, 4.0, 5.0]]
    systems = [rx.systems.FreeRigidBody(i, physical=False) for i in inertias]
    states = rx.State(jnp.stack([jnp.eye(3)] * 3), jnp.ones((3, 3)), jnp.zeros(3))
    listed = rx.ensemble(systems, rx.LieVerlet(), states, h=0.01, steps=5)
    matrix = jnp.diag(jnp.array([1.0, 2.0, 2.5]))
    with pytest.warns(UserWarning, match="taken for the matrix of one body"):
        one = rx.ensemble(rx.systems.FreeRigidBody(matrix), rx.LieVerlet(), states, h=0.01, steps=5)
    np.testing.assert_allclose(one["g"][0, 0], one["g"][0, 2], rtol=0, atol=0)
    np.testing.assert_allclose(one["g"][0, 0], listed["g"][0, 0], rtol=0, atol=1e-15)
    assert np.max(np.abs(listed["g"].values[0, 2] - listed["g"].values[0, 0])) > 1e-3


def test_a_long_program_runs_on_xla_as_it_is(monkeypatch):
    from retrax.engine import backends

    monkeypatch.setattr(backends, "_MOST_ON_ARRAYS", 100)
    system, state = PROBLEMS["asymmetric top"]()
    states = spread(state, 3)
    with pytest.warns(
        UserWarning, match="operations, and XLA takes minutes .* runs on XLA as it is"
    ):
        plain = rx.ensemble(system, rx.LieVerlet(), states, h=0.05, steps=10, backend="xla")
    native = rx.ensemble(system, rx.LieVerlet(), states, h=0.05, steps=10, backend="native")
    np.testing.assert_allclose(plain["momentum"], native["momentum"], rtol=0, atol=1e-14)


def test_a_negative_inertia_is_found_among_the_members():
    inertias = jnp.array([[1.0, 2.0, 2.5], [1.5, -2.0, 3.0]])
    with pytest.raises(rx.BadInput, match=r"member 1: inertia = .* is not positive"):
        jax.vmap(rx.systems.FreeRigidBody)(inertias)
    hidden = jax.jit(jax.vmap(rx.systems.FreeRigidBody))(inertias)
    states = rx.State(jnp.stack([jnp.eye(3)] * 2), jnp.ones((2, 3)), jnp.zeros(2))
    with pytest.raises(rx.BadInput, match="member 1"):
        rx.ensemble(hidden, rx.LieVerlet(), states, h=0.01, steps=5)


SEVERAL_DEVICES = """
import jax, jax.numpy as jnp, numpy as np, retrax as rx
assert len(jax.devices()) == 4
body = rx.systems.FreeRigidBody([1.0, 2.0, 2.5])
momenta = jnp.linspace(0.5, 1.5, 3000).reshape(1000, 3)
states = jax.vmap(lambda m: body.state(jnp.eye(3), momentum=m))(momenta)
options = {"h": 0.01, "steps": 20}
shared = rx.ensemble(body, rx.LieVerlet(), states, devices=jax.devices(), **options)
assert shared.attrs["provenance_backend"] == "xla"
native = rx.ensemble(body, rx.LieVerlet(), states, **options)
np.testing.assert_allclose(shared["g"], native["g"], rtol=0, atol=1e-14)
from retrax.engine.backends import make_members
members = make_members("xla", body, rx.LieVerlet(), states, 0.01, jax.devices(), True)
assert len(jax.tree.leaves(members._carried)[0].sharding.device_set) == 4
"""


def test_members_are_shared_out_to_devices():
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
    subprocess.run(
        [sys.executable, "-c", SEVERAL_DEVICES],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        check=True,
    )


def test_what_compiles_for_minutes_runs_on_xla_singly_and_in_ensembles(monkeypatch):
    forget()  # that a program is short enough is known once it was found
    monkeypatch.setattr("retrax.engine.backends._MOST_NATIVE", 10)
    body, start = PROBLEMS["asymmetric top"]()
    copies = jax.tree.map(lambda x: jnp.stack([jnp.asarray(x)] * 2), start)
    with pytest.warns(UserWarning, match="more than 10 take minutes to compile"):
        run = rx.simulate(body, rx.LieVerlet(), start, h=0.01, steps=2)
    with pytest.warns(UserWarning, match="more than 10 take minutes to compile"):
        many = rx.ensemble(body, rx.LieVerlet(), copies, h=0.01, steps=2)
    assert run.provenance["backend"] == many.attrs["provenance_backend"] == "xla"


def test_a_matrix_that_is_no_inertia_is_found_among_the_members():
    good, indefinite = np.diag([1.0, 2.0, 2.5]), np.diag([1.0, 2.0, 2.5])
    indefinite[0, 1] = indefinite[1, 0] = 1.5
    skew = good + np.array([[0.0, 0.1, 0.0], [0.0] * 3, [0.0] * 3])
    states = rx.State(jnp.stack([jnp.eye(3)] * 3), jnp.ones((3, 3)), jnp.zeros(3))
    for wrong, sentence in ((indefinite, "not positive definite"), (skew, "not symmetric")):
        make = jax.jit(jax.vmap(lambda J: rx.systems.FreeRigidBody(J, physical=False)))
        bodies = make(jnp.asarray([good, good, wrong]))
        with pytest.raises(rx.BadInput, match=f"member 2: inertia is {sentence}"):
            rx.ensemble(bodies, rx.LieVerlet(), states, h=0.01, steps=5, backend="native")


@pytest.mark.parametrize("shared", [True, False], ids=["one rod", "a list"])
def test_the_rod_with_the_fastest_waves_bounds_the_step(shared):
    """One that is pressed together has faster waves than the others; it is in the middle."""
    rod, state, _, _ = CASES["rod"].make()
    states, places = spread(state, 3), np.stack([np.asarray(state.g[1])] * 3)
    places[1] *= 0.7
    places[2] *= 1.3
    several = rx.State((states.g[0], jnp.asarray(places)), states.momentum, states.t)
    system = rod if shared else stack_systems([rod] * 3)
    bounds = [2 / fastest(rod, stretch) for stretch in (1.0, 0.7)]
    h = sum(bounds) / 2
    assert bounds[1] < h < bounds[0]
    require_ensemble(system, rx.LieVerlet(), states, h, 5, None, shared)
    with pytest.raises(rx.BadInput, match=f"h must be below {bounds[1]:.4g} s"):
        require_ensemble(system, rx.LieVerlet(), several, h, 5, None, shared)
