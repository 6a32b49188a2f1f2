"""Mechanical systems on Lie groups, simulated so that the numbers stay true.

`import retrax` loads JAX and little else: each name below brings its part of retrax with it when it
is first used.
"""

from importlib.metadata import version as _version
from typing import Any as _Any

from retrax.cli.start import end_quietly as _end_quietly
from retrax.lazy import load as _load
from retrax.lazy import places as _places

_end_quietly()

import jax as _jax

_jax.config.update("jax_enable_x64", True)

# Where each name is; `rx.show` needs an extra, so that it is not loaded with all the others.
_WHERE = _places(__file__)
_NAMES = ["__version__", *(name for name in _WHERE if name != "show")]
globals()["__all__"] = _NAMES
__version__ = _version("retrax")


def __getattr__(name: str) -> _Any:
    """Load what a name stands for when it is first used."""
    if name not in _WHERE:
        raise _no_attribute(name)
    found = globals()[name] = _load(_WHERE[name], name)
    return found


def _no_attribute(name: str) -> AttributeError:
    """Return what to raise for a name that is not here: it says where it is or what was meant."""
    from retrax.numerics.meant import no_attribute

    if not name.startswith("_"):
        places = [
            f"{place}.{word}"
            for place in ("systems", "solids", "analysis", "draw", "testing")
            for word in dir(_load(_WHERE[place], place))
            if word.lower().replace("_", "") == name.lower().replace("_", "")
        ]
        places.sort(key=lambda where: not where.endswith(f".{name}"))
        if places:
            where = f"rx.{places[0]}"
            return AttributeError(f"module 'retrax' has no attribute {name!r}: use {where}.")
    return no_attribute("module 'retrax'", name, _NAMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
