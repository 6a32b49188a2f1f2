r"""Which combinations of the unknowns the measurements determine.

With every unknown divided by its size $s$, the singular values of $J\,\mathrm{diag}(s)$ say how
well each combination of relative changes is known:

$$ J\,\mathrm{diag}(s) = U\Sigma V^T, \qquad
   \mathrm{cov} = \sigma^2\,\mathrm{diag}(s)\,V\Sigma^{-2}V^T\mathrm{diag}(s), \tag{1} $$

combination $k$ to the part $\sigma/\Sigma_k$ of its size, with $\sigma$ the noise in units of what
was given. One that is not known to a factor of two, or whose singular value is a rounding error, is
not determined.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

# A singular value below this part of the largest is a rounding error of derivatives.
_ROUNDING = 1e-9
# A combination of relative size that is known to no better than this is not determined.
_UNKNOWN = 1.0
# What takes part in a combination with less than this does not.
_PART = 1e-3


class Identifiability(NamedTuple):
    """How well each combination of the unknowns is known.

    **Attributes:**

    - `singular_values`: of the scaled Jacobian, the largest first.
    - `combinations`: one in each row, in unknowns divided by `scales`.
    - `relative_errors`: the part of its size to which each combination is known.
    - `undetermined`: a sentence for each combination that is not determined; empty if all are.
    """

    singular_values: Float[np.ndarray, " unknown"]
    combinations: Float[np.ndarray, "unknown unknown"]
    scales: Float[np.ndarray, " unknown"]
    relative_errors: Float[np.ndarray, " unknown"]
    undetermined: tuple[str, ...]

    @property
    def determined(self) -> bool:
        """Whether every combination of the unknowns is determined."""
        return not self.undetermined


def identifiability(
    jacobian: np.ndarray, values: np.ndarray, scales: np.ndarray, names: Sequence[str], noise: float
) -> Identifiability:
    """Look at the Jacobian of weighted residuals.

    **Arguments:** `values`, `scales`, `names`: of the unknowns; `noise`: the standard deviation of
    a weighted residual.
    """
    n = len(scales)
    triangle = np.linalg.qr(jacobian * scales, mode="r")
    _, singular, basis = np.linalg.svd(triangle, full_matrices=True)
    singular = np.concatenate([singular, np.zeros(n - len(singular))])
    with np.errstate(divide="ignore"):
        errors = noise / singular
    lost = _count_lost(singular, errors)
    sentences = [_sentence(row, values / scales, names) for row in _sparse(basis[lost])]
    return Identifiability(singular, basis, scales, errors, tuple(sentences))


def covariance(found: Identifiability, noise: float) -> Float[np.ndarray, "unknown unknown"]:
    """Return (1); infinite for unknowns that take part in what is not determined."""
    lost = _count_lost(found.singular_values, found.relative_errors)
    kept = found.combinations[~lost] / found.singular_values[~lost, None]
    cov = noise**2 * (kept.T @ kept) * np.outer(found.scales, found.scales)  # (1)
    part = (np.abs(found.combinations[lost]) > _PART).any(axis=0)
    cov[part, :], cov[:, part] = np.nan, np.nan
    cov[part, part] = np.inf
    return cov


def _count_lost(singular: np.ndarray, errors: np.ndarray) -> np.ndarray:
    return (singular <= _ROUNDING * singular[0]) | ~(errors < _UNKNOWN)


def _sparse(rows: np.ndarray) -> np.ndarray:
    """Return the same space spanned by rows with as few entries as elimination leaves."""
    rows, done = rows.copy(), 0
    for _ in range(len(rows)):
        row, column = np.unravel_index(np.argmax(np.abs(rows[done:])), rows[done:].shape)
        rows[[done, done + row]] = rows[[done + row, done]]
        rows[done] /= rows[done, column]
        for other in range(len(rows)):
            if other != done:
                rows[other] -= rows[other, column] * rows[done]
        done += 1
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)


def _sentence(row: np.ndarray, relative: np.ndarray, names: Sequence[str]) -> str:
    part = np.flatnonzero(np.abs(row) > _PART)
    listed = _list_names([names[int(k)] for k in part])
    if len(part) == 1:
        return f"{listed} is not determined: the measurements hardly depend on it"
    own = relative[part] / max(np.linalg.norm(relative[part]), 1e-300)
    if abs(abs(own @ row[part]) - 1) < 1e-6:
        return f"{listed} are determined only up to a common factor"
    weights = row[part] / np.max(np.abs(row[part]))
    shown = " ".join(f"{w:+.2g} {names[int(k)]}" for w, k in zip(weights, part, strict=True))
    return f"the combination {shown} (relative changes) of {listed} is not determined"


def _list_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
