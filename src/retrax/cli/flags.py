"""Commands in whose help a flag is its name alone: no type, for it takes no value."""

from typing import Any

from typer.core import TyperCommand


def without_types(options: list[Any]) -> list[Any]:
    """Leave the type of flags out of the help."""
    for option in options:
        if getattr(option, "is_flag", False):
            option.metavar = ""
    return options


class Command(TyperCommand):
    """A command whose help shows flags without a type."""

    def get_params(self, ctx: Any) -> list[Any]:
        return without_types(super().get_params(ctx))
