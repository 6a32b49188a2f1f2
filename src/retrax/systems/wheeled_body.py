"""A body that turns by turning wheels inside it: a spacecraft with reaction wheels."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.product import Product
from retrax.groups.so3 import SO3
from retrax.groups.translation import Translation
from retrax.mechanics.functions import Function
from retrax.mechanics.mechanical import AbstractMechanicalSystem, Inertia, checked_inertia
from retrax.mechanics.remembered import Drawing, told
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Symmetries
from retrax.mechanics.system import ArrayLike, Element
from retrax.numerics.checks import finite64, float64, positive64, require_direction
from retrax.numerics.evaluate import evaluate, evaluate_in_jax
from retrax.numerics.known import require_each

# An axis of this length, up to rounding, is kept bit for bit.
_UNIT = 1e-15


class WheeledBody(AbstractMechanicalSystem):
    r"""A free rigid body with wheels that spin about axes fixed in it.

    The configuration is $(R, \theta)$ on $SO(3)\times\mathbb R^N$: the attitude, body axes to space
    axes, and the angle of each wheel against the body. Wheel $i$ spins about the unit vector $a_i$
    and has the moment $s_i$ about it; $I$ is the inertia of the body with its wheels locked:

    $$ L = \tfrac12\,\Omega\cdot I\Omega + \sum_i\bigl\{s_i\,\dot\theta_i\,a_i\cdot\Omega
       + \tfrac12s_i\,\dot\theta_i^2\bigr\}. \tag{1} $$

    The momenta are those of the whole, $\pi = I\Omega + \sum_is_i\dot\theta_ia_i$ in body axes, and
    of each wheel about its axis, $p_i = s_i(\dot\theta_i + a_i\cdot\Omega)$. A motor torque acts on
    $p_i$ alone; the body feels the reaction through (1), and $R\pi$ stays what it is.

    **Arguments:**

    - `inertia`: principal moments, or the matrix, of the body **with its wheels locked**, about
        the centre of mass (kg m^2).
    - `axes`: $a_i$ in body axes, a row for each wheel, of any length but zero.
    - `spin`: $s_i$, one number for all or one for each (kg m^2).
    - `physical`: whether to reject an inertia that no body can have.

    **Invariants:** energy; the spatial angular momentum $R\,\pi$; the momentum $p_i$ of each wheel.

    References: [MarsdenRatiu1999].
    """

    inertia: Inertia
    axes: Float[Array, "n 3"]
    spin: Float[Array, " n"]
    force: Function | None = None

    symmetry: ClassVar[tuple[tuple[float, ...], ...] | None] = None
    units: ClassVar[dict[str, str]] = {
        "angular momentum": "kg m²/s",
        "momentum of the wheels": "kg m²/s",
        "speed of the wheels": "rad/s",
    }

    def __init__(
        self, inertia: ArrayLike, axes: ArrayLike, spin: ArrayLike, *, physical: bool = True
    ):
        self.inertia = checked_inertia(SO3(), inertia, physical)
        self.axes = unit_vectors("axes", axes)
        count = self.axes.shape[0]
        given = float64("spin", spin)
        if given.shape == ():
            given = evaluate_in_jax(lambda x: jnp.broadcast_to(x, (count,)), given)
        self.spin = positive64("spin", given, (count,))
        require_each(_require_lighter, self.inertia, self.axes, self.spin)

    @property
    def name(self) -> str:
        return "body with wheels"

    @property
    def group(self) -> Product:
        return Product(SO3(), Translation(self.axes.shape[-2]))

    @property
    def invariant_inertia(self) -> bool:
        return True

    @property
    def free(self) -> bool:
        return True

    @property
    def drawing(self) -> Drawing | None:
        """What a picture needs: the inertia, and the axes of the wheels."""
        J = evaluate(jnp.diag, self.inertia) if self.inertia.ndim == 1 else self.inertia
        return told("wheels", inertia=(J, 2), axes=(self.axes, 2))

    def inertia_at(self, g: Element) -> Float[Array, "dim dim"]:
        return coupled_inertia(self.inertia, self.axes, self.spin)

    def potential_energy(self, g: Element) -> Float[Array, ""]:
        return jnp.zeros(())

    def symmetries(self) -> Symmetries:
        """Return the symmetries found, each once: the momentum of a wheel is in space and body."""
        found = super().symmetries()
        turning = np.any(found.body[:, :3] != 0, axis=1)
        return Symmetries(found.space, found.body[turning])

    def observables(self, state: State) -> dict[str, Float[Array, "..."]]:
        R, _ = state.g
        speed = self.velocity(state.g, state.momentum)[3:]
        return {
            "angular momentum": R @ state.momentum[:3],
            "momentum of the wheels": state.momentum[3:],
            "speed of the wheels": speed,
        }


def coupled_inertia(
    inertia: Inertia, axes: Float[Array, "n 3"], spin: Float[Array, " n"]
) -> Float[Array, "whole whole"]:
    """Return the matrix of (1), for velocities of the body and of its wheels."""
    locked = jnp.diag(inertia) if inertia.ndim == 1 else inertia
    across = axes.T * spin[None, :]
    top = jnp.concatenate([locked, across], axis=1)
    return jnp.concatenate([top, jnp.concatenate([across.T, jnp.diag(spin)], axis=1)])


def unit_vectors(name: str, value: object) -> Float[Array, "n 3"]:
    """Return rows as unit vectors; one that has the length 1 already stays as it is."""
    rows = float64(name, value)
    if rows.ndim != 2 or rows.shape[1] != 3 or not rows.shape[0]:
        raise BadInput(
            f"{name} has shape {rows.shape}, but must be (number, 3): a row for each direction."
        )
    rows = finite64(name, rows, rows.shape)

    def check(rows: np.ndarray) -> None:
        for k, row in enumerate(rows):
            require_direction(f"{name}[{k}]", row)

    require_each(check, rows)
    return evaluate_in_jax(_normalise, rows)


def _normalise(rows: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
    length = jnp.sqrt(jnp.sum(rows * rows, axis=1, keepdims=True))
    return jnp.where(jnp.abs(length - 1) <= _UNIT, rows, rows / length)


def _require_lighter(inertia: np.ndarray, axes: np.ndarray, spin: np.ndarray) -> None:
    """Reject wheels with more inertia than the whole that they are part of."""
    locked = np.diag(inertia) if inertia.ndim == 1 else inertia
    least = float(np.linalg.eigvalsh(locked - (axes.T * spin) @ axes)[0])
    if least <= 0:
        raise BadInput(
            f"spin = {spin.tolist()} kg m^2 is more than the whole body has: inertia is that with "
            f"the wheels locked, and without them {least:.4g} would be left about some axis, but "
            "it must be > 0."
        )
