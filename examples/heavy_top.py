r"""A heavy asymmetric top, from its energy alone.

The shortest complete use of retrax: write an energy, simulate, look at what was kept. The body
turns about a fixed point with moments of inertia 1, 2.8 and 2 kg m²; its centre of mass (1 kg)
lies 1 m along its third axis, and the third axis of space points down: $E =
\tfrac12\,\Omega\cdot\mathbb I\,\Omega - 9.81\,R_{33}$. Expect an energy of -9.175 J that
oscillates by less than 1e-4 J and does not drift, and a vertical momentum of 0.8 kg m²/s to
round-off: nobody declared that symmetry, it was found.
"""

import sys

import jax.numpy as jnp
import numpy as np

import retrax as rx
from retrax.show.style import new_figure, style


def main(steps: int = 100_000):
    top = rx.MechanicalSystem(
        rx.SO3(), inertia=jnp.array([1.0, 2.8, 2.0]), potential=lambda R: -9.81 * R[2, 2]
    )
    s0 = top.state(jnp.eye(3), velocity=[0.5, -0.5, 0.4])
    run = rx.simulate(top, rx.LieVerlet(), s0, h=0.01, steps=steps, save_every=10)
    print(run.summary())

    energy, vertical = run.invariants()["energy"], run.invariants()["spatial momentum e3"]
    assert np.max(np.abs(energy - energy[0])) < 1e-4
    assert np.max(np.abs(vertical - vertical[0])) < 1e-12
    assert np.max(run.group_defect()) < 1e-13

    figure = new_figure(7.5, 3.2, "Heavy top: path of its centre of mass, and the energy error")
    path, errors = figure.subplots(1, 2)
    path.plot(run.g[:150, 0, 2], run.g[:150, 1, 2])
    path.set(xlabel="x (m)", ylabel="y (m)", aspect="equal")
    errors.plot(run.t[:150], (energy - energy[0])[:150])
    errors.set(xlabel="t (s)", ylabel="E - E(0) (J)")
    return figure


if __name__ == "__main__":
    with style():
        main().savefig(sys.argv[1] if len(sys.argv) > 1 else "heavy_top.png")
