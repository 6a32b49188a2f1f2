"""Decompositions of small matrices and what is solved with them, entry by entry, as LAPACK does.

`lu` exchanges rows for the largest pivot, so `jnp.linalg.solve`, `inv` and `det` take the same
pivots here and on XLA. A matrix that is singular gives infinities there, and one that is not
positive definite has a Cholesky factor of NaN.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from jax.extend.core import JaxprEqn as Equation

from retrax.engine.axes.loops import Operands, entry
from retrax.engine.kinds import Unscalarisable, constant, kind_of_variable
from retrax.engine.program import Operand
from retrax.engine.trace.arithmetic import Arithmetic, single

# Matrices of more rows, and longer arrays to sort, are left to XLA.
_MOST_ROWS = 16


class LinearAlgebra:
    """Rules for matrices; a rule takes an equation and its inputs, with axes of batches first."""

    def __init__(self, arithmetic: Arithmetic):
        self.arithmetic, self.emit = arithmetic, arithmetic.emit

    def lu(self, equation: Equation, ins: list[Operands]) -> list[Operands]:
        """Factorise P A = L U by elimination: both factors in one matrix, pivots, order of rows."""
        return _for_each_matrix(self._lu, ins)

    def _lu(self, a: Operands) -> list[Operands]:
        _require_small(a)
        a, (rows, columns) = np.array(a, object), a.shape
        pivots = np.empty(min(rows, columns), object)
        order = np.empty(rows, object)
        order[:] = [constant(i, "i32") for i in range(rows)]
        for k in range(len(pivots)):
            pivots[k] = self._largest(a[k:, k], k)
            for i in range(k + 1, rows):
                here = self.emit("eq", entry(pivots, (k,)), constant(i, "i32"))
                a[k], a[i] = self._choose(here, a[k], a[i]), self._choose(here, a[i], a[k])
                first, other = entry(order, (k,)), entry(order, (i,))
                order[k] = self.emit("select", here, first, other)
                order[i] = self.emit("select", here, other, first)
            zero = self.emit("eq", entry(a, (k, k)), 0.0)
            divisor = self.emit("select", zero, entry(a, (k, k)), 1.0)
            for i in range(k + 1, rows):
                a[i, k] = self.emit("div", entry(a, (i, k)), divisor)
                for j in range(k + 1, columns):
                    a[i, j] = self._less(entry(a, (i, j)), entry(a, (i, k)), entry(a, (k, j)))
        return [a, pivots, order]

    def _largest(self, column: Operands, first: int) -> Operand:
        """Find the row of the entry that is largest in size, the first of equal ones."""
        best: Operand = constant(first, "i32")
        size = self.emit("abs", entry(column, (0,)))
        for i in range(1, len(column)):
            other = self.emit("abs", entry(column, (i,)))
            larger = self.emit("gt", other, size)
            best = self.emit("select", larger, best, constant(first + i, "i32"))
            size = self.emit("select", larger, size, other)
        return best

    def _choose(self, here: Operand, otherwise: Operands, then: Operands) -> Operands:
        return self.arithmetic.entrywise("select", single(here), otherwise, then)

    def _less(self, x: Operand, *factors: Operand) -> Operand:
        return self.emit("sub", x, self.emit("mul", *factors))

    def triangular_solve(self, equation: Equation, ins: list[Operands]) -> list[Operands]:
        """Solve A X = B, or X A = B, for a triangular A or its transpose."""
        params = equation.params
        lower = params["lower"] != params["transpose_a"]

        def solve(a: Operands, b: Operands) -> list[Operands]:
            _require_small(a)
            a = a.T if params["transpose_a"] else a
            if params["left_side"]:
                return [self._substitute(a, b, lower, params["unit_diagonal"])]
            return [self._substitute(a.T, b.T, not lower, params["unit_diagonal"]).T]

        return _for_each_matrix(solve, ins)

    def _substitute(self, a: Operands, b: Operands, lower: bool, unit: bool) -> Operands:
        x, n = np.array(b, object), len(a)
        for i in range(n) if lower else reversed(range(n)):
            for column in range(x.shape[1]):
                value = entry(x, (i, column))
                for j in range(i) if lower else range(i + 1, n):
                    value = self._less(value, entry(a, (i, j)), entry(x, (j, column)))
                x[i, column] = value if unit else self.emit("div", value, entry(a, (i, i)))
        return x

    def cholesky(self, equation: Equation, ins: list[Operands]) -> list[Operands]:
        """Factorise A = L L^T, from the lower half of A."""
        return _for_each_matrix(self._cholesky, ins)

    def _cholesky(self, a: Operands) -> list[Operands]:
        _require_small(a)
        n, positive = len(a), True
        factor = np.full(a.shape, 0.0, object)
        for j in range(n):
            for i in range(j, n):
                value = entry(a, (i, j))
                for k in range(j):
                    value = self._less(value, entry(factor, (i, k)), entry(factor, (j, k)))
                if i == j:
                    positive = self.emit("and", positive, self.emit("gt", value, 0.0))
                    factor[i, i] = self.emit("sqrt", value)
                else:
                    factor[i, j] = self.emit("div", value, entry(factor, (j, j)))
        rows, columns = np.tril_indices(n)
        factor[rows, columns] = self._choose(positive, single(math.nan), factor[rows, columns])
        return [factor]

    def sort(self, equation: Equation, ins: list[Operands]) -> list[Operands]:
        """Sort along an axis by the first array; the others go with it, equal ones in order."""
        params = equation.params
        axis = params["dimension"]
        if params["num_keys"] != 1 or ins[0].shape[axis] > _MOST_ROWS:
            raise Unscalarisable("'sort' has several keys or many entries")
        arrays = [np.moveaxis(np.array(x, object), axis, 0) for x in ins]
        kind = kind_of_variable(equation.invars[0])
        for last in reversed(range(1, len(arrays[0]))):
            for k in range(last):
                less = self.arithmetic.total_less(arrays[0][k + 1], arrays[0][k], kind)
                for x in arrays:
                    low = self.arithmetic.entrywise("select", less, x[k], x[k + 1])
                    high = self.arithmetic.entrywise("select", less, x[k + 1], x[k])
                    x[k, ...], x[k + 1, ...] = low, high
        return [np.moveaxis(x, 0, axis) for x in arrays]


def _for_each_matrix(
    rule: Callable[..., Sequence[Operands]], ins: Sequence[Operands]
) -> list[Operands]:
    """Apply a rule of matrices along all axes but the last two."""
    batch = ins[0].shape[:-2]
    if not batch:
        return [np.asarray(x, object) for x in rule(*ins)]
    found = [rule(*(x[index] for x in ins)) for index in np.ndindex(*batch)]
    outs = []
    for k in range(len(found[0])):
        parts = np.empty((len(found), *found[0][k].shape), object)
        for i, results in enumerate(found):
            parts[i, ...] = results[k]
        outs.append(parts.reshape(*batch, *found[0][k].shape))
    return outs


def _require_small(a: Operands) -> None:
    if max(a.shape) > _MOST_ROWS:
        raise Unscalarisable(f"it decomposes a matrix of {max(a.shape)} rows")
