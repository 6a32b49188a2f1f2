"""Refuse a subclass whose methods would be passed over: forces that are written out by hand."""

from retrax.errors import BadInput


def refuse_overrides(cls: type, fixed: tuple[str, ...], instead: str) -> None:
    """Refuse the class `cls` where it defines one of the names in `fixed` anew.

    **Raises:** `BadInput`, when the class is made.
    """
    for name in fixed:
        if name in vars(cls):
            raise BadInput(
                f"{cls.__name__}.{name} would have no effect, or only with some integrators: the "
                f"steps of a {cls.__mro__[1].__name__} use forces that are written out by hand; "
                f"{instead}."
            )
