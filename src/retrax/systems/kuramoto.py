"""Coupled oscillators."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.mechanics.flow import AbstractSpaceFlow
from retrax.mechanics.state import State
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import float64, require_finite, require_shape
from retrax.numerics.evaluate import evaluate_in_jax
from retrax.spaces.torus import Torus

Scalar = Float[Array, ""]
Phases = Float[Array, "n 2"]


class Kuramoto(AbstractSpaceFlow):
    r"""Oscillators that pull each other's phases, on the torus.

    $$
    \begin{aligned}
    \dot\theta_k &= \omega_k + \frac Kn\sum_j\sin(\theta_j - \theta_k)             &&\text{(1)}\\
    \dot\varphi &= D - K\sin\varphi, \quad \varphi = \theta_2 - \theta_1,\
        D = \omega_2 - \omega_1 \quad(n = 2)                                       &&\text{(2)}
    \end{aligned}
    $$

    The sum of the phases grows at the rate $\sum_k\omega_k$, exactly so in every method here. Two
    oscillators have a closed solution: $(a, b) = (\sin\tfrac\varphi2, \cos\tfrac\varphi2)$ is, up
    to its length, the solution of a linear equation,

    $$ \frac{d}{dt}\begin{pmatrix}a\\ b\end{pmatrix} = M\begin{pmatrix}a\\ b\end{pmatrix}, \qquad
       M = \frac12\begin{pmatrix}-K & D\\ -D & K\end{pmatrix}, \qquad
       M^2 = -\nu^2, \quad \nu^2 = \tfrac14(D^2 - K^2). \tag{3} $$

    **Arguments:**

    - `frequencies`: $\omega_k$ in rad/s.
    - `coupling`: $K$ in rad/s.

    References: [Kuramoto1984].
    """

    frequencies: Float[Array, " n"]
    coupling: Scalar

    def __init__(self, frequencies: ArrayLike, coupling: ArrayLike):
        self.frequencies = float64("frequencies", frequencies)
        self.coupling = float64("coupling", coupling)
        if self.frequencies.ndim != 1 or not self.frequencies.size:
            raise BadInput(
                f"frequencies has shape {self.frequencies.shape}, but must be a list of numbers."
            )
        require_shape("coupling", self.coupling, ())
        require_finite("frequencies", self.frequencies)
        require_finite("coupling", self.coupling)

    @classmethod
    def example(cls) -> tuple["Kuramoto", State, float, int]:
        """Return five oscillators, coupled too weakly to move as one: system, state, h, steps."""
        system = cls([-0.9, -0.2, 0.1, 0.4, 1.1], 0.8)
        start = evaluate_in_jax(
            Torus.at_angles, system.space, np.array([0.3, -1.0, 2.0, 0.7, -2.2])
        )
        return system, system.at(start), 0.05, 2_000

    @property
    def space(self) -> Torus:
        return Torus(self.frequencies.shape[0])

    @property
    def name(self) -> str:
        return "Kuramoto oscillators"

    def generator(self, t: Scalar, y: Phases) -> Float[Array, " n"]:
        c, s = y[:, 0], y[:, 1]
        pull = c * jnp.sum(s) - s * jnp.sum(c)
        return self.frequencies + self.coupling / self.space.n * pull  # (1)

    def exact(self, start: ArrayLike, t: ArrayLike) -> np.ndarray:
        """Return the points of two oscillators at the times `t`, one `(2, 2)` array for each."""
        if self.space.n != 2:
            raise BadInput(f"{self.space.n} oscillators have no closed solution, only two have.")
        y, t = np.asarray(start, dtype=float), np.asarray(t, dtype=float)
        w1, w2 = np.asarray(self.frequencies)
        K, D = float(self.coupling), float(w2 - w1)
        theta = np.arctan2(y[:, 1], y[:, 0])
        half = (theta[1] - theta[0]) / 2
        a0, b0 = np.sin(half), np.cos(half)
        nu = np.sqrt(complex(D * D - K * K)) / 2
        c = np.cos(nu * t).real
        s = (np.sin(nu * t) / nu).real if nu else t
        a = c * a0 + s * (-K * a0 + D * b0) / 2  # (3)
        b = c * b0 + s * (-D * a0 + K * b0) / 2
        mean, half = (theta.sum() + (w1 + w2) * t) / 2, np.arctan2(a, b)
        angles = np.stack([mean - half, mean + half], axis=-1)
        return np.stack([np.cos(angles), np.sin(angles)], axis=-1)
