"""Vectors along a rod that may depend on time: rest shapes, muscles and loads."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.mechanics.functions import Function
from retrax.numerics.frozen import Frozen

Rows = Float[Array, "places 3"]
Scalar = Float[Array, ""]


class Along(Frozen):
    """A function of arc length and time, at fixed places of a rod.

    **Attributes:** `function`: of arc length and time, with three numbers as its value; `arcs`: of
    the places; `weights`: by which values are multiplied, such as the length that a node has.
    """

    function: Function
    arcs: Float[Array, " places"]
    weights: Float[Array, " places"] | None

    def at(self, t: Scalar) -> Rows:
        """Return its values at the time `t`, one row a place."""
        rows = jax.vmap(lambda s: jnp.asarray(self.function(s, t)))(self.arcs)
        return rows if self.weights is None else rows * self.weights[:, None]

    def among(self, places: int, first: int) -> "Along":
        """Return the same among more places: zero elsewhere, its own beginning with `first`."""
        beside = (first, places - first - self.arcs.shape[0])
        own = jnp.ones_like(self.arcs) if self.weights is None else self.weights
        return Along(self.function, jnp.pad(self.arcs, beside, mode="edge"), jnp.pad(own, beside))


class OfTime(Frozen):
    """A function of time alone, as one of arc length and time."""

    function: Function

    def __call__(self, s: Scalar, t: Scalar) -> Float[Array, "3"]:
        return jnp.asarray(self.function(t))


class Profile(Frozen):
    """The sum of a constant vector along a rod and of functions of time.

    **Attributes:** `constant`: a row for each place, or `None`; `driven`: the functions, or, once
    the time is set, their rows.
    """

    constant: Rows | None
    driven: tuple[Along | Rows, ...] = ()

    @property
    def is_driven(self) -> bool:
        """Whether it depends on time."""
        return bool(self.driven)

    def at(self, t: Scalar) -> "Profile":
        """Return what it is at one time."""
        rows = tuple(x.at(t) if isinstance(x, Along) else x for x in self.driven)
        return Profile(self.constant, rows)

    def rows(self) -> Rows:
        """Return a row for each place; the time must have been set."""
        parts = [] if self.constant is None else [self.constant]
        for part in self.driven:
            if isinstance(part, Along):
                raise BadInput(
                    "this rod depends on time, so ask rod.at_time(t) for forces and energies at "
                    "the time t."
                )
            parts.append(part)
        return sum(parts[1:], start=parts[0])


def at_time(profile: Profile | None, t: Scalar) -> Profile | None:
    """Return what a profile is at one time; `None` stays `None`."""
    return None if profile is None else profile.at(t)


def stack(
    profiles: Sequence[Profile | None],
    sizes: Sequence[int],
    gap: int = 0,
    missing: Sequence[float] = (0.0, 0.0, 0.0),
) -> Profile | None:
    """Put profiles one after the other; `None` if none is given.

    `sizes` are their numbers of places, `gap` is the number of rows of zeros between two of them,
    and `missing` stands in the rows of those that are `None`.
    """
    if all(profile is None for profile in profiles):
        return None
    places, first = sum(sizes) + gap * (len(sizes) - 1), 0
    constant, driven = [], []
    for profile, size in zip(profiles, sizes, strict=True):
        own = jnp.asarray(missing) if profile is None else profile.constant
        own = jnp.zeros(3) if own is None else own
        constant += [jnp.broadcast_to(own, (size, 3)), jnp.zeros((gap, 3))]
        for part in () if profile is None else profile.driven:
            assert isinstance(part, Along)
            driven.append(part.among(places, first))
        first += size + gap
    return Profile(jnp.concatenate(constant)[:places], tuple(driven))
