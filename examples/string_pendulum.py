r"""A body on an elastic string, released from the horizontal.

The string is a chain of elements that stretch and carry waves; the body hangs off its centre of
mass and tumbles. A step costs one pass along the chain, and the angular momentum about the
vertical is kept to round-off. The picture shows the string every 50 ms, coloured by its tension:
slack as it falls, taut and jerked at the bottom.
"""

import sys

import numpy as np
from matplotlib.collections import LineCollection

import retrax as rx
from retrax.show.style import new_figure, style


def main(elements: int = 20, steps: int = 6000):
    arm = [0.04, 0.01, 0.05]  # from the string's end to the centre of mass
    inertia = rx.solids.elliptic_cylinder(0.1, (0.06, 0.04), 0.1, arm)
    pendulum = rx.systems.StringPendulum(
        length=1.0, density=0.025, stiffness=40.0, elements=elements, mass=0.1, arm=arm,
        inertia=inertia,
    )  # fmt: skip
    nodes = np.arange(1, elements + 1)[:, None] / elements * np.array([[1.0, 0.0, 0.0]])
    s0 = pendulum.state((nodes, np.eye(3)), velocity=np.zeros(3 * elements + 3))
    run = rx.simulate(pendulum, rx.LieVerlet(), s0, h=1e-4, steps=steps, save_every=steps // 12)
    momentum = run.invariants()["angular momentum e3"]
    assert np.max(np.abs(momentum - momentum[0])) < 1e-14

    tension = run.observables()["tension"]
    figure = new_figure(6.0, 3.6, "String pendulum every 50 ms, coloured by tension")
    axes = figure.subplots()
    for places, pulls in zip(run.g[0], tension, strict=True):
        points = np.concatenate([np.zeros((1, 3)), places])[:, [0, 2]]
        pieces = LineCollection(np.stack([points[:-1], points[1:]], axis=1), cmap="viridis")
        pieces.set_array(pulls)
        pieces.set_clim(tension.min(), tension.max())
        axes.add_collection(pieces)
        axes.plot(*points[-1], "k.", markersize=4)
    axes.set(xlabel="x (m)", ylabel="down (m)", aspect="equal", xlim=(-0.3, 1.1), ylim=(1.3, -0.1))
    figure.colorbar(pieces, ax=axes, label="tension (N)")
    return figure


if __name__ == "__main__":
    with style():
        main().savefig(sys.argv[1] if len(sys.argv) > 1 else "string_pendulum.png")
