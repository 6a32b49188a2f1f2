r"""Spectral convergence: more nodes, the same step.

A 3D pendulum for ten seconds in steps of a half and a quarter of a second. With Gauss' nodes the
error of `Collocation` falls faster than any power as nodes are added, down to rounding errors, and
the matrices stay rotations all the while. The reference is the same method with more nodes.
"""

import sys

import numpy as np

import retrax as rx
from retrax.show.style import new_figure, style


def main(counts=(2, 4, 6, 8, 10, 12), reference: int = 16):
    pendulum, s0, _, _ = rx.systems.Pendulum3D.paper()

    def end(nodes, h):
        steps = round(10 / h)
        method = rx.Collocation(rx.gauss(nodes))
        run = rx.simulate(pendulum, method, s0, h=h, steps=steps, save_every=steps)
        assert np.max(run.group_defect()) < 1e-14
        return run.g[-1]

    exact = end(reference, 0.25)
    figure = new_figure(5.0, 3.2, "Collocation on SO(3): error at t = 10 s")
    axes = figure.subplots()
    for h in (0.5, 0.25):
        errors = [np.max(np.abs(end(s, h) - exact)) for s in counts]
        axes.semilogy(counts, errors, "o-", markersize=3, label=f"h = {h} s")
        assert errors[-1] < errors[0] / 3
    axes.set(xlabel="Gauss nodes", ylabel="largest error of an entry of R")
    axes.legend()
    return figure


if __name__ == "__main__":
    with style():
        main().savefig(sys.argv[1] if len(sys.argv) > 1 else "collocation.png")
