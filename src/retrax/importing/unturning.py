"""A joint that slides along several directions and does not turn."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from retrax.mechanisms.joints import AbstractJoint
from retrax.mechanisms.laws import AbstractLaw, InPlanes, Several, Unturned
from retrax.mechanisms.pose import Place
from retrax.mechanisms.written import local, view_from


class Unturning(AbstractJoint):
    """The second body slides and does not turn; in planes, if there are any.

    **Arguments:** `a`, `b`: the bodies; `normals`: of the planes of `a` in which `at` stays; `at`:
    a point of `b`; `name`.
    """

    def __init__(self, a: str, b: str, normals: Sequence[np.ndarray], at: np.ndarray, name: str):
        self._write(a, b, name)
        self.normals, self.at = list(normals), at

    def law(self, *places: Place) -> AbstractLaw:
        assert self.at is not None
        (Ra, _), (Rb, _) = places
        still = Unturned(jnp.asarray(Rb.T @ Ra))
        if not self.normals:
            return still
        n = np.stack([view_from(places[0], normal) for normal in self.normals])
        a, b = (jnp.asarray(local(place, self.at)) for place in places)
        return Several((still, InPlanes(jnp.asarray(n), a, b)))
