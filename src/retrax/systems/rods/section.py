r"""Sections of rods: stiffnesses and inertia from the material and the shape.

With the area $A$, the second moments $I_1$ and $I_2$ about the two axes of the frame that lie in
the section and the torsion constant $K$ of Saint-Venant,

$$ C_1 = (k GA, k GA, EA), \quad C_2 = (EI_1, EI_2, GK), \quad
   J = \rho(I_1, I_2, I_1 + I_2), \quad G = \frac E{2(1 + \nu)}. \tag{1} $$

$K = I_1 + I_2$ for circles and tubes only; a section that is not round warps, and is softer.
"""

import abc
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.mechanics.functions import as_pytree
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import (
    MOST_NODES,
    finite64,
    float64,
    output,
    positive64,
    quote,
    require_above_zero,
    require_finite,
    require_instance,
    require_real,
    require_whole,
)
from retrax.numerics.evaluate import evaluate_in_jax
from retrax.numerics.frozen import Frozen
from retrax.numerics.known import require_each

Number = float | Float[Array, ""]
# A length of a section: one number, one for each segment, or a function of arc length.
Size = ArrayLike | Callable[[Float[Array, ""]], Float[Array, ""]]
# One number, or one for each segment.
Values = Float[Array, ""] | Float[Array, " segments"]


class Geometry(NamedTuple):
    """Area, second moments about both axes, and torsion constant, of one section or of many."""

    area: Values
    I1: Values
    I2: Values
    torsion: Values


class AbstractSection(Frozen):
    """The shape of a section; its sizes may change along the rod."""

    def __check_init__(self):
        known = {name: x for name, x in self.sizes().items() if not callable(x)}
        arrays = [_positive(name, value) for name, value in known.items()]
        for (name, _), array in zip(known.items(), arrays, strict=True):
            if array.ndim > 1:
                raise BadInput(
                    f"{name} has shape {array.shape}, but must be a number, one for each segment, "
                    "or a function of arc length."
                )
        if len(arrays) == len(self.sizes()):
            self._require_fit(arrays)

    def _require_fit(self, sizes: list[Values]) -> None:
        """Reject sizes of different lengths, and those that `check` rejects."""
        if len({x.shape for x in sizes if x.ndim}) > 1:
            shapes = ", ".join(
                f"{name} {x.shape}" for name, x in zip(self.sizes(), sizes, strict=True)
            )
            raise BadInput(f"the sizes of a {type(self).__name__} differ in shape: {shapes}.")
        require_each(self.check, *sizes)

    @abc.abstractmethod
    def sizes(self) -> dict[str, Size]:
        """Return the lengths that it is made of, by name."""

    @abc.abstractmethod
    def geometry(self, *sizes: Values) -> Geometry:
        """Return area and moments from the sizes, in the order of `sizes`."""

    def check(self, *sizes: np.ndarray) -> None:
        """Reject sizes that do not fit together."""


class Circle(AbstractSection):
    """A disk.

    **Arguments:** `radius`: in m; a number, one for each segment, or a function of arc length.
    """

    radius: Size

    def sizes(self) -> dict[str, Size]:
        return {"radius": self.radius}

    def geometry(self, *sizes: Values) -> Geometry:
        (a,) = sizes
        area = jnp.pi * a * a
        second = area * a * a / 4
        return Geometry(area, second, second, 2 * second)


class Ellipse(AbstractSection):
    """An ellipse with its axes along those of the frame.

    **Arguments:** `first`, `second`: the half axes along the first and the second axis of the
    frame, in m; each a number, one for each segment, or a function of arc length.
    """

    first: Size
    second: Size

    def sizes(self) -> dict[str, Size]:
        return {"first": self.first, "second": self.second}

    def geometry(self, *sizes: Values) -> Geometry:
        a, b = sizes
        area = jnp.pi * a * b
        a2, b2 = a * a, b * b
        return Geometry(area, area * b2 / 4, area * a2 / 4, area * a2 * b2 / (a2 + b2))


class Rectangle(AbstractSection):
    """A rectangle with its sides along the axes of the frame.

    **Arguments:** `first`, `second`: the sides along the first and the second axis of the frame, in
    m; each a number, one for each segment, or a function of arc length.
    """

    first: Size
    second: Size

    def sizes(self) -> dict[str, Size]:
        return {"first": self.first, "second": self.second}

    def geometry(self, *sizes: Values) -> Geometry:
        a, b = sizes
        area = a * b
        long, short = jnp.maximum(a, b), jnp.minimum(a, b)
        return Geometry(area, area * b * b / 12, area * a * a / 12, _torsion(long, short))


class Tube(AbstractSection):
    """A ring.

    **Arguments:** `outer`, `inner`: its radii in m; each a number, one for each segment, or a
    function of arc length.
    """

    outer: Size
    inner: Size

    def sizes(self) -> dict[str, Size]:
        return {"outer": self.outer, "inner": self.inner}

    def geometry(self, *sizes: Values) -> Geometry:
        R, r = sizes
        area = jnp.pi * (R - r) * (R + r)
        second = area * (R * R + r * r) / 4
        return Geometry(area, second, second, 2 * second)

    def check(self, *sizes: np.ndarray) -> None:
        outer, inner = np.broadcast_arrays(*sizes)
        if not np.all(inner < outer):
            k = int(np.argmin(np.ravel(outer - inner)))
            raise BadInput(
                f"section: the inner radius of a Tube, {np.ravel(inner)[k]:g} m, must be below its "
                f"outer radius, {np.ravel(outer)[k]:g} m."
            )


# The sum of 1/n^5 over all odd n.
_ODD_FIFTHS = 31 / 32 * 1.0369277551433699263


