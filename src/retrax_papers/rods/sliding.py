"""The crossed rods beyond the end of rolling, with the friction that the paper thinks of."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from retrax.mechanics.state import State
from retrax.run.simulate import simulate
from retrax.show.style import CYCLE, GREY, new_figure, style
from retrax.systems.rods.crossing import crossed_rods, kick_rods
from retrax.systems.rods.pair import RodsInContact
from retrax.systems.rods.rolling_verlet import RollingVerlet
from retrax_papers.drawings import Column, DataFigure, by_name, columns
from retrax_papers.report import Finding

H = 0.01
# The coefficients of friction of the paper's estimate, and the size of the kick.
CASES: dict[str, tuple[float, float]] = {
    "k = 1": (1.0, 1.0),
    "k = 0.2": (0.2, 1.0),
    "k = 0.2, kick x 8": (0.2, 8.0),
}
_HARD = list(CASES)[-1]  # drawn on its own
_MODES = ("open", "sticks", "slips")
_SLIPS = 2


class Slide(NamedTuple):
    """A run, at the end of every step.

    **Attributes:** `mode`: 0 open, 1 sticks, 2 slips; `used`: friction over pressure, NaN without
    any; `slip`: in m/s; `gap`: in m; `energy`: less that of the start; `rubbed`, `struck`: what
    friction and impacts have taken so far, in J.
    """

    t: Float[np.ndarray, " steps"]
    mode: Int[np.ndarray, " steps"]
    used: Float[np.ndarray, " steps"]
    slip: Float[np.ndarray, " steps"]
    gap: Float[np.ndarray, " steps"]
    energy: Float[np.ndarray, " steps"]
    rubbed: Float[np.ndarray, " steps"]
    struck: Float[np.ndarray, " steps"]

    def numbers(self) -> dict[str, float]:
        """The numbers of the table."""
        return {
            "part of the time that slips": float(np.mean(self.mode == _SLIPS)),
            "part of the time apart": float(np.mean(self.mode == 0)),
            "friction used": float(np.nanmax(self.used)),
            "least gap": float(self.gap.min()),
            "largest gap": float(self.gap.max()),
            "energy lost": float(-self.energy[-1]),
            "friction work": float(self.rubbed[-1]),
            "impact loss": float(self.struck[-1]),
            "left": float(self.energy[-1] + self.rubbed[-1] + self.struck[-1]),
        }


def slides(time: float) -> dict[str, Slide]:
    """All of `CASES`."""
    pair, rest = crossed_rods(kick=0.0)
    return {
        name: _slide(*kick_rods(pair, rest.g, size, friction=k, unilateral=True), time)
        for name, (k, size) in CASES.items()
    }


def _slide(pair: RodsInContact, start: State, time: float) -> Slide:
    steps = round(time / H)
    run = simulate(pair, RollingVerlet(), start, h=H, steps=steps, progress=False)
    (one,) = run.contacts.values()
    energy = run.energy()
    push = np.where(one.normal > 0, one.normal, np.nan)
    return Slide(
        np.asarray(run.t)[1:],
        np.array([_MODES.index(mode) for mode in one.mode[1:]]),
        one.tangential / push,
        one.slip[1:],
        one.gap[1:],
        energy[1:] - energy[0],
        np.cumsum(one.friction_work),
        np.cumsum(one.impact_loss),
    )


def figure(found: Mapping[str, Slide]) -> DataFigure:
    """Friction, slip, gap and energy along time."""
    with style():
        sheet = new_figure(10.0, 6.6, "Two crossed rods beyond the end of rolling")
        left, right = sheet.subplots(3, 2, sharex=True).T
        for colour, (name, one) in zip(CYCLE, found.items(), strict=False):
            hard = name == _HARD
            above, slip, energy = right if hard else left
            above.plot(one.t, 1e3 * one.gap if hard else one.used, color=colour, label=name)
            slip.plot(one.t, 1e3 * np.where(one.mode > 0, one.slip, np.nan), color=colour)
            energy.plot(one.t, 1e3 * one.energy, color=colour)
            energy.plot(one.t, -1e3 * (one.rubbed + one.struck), ":", color=GREY, lw=2)
        left[0].set_ylabel("friction / pressure")
        right[0].set_ylabel("gap (mm)")
        for side in (left, right):
            side[0].legend(loc="upper right")
            side[1].set_ylabel("slip (mm/s)")
            side[2].set(ylabel="energy (mJ)", xlabel="t (s)")
    named: dict[str, Column] = {}
    for key, units, words in (
        ("mode", "1", "0 open, 1 sticks, 2 slips"),
        ("used", "1", "friction over pressure"),
        ("slip", "m/s", "slip"),
        ("gap", "m", "gap between the surfaces"),
        ("energy", "J", "energy less that of the start"),
        ("rubbed", "J", "energy that friction has taken"),
        ("struck", "J", "energy that impacts have taken"),
    ):
        curves = {
            name: (one.t, np.asarray(getattr(one, key), float)) for name, one in found.items()
        }
        named |= by_name("run", curves, ("time", "s", "time"), (key, units, words))
    return DataFigure(
        "sliding",
        "Two rods beyond the end of rolling",
        "Where the paper stops: Coulomb's law at the two material points. With k = 1 the rods of "
        "the contact force roll for ever; with k = 0.2 they stick and slip by turns; kicked eight "
        "times as hard they also part and meet again. Below, the change of the energy, and "
        "(dotted) minus what friction and impacts have taken.",
        sheet,
        columns(**named),
    )


def findings(found: Mapping[str, Slide], time: float) -> list[Finding]:
    """What becomes of the rods where the paper leaves them."""
    numbers = {name: one.numbers() for name, one in found.items()}
    much, little, hard = (numbers[name] for name in CASES)

    def lost(one: Mapping[str, float]) -> str:
        return (
            f"{one['energy lost']:.3e} J, of which {one['friction work']:.3e} J by friction and "
            f"{one['impact loss']:.1e} J by impacts"
        )

    return [
        Finding(
            f"rolling and sliding together, t <= {time:g}",
            "the true motion may combine both; for want of a theory of slippage, rolling only",
            f"k = 1: friction up to {much['friction used']:.2f} of the pressure, so that the rods "
            f"roll; k = 0.2: they slip {100 * little['part of the time that slips']:.0f} % of the "
            "time, and roll in between",
            "Coulomb's law at the two material points: rolling is its sticking branch",
        ),
        Finding(
            "energy lost beyond rolling",
            "-",
            f"k = 0.2: {lost(little)}; kick x 8: {lost(hard)}",
            f"the books close up to {abs(little['left']):.0e} and {abs(hard['left']):.0e} J, the "
            "energy error of the steps, which falls with the square of their size",
        ),
        Finding(
            "rods that part",
            "-",
            f"kick x 8: apart {100 * hard['part of the time apart']:.0f} % of the time, by up to "
            f"{1e3 * hard['largest gap']:.2f} mm, and back; the gap never falls below "
            f"{min(one['least gap'] for one in numbers.values()):.0e} m",
            "the contact pushes and never pulls",
        ),
    ]
