r"""What an optimal control problem is made of, one stage at a time, and its exact derivatives.

Unknowns are changes $d = (\eta, \delta\mu)$ of states, $g \leftarrow g\exp\eta$, and of inputs and
of the step. In these charts the step from state $k$ is the equation $d_{k+1} = \varphi_k$ with

$$
\varphi_k(d_k, \delta u_k, \delta h) = \bigl(\log(g_{k+1}^{-1} G),\ M - \mu_{k+1}\bigr),
\qquad (G, M) = \Phi(x_k, u_k, h), \tag{1}
$$

which is linear in $d_{k+1}$, so that the Hessian of the Lagrangian has no entries between stages.
$\varphi_k = 0$ at no change says that the step leads from one state to the next.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from retrax.groups.base import Element
from retrax.integrators.driven import Driven
from retrax.mechanics.functions import Function
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.frozen import Frozen
from retrax.planning.ends import AbstractEnd

Numbers = Float[Array, " _"]


class Sizes(NamedTuple):
    """How many numbers there are of everything.

    **Attributes:** `element`: in a configuration; `dim`: in an algebra vector; `inputs`; `path`:
    inequalities along the way; `ends`: equations at the end; `free`: 1 where the duration is free;
    `bounded`: whether inputs have bounds.
    """

    element: int
    dim: int
    inputs: int
    path: int
    ends: int
    free: int
    bounded: bool

    @property
    def state(self) -> int:
        """Changes of a state."""
        return 2 * self.dim

    @property
    def node(self) -> int:
        """Numbers of a state."""
        return self.element + self.dim

    @property
    def changes(self) -> int:
        """Changes at a stage: of its state, its inputs and the step."""
        return self.state + self.inputs + 1

    @property
    def sides(self) -> int:
        """Right sides of the recursion: one, that of the step, and those of the end."""
        return 1 + self.free + self.ends

    @property
    def limits(self) -> int:
        """Multipliers of the bounds of inputs, below and above."""
        return 2 * self.inputs if self.bounded else 0

    @property
    def stage(self) -> int:
        """Variables of a stage: inputs, costates, multipliers of bounds, slacks and theirs."""
        return self.inputs + self.state + self.limits + 2 * self.path

    @property
    def values(self) -> int:
        return self.state + self.changes + self.path + 1

    @property
    def slopes(self) -> int:
        size = self.changes
        return self.state * size + size * (size + 1) // 2 + self.path * size + size


def upper(matrix: Float[Array, "n n"]) -> Numbers:
    """Return the numbers on and above the diagonal, row by row."""
    rows, columns = np.triu_indices(matrix.shape[0])
    return matrix[rows, columns]


def symmetric(numbers: Numbers, size: int) -> Float[Array, "n n"]:
    """Return the symmetric matrix of what `upper` gives."""
    place = np.zeros((size, size), int)
    rows, columns = np.triu_indices(size)
    place[rows, columns] = place[columns, rows] = np.arange(len(rows))
    return numbers[place]


def cut(numbers: Numbers, *sizes: int) -> list[Numbers]:
    """Cut a vector into pieces of these lengths."""
    ends = np.cumsum(sizes)
    assert numbers.shape == (ends[-1],), (numbers.shape, sizes)
    return [numbers[e - s : e] for s, e in zip(sizes, ends, strict=True)]


def apart(along: Float[Array, " n *m"]) -> Float[Array, " n *m"]:
    """Return the same array, in a scalar program taken out of the memory that a loop filled."""
    return jnp.stack([along[k] for k in range(along.shape[0])])


class Model(Frozen):
    """Plant, step, costs and constraints: everything at a stage but the iterate.

    **Attributes:** `cost`: `cost(g, xi, u, t)`; `final_cost`: `final_cost(g, mu)` or `None`;
    `path`: `path(g, xi, u)`, to be non-negative, or `None`; `end`: `end(g, mu)`, to be zero, or
    `None`; `frozen`: the inputs that are given, NaN for those to be found, or `None`.
    """

    system: AbstractGroupSystem
    step: Driven
    cost: Function
    final_cost: Function | None
    path: Function | None
    end: Function | None
    frozen: Numbers | None
    sizes: Sizes = eqx.field(static=True)

    def element(self, numbers: Numbers) -> Element:
        """Return a configuration from its numbers."""
        leaves, tree = jax.tree.flatten(self.system.group.layout())
        parts = cut(numbers, *(int(np.prod(leaf.shape)) for leaf in leaves))
        shaped = [x.reshape(leaf.shape) for x, leaf in zip(parts, leaves, strict=True)]
        return jax.tree.unflatten(tree, shaped)

    def node(self, numbers: Numbers) -> tuple[Element, Numbers]:
        """Return configuration and momentum from their numbers."""
        g, mu = cut(numbers, self.sizes.element, self.sizes.dim)
        return self.element(g), mu

    def displace(self, node: tuple[Element, Numbers], change: Numbers) -> tuple[Element, Numbers]:
        """Return a state after a change, for derivatives at no change."""
        group, (eta, dmu) = self.system.group, cut(change, self.sizes.dim, self.sizes.dim)
        return group.compose(node[0], group.exp(eta)), node[1] + dmu

    def aim(self, start: Numbers, clock: Numbers) -> list[Numbers]:
        r"""Return coefficients of the way to aim along: $g_0\exp(a\tau + b\tau^2 + c\tau^3)$.

        It leads to the end in `clock[0]` seconds, with the velocities of both ends.
        """
        group, T = self.system.group, clock[0]
        g, mu = self.node(start)
        first = T * self.system.velocity_at(State(g, mu, clock[1]))
        if not isinstance(self.end, AbstractEnd):
            return [jnp.concatenate([first, jnp.zeros(2 * self.sizes.dim)])]
        there, velocity = self.end.target(g)
        whole = group.log(group.compose(group.inverse(g), there))
        if velocity is None:
            return [jnp.concatenate([first, whole - first, jnp.zeros(self.sizes.dim)])]
        last = group.dexp_inv(whole, T * velocity)
        b, c = 3 * whole - 2 * first - last, first + last - 2 * whole
        return [jnp.concatenate([first, b, c])]

    def along(self, start: Numbers, way: Numbers, bump: Numbers, clock: Numbers) -> list[Numbers]:
        r"""Return the state at $\tau$ on the way, `clock` being $T$, $t_0$ and $\tau$.

        A `bump` is added that leaves both ends as they are.
        """
        s, system, group = self.sizes, self.system, self.system.group
        a, b, c = cut(way, s.dim, s.dim, s.dim)
        T, t0, tau = clock[0], clock[1], clock[2]
        g0, mu0 = self.node(start)
        hill, slope = (tau * (1 - tau)) ** 2, 2 * tau * (1 - tau) * (1 - 2 * tau)
        phi = tau * (a + tau * (b + tau * c)) + 16 * hill * bump
        rate = (a + tau * (2 * b + 3 * tau * c) + 16 * slope * bump) / T
        g = group.advance(g0, group.expm1(phi))
        mu = system.momentum(g, group.dexp(phi, rate))
        if system.constraint is not None:
            mu = system.project_momentum(g, mu, t0 + tau * T)
        mu = jnp.where(tau > 0, mu, mu0)
        leaves = zip(jax.tree.leaves(g), jax.tree.leaves(g0), strict=True)
        numbers = [jnp.ravel(jnp.where(tau > 0, x, y)) for x, y in leaves]
        return [jnp.concatenate([*numbers, mu])]

    def between(self, here: Numbers, there: Numbers, part: Numbers) -> list[Numbers]:
        """Return the state at a part of the geodesic between two, its momentum in between."""
        group, ((g, mu), (g1, mu1)) = self.system.group, (self.node(here), self.node(there))
        way = group.log(group.compose(group.inverse(g), g1))
        leaves = jax.tree.leaves(group.advance(g, group.expm1(part[0] * way)))
        return [jnp.concatenate([*map(jnp.ravel, leaves), mu + part[0] * (mu1 - mu)])]

    def stage(self, here: Numbers, there: Numbers, own: Numbers, clock: Numbers) -> list[Numbers]:
        r"""Return values and derivatives at a stage.

        **Arguments:** `here`, `there`: the states at both ends; `own`: the variables of the stage;
        `clock`: step, time of the start, number of the stage.

        **Returns:** values: $\varphi$, the gradient of
        $\Lambda = h\,l + \lambda\cdot\varphi - z\cdot c$, the path's $c$, and $h\,l$; slopes: the
        Jacobian of $\varphi$, the Hessian of $\Lambda$ above the diagonal, the Jacobian of $c$ and
        the gradient of $h\,l$.
        """
        s = self.sizes
        system, group = self.system, self.system.group
        start, (g1, mu1) = self.node(here), self.node(there)
        u, lam, _, _, z = cut(own, s.inputs, s.state, s.limits, s.path, s.path)
        h, t0, k = clock[0], clock[1], clock[2]
        back = group.inverse(g1)

        def parts(w: Numbers) -> tuple[Numbers, Numbers, Array]:
            dx, du, dh = cut(w, s.state, s.inputs, 1)
            g, mu = self.displace(start, dx)
            asked, size = u + du, h + dh[0]
            # A frozen input moves nothing, and is brought to what it is by a cost of its own.
            frozen = asked if self.frozen is None else self.frozen
            inputs = jnp.where(frozen == frozen, frozen, asked)
            away = asked - inputs
            t = t0 + k * size
            state = State(g, mu, t, inputs)
            xi = system.velocity_at(state)
            new, info = self.step.step(system, state, size)
            phi = jnp.concatenate([group.log(group.compose(back, new.g)), new.momentum - mu1])
            phi = jnp.where(info.converged & info.in_chart, phi, jnp.nan)
            c = jnp.zeros(0) if self.path is None else jnp.ravel(self.path(g, xi, inputs))
            return phi, c, size * (self.cost(g, xi, inputs, t) + 0.5 * (away @ away))

        def slope_at(w: Numbers) -> tuple[Numbers, Numbers, Numbers, Array]:
            (phi, c, cost), pull = jax.vjp(parts, w)
            (slope,) = pull((lam, -z, jnp.ones(())))
            return phi, slope, c, cost

        at = jnp.zeros(s.changes)
        (phi, slope, c, cost), push = jax.linearize(slope_at, at)
        dphi, hessian, dc, dcost = map(apart, lax.map(push, jnp.eye(s.changes)))
        values = jnp.concatenate([phi, slope, c, cost[None]])
        slopes = [dphi.T.ravel(), upper(hessian), dc.T.ravel(), dcost]
        return [values, jnp.concatenate(slopes)]

    def last(self, here: Numbers, nu: Numbers) -> list[Numbers]:
        r"""Return $L$, $\psi$, their gradients and the Hessian of $L + \nu\cdot\psi$ at the end."""
        s, node = self.sizes, self.node(here)

        def parts(w: Numbers) -> tuple[Numbers, Array]:
            g, mu = self.displace(node, w)
            psi = jnp.zeros(0) if self.end is None else jnp.ravel(self.end(g, mu))
            cost = jnp.zeros(()) if self.final_cost is None else self.final_cost(g, mu)
            return psi, jnp.asarray(cost)

        def slope_at(w: Numbers) -> tuple[Numbers, Numbers, Array]:
            (psi, cost), pull = jax.vjp(parts, w)
            (slope,) = pull((nu, jnp.ones(())))
            return psi, slope, cost

        (psi, _, cost), push = jax.linearize(slope_at, jnp.zeros(s.state))
        dpsi, hessian, dcost = map(apart, lax.map(push, jnp.eye(s.state)))
        return [jnp.concatenate([cost[None], psi, dcost, dpsi.T.ravel(), upper(hessian)])]

    def move(
        self, there: Numbers, own: Numbers, dthere: Numbers, down: Numbers, lengths: Numbers
    ) -> list[Numbers]:
        r"""Take a step: the state at the end of a stage and the variables of the stage, moved.

        Costates belong to a chart, and pass to the one at the new state:
        $\lambda \leftarrow (\mathrm{dexp}^{-1}_\eta)^*\lambda$.

        **Arguments:** `dthere`, `down`: the changes; `lengths`: how far to go along them, with
        inputs and with multipliers of inequalities.
        """
        s, group = self.sizes, self.system.group
        g, mu = self.node(there)
        eta, dmu = cut(lengths[0] * dthere, s.dim, s.dim)
        counts = (s.inputs, s.state, s.limits, s.path, s.path)
        old, change = cut(own, *counts), cut(down, *counts)
        ahead = (lengths[0], lengths[0], lengths[1], lengths[0], lengths[1])
        u, lam, limits, slack, z = (x + a * dx for x, a, dx in zip(old, ahead, change, strict=True))
        turned = group.dexp_inv_dual(eta, lam[: s.dim])
        new = [jnp.ravel(leaf) for leaf in jax.tree.leaves(group.advance(g, group.expm1(eta)))]
        return [
            jnp.concatenate([*new, mu + dmu]),
            jnp.concatenate([u, turned, lam[s.dim :], limits, slack, z]),
        ]
