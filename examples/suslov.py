r"""Suslov's problem: a good energy plot, and a wrong motion.

A rigid body that must not turn about its third axis, $\mathbb I = \mathrm{diag}(1, 10, 100)$,
started with the momenta (1, 1, 0), turns steadily: its momenta never change. `LagrangeDAlembert`
finds that. `ProjectedLift(s=0)`, the scheme printed in a paper, keeps the constraint, the group
and nearly the energy, and its momenta drift away: its error is a force that does no work. So plot
what should be constant, not what is easy to keep.
"""

import sys

import numpy as np

import retrax as rx
from retrax.show.style import new_figure, style


def main(steps: int = 180_000):
    body, s0, h, _ = rx.systems.Suslov.paper()
    figure = new_figure(7.5, 3.2, "Suslov's problem, h = 0.01 s: energy error and second momentum")
    left, right = figure.subplots(1, 2)
    for method, label in (
        (rx.LagrangeDAlembert(rx.Exp(), s=0.0), "LagrangeDAlembert(s=0)"),
        (rx.ProjectedLift(rx.Exp(), s=0.0), "ProjectedLift(s=0)"),
    ):
        run = rx.simulate(body, method, s0, h=h, steps=steps, save_every=max(1, steps // 500))
        energy = run.invariants()["energy"]
        assert np.max(run.constraint_violation()) < 1e-14
        assert np.max(np.abs(energy - energy[0])) < 1e-5
        left.plot(run.t, energy - energy[0], label=label)
        right.plot(run.t, run.momentum[:, 1])
        print(f"{label:24} momenta at the end {run.momentum[-1]}")
    left.set(xlabel="t (s)", ylabel="E - E(0) (J)")
    right.set(xlabel="t (s)", ylabel="second momentum; exactly 1")
    left.legend()
    return figure


if __name__ == "__main__":
    with style():
        main().savefig(sys.argv[1] if len(sys.argv) > 1 else "suslov.png")
