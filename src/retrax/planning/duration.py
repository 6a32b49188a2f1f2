"""How long a plan takes: a number, or free."""

import math

from retrax.errors import BadInput
from retrax.numerics.checks import as_float, require_number
from retrax.numerics.meant import explain_keywords


class Free:
    """A duration that is chosen with the plan.

    **Arguments:** `guess`: where to start from, in seconds; `lower`, `upper`: its bounds.
    """

    @explain_keywords
    def __init__(self, guess: float, *, lower: float = 0.0, upper: float = math.inf):
        self.guess = require_number("the guess of a free duration", guess, "> 0", "s")
        self.lower = require_number("lower", lower, ">= 0", "s")
        free = as_float(upper) == math.inf
        self.upper = math.inf if free else require_number("upper", upper, "> 0", "s")
        if not self.lower < self.upper:
            raise BadInput(
                f"the bounds of a free duration cross: lower = {self.lower} s is not below upper = "
                f"{self.upper} s."
            )
        if not self.lower <= self.guess <= self.upper:
            raise BadInput(
                f"the guess of {self.guess} s for a free duration is not between its bounds, "
                f"{self.lower} s and {self.upper} s."
            )

    def __repr__(self) -> str:
        return f"Free({self.guess}, lower={self.lower}, upper={self.upper})"
