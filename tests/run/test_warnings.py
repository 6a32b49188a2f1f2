"""Warnings name the line that called retrax."""

import warnings

import jax
import numpy as np

import retrax as rx


def test_a_warning_names_the_line_of_the_caller(tmp_path):
    body = rx.systems.FreeRigidBody([1.0, 2.0, 2.5])
    fast = body.state(np.eye(3), velocity=[0.1, 40.0, 0.2])
    both = jax.tree.map(lambda x: np.stack([x, x]), fast)
    prepared = rx.prepare(body, rx.LieVerlet(), h=0.1)
    calls = (
        lambda: rx.simulate(body, rx.LieVerlet(), fast, h=0.1, steps=3, progress=False),
        lambda: prepared(fast, 3),
        lambda: rx.ensemble(body, rx.LieVerlet(), both, h=0.1, steps=3, progress=False),
        lambda: rx.simulate(
            rx.MechanicalSystem(rx.SO3(), [1.0, 2.0, 2.5], lambda R: 0.5 * R[0, 0]),
            rx.LieVerlet(), fast, h=0.001, steps=3, checkpoint=tmp_path / "run", progress=False,
        ),
    )  # fmt: skip
    for call in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        assert caught
        assert {w.filename for w in caught} == {__file__}, caught[0].message
