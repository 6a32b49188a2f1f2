"""The laws of a homogeneous space, as one function: for the spaces of retrax and for yours."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from retrax.mechanics.system import Coordinates
from retrax.numerics.checks import require_instance
from retrax.numerics.evaluate import evaluate
from retrax.spaces.base import AbstractHomogeneousSpace
from retrax.testing.laws import gap, generator, judge

SAMPLES = 6
REACH = (1.0, 0.7)  # of the two moves: their product stays where the logarithm is smooth
OFF = 1e-3
ALLOWED = 2e-14


def check_space(
    space: AbstractHomogeneousSpace, key: Key[Array, ""] | None = None
) -> dict[str, float]:
    r"""Check that `space` is one on which its group acts, to round-off, at random points.

    With $u\cdot y$ for `move(y, u)` and $\sigma$ the side,

    $$
    \begin{aligned}
    0\cdot y &= y, \qquad (-u)\cdot(u\cdot y) = y                                  &&\text{(1)}\\
    u\cdot(w\cdot y) &= \log(e^ue^w)\cdot y \ (\sigma = 1), \qquad
                        \log(e^we^u)\cdot y \ (\sigma = -1)                        &&\text{(2)}\\
    \tfrac{d}{d\epsilon}\big(u + \epsilon\,\mathrm{dexp}^{-1}_{-\sigma u}\xi\big)\cdot y
        &= \xi\cdot(u\cdot y)                                                      &&\text{(3)}\\
    \mathrm{lift}(y, \xi\cdot y)\cdot y &= \xi\cdot y                              &&\text{(4)}
    \end{aligned}
    $$

    (3) is the sign test: with the wrong side every method falls to order 2. Also checked: random,
    moved and projected points lie on the space, and moves keep the invariants of orbits.

    **Returns:** the largest error of each law, relative to the size of the terms compared, or to 1
    if they are smaller.

    **Raises:** `CheckFailed`, naming the law that is broken, by how much, and what is allowed.
    """
    what = "a space; pass one, such as Sphere(3)"
    require_instance("space", space, AbstractHomogeneousSpace, what)
    rng = generator(key)
    seed = rng.integers(2**31)
    u, w, xi = rng.standard_normal((3, SAMPLES, space.group.dim))
    u, w = (
        reach * x / np.linalg.norm(x, axis=1, keepdims=True)
        for reach, x in zip(REACH, (u, w), strict=True)
    )

    def look(seed, u, w, xi):
        keys = jax.random.split(jax.random.key(seed), SAMPLES)
        return jax.vmap(lambda key, u, w, xi: _look(space, key, u, w, xi))(keys, u, w, xi)

    seen = evaluate(look, seed, u, w, xi)
    zero = np.zeros(SAMPLES)
    errors = {law: gap(*sides) for law, sides in seen["equal"].items()}
    errors |= {law: gap(off[:, None], zero[:, None]) for law, off in seen["zero"].items()}
    return judge(repr(space), errors, ALLOWED)


def _look(
    space: AbstractHomogeneousSpace,
    key: Key[Array, ""],
    u: Coordinates,
    w: Coordinates,
    xi: Coordinates,
) -> dict[str, dict[str, Any]]:
    """Return both sides of each law at one point, and what must be zero there."""
    y, group = space.random(key), space.group
    moved = space.move(y, u)
    first, second = (u, w) if space.side == 1 else (w, u)
    both = group.log(group.compose(group.exp(first), group.exp(second)))
    slope = jax.jvp(lambda u: space.move(y, u), (u,), (space.dexp_inv(u, xi),))[1]
    at_rest = jax.jvp(lambda u: space.move(y, u), (jnp.zeros_like(u),), (xi,))[1]
    velocity = space.tangent(y, xi)
    disturbed = jax.tree.map(lambda x: x + OFF * jnp.cos(jnp.arange(x.size)).reshape(x.shape), y)
    equal = {
        "move(y, 0) = y": (space.move(y, jnp.zeros_like(u)), y),  # (1)
        "move(move(y, u), -u) = y": (space.move(moved, -u), y),  # (1)
        "a product moves as its factors do": (
            space.move(space.move(y, w), u),
            space.move(y, both),
        ),  # (2)
        "tangent is the derivative of move": (velocity, at_rest),
        "dexp_inv gives the rate of the chart": (slope, space.tangent(moved, xi)),  # (3)
        "lift(y, v) moves with v": (space.tangent(y, space.lift(y, velocity)), velocity),  # (4)
        "moves keep the invariants of the orbit": (
            _numbers(space.orbit_invariants(moved)),
            _numbers(space.orbit_invariants(y)),
        ),
    }
    zero = {
        "random points lie on the space": space.defect(y),
        "moved points lie on the space": space.defect(moved),
        "projected points lie on the space": space.defect(space.project(disturbed)),
    }
    return {"equal": equal, "zero": zero}


def _numbers(invariants: dict[str, Array]) -> Array:
    return jnp.stack([jnp.zeros(()), *invariants.values()])
