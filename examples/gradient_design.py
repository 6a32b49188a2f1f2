r"""A throw that ends where it should, by gradients through the run.

With which angular velocity must a satellite of unequal moments be released so that after two
seconds it has turned by half a turn about the diagonal of its first two axes? The distance from
the attitude wanted is a function of the three velocities; `jax.value_and_grad` differentiates it
through all steps of the run, and a quasi-Newton method finds the answer. The last line checks the
gradient by differences, with the native back end.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

import retrax as rx
from retrax.show.style import new_figure, style

MOMENTS = np.array([0.8, 1.2, 1.7])
WANTED = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])


def miss(velocity, steps: int):
    """Half the squared distance of the last attitude from the one wanted."""
    body = rx.systems.FreeRigidBody(MOMENTS)
    start = body.state(jnp.eye(3), velocity=velocity)
    run = rx.simulate(body, rx.LieVerlet(), start, h=2.0 / steps, steps=steps, save_every=steps)
    return jnp.sum((jnp.asarray(run.g[-1]) - WANTED) ** 2) / 2


def main(steps: int = 100):
    history = []
    slope = jax.jit(jax.value_and_grad(lambda velocity: miss(velocity, steps)))
    found = minimize(
        lambda v: tuple(map(np.asarray, slope(v))), [1.0, 0.6, -0.4], jac=True, method="BFGS",
        callback=lambda v: history.append(float(slope(v)[0])), options={"gtol": 1e-9},
    )  # fmt: skip
    print("release with", found.x, "missed by", found.fun)
    assert found.fun < 1e-12
    start, gap = np.array([1.0, 0.6, -0.4]), 1e-5
    changes = [miss(start + e, steps) - miss(start - e, steps) for e in gap * np.eye(3)]
    assert np.max(np.abs(slope(start)[1] - np.array(changes) / (2 * gap))) < 1e-7

    figure = new_figure(5.0, 3.2, "Half the squared distance from the attitude wanted")
    axes = figure.subplots()
    axes.semilogy(history, "o-", markersize=3)
    axes.set(xlabel="iteration", ylabel="missed by")
    return figure


if __name__ == "__main__":
    with style():
        main().savefig(sys.argv[1] if len(sys.argv) > 1 else "gradient_design.png")
