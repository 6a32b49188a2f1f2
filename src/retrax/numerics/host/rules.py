"""Which primitive of JAX NumPy evaluates how: one table from its name to its rule."""

import numpy as np
from jax.extend import core as jex

from retrax.numerics.host import arithmetic, linear_algebra, moving, random_numbers
from retrax.numerics.host.control import control_rules
from retrax.numerics.host.program import HostProgram, Rules


def host_program(closed: jex.ClosedJaxpr) -> HostProgram:
    """Return the NumPy calls of a closed jaxpr.

    **Raises:** `NoRule` where it has a primitive that is not in the table.
    """
    with np.errstate(all="ignore"):
        return HostProgram(closed, RULES)


RULES: Rules = {
    **arithmetic.RULES,
    **moving.RULES,
    **linear_algebra.RULES,
    **random_numbers.RULES,
    **control_rules(host_program),
}
