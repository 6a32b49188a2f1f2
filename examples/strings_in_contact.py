r"""Two strings that touch in points which move with them.

A sine on the first string, nothing on the second. The contact forces both to the same velocity
where they touch, and runs along the strings with it. `ContactDKD` keeps a modified energy and the
combination of the two places to round-off. Colours show the displacement of the first string over
place and time, the line is the path of its contact.
"""

import sys

import numpy as np

import retrax as rx
from retrax.show.style import new_figure, style


def main(n: int = 64, periods: float = 4.0):
    strings = rx.systems.StringsInContact(F=1.0, G=0.8, n=n)  # c = 1, length 2 pi, fixed ends
    s0 = strings.at((2.0, 2.6), u=np.sin)
    h = float(strings.spacing) / 2
    steps = round(2 * np.pi * periods / h)
    run = rx.simulate(strings, rx.ContactDKD(), s0, h=h, steps=steps, save_every=2)
    u, _, s = run.g
    place = s[:, 0] - s[:, 1]  # G2 s1 - F G1 s2, divided by G
    assert np.max(np.abs(place - place[0])) < 1e-12

    figure = new_figure(6.0, 3.4, "Two strings in contact: the first, over place and time")
    axes = figure.subplots()
    x = np.linspace(0.0, 2 * np.pi, u.shape[1])
    shown = axes.pcolormesh(run.t, x, u.T, cmap="RdBu_r", shading="nearest", rasterized=True)
    axes.plot(run.t, s[:, 0], "k")
    axes.set(xlabel="t", ylabel="x")
    figure.colorbar(shown, ax=axes, label="u")
    return figure


if __name__ == "__main__":
    with style():
        main().savefig(sys.argv[1] if len(sys.argv) > 1 else "strings_in_contact.png")
