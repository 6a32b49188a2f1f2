"""Names that a user types, looked up with patience."""

from retrax.cases.choices import choose as choose
