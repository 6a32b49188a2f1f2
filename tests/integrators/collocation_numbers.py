"""Numbers for `test_galerkin.py`, printed as JSON.

A program of its own: it traces many steps, which run-time type checks make several times slower.
"""

import json

import jax.numpy as jnp
import numpy as np

import retrax as rx
from retrax_papers.pseudospectral.runs import end_error

PENDULUM, START, _, _ = rx.systems.Pendulum3D.paper()
CHAOTIC = PENDULUM.state(jnp.eye(3), velocity=[2.0, -3.0, 1.0])
COARSE = {1: 0.025, 2: 0.1, 3: 0.1, 4: 0.2, 5: 0.4}


def long_run(state, h):
    """Energy over 100,000 steps: largest error in the first and in the last tenth; momentum."""
    method = rx.GalerkinVariational(rx.gauss(2))
    run = rx.simulate(PENDULUM, method, state, h=h, steps=100_000, save_every=20, backend="native")
    energy = run.invariants()["energy"]
    error = np.abs(energy - energy[0])
    vertical = np.einsum("ni,ni->n", run.g[:, 2], run.momentum)
    tenth = len(error) // 10
    return {
        "first": float(error[:tenth].max()),
        "last": float(error[-tenth:].max()),
        "momentum": float(np.max(np.abs(vertical - vertical[0]))),
    }


def main():
    galerkin = {s: rx.GalerkinVariational(rx.gauss(s)) for s in COARSE}
    errors = {
        s: [end_error(method, 10.0, COARSE[s] / k)[0] for k in (1, 2)]
        for s, method in galerkin.items()
    }
    others = {
        repr(n): (
            n.order,
            [end_error(rx.GalerkinVariational(n), 10.0, h)[0] for h in (0.05, 0.025)],
        )
        for n in (rx.lobatto(3), rx.radau(3))
    }
    numbers = {
        "errors": errors,
        "others": others,
        "defect": rx.analysis.symplecticity(PENDULUM, galerkin[3], START, h=0.4),
        "regular": long_run(START, 0.05),
        "chaotic": long_run(CHAOTIC, 0.05),
        "collocation": end_error(rx.Collocation(rx.gauss(5)), 10.0, 0.2)[0],
    }
    print(json.dumps(numbers))


if __name__ == "__main__":
    main()
