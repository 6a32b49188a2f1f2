"""Ready systems: a class or a function each, with its invariants declared."""

from typing import Any

from retrax.lazy import load, places

_WHERE = places(__file__)


def __getattr__(name: str) -> Any:
    """Load a system when it is first used."""
    if name not in _WHERE:
        from retrax.numerics.meant import no_attribute

        raise no_attribute("module 'retrax.systems'", name, _WHERE)
    found = globals()[name] = load(_WHERE[name], name)
    return found


def __dir__() -> list[str]:
    return sorted(_WHERE)
