"""Units of what is plotted, as far as the group tells."""

from retrax.show.factors import factors
from retrax.trajectory.trajectory import Trajectory


def unit(run: Trajectory, name: str) -> str:
    """The SI unit of an invariant, a `velocity` or a `momentum`; `SI` where components differ."""
    if name == "energy":
        return "J"
    if name != "velocity" and "momentum" not in name:
        return "SI"
    kinds = {
        "rotation" if f.kind.startswith("SO") else f.kind for f in factors(run.provenance["group"])
    }
    units = {
        frozenset({"rotation"}): {"velocity": "rad/s", "momentum": "kg m²/s"},
        frozenset({"R"}): {"velocity": "m/s", "momentum": "kg m/s"},
    }.get(frozenset(kinds), {})
    return units.get("velocity" if name == "velocity" else "momentum", "SI")
