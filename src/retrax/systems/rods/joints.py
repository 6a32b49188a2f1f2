r"""Joints between the ends of rods, and between ends and the ground.

The equations $\varphi(g) = 0$ of joints have rows $\Phi$ on few nodes: those of ends. All nodes
have inertias of their own, so joints without a common node do not see each other. Those that are
linked by nodes form a *knot*, of $k$ equations, which is solved by itself: with $M$ the inertia of
its nodes and $\mathrm{fl}_h$ their free flight,

$$
\begin{aligned}
0 &= \varphi(g_1), \quad g_1 = \mathrm{fl}_h(g_0, \mu + \Phi(g_0)^T\lambda)
     \text{ for the impulses } \lambda                                          &&\text{(1)}\\
P\mu &= \mu - \Phi^T(\Phi M^{-1}\Phi^T)^{-1}\Phi M^{-1}\mu                      &&\text{(2)}
\end{aligned}
$$

(1) keeps places, (2) takes from momenta and forces what the joints take up: together with the kicks
of `KickDriftKick` this is RATTLE.

References: [MarsdenWest2001].
"""

import re
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup
from retrax.groups.so3 import SO3
from retrax.mechanics.constraints import Rows, Time
from retrax.mechanics.holonomic import AbstractHolonomic
from retrax.mechanics.system import Coordinates
from retrax.mechanisms.body import GROUND
from retrax.mechanisms.joints import AbstractJoint
from retrax.mechanisms.laws import AbstractLaw
from retrax.mechanisms.pose import Place, Pose, ground
from retrax.nodal.flight import spin
from retrax.nodal.nodes import HostPlacement, Placement
from retrax.numerics.checks import quote, require_instance
from retrax.numerics.evaluate import evaluate
from retrax.numerics.newton import NewtonStatus, newton
from retrax.numerics.small_matrices import solve

_NAME = re.compile(r"rod (\d+) (first|last)")
# Rows are dependent where the smallest stiffness of a knot is this part of the largest.
_DEPENDENT = 1e-10


class Knot(NamedTuple):
    """Joints that are linked by common nodes: their numbers, and those of the nodes."""

    joints: tuple[int, ...]
    nodes: tuple[int, ...]


