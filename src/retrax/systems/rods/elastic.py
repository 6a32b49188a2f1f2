"""The mechanics of elastic rods: strains and forces of their segments, and damping."""

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from retrax.errors import BadInput
from retrax.mechanics.state import State
from retrax.mechanics.system import Coordinates
from retrax.nodal.drag import beside
from retrax.nodal.nodes import AbstractNodes, HostPlacement, Placement
from retrax.nodal.supports import Base, mean_rates
from retrax.numerics.known import require_each
from retrax.systems.rods.acting import NodeLoads
from retrax.systems.rods.along import Profile, at_time
from retrax.systems.rods.dispersion import fastest, fastest_of_each, longest_step
from retrax.systems.rods.strain import Loads, Segment, Strain, loads, segment

_E3 = np.array([0.0, 0.0, 1.0])
# The trace of the turn from node to node at nearly half a turn, and at half a turn.
_FOLDED, _UNBENT = -0.95, -1 + 1e-8
# Rods whose stretch is the same to so many digits have the same waves.
_DIGITS = 12


Some = TypeVar("Some", bound="AbstractRod")
# Of each segment, or the same for all.
PerSegment = Float[Array, "3"] | Float[Array, "segments 3"]


class AbstractRod(AbstractNodes):
    """Energies and loads of one rod, or of several whose nodes stand in one row.

    `Rod` and `Rods` hold the numbers: those of a segment are alike for all, or in rows.
    """

    strain: eqx.AbstractVar[str]
    spacing: eqx.AbstractVar[Float[Array, ""] | Float[Array, " segments"]]
    stretching: eqx.AbstractVar[PerSegment]
    bending: eqx.AbstractVar[PerSegment]
    gravity: eqx.AbstractVar[Float[Array, "3"] | Float[Array, "nodes 3"] | None]
    end_force: eqx.AbstractVar[Float[Array, "3"] | None]
    end_torque: eqx.AbstractVar[Float[Array, "3"] | None]
    damping: eqx.AbstractVar[Float[Array, ""] | Float[Array, " segments"] | None]

    rest_stretch: Profile | None = eqx.field(default=None, kw_only=True)  # e3 if not given
    rest_curvature: Profile | None = eqx.field(default=None, kw_only=True)
    muscle: Profile | None = eqx.field(default=None, kw_only=True)
    loads: NodeLoads | None = eqx.field(default=None, kw_only=True)

    @property
    def strands(self) -> tuple[int, ...]:
        """How many nodes each rod has, one after the other."""
        return (self.nodes,)

    @property
    def arcs(self) -> Float[Array, " nodes"]:
        """The arc length of every node, from the first node of its rod on."""
        starts = np.cumsum((0, *self.strands[:-1]))
        along = (np.arange(self.nodes) - np.repeat(starts, self.strands)).astype(float)
        if self.spacing.ndim == 0:
            return self.spacing * along
        return self.spacing[np.repeat(starts, self.strands)] * along

    @property
    def between(self) -> Bool[np.ndarray, " segments"] | None:
        """Which pairs of neighbours a segment joins; `None` for all, as in one rod."""
        return None

    def segments(self, g: Placement) -> Segment:
        """Return the strain of every segment, and what its loads are computed from."""
        frames, places = g

        def one(before, after, step, h, joined):
            if joined is not None:  # nodes of different rods may be half a turn apart
                after = jnp.where(joined, after, before)
            return segment(self.strain, before, after, step, h)

        of_each = (0 if self.spacing.ndim else None, None if self.between is None else 0)
        return jax.vmap(one, in_axes=(0, 0, 0, *of_each))(
            frames[:-1], frames[1:], places[1:] - places[:-1], self.spacing, self.between
        )

    def strains(self, g: Placement) -> Strain:
        return self.segments(g).strain

    def potential_energy(self, g: Placement) -> Float[Array, ""]:
        extra, bent = self.deformation(self.strains(g))
        energy = self._elastic_energy(extra, self.stretching) + self._elastic_energy(
            bent, self.bending
        )
        places = g[1]
        if self.gravity is not None:
            _, mass = self.parts(self.inertia)
            energy = energy - _work(mass * places, self.gravity)
        if self.end_force is not None:
            energy = energy - places[-1] @ self.end_force
        if self.loads is not None and self.loads.dead is not None:
            energy = energy - jnp.sum(self.loads.dead * places)
        return energy

    def deformation(self, strain: Strain) -> Strain:
        r"""Return $\Gamma - \Gamma_0$ and $\Omega - \Omega_0$."""
        gamma, omega = strain
        rest = _E3 if self.rest_stretch is None else self.rest_stretch.rows()
        if self.rest_curvature is not None:
            omega = omega - self.rest_curvature.rows()
        return Strain(gamma - jnp.broadcast_to(rest, gamma.shape), omega)

    def _elastic_energy(
        self, strain: Float[Array, "segments 3"], stiff: PerSegment
    ) -> Float[Array, ""]:
        """Return the elastic energy of strains."""
        if self.spacing.ndim == 0:
            return self.spacing / 2 * _work(strain * strain, stiff)
        return _work(self.spacing[:, None] / 2 * (strain * strain), stiff)

    def resultants(self, strain: Strain) -> Strain:
        r"""Return the resultants $n = C_1(\Gamma - \Gamma_0)$ and $m = C_2(\Omega - \Omega_0)$."""
        extra, bent = self.deformation(strain)
        return Strain(scale_rows(extra, self.stretching), scale_rows(bent, self.bending))

    def differential(self, g: Placement, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return self.without_held(self._conservative_loads(g))

    def _conservative_loads(self, g: Placement) -> Coordinates:
        """Return the loads that have a potential, those on held nodes included."""
        dead = None if self.loads is None else self.loads.dead
        more = None if dead is None else beside(None, dead)
        return self._total_loads(g, self._at_the_end(torque=False), None, more)

    def kick(self, g: Placement, t: Float[Array, ""]) -> Coordinates:
        return self.total_loads(g, t)

    def total_loads(
        self, g: Placement, t: Float[Array, ""], stress: Strain | None = None
    ) -> Coordinates:
        """Return the loads at a place and a time, of its own elastic stresses or of these."""
        now = self.at_time(t)
        muscle = None if now.muscle is None else now.muscle.rows()
        more = None if now.loads is None else now.loads.on(g[0])
        return now.without_supports(
            g, now._total_loads(g, now._at_the_end(torque=True), muscle, more, stress)
        )

    def _total_loads(
        self,
        g: Placement,
        last: Float[Array, "6"] | None,
        muscle: Float[Array, "segments 3"] | None,
        more: Float[Array, "nodes 6"] | None,
        stress: Strain | None = None,
    ) -> Coordinates:
        """Return the loads of segments and of gravity, those on the last node and `more` on all."""
        seg = self.segments(g)
        n, m = self.resultants(seg.strain) if stress is None else stress
        stress = Strain(n, m if muscle is None else m - muscle)
        flat = self._on_nodes(self._between(g, seg, stress), last)
        if self.gravity is not None:
            weight = jnp.concatenate([jnp.zeros_like(self.gravity), self.gravity], axis=-1)
            flat = flat + scale_rows(self.inertia.reshape(self.nodes, 6), weight).reshape(-1)
        return flat if more is None else flat + more.reshape(-1)

    def _at_the_end(self, torque: bool) -> Float[Array, "6"] | None:
        """Return the loads on the last node."""
        turn = self.end_torque if torque else None
        if turn is None and self.end_force is None:
            return None
        none = jnp.zeros(3)
        push = none if self.end_force is None else self.end_force
        return jnp.concatenate([none if turn is None else turn, push])

    def total_force(
        self, g: Placement, xi: Coordinates, mu: Coordinates, t: Float[Array, ""]
    ) -> Coordinates:
        acting = self.kick(g, t)
        if self.feedback:
            acting = acting + self.load(g, xi, t)
        if self.drag is not None:
            dragged = self.drag.force(g[0], *self.parts(self.momentum(g, xi)))
            acting = acting + self.without_supports(g, dragged.reshape(-1))
        return acting if self.damping is None else acting + self._friction(g, xi)

    def support_velocities(self, g: Placement, h: Float[Array, ""]) -> Coordinates | None:
        carried = None
        for pose in self.poses() if self.damping is not None else ():
            one = mean_rates(pose, *g, h)
            carried = one if carried is None else carried + one
        return carried

    def loss(
        self,
        g: Placement,
        mu: Coordinates,
        h: Float[Array, ""],
        carried: Coordinates | None,
        dragged_first: bool,
    ) -> Coordinates | None:
        change = self.drag_change(g, mu, h) if dragged_first and self.drag is not None else None
        if self.damping is not None:
            more = self._damp(g, mu if change is None else mu + change, h, carried)
            change = more if change is None else change + more
        if not dragged_first and self.drag is not None:
            more = self.drag_change(g, mu if change is None else mu + change, h)
            change = more if change is None else change + more
        return change

    def _friction(self, g: Placement, xi: Coordinates) -> Coordinates:
        """Return the forces of damping, from stresses proportional to the rates of the strains."""
        assert self.damping is not None
        seg, moved = jax.jvp(self.segments, (g,), (self.group.tangent(g, xi),))
        times = self.damping if self.damping.ndim == 0 else self.damping[:, None]
        stress = Strain(
            scale_rows(times * moved.strain.stretch, self.stretching),
            scale_rows(times * moved.strain.curvature, self.bending),
        )
        return self.without_supports(g, self._on_nodes(self._between(g, seg, stress)))

    def _damp(
        self, g: Placement, mu: Coordinates, h: Float[Array, ""], carried: Coordinates | None
    ) -> Coordinates:
        """Return the change of momentum by damping in a time `h`, to order 2, `g` constant."""

        def friction(mu: Coordinates) -> Coordinates:
            xi = self.mobility * mu
            return self._friction(g, xi if carried is None else xi + carried)

        return h * friction(mu + h / 2 * friction(mu))

    def is_unfolded(self, g: Placement) -> Bool[Array, ""]:
        """Return whether all segments are bent by clearly less than half a turn."""
        frames, _ = g
        traces = jnp.sum(frames[:-1] * frames[1:], axis=(1, 2))
        if self.between is not None:
            traces = jnp.where(self.between, traces, 3.0)
        return jnp.min(traces) > _FOLDED

    def _between(self, g: Placement, seg: Segment, stress: Strain) -> Loads:
        def one(before, seg, n, m, h):
            return loads(self.strain, before, seg, n, m, h)

        per_segment = (0, 0, 0, 0, 0 if self.spacing.ndim else None)
        return jax.vmap(one, in_axes=per_segment)(g[0][:-1], seg, *stress, self.spacing)

    def _on_nodes(self, load: Loads, more: Float[Array, "6"] | None = None) -> Coordinates:
        """Return the loads of all segments, added up at the nodes; `more` on the last one."""
        before, after, pull = load
        first = jnp.concatenate([before[:1], pull[:1]], axis=1)
        inner = jnp.concatenate([before[1:] + after[:-1], pull[1:] - pull[:-1]], axis=1)
        last = jnp.concatenate([after[-1:], -pull[-1:]], axis=1)
        last = last if more is None else last + more[None]
        return jnp.concatenate([first, inner, last]).reshape(-1)

    @property
    def _changes(self) -> bool:
        """Whether anything is a function of time."""
        loads = self.loads is not None and self.loads.is_driven
        return self.moving or loads or (self.muscle is not None and self.muscle.is_driven)

    @property
    def moving(self) -> bool:
        rest = (self.rest_stretch, self.rest_curvature)
        return bool(self.bases) or any(x is not None and x.is_driven for x in rest)

    def at_time(self: Some, t: Float[Array, ""]) -> Some:
        if not self._changes:
            return self
        return self._with_fields(
            rest_stretch=at_time(self.rest_stretch, t),
            rest_curvature=at_time(self.rest_curvature, t),
            muscle=at_time(self.muscle, t),
            loads=None if self.loads is None else self.loads.at(t),
            bases=tuple(x.at(t) if isinstance(x, Base) else x for x in self.bases),
        )

    def energy_rate(
        self, g: Placement, xi: Coordinates, mu: Coordinates, t: Float[Array, ""]
    ) -> Float[Array, ""]:
        """Return the rate by rest shapes that change, and the work of supports that move."""
        rate = jax.grad(lambda t: self.at_time(t).potential_energy(g))(t)
        loads = self.at_time(t)._conservative_loads(g)
        return rate - (loads - self.without_held(loads)) @ xi

    @property
    def isolated(self) -> bool:
        loads = (self.gravity, self.end_force, self.end_torque, self.loads, self.drag)
        return not self.holds and not self.feedback and all(load is None for load in loads)

    @property
    def conservative(self) -> bool:
        working = (self.damping, self.end_torque, self.muscle, self.drag)
        loads = self.loads is not None and self.loads.works
        return super().conservative and not loads and all(x is None for x in working)

    def check_step(self, state: State, h: float) -> None:
        self.require_stable(state.g, h)

    def require_stable(self, g: Placement | HostPlacement, h: float, split: bool = True) -> None:
        """Reject a step with which the fastest wave on the lattice of the nodes would grow.

        `split`: with `LieVerlet`; otherwise with an integrator of two rods.
        """
        highest = fastest(self, float(self._stretch(g[1])))
        damping = 0.0 if self.damping is None else float(np.max(self.damping))
        longest, because = longest_step(highest, damping, split)
        if not h < longest:
            raise BadInput(
                f"h = {h:g} s is unstable for the {self.name}: {because} at the frequency omega = "
                f"{highest:.4g} rad/s bounds it, so h must be below {longest:.4g} s."
            )

    def hardest(self, states: State) -> int:
        """Return the rod whose waves are the fastest."""
        stretches, which = np.unique(
            np.round(self._stretch(states.g[1]), _DIGITS), return_inverse=True
        )
        return int(np.argmax(fastest_of_each(self, stretches)[which]))

    def _stretch(self, places: object) -> np.ndarray:
        """Return the largest stretch of a segment between nodes along the last axis but one."""
        steps = np.diff(np.asarray(places), axis=-2)
        lengths = np.sqrt(np.sum(steps * steps, axis=-1))
        if self.spacing.ndim == 0:
            return np.asarray(lengths.max(axis=-1) / float(self.spacing))
        chosen = slice(None) if self.between is None else self.between
        return np.asarray((lengths / np.asarray(self.spacing))[..., chosen].max(axis=-1))

    def why_not(self, state: State, h: float) -> str | None:
        return (
            "A segment of the rod is bent by nearly half a turn, where its curvature is not "
            "defined; with more elements each of them bends less."
        )

    def check_state(self, state: State) -> None:
        super().check_state(state)
        self.require_bent(state.g)

    def require_bent(self, g: Placement) -> None:
        """Reject a placement in which the ends of a segment are half a turn apart."""

        def unbent(frames: np.ndarray) -> np.ndarray:
            return self._traces(frames).min(axis=1) > _UNBENT

        require_each(self._require_bent, g[0], fine=unbent)

    def _traces(self, frames: np.ndarray) -> np.ndarray:
        """Return the traces of the relative rotations of neighbours."""
        traces = np.sum(frames[..., :-1, :, :] * frames[..., 1:, :, :], axis=(-2, -1))
        return traces if self.between is None else np.where(self.between, traces, 3.0)

    def _require_bent(self, frames: np.ndarray) -> None:
        traces = self._traces(frames)
        worst = int(np.argmin(traces))
        if not traces[worst] > _UNBENT:
            raise BadInput(
                f"the frames of nodes {worst} and {worst + 1} of the rod are half a turn apart, "
                "where the curvature of a segment is not defined; use more elements."
            )


def scale_rows(rows: Float[Array, "n m"], by: Float[Array, "..."]) -> Float[Array, "n m"]:
    """Multiply every row by the entries of `by`, which may have rows too."""
    return rows * jnp.broadcast_to(by, rows.shape)


def _work(rows: Float[Array, "n 3"], by: Float[Array, "..."]) -> Float[Array, ""]:
    """Return the sum of all entries of `scale_rows`."""
    return jnp.sum(rows @ by) if by.ndim == 1 else jnp.sum(rows * by)