def _torsion(a: Values, b: Values) -> Values:
    r"""Return the torsion constant of a rectangle with the sides $a \ge b$.

    $$ K = \tfrac13 ab^3\Bigl(1 - \frac{192}{\pi^5}\frac ba\sum_{n\ \text{odd}}
       \frac1{n^5}\tanh\frac{n\pi a}{2b}\Bigr) $$
    """
    short_of = sum(2 / (n**5 * (jnp.exp(n * jnp.pi * a / b) + 1)) for n in range(1, 15, 2))
    return a * b**3 / 3 * (1 - 192 / jnp.pi**5 * (b / a) * (_ODD_FIFTHS - short_of))


def material(
    elements: int,
    length: ArrayLike,
    young: ArrayLike,
    poisson: ArrayLike,
    density: ArrayLike,
    radius: Size | None,
    section: AbstractSection | None,
    shear_correction: ArrayLike | None,
) -> dict[str, Float[Array, "..."]]:
    """Return the arguments of `Rod` for a material and either a radius or a section."""
    if (radius is None) == (section is None):
        raise BadInput(
            f"radius = {quote(radius)} and section = {quote(section)}: a rod needs exactly one of "
            "them."
        )
    if section is not None:
        require_instance("section", section, AbstractSection, "an Ellipse, a Rectangle or a Tube")
    elif radius is not None and (callable(radius) or float64("radius", radius).ndim > 0):
        section = Circle(radius)
    if section is None:
        assert radius is not None and not callable(radius)
        made = circular(young, poisson, density, radius)
    else:
        elements = require_whole("elements", elements, 2, MOST_NODES)
        middles = np.arange(elements) + 0.5
        arcs = evaluate_in_jax(lambda L: L / elements * middles, positive64("length", length))
        made = _from_material(section, arcs, young, poisson, density)
    if shear_correction is None:
        return made
    k = positive64("shear_correction", shear_correction)
    corrected = evaluate_in_jax(
        lambda C, k: C * jnp.stack([k, k, jnp.ones(())]), made["stretching"], k
    )
    return made | {"stretching": corrected}


def _from_material(
    section: AbstractSection,
    arcs: Float[Array, " segments"],
    young: ArrayLike,
    poisson: ArrayLike,
    density: ArrayLike,
) -> dict[str, Float[Array, "..."]]:
    """Return (1) without $k$; in rows where a size changes along the rod."""
    sizes = [_size(name, value, arcs) for name, value in section.sizes().items()]
    section._require_fit(sizes)
    given = positive64("young", young), _poisson(poisson), positive64("density", density)

    def whole(
        sizes: list[Values], young: Number, nu: Number, density: Number
    ) -> dict[str, Float[Array, "..."]]:
        of = section.geometry(*sizes)
        G = young / (2 * (1 + nu))
        GA = G * of.area
        polar = of.I1 + of.I2
        return {
            "stretching": _triple(GA, GA, young * of.area),
            "bending": _triple(young * of.I1, young * of.I2, G * of.torsion),
            "mass": density * of.area,
            "inertia": _triple(density * of.I1, density * of.I2, density * polar),
        }

    return evaluate_in_jax(whole, sizes, *given)


def _size(name: str, value: Size, arcs: Float[Array, " segments"]) -> Values:
    """Return a length of a section: one number, or one for each segment."""
    if callable(value):
        function = as_pytree(value)
        require_real(name, output(name, function, (jax.ShapeDtypeStruct((), jnp.float64),)), ())
        array = evaluate_in_jax(lambda s: jax.vmap(lambda x: jnp.asarray(function(x)))(s), arcs)
        require_finite(name, array)
        require_above_zero(name, array)
        return array
    array = _positive(name, value)
    if array.shape not in ((), arcs.shape):
        raise BadInput(
            f"{name} has shape {array.shape}, but must be a number, {arcs.shape[0]} numbers, "
            "one for each segment, or a function of arc length."
        )
    return array


def _positive(name: str, value: object) -> Float[Array, "..."]:
    array = float64(name, value)
    require_finite(name, array)
    require_above_zero(name, array)
    return array


def circular(
    young: ArrayLike, poisson: ArrayLike, density: ArrayLike, radius: ArrayLike
) -> dict[str, Float[Array, "..."]]:
    r"""Return the arguments of `Rod` for a round section of radius $a$ that is the same all along.

    $$ GA = \frac{EA}{2(1 + \nu)}, \quad EI = \tfrac14 EA\,a^2, \quad GJ = \frac{EI}{1 + \nu},
       \quad \rho I = \tfrac14\rho A\,a^2. \tag{2} $$
    """
    nu, a = _poisson(poisson), positive64("radius", radius)
    return evaluate_in_jax(
        _round, positive64("young", young), nu, positive64("density", density), a
    )


def _round(young: Number, nu: Number, density: Number, a: Number) -> dict[str, Float[Array, "..."]]:
    area = jnp.pi * a * a
    return _section(young * area, nu, density * area, a)


def _poisson(poisson: ArrayLike) -> Float[Array, ""]:
    nu = finite64("poisson", poisson)
    require_each(_require_poisson, nu, fine=lambda x: (x > -1) & (x <= 0.5))
    return nu


def _require_poisson(nu: np.ndarray) -> None:
    if not -1 < float(nu) <= 0.5:
        raise BadInput(f"poisson = {float(nu)} must be above -1 and at most 1/2.")


def section(EA: Number, nu: Number, mass: Number, radius: Number) -> dict[str, Float[Array, "..."]]:
    """Return (2) from the stretching stiffness and the mass per length."""
    return evaluate_in_jax(_section, EA, nu, mass, radius)


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


def _triple(*values: Number | Values) -> Float[Array, "*segments 3"]:
    return jnp.stack([jnp.asarray(value, jnp.float64) for value in values], axis=-1)
