r"""A thousand pendulums, each started a little differently.

How long does the motion of a 3D pendulum remember its start? A thousand of them, whose initial
velocities differ by a hundredth, run together in the vector registers of the processor (on a GPU
the same lines run as one kernel). On the left where their axes point at three times, on the right
how their spread grows.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import retrax as rx
from retrax.show.style import new_figure, style


def main(members: int = 1000, steps: int = 600):
    pendulum = rx.systems.Pendulum3D(inertia=[1.0, 2.8, 2.0], mass=1.0, arm=[0.0, 0.0, 1.0])
    random = np.random.default_rng(1)
    velocities = np.array([4.0, -4.0, 1.0]) + 0.01 * random.normal(size=(members, 3))
    states = jax.vmap(lambda v: pendulum.state(jnp.eye(3), velocity=v))(velocities)
    every = steps // 12
    runs = rx.ensemble(pendulum, rx.LieVerlet(), states, h=0.02, steps=steps, save_every=every)
    assert int((runs["failed_step"] >= 0).sum()) == 0

    axis = runs["g"].values[..., 2]  # the body's third axis, (time, member, 3)
    figure = new_figure(7.5, 3.2, "1000 pendulums: their axes at three times, and the spread")
    places, growth = figure.subplots(1, 2)
    for k in (2, 4, 8):
        time = float(runs["time"][k])
        places.plot(*axis[k, :, :2].T, ".", markersize=2, label=f"t = {time:.0f} s")
    places.set(xlabel="x (m)", ylabel="y (m)", aspect="equal", xlim=(-1.1, 1.1), ylim=(-1.1, 1.1))
    places.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), markerscale=3)
    growth.semilogy(runs["time"][1:], np.max(np.std(axis, axis=1), axis=1)[1:])
    growth.set(xlabel="t (s)", ylabel="standard deviation (m)")
    return figure


if __name__ == "__main__":
    with style():
        main().savefig(sys.argv[1] if len(sys.argv) > 1 else "ensemble.png")
