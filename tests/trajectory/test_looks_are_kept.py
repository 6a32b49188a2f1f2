"""What looks at the states of a run is traced once for all runs of a system."""

import numpy as np

import retrax as rx
from retrax.numerics.walk import Walk


def test_a_second_run_is_looked_at_by_what_is_there(monkeypatch):
    """Functions of retrax that look at states were unknown, and traced at every look."""
    ball = rx.Contacts([(rx.Ball(0.1, body=0), rx.Plane())], friction=0.2)
    body = rx.MechanicalSystem(
        rx.Product(rx.SO3(), rx.Translation(3)),
        [0.008, 0.008, 0.008, 2.0, 2.0, 2.0],
        lambda g: 19.62 * g[1][2],
        contact=ball,
    )
    start = body.state((np.eye(3), np.array([0, 0, 0.1])), velocity=[0, 0, 0, 6.0, 0, 0])
    unknown = []
    monkeypatch.setattr(Walk, "_opaque", lambda walk, x: unknown.append(x))
    run = rx.simulate(
        body, rx.NonsmoothRattle(), start, h=0.01, steps=4,
        events={"far": lambda g, xi, t: g[1][0] - 0.1},
    )  # fmt: skip
    assert run.summary() and run.energy_book() and run.contacts and len(run.events["far"])
    assert not unknown
