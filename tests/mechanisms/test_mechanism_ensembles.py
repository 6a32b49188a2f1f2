"""Members of ensembles of mechanisms are the single runs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import retrax as rx

H, STEPS = 1e-3, 300


def stacked(states):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states)


def check(systems, states, members):
    method = rx.LieVerlet()
    given = systems if len({*map(id, systems)}) > 1 else systems[0]
    runs = rx.ensemble(given, method, stacked(states), h=H, steps=STEPS, backend="native")
    assert np.all(runs.failed_step.values <= 0)
    for k in members:
        one = rx.simulate(systems[k], method, states[k], h=H, steps=STEPS, save_every=STEPS)
        assert one.provenance["backend"] == "native"
        momentum = np.ravel(runs["momentum"].isel(member=k).values)
        np.testing.assert_array_equal(momentum, np.asarray(one.final.momentum))


def test_four_bars_of_other_masses_and_rates():
    """Each member has the bits of its single run."""
    rng, plain = np.random.default_rng(0), rx.systems.four_bar(1)
    start = plain.assemble(joint_rates={"A0": -1.0})
    xi = plain.velocity(start.g, start.momentum)
    systems, states = [], []
    for _ in range(37):
        masses = plain.mass * jnp.asarray(1 + 0.3 * rng.random(3))
        system = eqx.tree_at(lambda s: s.mass, plain, masses)
        momentum = system.momentum(start.g, xi * (0.5 + rng.random()))
        systems.append(system)
        states.append(rx.State(start.g, momentum, start.t))
    check(systems, states, [0, 17, 36])


def test_chains_along_their_band():
    """Each member has the bits of its single run."""
    rng, chain = np.random.default_rng(1), rx.systems.chain(20)
    speeds = rng.normal(size=(9, chain.group.dim))
    states = [chain.state(chain.reference, velocity=v, project=True) for v in speeds]
    check([chain] * 9, states, [0, 8])
