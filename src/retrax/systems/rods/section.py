"""The stiffnesses and the inertia of a round section."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import finite64, positive64
from retrax.numerics.evaluate import evaluated
from retrax.numerics.known import require_each

Number = float | Float[Array, ""]


def circular(
    young: ArrayLike, poisson: ArrayLike, density: ArrayLike, radius: ArrayLike
) -> dict[str, Float[Array, "..."]]:
    r"""The arguments of `Rod` for a round section of radius $a$.

    $$ GA = \frac{EA}{2(1 + \nu)}, \quad EI = \tfrac14 EA\,a^2, \quad GJ = \frac{EI}{1 + \nu},
       \quad \rho I = \tfrac14\rho A\,a^2. \tag{1} $$
    """
    nu = finite64("poisson", poisson)
    require_each(_require_poisson, nu, fine=lambda x: (x > -1) & (x <= 0.5))
    a = positive64("radius", radius)
    return evaluated(_round, positive64("young", young), nu, positive64("density", density), a)


def _round(young: Number, nu: Number, density: Number, a: Number) -> dict[str, Float[Array, "..."]]:
    area = jnp.pi * a * a
    return _section(young * area, nu, density * area, a)


def _require_poisson(nu: np.ndarray) -> None:
    if not -1 < float(nu) <= 0.5:
        raise BadInput(f"poisson = {float(nu)} must be above -1 and at most 1/2.")


def section(EA: Number, nu: Number, mass: Number, radius: Number) -> dict[str, Float[Array, "..."]]:
    """(1) from the stretching stiffness and the mass per length."""
    return evaluated(_section, EA, nu, mass, radius)


def _section(
    EA: Number, nu: Number, mass: Number, radius: Number
) -> dict[str, Float[Array, "..."]]:
    EI, rho_I = EA * radius**2 / 4, mass * radius**2 / 4
    GA, GJ = EA / (2 * (1 + nu)), EI / (1 + nu)
    return {
        "stretching": _triple(GA, GA, EA),
        "bending": _triple(EI, EI, GJ),
        "mass": jnp.asarray(mass, jnp.float64),
        "inertia": _triple(rho_I, rho_I, 2 * rho_I),
    }


def _triple(*values: Number) -> Float[Array, "3"]:
    return jnp.stack([jnp.asarray(value, jnp.float64) for value in values])
