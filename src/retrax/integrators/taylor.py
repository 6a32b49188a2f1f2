"""Taylor's method: the series of the motion, and one move on the group at its end."""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from retrax.errors import BadInput
from retrax.groups.retractions import Cayley, Exp
from retrax.integrators.base import (
    AbstractIntegrator,
    Refusal,
    StepInfo,
    explicit_step,
    shorter_step,
)
from retrax.mechanics.flow import AbstractSpaceFlow
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates, Element
from retrax.numerics.checks import require_whole
from retrax.numerics.taylor.expansion import solution
from retrax.numerics.taylor.rules import NoSeries

Scalar = Float[Array, ""]

_HIGHEST = 40
# |u|^2 of a turn by 3 rad under the Cayley map, which loses digits near half a turn.
_WIDEST = 1024.0


class Taylor(AbstractIntegrator):
    r"""The Taylor polynomial of the motion, of any order, brought back to the group at its end.

    With $x = (g, \mu, t)$ and its coefficients $x_k$ along the step, $x(t + \theta h) = \sum_k
    x_k\theta^k$, which follow from each other by the recurrences of the vector field,

    $$
    \begin{aligned}
    (g, \mu, t)_{k+1} &= \frac h{k+1}\,\bigl(g\,\hat\xi,\ \dot\mu,\ 1\bigr)_k,
        \qquad k = 0, \dots, p-1                                              &&\text{(1)}\\
    u &= \tau^{-1}\bigl(g_0^{-1}\,\textstyle\sum_{k=0}^p g_k\bigr)            &&\text{(2)}\\
    g' &= g_0\,\tau(u), \qquad \mu' = \textstyle\sum_{k=0}^p\mu_k             &&\text{(3)}
    \end{aligned}
    $$

    with $\tau$ the Cayley map, or the exponential map on groups without it. Nothing is solved and
    the vector field is evaluated once, in arithmetic of series: the cost of a step grows as $p^2$,
    and orders of 10 to 16 are the cheapest way to errors of $10^{-9}$ and less.

    The configuration stays on the group, since (3) moves it there; energy and momentum drift by
    $h^{p+1}$ in a step, at high order by less than rounding errors. On a homogeneous space the
    series is that of the chart variable $u$ in $y = \exp(u)\cdot y_0$.

    **Arguments:** `order`: the degree $p$ of the polynomial, from 1 to 40.

    **Raises:** `BadInput`, when a run starts, where the vector field uses an operation whose series
    is not known, such as a loop that ends by a test; the sentence names it.

    References: [JorbaZou2005]; [IserlesMuntheKaasNorsettZanna2000].
    """

    order: int = eqx.field(static=True)
    preserves: ClassVar[frozenset[str]] = frozenset({"group"})
    needs_momentum: ClassVar[bool] = False

    def __init__(self, order: int):
        self.order = require_whole("order", order, 1, _HIGHEST)

    def __repr__(self) -> str:
        return f"Taylor({self.order})"

    def refusal(self, system: AbstractGroupSystem, state: State, h: float, moved: float) -> Refusal:
        return Refusal(
            "turned by almost half a turn",
            f"A step of Taylor's method turns by less than 3 rad (this one moves by about "
            f"|h xi| = {moved:.3g}).",
            shorter_step(h, moved),
        )

    def step(self, system: AbstractGroupSystem, state: State, h: Scalar) -> tuple[State, StepInfo]:
        end, info, _ = self.step_with_error(system, state, h)
        return end, info

    def step_with_error(
        self, system: AbstractGroupSystem, state: State, h: Scalar
    ) -> tuple[State, StepInfo, Scalar]:
        r"""Take a step; return it with its error: the larger of its last term and of the defect,

        $$ |x_p|, \qquad \frac1{p+1}\,\Bigl|\textstyle\sum_k k\,x_k - h f(x')\Bigr|, \tag{4} $$

        with $|x| = \max(|g|_\infty,\ |\mu|_\infty/\max(1, |\mu'|_\infty))$. The first is how far a
        polynomial of degree $p - 1$ ends. The second is the next term of the series, and sees what
        the terms do not: that a few of them vanish by symmetry, or that a force has changed within
        the step.
        """
        try:
            if isinstance(system, AbstractSpaceFlow):
                end, covered, error = _on_space(system, state, h, self.order)
            else:
                end, covered, error = _on_group(system, state, h, self.order)
        except NoSeries as missing:
            raise BadInput(
                f"{self!r} expands the vector field in a series, but that of the {system.name} "
                f"uses '{missing}', whose series is not known; use Collocation or RKMK."
            ) from None
        return end, explicit_step(h * system.velocity_at(state), covered), error


