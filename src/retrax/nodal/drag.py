"""The drag of a fluid on nodes."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.numerics.frozen import Frozen

Rows = Float[Array, "nodes 3"]


class Drag(Frozen):
    r"""The drag of a fluid at rest: a node loses the part $1 - e^{-\gamma t}$ of its momenta.

    **Attributes:** `rates`: $\gamma$ in 1/s of the momenta along the axes of the section, or one
    number where all are alike; `spin_rates`: those of the angular momenta. In rows where nodes
    differ, `None` where nothing is lost.
    """

    rates: Float[Array, "..."] | None
    spin_rates: Float[Array, "..."] | None

    def loss(
        self, frames: Float[Array, "nodes 3 3"], spun: Rows, pushed: Rows, h: Float[Array, ""]
    ) -> Float[Array, "nodes 6"]:
        """Return the change of the momenta in a time `h`, exactly, in frames that stand still."""

        def part(rates: Float[Array, "..."]) -> Float[Array, "..."]:
            return jnp.expm1(-h * rates)

        return self._change(frames, spun, pushed, part)

    def force(
        self, frames: Float[Array, "nodes 3 3"], spun: Rows, pushed: Rows
    ) -> Float[Array, "nodes 6"]:
        """Return the forces on nodes with these momenta."""
        return self._change(frames, spun, pushed, lambda rates: -rates)

    def _change(self, frames, spun, pushed, part) -> Float[Array, "nodes 6"]:
        turn = None
        if self.spin_rates is not None:
            turn = spun * jnp.broadcast_to(part(self.spin_rates), spun.shape)
        push = None
        if self.rates is not None:
            share = part(self.rates)
            if share.ndim == 0:
                push = share * pushed
            else:
                rows = jnp.broadcast_to(share, pushed.shape)
                push = jax.vmap(lambda R, c, p: R @ (c * (R.T @ p)))(frames, rows, pushed)
        return beside(turn, push)


def beside(torque: Rows | None, force: Rows | None) -> Float[Array, "nodes 6"]:
    """Torques and forces side by side; one of them may be missing, and is zero."""
    given = force if torque is None else torque
    assert given is not None
    none = jnp.zeros_like(given)
    parts = [none if part is None else part for part in (torque, force)]
    return jnp.concatenate(parts, axis=1)
