"""Symmetric compositions: step fractions that raise the order of any symmetric second-order step.

A step of size $h$ becomes steps of sizes $\\gamma_1 h, \\dots, \\gamma_m h$ with
$\\gamma_i = \\gamma_{m+1-i}$ and $\\sum_i \\gamma_i = 1$. The coefficients solve the order
conditions with small $\\max|\\gamma_i|$; the middle one is computed from the sum.
"""

import numbers

from retrax.errors import BadInput
from retrax.numerics.checks import quote

# Order 4: Suzuki's five-fold step, gamma = 1/(4 - 4^(1/3)) four times: [Suzuki1990].
_SUZUKI = 1 / (4 - 4 ** (1 / 3))
# Orders 6 (nine stages) and 8 (seventeen stages): [KahanLi1997], as tabulated in
# [HairerLubichWanner2006] V.3.2, eqs. (3.11) and (3.13).
_OUTER: dict[int, tuple[float, ...]] = {
    4: (_SUZUKI, _SUZUKI),
    6: (
        0.39216144400731413927925056,
        0.33259913678935943859974864,
        -0.70624617255763935980996482,
        0.08221359629355080023149045,
    ),
    8: (
        0.13020248308889008087881763,
        0.56116298177510838456196441,
        -0.38947496264484728640807860,
        0.15884190655515560089621075,
        -0.39590389413323757733623154,
        0.18453964097831570709183254,
        0.25837438768632204729397911,
        0.29501172360931029887096624,
    ),
}


def fractions(order: int) -> tuple[float, ...]:
    """Return the step fractions $\\gamma_1, \\dots, \\gamma_m$ of the composition of that order."""
    if not isinstance(order, numbers.Integral) or order not in _OUTER:
        raise BadInput(f"order = {quote(order)} must be 4, 6 or 8 for a symmetric composition.")
    outer = _OUTER[order]
    middle = 1 - 2 * sum(outer)
    return (*outer, middle, *reversed(outer))