class _Moved(NamedTuple):
    """The end of a step, whether the chart covers the move there, and the error (4)."""

    end: State
    covered: Bool[Array, ""]
    error: Scalar


def _on_group(system: AbstractGroupSystem, state: State, h: Scalar, order: int) -> _Moved:
    group = system.group

    def field(x: tuple[Element, Coordinates, Scalar]) -> tuple[Element, Coordinates, Scalar]:
        now = system.vector_field(*x)
        return group.tangent(x[0], now.velocity), now.momentum_rate, jnp.ones(())

    start = (state.g, state.momentum, state.t)
    terms = solution(field, start, h, order)  # (1)
    g, mu, _ = jax.tree.map(_total, *terms)
    retraction = Cayley() if group.has_cayley else Exp()
    change = group.compose(group.inverse(state.g), group.fill_in(g))
    u = retraction.inverse(group, change)  # (2)
    new = group.advance(state.g, retraction.minus_identity(group, u))  # (3)
    if group.has_cayley:
        covered = group.angle_squared(u) < _WIDEST
    else:
        covered = retraction.covers(group, u)
    g_rate, mu_rate, _ = field((g, mu, state.t + h))
    (g_last, mu_last, _), (g_slope, mu_slope, _) = terms[-1], jax.tree.map(_slope, *terms)
    unit = jnp.maximum(1.0, _size(mu))
    error = jnp.maximum(
        _error(g_last, g_slope, g_rate, h, order),
        _error(mu_last, mu_slope, mu_rate, h, order) / unit,
    )
    return _Moved(State(new, mu, state.t + h), covered, error)


def _on_space(flow: AbstractSpaceFlow, state: State, h: Scalar, order: int) -> _Moved:
    space, y = flow.space, state.g

    def field(x: tuple[Coordinates, Scalar]) -> tuple[Coordinates, Scalar]:
        u, t = x
        return space.dexp_inv(u, flow.generator(t, space.near(y, u))), jnp.ones(())

    terms = solution(field, (jnp.zeros_like(state.momentum), state.t), h, order)
    u, _ = jax.tree.map(_total, *terms)
    end = State(space.move(y, u), state.momentum, state.t + h)
    rate, (slope, _) = field((u, state.t + h))[0], jax.tree.map(_slope, *terms)
    return _Moved(end, space.covers(u), _error(terms[-1][0], slope, rate, h, order))


def _total(*terms: Array) -> Array:
    """Sum a series, its small terms first."""
    total = terms[-1]
    for term in reversed(terms[:-1]):
        total = total + term
    return total


def _slope(*terms: Array) -> Array:
    """Return the slope of a series at the end of the step, by the part of the step."""
    return _total(*[k * term for k, term in enumerate(terms)])


def _error(last: PyTree, slope: PyTree, rate: PyTree, h: Scalar, order: int) -> Scalar:
    """Return (4), for one part of the state."""
    defect = jax.tree.map(lambda a, b: a - h * b, slope, rate)
    return jnp.maximum(_size(last), _size(defect) / (order + 1))


def _size(x: PyTree[Array]) -> Scalar:
    return jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(x)]))
