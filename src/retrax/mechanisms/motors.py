"""Motors at joints: inputs of a mechanism."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import Element
from retrax.mechanisms.couplings import JointOrName, require_joint
from retrax.mechanisms.joined import pose_of
from retrax.mechanisms.measures import Coordinate
from retrax.mechanisms.written import require_name
from retrax.numerics.checks import as_float, quote
from retrax.numerics.frozen import Frozen
from retrax.numerics.meant import explain_keywords


class Motor:
    """A motor at a joint: an input that turns it or pushes it along.

    The input is a torque in N m at an angle, and a force in N at a position; it acts on the second
    body, and against it on the first.

    **Arguments:** `joint`: one with a single coordinate, or its name; `bounds`: `(lower, upper)` at
    which the input saturates; none if not given; `name`.
    """

    @explain_keywords
    def __init__(
        self,
        joint: JointOrName,
        bounds: tuple[float, float] | list[float] | None = None,
        name: str | None = None,
    ):
        self.joint, self.name = require_joint("joint", joint), require_name(name)
        self.bounds = None
        if bounds is not None:
            limits = [as_float(b) for b in bounds] if isinstance(bounds, tuple | list) else []
            if len(limits) != 2 or not limits[0] <= limits[1]:
                raise BadInput(f"bounds = {quote(bounds)} must be a pair (lower, upper).")
            self.bounds = (limits[0], limits[1])


class MotorMatrix(Frozen):
    """The matrix of the inputs of motors: a column is the row of the coordinate that it drives.

    **Attributes:** `coordinates`: of the motors; `bodies`: between which two each acts; `n`: how
    many bodies there are.
    """

    coordinates: tuple[Coordinate, ...]
    bodies: tuple[tuple[int, int], ...] = eqx.field(static=True)
    n: int = eqx.field(static=True)

    def __call__(self, g: Element) -> Float[Array, "dim motors"]:
        columns = []
        for coordinate, (a, b) in zip(self.coordinates, self.bodies, strict=True):
            q = coordinate.of(pose_of(g, a), pose_of(g, b))
            still = jnp.zeros_like(q.first)
            parts = [q.first if i == a else q.second if i == b else still for i in range(self.n)]
            columns.append(jnp.concatenate(parts))
        return jnp.stack(columns, axis=1)
