r"""Where a constraint on positions lets a system be: checks of a place, and ways to a better one.

With $\mathbb I$ the inertia and $\Phi$ the rows of $\varphi(g, t) = 0$, an impulse $\Phi^T\lambda$
moves a place the shortest way, in the metric of the kinetic energy, onto the constraint:

$$
\begin{aligned}
\varphi\bigl(g\exp(\mathbb I^{-1}\Phi(g)^T\lambda), t\bigr) &= 0                    &&\text{(1)}\\
g &\leftarrow g\exp\bigl(-s\,\mathbb I^{-1}\Phi^T(\Phi\,\mathbb I^{-1}\Phi^T)^{-1}\varphi\bigr)
                                                                                 &&\text{(2)}
\end{aligned}
$$

(1) is for places nearby and has derivatives; (2) is repeated, with $s$ halved until $|\varphi|$
falls, for places further off.
"""

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import Coordinates, Element, HostElement
from retrax.mechanics.constraints import Time
from retrax.mechanics.holonomic import AbstractHolonomic
from retrax.mechanics.reactions import answers
from retrax.mechanics.state import State
from retrax.numerics.evaluate import Evaluated, evaluate
from retrax.numerics.known import require_each
from retrax.numerics.newton import newton
from retrax.numerics.small_matrices import PROXIMAL, proximal_solve

if TYPE_CHECKING:
    from retrax.mechanics.system import AbstractGroupSystem

# What the host looks at may lie there already.
Place = Element | HostElement
HostTime = Time | Float[np.ndarray, ""]
# Where a run starts, a place may lie this far off the constraint, relative to its coordinates.
ALLOWED_GAP = 1e-10
# An equation whose slope vanishes this close to a place, on the same scale, has none there.
_NO_SLOPE = 1e-7
# A velocity may break an equation by this much, relative to its components along the row.
_CONSISTENT = 1e-10
_MOST, _HALVINGS = 200, 12


class Placement(NamedTuple):
    r"""What is looked at in a place: $\varphi$, the sums of $|\Phi|$, how fast rows turn, |g|."""

    positions: Array | np.ndarray
    slopes: Array | np.ndarray
    turning: Array | np.ndarray
    size: Array | np.ndarray


def require_placed(
    system: "AbstractGroupSystem", constraint: AbstractHolonomic, g: Place, t: HostTime
) -> None:
    """Reject a place off the constraint, and one where an equation of it has no slope."""
    check = partial(_require_placed, system, constraint)
    require_each(check, *_placement(system, constraint, g, t), fine=_is_placed)


def require_consistent(
    system: "AbstractGroupSystem",
    constraint: AbstractHolonomic,
    g: Place,
    mu: Coordinates | Float[np.ndarray, " dim"],
    t: HostTime,
) -> None:
    """Reject a place where no velocity satisfies all equations; `mu` is the best that was found."""

    def check(broken: np.ndarray, size: np.ndarray) -> None:
        if not np.all(broken <= _CONSISTENT * np.maximum(size, 1.0)):
            i = int(np.argmax(broken))
            raise BadInput(
                f"no velocity satisfies the constraint of the {system.name} at this g and t: "
                f"{constraint.equation(i)} contradicts the others, which leave its rate at "
                f"{broken[i]:.3g}."
            )

    def fine(broken: np.ndarray, size: np.ndarray) -> np.ndarray:
        return np.all(broken <= _CONSISTENT * np.maximum(size, 1.0), axis=-1)

    require_each(check, *_rates(system, constraint, g, mu, t), fine=fine)


@Evaluated
def _rates(
    system: "AbstractGroupSystem",
    constraint: AbstractHolonomic,
    g: Element,
    mu: Coordinates,
    t: Time,
) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
    """Return by how much a velocity breaks each equation, and its size along the rows."""
    xi = system.at_time(t).velocity(g, mu)
    broken = jnp.abs(constraint.violation(g, xi, t))
    return broken, constraint.reach(g, xi, t)


@Evaluated
def _placement(
    system: "AbstractGroupSystem", constraint: AbstractHolonomic, g: Element, t: Time
) -> Placement:
    group = system.group
    somewhere = jnp.cos(1.0 + jnp.arange(float(group.dim)))  # along no axis
    slopes, turning = constraint.steepness(g, group.tangent(g, somewhere), t)
    size = jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(g)]))
    return Placement(constraint.positions(g, t), slopes, turning, size)


def _slopes(placement: Placement) -> tuple[np.ndarray, np.ndarray]:
    """Return the size of each row, and whether it is as good as none."""
    _, slopes, turning, size = map(np.asarray, placement)
    return slopes, slopes <= _NO_SLOPE * turning * size[..., None]


def _distances(placement: Placement, slopes: np.ndarray) -> np.ndarray:
    """Return how far off each equation is, relative to the coordinates of the place."""
    far = np.maximum(placement.size, 1.0)[..., None]
    return np.abs(placement.positions) / (np.maximum(slopes, np.finfo(float).tiny) * far)


def _is_placed(*found: np.ndarray) -> np.ndarray:
    placement = Placement(*found)
    slopes, flat = _slopes(placement)
    return np.all(~flat & (_distances(placement, slopes) <= ALLOWED_GAP), axis=-1)


