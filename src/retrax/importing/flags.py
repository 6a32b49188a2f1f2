"""Which parts of a MuJoCo model its flags, `<option><flag .../>`, switch off."""

from typing import NamedTuple

from retrax.importing.compiled import Model


class Off(NamedTuple):
    """What does not act in MuJoCo either, though the model has it.

    **Attributes:** by the names of the flags; `passive`: everything that acts by itself, fluid and
    compensation of gravity among it; `groups`: the groups of actuators, a bit each.
    """

    gravity: bool
    spring: bool
    damper: bool
    passive: bool
    actuation: bool
    clampctrl: bool
    equality: bool
    frictionloss: bool
    limit: bool
    contact: bool
    groups: int

    def actuator(self, group: int) -> bool:
        """Return whether the actuators of a group do nothing."""
        return self.actuation or (0 <= group <= 30 and bool(self.groups >> group & 1))


def list_switched_off(model: Model, bits: dict[str, int]) -> Off:
    """Return what the flags of a model switch off.

    **Arguments:** `bits`: the members of `mjtDisableBit`, whose numbers change between versions.
    """

    def off(flag: str) -> bool:
        return bool(int(model.opt.disableflags) & bits.get(f"mjDSBL_{flag}", 0))

    # One flag for springs and dampers in older versions.
    spring, damper = (off(flag) or off("PASSIVE") for flag in ("SPRING", "DAMPER"))
    unbound = off("CONSTRAINT")
    return Off(
        gravity=off("GRAVITY"),
        spring=spring,
        damper=damper,
        passive=spring and damper,
        actuation=off("ACTUATION"),
        clampctrl=off("CLAMPCTRL"),
        equality=unbound or off("EQUALITY"),
        frictionloss=unbound or off("FRICTIONLOSS"),
        limit=unbound or off("LIMIT"),
        contact=unbound or off("CONTACT"),
        groups=int(model.opt.disableactuator),
    )
