r"""A heavy asymmetric top from its energy alone, for a thousand seconds.

Purpose: the shortest complete use of retrax. Write an energy, simulate, look at what was kept.

The body turns about a fixed point with moments of inertia 1, 2.8 and 2 kg m^2; its centre of mass
(1 kg) lies 1 m along its third axis; the third axis of space points down. Its energy is

$$ E = \tfrac12\,\Omega\cdot\mathbb I\,\Omega - 9.81\,R_{33}, $$

and turning about the vertical is a symmetry, so $e_3 \cdot R\,\mathbb I\,\Omega$ is conserved too.

What to expect: energy -9.175 J, never off by more than 1e-4 J and without drift; vertical momentum
0.8 kg m^2/s, kept to about 1e-13; a rotation matrix that is orthogonal to about 1e-15.

Run it with `python examples/heavy_top.py`, or with a path to get a page of the motion:
`python examples/heavy_top.py top.html`.
"""

import sys

import jax.numpy as jnp
import numpy as np

import retrax as rx

top = rx.MechanicalSystem(
    rx.SO3(), inertia=jnp.array([1.0, 2.8, 2.0]), potential=lambda R: -9.81 * R[2, 2]
)
s0 = top.state(jnp.eye(3), velocity=[0.5, -0.5, 0.4])
run = rx.simulate(top, rx.LieVerlet(), s0, h=0.01, steps=100_000, save_every=50)
print(run.summary())

if len(sys.argv) > 1:
    print(f"The page is {run.report(sys.argv[1])}.")

energy, vertical = run.invariants()["energy"], run.invariants()["spatial momentum e3"]
assert abs(energy[0] - -9.175) < 1e-12
assert np.max(np.abs(energy - energy[0])) < 1e-4
assert abs(run.measures()["invariants"]["energy"]["drift"]) * run.t[-1] < 1e-6
assert abs(vertical[0] - 0.8) < 1e-12
assert np.max(np.abs(vertical - vertical[0])) < 1e-12
assert np.max(run.group_defect()) < 1e-13
