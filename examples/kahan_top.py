r"""Euler's top by Kahan's method, with steps of half a second.

One linear equation a step, and the quotient of energy and squared momentum is exact: energy and
momentum themselves are off by bounded amounts that are known in advance. The momenta run along
closed curves on a surface that is nearly the sphere (thin lines: exact).
"""

import sys

import numpy as np

import retrax as rx
from retrax.show.style import new_figure, style


def main(steps: int = 2000):
    top = rx.systems.EulerTop([3.0, 2.0, 1.0])
    figure = new_figure(7.5, 3.4, "Euler's top, h = 0.5: momenta, and relative errors")
    orbits = figure.add_subplot(1, 2, 1, projection="3d")
    errors = figure.add_subplot(1, 2, 2)
    for angle in (0.0, 0.4, 0.9, 1.4, 4.2, 4.7):
        m0 = [np.cos(angle) * 0.95, 0.3, np.sin(angle) * 0.95]
        run = rx.simulate(top, rx.Kahan(), m0, h=0.5, steps=steps)
        energy, ratio = run.invariants()["energy"], run.invariants()["H/C"]
        assert np.max(np.abs(ratio / ratio[0] - 1)) < 1e-12
        orbits.plot(*run.y.T, ".", markersize=0.8)
        times = np.linspace(0.0, 40.0, 400)
        orbits.plot(*rx.systems.exact_momentum(top, m0, times).T, linewidth=0.5, color="0.4")
    errors.semilogy(run.t, np.abs(energy / energy[0] - 1) + 1e-17, label="energy")
    errors.semilogy(run.t, np.abs(ratio / ratio[0] - 1) + 1e-17, label="energy / momentum squared")
    errors.set(xlabel="t (s)", ylabel="relative error")
    errors.legend(loc="center right")
    orbits.set_box_aspect((1, 1, 1), zoom=1.4)
    orbits.set_axis_off()
    return figure


if __name__ == "__main__":
    with style():
        main().savefig(sys.argv[1] if len(sys.argv) > 1 else "kahan_top.png")
