"""Mechanisms from URDF: the same accelerations, energies and motion as other ways to get them."""

import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from joint_accelerations import joints_at, state_at
from urdf_lagrangian import Lagrangian

import retrax as rx

MODELS = Path(__file__).parent / "models"


def load(name, **options):
    """Load a model whose limits are warned of."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*do not act or are not read.*", UserWarning)
        return rx.load_urdf(MODELS / name, **options)


def frames_of(reference, q, v):
    """Return where the links are and how fast, for `state_at`."""
    poses, rates = jax.jit(lambda q, v: jax.jvp(reference.poses, (q,), (v,)))(q, v)
    found = {}
    for name, (R, x) in poses.items():
        dR, dx = rates[name]
        spin = R.T @ dR
        found[name] = R, x, jnp.array([spin[2, 1], spin[0, 2], spin[1, 0]]), dx
    return found


@pytest.mark.parametrize("model", ["arm.urdf", "gripper.urdf"])
def test_joints_accelerate_as_lagrange_says(model):
    """Measured: 2e-13 of the largest acceleration (arm), 5e-13 (gripper)."""
    reference, mechanism = Lagrangian(MODELS / model), load(model)
    system = mechanism.system()
    rng = np.random.default_rng(1)
    accelerations = jax.jit(reference.accelerations)
    for _ in range(3):
        q, v = (jnp.asarray(rng.normal(size=len(reference.names)) * s) for s in (0.4, 1.0))
        state = state_at(mechanism, system, frames_of(reference, q, v))
        found, expected = joints_at(system, state), accelerations(q, v)
        size = float(jnp.max(jnp.abs(expected)))
        for name, value, rate, acceleration in zip(reference.names, q, v, expected, strict=True):
            assert abs(found[name].value - value) < 1e-12
            assert abs(found[name].rate - rate) < 1e-12
            assert abs(found[name].acceleration - acceleration) < 1e-11 * size
        energy = jax.jit(reference.lagrangian)(q, v) - reference.lagrangian(q, 0 * v)
        assert abs(float(system.kinetic_energy(state)) / float(energy) - 1) < 1e-13
