"""The exact motion of Euler's top."""

import jax.numpy as jnp
import numpy as np

from retrax.errors import BadInput
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import host_float64, require_finite, require_instance, require_shape
from retrax.numerics.elliptic import complete, incomplete, jacobi
from retrax.systems.euler_top import EulerTop

# Closer to the separatrix than this, relative to |m|^2, the period is infinite to the eye.
_SEPARATRIX = 1e-9
_SMALLEST, _LARGEST = 1e-70, 1e70
# Beyond this phase fewer than four of its digits after the point are known.
_LAST_PHASE = 1e12


def exact_momentum(top: EulerTop, start: ArrayLike, t: ArrayLike) -> np.ndarray:
    r"""The momenta at the times `t` of the top that starts from `start`, one row a time.

    With $I_1 > I_2 > I_3$, $L = |m|^2$ and $2HI_2 > L$ the body turns about the axis 3,

    $$ m = \bigl(A_1\,\mathrm{cn},\ A_2\,\mathrm{sn},\ sA_3\,\mathrm{dn}\bigr)(\nu t + u_0\mid k^2),
       \tag{1} $$

    with $A_1^2 = I_1\frac{L - 2HI_3}{I_1 - I_3}$, $A_2^2 = I_2\frac{L - 2HI_3}{I_2 - I_3}$,
    $A_3^2 = I_3\frac{2HI_1 - L}{I_1 - I_3}$, $s$ the sign of $m_3$, $k^2 = -(A_2/A_3)^2a_3/a_2$ and
    $\nu = sa_2A_1A_3/A_2$. For $2HI_2 < L$ the axes 1 and 3 change their roles.

    **Raises:** `BadInput` where moments coincide, on the separatrix $2HI_2 = L$, or for times so
    late that the phase $\nu t$ is lost in rounding.
    """
    moments, m = _given(top, start)
    t = host_float64("t", t)
    require_finite("t", t)
    order = _order(moments, m)
    (i1, i2, i3), (m1, m2, m3) = moments[order], m[order]
    twice, length = float(np.sum(m * m / moments)), float(m @ m)
    across = (length - twice * i3) / (i1 - i3)
    A1, A2 = np.sqrt(i1 * across), np.sqrt(i2 * (length - twice * i3) / (i2 - i3))
    A3 = np.sqrt(i3 * (twice * i1 - length) / (i1 - i3))
    # The sign of a permutation of the axes turns every rate around.
    parity = np.linalg.det(np.eye(3)[order])
    a2, a3 = parity * (1 / i1 - 1 / i3), parity * (1 / i2 - 1 / i1)
    s = np.sign(m3)
    if A2 == 0:
        return np.broadcast_to(m, (*np.shape(t), 3)).copy()
    k2 = -((A2 / A3) ** 2) * a3 / a2
    nu = s * a2 * A1 * A3 / A2
    if np.any(np.abs(t) > _LAST_PHASE / abs(nu)):
        raise BadInput(
            f"t reaches {np.max(np.abs(t)):g} s, where the phase of the motion is lost in "
            f"rounding: it must stay within {_LAST_PHASE / abs(nu):g} s of the start."
        )
    modulus = jnp.asarray(k2)
    u0 = incomplete(jnp.asarray(np.arctan2(m2 / A2, m1 / A1)), modulus)
    sn, cn, dn = jacobi(jnp.asarray(nu * t) + u0, modulus)
    out = np.empty((*np.shape(t), 3))
    out[..., order[0]], out[..., order[1]], out[..., order[2]] = A1 * cn, A2 * sn, s * A3 * dn
    return out  # (1)


def period(top: EulerTop, start: ArrayLike) -> float:
    r"""The time $4K(k^2)/|\nu|$ after which the momenta are back."""
    moments, m = _given(top, start)
    order = _order(moments, m)
    i1, i2, i3 = moments[order]
    twice, length = float(np.sum(m * m / moments)), float(m @ m)
    # A1 A3 / A2 and A2 / A3 of `exact_momentum`, written out.
    k2 = (i1 - i2) * (length - twice * i3) / ((i2 - i3) * (twice * i1 - length))
    nu = np.sqrt((i2 - i3) * (twice * i1 - length) / (i1 * i2 * i3))
    return float(4 * complete(jnp.asarray(k2)) / abs(nu))


def _given(top: EulerTop, start: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Moments and the first momentum, refused where they are none, or too large to be squared."""
    require_instance("top", top, EulerTop, "an EulerTop")
    m = host_float64("start", start)
    require_shape("start", m, (3,))
    require_finite("start", m)
    size = float(np.max(np.abs(m)))
    if not _SMALLEST < size < _LARGEST:
        raise BadInput(
            f"start = {m.tolist()} must have momenta whose squares are numbers: the largest from "
            f"{_SMALLEST:g} to {_LARGEST:g}."
        )
    return np.asarray(top.inertia, dtype=float), m


def _order(moments: np.ndarray, m: np.ndarray) -> np.ndarray:
    """The axes from the one about which the body does not turn to the one about which it does."""
    order = np.argsort(-moments)
    if not (np.diff(moments[order]) < 0).all():
        raise BadInput(f"inertia = {moments.tolist()} must have three different moments.")
    excess = float(np.sum(m * m / moments)) * moments[order[1]] - float(m @ m)
    if not abs(excess) > _SEPARATRIX * float(m @ m):
        raise BadInput(
            f"start = {m.tolist()} lies on the separatrix: 2 H I2 - |m|^2 = {excess:.3g}, but it "
            "must not vanish."
        )
    return order if excess > 0 else order[::-1]