class EndJoints(AbstractHolonomic):
    """The joints of several rods.

    **Attributes:** `laws`: what each joint asks; `ends`: the nodes that each joins, `GROUND` for
    the ground; `names`: of the joints; `count`: how many nodes there are.
    """

    laws: tuple[AbstractLaw, ...]
    ends: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    count: int = eqx.field(static=True)

    rolling: ClassVar[None] = None

    def check(self, group: AbstractLieGroup) -> None:
        pass

    def equation(self, i: int) -> str:
        first = 0
        for law, name in zip(self.laws, self.names, strict=True):
            if i < first + law.count:
                return f"equation {i - first + 1} of the joint {name}"
            first += law.count
        return super().equation(i)

    @property
    def knots(self) -> tuple[Knot, ...]:
        """The joints, linked ones together."""
        knots: list[tuple[set[int], set[int]]] = []
        for joint, ends in enumerate(self.ends):
            joints, nodes = {joint}, set(ends) - {GROUND}
            for old in [knot for knot in knots if knot[1] & nodes]:
                knots.remove(old)
                joints, nodes = joints | old[0], nodes | old[1]
            knots.append((joints, nodes))
        return tuple(Knot(tuple(sorted(j)), tuple(sorted(n))) for j, n in knots)

    def positions(self, g: Placement, t: Time) -> Float[Array, " k"]:
        return jnp.concatenate(
            [law.residual(*_poses(g, ends)) for law, ends in zip(self.laws, self.ends, strict=True)]
        )

    def position_rows(self, g: Placement, t: Time) -> Rows:
        out = []
        for law, ends in zip(self.laws, self.ends, strict=True):
            rows = jnp.zeros((law.count, self.count, 6))
            for node, block in zip(ends, law.rows(*_poses(g, ends)), strict=True):
                if node != GROUND:
                    rows = rows.at[:, node].add(block)
            out.append(rows.reshape(law.count, -1))
        return jnp.concatenate(out)

    def position_rates(self, g: Placement, t: Time) -> Float[Array, " k"]:
        return jnp.zeros(sum(law.count for law in self.laws))

    def take_up(self, g: Placement, mobility: Coordinates, mu: Coordinates) -> Coordinates:
        """Return the part of momenta or forces that joints take up, to be subtracted: (2)."""
        moves, given = mobility.reshape(self.count, 6), mu.reshape(self.count, 6)
        total = jnp.zeros_like(given)
        for knot in self.knots:
            rows = self._rows(knot, _some(g, knot))
            inverse, own = (jnp.concatenate([x[k] for k in knot.nodes]) for x in (moves, given))
            yielding = (rows * inverse[None]) @ rows.T
            lam = solve(yielding, rows @ (inverse * own))
            total = total + _among(knot, self.count, lam @ rows)
        return total.reshape(-1)

    def impulses(
        self,
        g: Placement,
        inertia: Coordinates,
        mobility: Coordinates,
        mu: Coordinates,
        h: Float[Array, ""],
    ) -> tuple[Coordinates, list[NewtonStatus]]:
        """Return the impulses of (1), and how each knot was solved."""
        J, m, p = (x.reshape(self.count, 6) for x in (inertia, mobility, mu))
        total, met = jnp.zeros_like(p), []
        for knot in self.knots:
            lam, rows, status = self._solve(knot, g, J, m, p, h)
            total = total + _among(knot, self.count, lam @ rows)
            met.append(status)
        return total.reshape(-1), met

    def _solve(
        self,
        knot: Knot,
        g: Placement,
        inertia: Float[Array, "nodes 6"],
        mobility: Float[Array, "nodes 6"],
        mu: Float[Array, "nodes 6"],
        h: Float[Array, ""],
    ) -> tuple[Float[Array, " k"], Rows, NewtonStatus]:
        frames, places = start = _some(g, knot)
        J, m, p = (jnp.stack([x[k] for k in knot.nodes]) for x in (inertia, mobility, mu))
        rows = self._rows(knot, start)

        def mismatch(lam: Float[Array, " k"]) -> Float[Array, " k"]:
            pushed = p + (lam @ rows).reshape(-1, 6)
            w, _ = spin(J[:, :3], jnp.where(m[:, :3] > 0, pushed[:, :3], 0.0), h)
            turned = jax.vmap(SO3().advance)(frames, jax.vmap(SO3().caym1)(h * w))
            moved = places + h * (m[:, 3:] * pushed[:, 3:])
            return self._residual(knot, (turned, moved))  # (1)

        inverse = m.reshape(-1)
        yielding = h * ((rows * inverse[None]) @ rows.T)
        guess = -solve(yielding, mismatch(jnp.zeros(rows.shape[0])))
        lam, status = newton(mismatch, guess, 1 + jnp.sum(jnp.abs(places)))
        return lam, rows, status

    def _residual(self, knot: Knot, some: Placement) -> Float[Array, " k"]:
        return jnp.concatenate(
            [self.laws[j].residual(*_poses(some, self._local(knot, j))) for j in knot.joints]
        )

    def _rows(self, knot: Knot, some: Placement) -> Float[Array, "k m"]:
        """Return the rows of a knot on its own nodes."""
        out = []
        for j in knot.joints:
            ends = self._local(knot, j)
            blocks = self.laws[j].rows(*_poses(some, ends))
            none = jnp.zeros_like(blocks[0])
            on = {k: block for k, block in zip(ends, blocks, strict=True) if k != GROUND}
            out.append(jnp.concatenate([on.get(k, none) for k in range(len(knot.nodes))], axis=1))
        return jnp.concatenate(out)

    def _local(self, knot: Knot, joint: int) -> tuple[int, ...]:
        """Return the ends of a joint among the nodes of its knot."""
        return tuple(k if k == GROUND else knot.nodes.index(k) for k in self.ends[joint])


