"""Numbers on a page: as few characters as the eye needs."""

import base64
from typing import Any

import numpy as np
from jaxtyping import Float

_LEVELS = 65535


def packed(values: Float[np.ndarray, "frames width"]) -> dict[str, Any]:
    """Columns in 65,536 levels between the least and the largest value of each.

    A value that is not finite is shown as the last finite one of its column.
    """
    whole = np.asarray(values, dtype=float)
    if not np.all(np.isfinite(whole)):
        whole = _held(whole)
    low, high = np.min(whole, axis=0), np.max(whole, axis=0)
    step = (high - low) / _LEVELS
    levels = np.round((whole - low) / np.where(step > 0, step, 1.0)).astype("<u2")
    return {
        "width": whole.shape[1],
        "low": _short(low),
        "step": _short(step),
        "data": base64.b64encode(levels.tobytes()).decode(),
    }


def unpacked(track: dict[str, Any]) -> Float[np.ndarray, "frames width"]:
    """What the page reads from `packed`."""
    levels = np.frombuffer(base64.b64decode(track["data"]), "<u2").reshape(-1, track["width"])
    return np.array(track["low"]) + np.array(track["step"]) * levels


def single(values: np.ndarray) -> str:
    """Numbers in single precision: seven digits, any size, NaN among them."""
    return base64.b64encode(np.asarray(values, dtype="<f4").tobytes()).decode()


def read_single(text: str) -> np.ndarray:
    """What the page reads from `single`."""
    return np.frombuffer(base64.b64decode(text), "<f4")


def plain(value: Any) -> Any:
    """An array as nested lists of six digits; what JSON asks for when it meets one."""
    if isinstance(value, np.ndarray):
        return _short(value) if value.ndim == 1 else [plain(row) for row in value]
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place on a page.")


def _short(values: np.ndarray) -> list[float]:
    return [float(f"{x:.6g}") for x in values]


def _held(values: np.ndarray) -> np.ndarray:
    finite = np.isfinite(values)
    last = np.where(finite, np.arange(len(values))[:, None], 0)
    out = np.take_along_axis(values, np.maximum.accumulate(last, axis=0), axis=0)
    return np.where(np.isfinite(out), out, 0.0)