def _require_placed(
    system: "AbstractGroupSystem", constraint: AbstractHolonomic, *found: np.ndarray
) -> None:
    placement = Placement(*found)
    unknown = ~np.isfinite(placement.positions)
    if unknown.any():
        raise BadInput(
            f"the constraint of the {system.name} has no value at this g: "
            f"{constraint.equation(int(np.argmax(unknown)))} gives "
            f"{placement.positions[np.argmax(unknown)]}."
        )
    rough = ~np.isfinite(placement.slopes)
    if rough.any():
        raise BadInput(
            f"{constraint.equation(int(np.argmax(rough)))} has no derivative at this g, so the "
            f"constraint of the {system.name} does not say which velocities it leaves."
        )
    slopes, flat = _slopes(placement)
    if flat.any():
        i = int(np.argmax(flat))
        raise BadInput(
            f"the derivative of {constraint.equation(i)} vanishes at this g (its entries add up "
            f"to {slopes[i]:.3g}), so it says nothing about velocities: write "
            "an equation that crosses zero with a slope, such as x = 1 in place of (x - 1)^2 = 0."
        )
    away = _distances(placement, slopes)
    if not np.all(away <= ALLOWED_GAP):
        i = int(np.argmax(away))
        raise BadInput(
            f"g does not lie on the constraint of the {system.name}: {constraint.equation(i)} "
            f"misses zero by {abs(placement.positions[i]):.3g}, which is {away[i]:.1e} of the size "
            f"of g, allowed {ALLOWED_GAP:.0e}; system.assembled(g) finds a place on it."
        )


def place_near(
    system: "AbstractGroupSystem",
    constraint: AbstractHolonomic,
    g: Element,
    mu: Coordinates,
    t: Time,
) -> Element:
    r"""Return the place (1) next to `g`; `mu` is a momentum at which to ask for the inertia.

    NaN where there is none. It has derivatives: those of (1).
    """
    rows, group = constraint.position_rows(g, t), system.group
    ways = answers(system.at_time(t), rows, g, mu)

    def move(lam: Float[Array, " k"]) -> Element:
        return group.compose(g, group.exp(lam @ ways))

    given = jnp.sum(rows * ways, axis=1)
    lam, status = newton(
        lambda lam: constraint.positions(move(lam), t) / given,
        jnp.zeros(len(rows)),
        unseen=4 * float(jnp.finfo(jnp.float64).eps) / jnp.sqrt(given),
        proximal=jnp.full(len(rows), PROXIMAL),
    )
    lam = jnp.where(status.converged, lam, jnp.nan)
    return move(lam)  # (1)


def assemble(
    system: "AbstractGroupSystem", constraint: AbstractHolonomic, g: Place, t: HostTime
) -> HostElement:
    """Repeat (2) from `g` until it lies on the constraint.

    **Raises:** `BadInput`, with what is left of which equation, where it ends elsewhere.
    """
    g = jax.tree.map(np.asarray, g)
    best = _gap(constraint, g, t)
    for _ in range(_MOST):
        move, part = _towards(system, constraint, g, t), 1.0
        for _ in range(_HALVINGS):
            tried = _displace(system, g, part * np.asarray(move))
            gap = _gap(constraint, tried, t)
            if gap < best:
                break
            part /= 2
        else:
            break
        g, best = tried, gap
    found = Placement(*(np.asarray(x) for x in _placement(system, constraint, g, t)))
    away = _distances(found, _slopes(found)[0])
    if not np.all(away <= ALLOWED_GAP):
        i = int(np.argmax(away))
        raise BadInput(
            f"the {system.name} cannot be assembled from this g: where the search ends, "
            f"{constraint.equation(i)} misses zero by {abs(found.positions[i]):.3g}. The equations "
            "may contradict each other; or start closer to the place that you mean."
        )
    return g


def _gap(constraint: AbstractHolonomic, g: HostElement, t: HostTime) -> float:
    return float(evaluate(AbstractHolonomic.gap, constraint, g, t))


@Evaluated
def _towards(
    system: "AbstractGroupSystem", constraint: AbstractHolonomic, g: Element, t: Time
) -> Coordinates:
    """Return the move of (2) for s = 1."""
    now = system.at_time(t)
    rows = constraint.position_rows(g, t)
    ways = answers(now, rows, g, now.momentum(g, jnp.zeros(system.group.dim)))
    return -proximal_solve(rows @ ways.T, constraint.positions(g, t)) @ ways  # (2)


@Evaluated
def _displace(system: "AbstractGroupSystem", g: Element, move: Coordinates) -> Element:
    return system.group.compose(g, system.group.exp(move))


def changes_across(system: "AbstractGroupSystem", state: State) -> Float[Array, "k twice_dim"]:
    r"""Return the derivatives of $\varphi$ and of its rates in $(\eta, \alpha)$, zero rows without.

    Changes $(g\exp\eta, \mu + \alpha)$ of a state that they annihilate stay on the constraint.
    """
    group, constraint, t = system.group, system.constraint, jnp.asarray(state.t)
    n = group.dim
    if not isinstance(constraint, AbstractHolonomic):
        return jnp.zeros((0, 2 * n))

    def residual(z: Float[Array, " twice_dim"]) -> Float[Array, " k"]:
        g, mu = group.compose(state.g, group.exp(z[:n])), state.momentum + z[n:]
        across = constraint.violation(g, system.at_time(t).velocity(g, mu), t)
        return jnp.concatenate([constraint.positions(g, t), across])

    return jax.jacfwd(residual)(jnp.zeros(2 * n))