def end_joints(
    joints: object,
    drawn: HostPlacement | None,
    sizes: tuple[int, ...],
    mobility: np.ndarray | None,
    carried: tuple[int, ...],
) -> EndJoints | None:
    """Return the joints of rods in the placement `drawn`; `None` if there are none.

    `carried` are nodes on bases that move; `mobility` is `None` where it is not known yet.
    """
    if not isinstance(joints, list | tuple):
        raise BadInput(f"joints = {quote(joints)} must be a list of joints.")
    if not joints:
        return None
    if drawn is None:
        raise BadInput(
            "joints are written as the rods stand: give that placement of all nodes too, "
            "drawn=(frames, places)."
        )
    laws, ends, names = [], [], []
    for k, joint in enumerate(joints):
        require_instance(f"joints[{k}]", joint, AbstractJoint, "a joint")
        nodes = tuple(_node(f"joints[{k}]", body, sizes) for body in joint.bodies)
        for node in nodes:
            if node in carried:
                raise BadInput(
                    f"joints[{k}] joins a node whose base moves: let the base move the end of "
                    "another rod, or write the joint against the ground."
                )
        laws.append(joint.law(*(_place(drawn, node) for node in nodes)))
        ends.append(nodes)
        names.append(joint.name or f"{joint.kind} {k}")
    made = EndJoints(tuple(laws), tuple(ends), tuple(names), sum(sizes))
    if mobility is not None:
        _require_independent(made, drawn, mobility)
    return made


def _node(name: str, body: object, sizes: tuple[int, ...]) -> int:
    """Return the node that an end of a joint is on, `GROUND` for the ground."""
    if body == "ground":
        return GROUND
    found = _NAME.fullmatch(body) if isinstance(body, str) else None
    if found is None or int(found[1]) >= len(sizes):
        raise BadInput(
            f'{name} joins {quote(body)}, but ends of rods are called "rod 0 first", "rod 0 last", '
            f'"rod 1 first" and so on, up to rod {len(sizes) - 1}, and what does not move "ground".'
        )
    rod = int(found[1])
    start = sum(sizes[:rod])
    return start if found[2] == "first" else start + sizes[rod] - 1


def _place(drawn: HostPlacement, node: int) -> Place:
    if node == GROUND:
        return np.eye(3), np.zeros(3)
    return np.asarray(drawn[0][node]), np.asarray(drawn[1][node])


def _require_independent(joints: EndJoints, drawn: HostPlacement, mobility: np.ndarray) -> None:
    """Reject joints that ask for the same twice, or of nodes that are held."""
    moves = mobility.reshape(-1, 6)
    for knot in joints.knots:
        rows = np.asarray(evaluate(lambda g, knot=knot: joints._rows(knot, _some(g, knot)), drawn))
        inverse = np.concatenate([moves[k] for k in knot.nodes]) if knot.nodes else np.zeros(0)
        sizes = np.linalg.eigvalsh((rows * inverse) @ rows.T)
        if not sizes[0] > _DEPENDENT * sizes[-1]:
            which = ", ".join(joints.names[j] for j in knot.joints)
            raise BadInput(
                f"the joints {which} hold what is held already, by a support of a rod or by one of "
                "them: leave the joint or the support out."
            )


def worst(solved: list[NewtonStatus]) -> NewtonStatus:
    """Combine many solves: iterations add up, the rest is as in the worst of them."""
    converged, residual, iterations = (jnp.stack(x) for x in zip(*solved, strict=True))
    return NewtonStatus(jnp.all(converged), jnp.max(residual), jnp.sum(iterations))


def _poses(g: Placement, ends: tuple[int, ...]) -> list[Pose]:
    return [ground(3) if k == GROUND else Pose(g[0][k], g[1][k]) for k in ends]


def _some(g: Placement, knot: Knot) -> Placement:
    """Return the placement of the nodes of a knot."""
    frames, places = g
    return jnp.stack([frames[k] for k in knot.nodes]), jnp.stack([places[k] for k in knot.nodes])


def _among(knot: Knot, count: int, flat: Float[Array, " m"]) -> Float[Array, "nodes 6"]:
    """Return numbers of the nodes of a knot among those of all nodes."""
    total = jnp.zeros((count, 6))
    for k, row in zip(knot.nodes, flat.reshape(-1, 6), strict=True):
        own = (np.arange(count) == k).astype(float)
        total = total + jax.vmap(lambda x, row=row: x * row)(own)
    return total
