"""What retrax raises: one family of exceptions, each message a sentence."""

import sys
import warnings
from typing import Any

# A word and a line of a message: longer ones, of values and of paths, lose their middle.
_WORD, _LINE = 400, 1400
# Modules that may stand between the line of a user's that calls retrax and the one that warns.
_BETWEEN = frozenset({"retrax", "contextlib", "functools", "jax", "equinox", "jaxtyping"})


def warn(sentence: str, category: type[Warning] = UserWarning) -> None:
    """Warn, and name the line outside of retrax that called it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, category, stacklevel=level)


def printable(text: str) -> str:
    """Return text that a terminal shows and does not obey: one line, no control characters.

    Whatever comes out of a file passes here: names, provenance, sentences about failures.
    """
    if text.isprintable():
        return text
    spaced = (" " if c.isspace() else c for c in text)
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode()
        for c in spaced
    )


def printable_lines(text: str) -> str:
    """Do the same for a text of several lines, which stay lines."""
    return "\n".join(map(printable, text.split("\n")))


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 3 :]}"


class RetraxError(Exception):
    """The base of every exception that retrax raises on purpose.

    Its message is one line that ends with a full stop, whatever the text of a value holds.
    """

    def __init__(self, message: object = ""):
        line = " ".join(_shorten(word, _WORD) for word in printable(str(message)).split())
        line = _shorten(line, _LINE)
        super().__init__(line if line.endswith((".", "?", "!")) or not line else f"{line}.")


class BadInput(RetraxError, ValueError):
    """An argument breaks a rule; the message names the argument, its value and the rule."""


class UnknownKeyword(BadInput, TypeError):
    """A keyword is not known; the message names the one that was meant, or those there are."""


class StepFailed(RetraxError):
    """A step did not converge.

    **Attributes:**

    - `trajectory`: what was computed up to the failure, or `None`.
    """

    def __init__(self, message: str, trajectory: Any = None):
        super().__init__(message)
        self.trajectory = trajectory


class SweepStopped(RetraxError):
    """A sweep stopped early; its store stays, and the same sweep goes on from it."""


class Interrupted(RetraxError):
    """A signal stopped a run that has a checkpoint; the message says how to go on.

    **Attributes:**

    - `trajectory`: what was computed up to there.
    - `signal`: the number of the signal.
    """

    def __init__(self, message: str, trajectory: Any = None, signal: int = 2):
        super().__init__(message)
        self.trajectory = trajectory
        self.signal = signal


class CheckpointFailed(RetraxError):
    """A checkpoint could not be written; what was committed before is whole.

    **Attributes:**

    - `trajectory`: what was computed up to there, or `None`.
    """

    def __init__(self, message: str, trajectory: Any = None):
        super().__init__(message)
        self.trajectory = trajectory


class NotWritten(RetraxError, OSError):
    """A file could not be written, for example to a full disk. What was there is unchanged."""


class CheckFailed(RetraxError, AssertionError):
    """A law that `retrax.testing` checks does not hold; the message names it and by how much."""


class NoEquilibrium(RetraxError):
    """No state of rest was found near the one to start from."""


class NoPlan(RetraxError):
    """No plan was found; the message says what stands in its way.

    **Attributes:**

    - `plan`: the last iterate, which is no plan: its steps may not lead to each other.
    """

    def __init__(self, message: str, plan: Any = None):
        super().__init__(message)
        self.plan = plan


class ContactLost(StepFailed):
    """Two rods no longer roll on each other; the message says when and why."""


class Separation(ContactLost):
    """The rods would have to pull on each other to stay in contact."""


class Slip(ContactLost):
    """The contact needs more friction than there is."""


class ContactLeftRod(ContactLost):
    """The contact has come to the end of a rod."""


class ContactDegenerate(ContactLost):
    """The rods are too parallel or too curved for one point of contact."""


class ContactTooFast(ContactLost):
    """A point of contact has reached the speed of the waves, where the model ends."""
