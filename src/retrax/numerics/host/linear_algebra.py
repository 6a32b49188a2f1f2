"""Rules for matrices: decompositions and triangular systems."""

from typing import Any

import numpy as np

from retrax.numerics.host.program import Call, Equation, NoRule, Rules


def _or_nan(function: Call, x: Any, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Decompose a stack of matrices; NaN where one of them cannot be decomposed."""
    stack = x.reshape(-1, *x.shape[-2:])
    found = [np.full((len(stack), *shape), np.nan, x.dtype) for shape in shapes]
    for k, matrix in enumerate(stack):
        if np.isfinite(matrix).all():
            try:
                parts = function(matrix)
            except np.linalg.LinAlgError:
                continue
            for array, part in zip(found, parts, strict=True):
                array[k] = part
    return [array.reshape(*x.shape[:-2], *array.shape[1:]) for array in found]


def _cholesky(x: Any) -> Any:
    n = x.shape[-1]
    return _or_nan(lambda a: [np.linalg.cholesky(a)], x, (n, n))[0]


def _eigh(equation: Equation) -> Call:
    if equation.params["subset_by_index"] is not None:
        raise NoRule("eigh")
    half = "L" if equation.params["lower"] else "U"

    def decompose(x: Any) -> list[Any]:
        n = x.shape[-1]
        return _or_nan(lambda a: np.linalg.eigh(a, half)[::-1], x, (n, n), (n,))

    return decompose


def _qr(equation: Equation) -> Call:
    if equation.params["pivoting"]:
        raise NoRule("qr")
    mode: Any = "complete" if equation.params["full_matrices"] else "reduced"
    return lambda x: list(np.linalg.qr(x, mode))


def _svd(equation: Equation) -> Call:
    full, vectors = equation.params["full_matrices"], equation.params["compute_uv"]
    if equation.params["subset_by_index"] not in (None, (0, None)):
        raise NoRule("svd")

    def decompose(x: Any) -> list[Any]:
        m, n = x.shape[-2:]
        k = min(m, n)
        if not vectors:
            return _or_nan(lambda a: [np.linalg.svd(a, compute_uv=False)], x, (k,))

        def parts(a: Any) -> list[Any]:
            u, s, rows = np.linalg.svd(a, full)
            return [s, u, rows]

        left, right = (m, m if full else k), (n if full else k, n)
        return _or_nan(parts, x, (k,), left, right)

    return decompose


def _lu(x: Any) -> list[Any]:
    """Eliminate with partial pivoting; the factors in one matrix, the swaps, the permutation."""
    lu = np.array(x)
    m, n = lu.shape[-2:]
    flat = lu.reshape(-1, m, n)
    swaps = np.zeros((len(flat), min(m, n)), np.int32)
    order = np.tile(np.arange(m, dtype=np.int32), (len(flat), 1))
    for k in range(min(m, n)):
        swaps[:, k] = k + np.argmax(np.abs(flat[:, k:, k]), axis=1)
        for matrix, rows, other in zip(flat, order, swaps[:, k], strict=True):
            matrix[[k, other]] = matrix[[other, k]]
            rows[[k, other]] = rows[[other, k]]
        top = flat[:, k, k, None]
        column = flat[:, k + 1 :, k]
        factors = np.where(top == 0, column, column / np.where(top == 0, 1.0, top))
        flat[:, k + 1 :, k] = factors
        flat[:, k + 1 :, k + 1 :] -= factors[:, :, None] * flat[:, k, None, k + 1 :]
    batch = x.shape[:-2]
    return [lu, swaps.reshape(*batch, -1), order.reshape(*batch, m)]


def _triangular(equation: Equation) -> Call:
    p = equation.params
    left, unit = p["left_side"], p["unit_diagonal"]
    turned = p["transpose_a"]
    lower = p["lower"] != turned

    def solve(a: Any, b: Any) -> Any:
        if turned:
            a = np.swapaxes(a, -1, -2)
        if p["conjugate_a"]:
            a = np.conj(a)
        x = np.array(b if left else np.swapaxes(b, -1, -2))
        if not left:
            a = np.swapaxes(a, -1, -2)
        down = lower if left else not lower
        n = a.shape[-1]
        for k in range(n) if down else range(n - 1, -1, -1):
            before = slice(0, k) if down else slice(k + 1, n)
            x[..., k, :] -= np.matmul(a[..., k, None, before], x[..., before, :])[..., 0, :]
            if not unit:
                x[..., k, :] /= a[..., k, k, None]
        return x if left else np.swapaxes(x, -1, -2)

    return solve


RULES: Rules = {
    "cholesky": lambda equation: _cholesky,
    "eigh": _eigh,
    "qr": _qr,
    "svd": _svd,
    "lu": lambda equation: _lu,
    "triangular_solve": _triangular,
}
