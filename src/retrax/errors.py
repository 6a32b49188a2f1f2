"""What retrax raises: one family of exceptions, each message a sentence."""

from typing import Any


class RetraxError(Exception):
    """The base of every exception that retrax raises on purpose."""


class BadInput(RetraxError, ValueError):
    """An argument breaks a rule; the message names the argument, its value and the rule."""


class StepFailed(RetraxError):
    """A step did not converge.

    **Attributes:**

    - `trajectory`: what was computed up to the failure, or `None`.
    """

    def __init__(self, message: str, trajectory: Any = None):
        super().__init__(message)
        self.trajectory = trajectory


class CheckFailed(RetraxError, AssertionError):
    """A law that `retrax.testing` checks does not hold; the message names it and by how much."""
