"""Members abreast whose step keeps an axis, as the stages of collocation: a vector an entry."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx

TOP = rx.systems.HeavyTop([1.0, 2.0, 2.5], mass=1.0, arm=[0.2, -0.1, 0.4])
H = 0.15
RNG = np.random.default_rng(11)
# Nine fill no whole number of blocks; fast and slow ones take different numbers of sweeps.
VELOCITIES = RNG.normal(size=(9, 3)) * np.linspace(0.1, 2.0, 9)[:, None]
TURNS = jax.vmap(TOP.group.exp)(jnp.asarray(RNG.normal(size=(9, 3))))


def starts(which):
    states = [TOP.state(TURNS[k], velocity=VELOCITIES[k]) for k in which]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)


def run(integrator, which, steps=12, **options):
    options = {"h": H, "steps": steps, "save_every": steps, "progress": False, **options}
    return rx.ensemble(TOP, integrator, starts(which), **options)


def last(data):
    leaves = [np.asarray(data[name].isel(time=-1)) for name in ("g", "momentum")]
    return np.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1)


# Memory of sixteen stages and more is in memory along a kept axis, less of it in registers.
METHODS = [
    rx.Collocation(rx.gauss(5)),
    rx.Collocation(rx.radau(4), form="spatial"),
    rx.Collocation(rx.lobatto(5), centred=True),
    rx.Collocation(rx.gauss(17)),
    rx.PlainCollocation(rx.gauss(6)),
    rx.GalerkinVariational(rx.gauss(4)),
]


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_members_move_as_single_bodies_do(method):
    data = run(method, range(9))
    assert data.attrs["provenance_backend"] == "native"
    found = last(data)
    for k in (0, 4, 8):
        one = TOP.state(TURNS[k], velocity=VELOCITIES[k])
        alone = rx.simulate(TOP, method, one, h=H, steps=12, save_every=12, progress=False).final
        exact = np.concatenate([np.ravel(alone.g), alone.momentum])
        assert np.max(np.abs(found[k] - exact)) < 2e-14


@pytest.mark.parametrize("method", [METHODS[0], METHODS[3]], ids=repr)
def test_neighbours_do_not_change_a_bit(method):
    """A member that needs more sweeps than its neighbours does not move them on."""
    together, apart = last(run(method, range(9))), last(run(method, [8, 3, 5, 0]))
    assert np.array_equal(apart, together[[8, 3, 5, 0]])


@pytest.mark.parametrize("method", [METHODS[0], METHODS[3]], ids=repr)
def test_a_member_that_fails_leaves_its_block(method):
    states = starts(range(4))
    wild = states.momentum.at[1].set(jnp.array([300.0, -200.0, 500.0]))
    states = rx.State(states.g, wild, states.t)
    with pytest.warns(UserWarning, match="1 of 4 members failed"):
        data = rx.ensemble(TOP, method, states, h=H, steps=12, save_every=12, progress=False)
    assert data["failed_step"].values.tolist() == [-1, 1, -1, -1]
    others = [0, 2, 3]
    assert np.array_equal(last(data)[others], last(run(method, range(4)))[others])
