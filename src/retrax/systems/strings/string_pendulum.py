"""Rigid bodies on an elastic string that hangs from a pivot."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.groups.power import Power
from retrax.groups.product import Product
from retrax.groups.so3 import SO3
from retrax.groups.translation import Translation
from retrax.mechanics.functions import arguments, as_pytree, uses_velocity
from retrax.mechanics.split import AbstractSplitSystem, Drift
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Symmetries
from retrax.mechanics.system import ArrayLike, Coordinates, Element, refuse_overrides
from retrax.numerics import tridiagonal
from retrax.numerics.checks import is_traced, require_double_precision, require_output
from retrax.numerics.small_matrices import cross
from retrax.systems.strings import chain, checks, limits, observe, settings, turning
from retrax.systems.strings.coordinates import joined
from retrax.systems.strings.damping import StringDamping, damped
from retrax.systems.strings.drift import chord_drift
from retrax.systems.strings.elimination import undamped

Scalar = Float[Array, ""]


# What a subclass must leave alone: the steps have it written out.
_FIXED = (
    "constraint", "differential", "drift", "hamiltonian_energy", "kick", "load", "momentum",
    "potential_energy", "potential_force", "symmetry", "total_force", "vector_field", "velocity",
)  # fmt: skip


class StringPendulum(AbstractSplitSystem):
    r"""Rigid bodies on an elastic string: tethers, cranes, towed bodies.

    The string has $N$ elements and hangs from the origin; $e_3$ points **down**. A configuration
    is $(r, R_1, \dots, R_B)$ on $(\mathbb R^3)^N\times SO(3)^B$: the nodes $1, \dots, N$, and the
    attitude of each body, body axes to space axes. Body $b$ hangs at node $n_b$, its centre of mass
    at $\rho_b$ from there. With the masses $T$ and the forces of `strings/chain.py`,

    $$ L = \tfrac12\,\dot r\cdot T\dot r + \sum_b\bigl\{\tfrac12\Omega_b\cdot J_b\Omega_b
       + M_b\,\dot r_b\cdot R_b(\Omega_b\times\rho_b)\bigr\} - V(r, R). \tag{1} $$

    The momenta are $(p_1, \dots, p_N, \pi_1, \dots, \pi_B)$, those of nodes in space axes, those of
    bodies about their points of attachment in body axes:

    $$
    \begin{aligned}
    p &= T\dot r + \textstyle\sum_be_bM_bR_b(\Omega_b\times\rho_b)              &&\text{(2)}\\
    \pi_b &= J_b\Omega_b + M_b\,\rho_b\times R_b^T\dot r_b                      &&\text{(3)}\\
    dL_b &= M_bg\,\rho_b\times R_b^Te_3
       + M_b(\Omega_b\times\rho_b)\times R_b^T\dot r_b                          &&\text{(4)}
    \end{aligned}
    $$

    `LieVerlet()` integrates it at a cost of $O(N)$ with one equation in three unknowns for each
    body (`strings/drift.py`), by the discrete Lagrangian in which every point of mass moves along a
    chord. Steps are limited by the waves along the string, $h < u/(\sqrt3\,c)$: a longer one is
    refused, one of more than half as long gives a warning.

    **Arguments:**

    - `length`, `density`, `stiffness`: $l$ unstretched (m), $\mu$ (kg/m), $EA$ (N).
    - `elements`: $N$.
    - `mass`, `arm`, `inertia`: of the body: $M$ (kg), $\rho$ (m) and $J$ about the **point of
        attachment** (kg m^2, see `rx.solids`); for several bodies with a first axis of bodies.
    - `gravity`: $g$ in m/s^2, along $+e_3$.
    - `law`: `"two-sided"`, or `"slack"` for a string that cannot push.
    - `damping`: a `StringDamping`: drag at the nodes, viscosity of the string.
    - `nodes`: the nodes that carry the bodies; by default one body, at the end.
    - `force`: `force(g, xi, t)`, loads and control in the coordinates of the momenta.

    **Invariants:** energy; the angular momentum about the vertical, to round-off in every step.

    References: [LeeLeokMcClamrochString2009].
    """

    group: Product
    length: Scalar
    density: Scalar
    stiffness: Scalar
    gravity: Scalar
    mass: Float[Array, " b"]
    arm: Float[Array, "b 3"]
    inertia: Float[Array, "b 3 3"]
    damping: StringDamping
    masses: chain.Masses
    factors: tridiagonal.Factor
    columns: Float[Array, "n b"]
    reduced: Float[Array, "b 3 3"]
    force: Any
    elements: int = eqx.field(static=True)
    nodes: tuple[int, ...] = eqx.field(static=True)
    law: str = eqx.field(static=True)

    symmetry: ClassVar[tuple[tuple[float, ...], ...] | None] = None
    quadratic: ClassVar[bool] = True
    units: ClassVar[dict[str, str]] = observe.UNITS
    e3_points_up: ClassVar[bool] = False

    def __init__(
        self,
        length: ArrayLike,
        density: ArrayLike,
        stiffness: ArrayLike,
        elements: int | Any,
        mass: ArrayLike,
        arm: ArrayLike,
        inertia: ArrayLike,
        gravity: ArrayLike = 9.81,
        *,
        law: str | Any = "two-sided",
        damping: StringDamping | Any = None,
        nodes: Any = None,
        force: Callable[[Element, Coordinates, Scalar], Coordinates] | Any = None,
    ):
        require_double_precision()
        self.elements = n = checks.checked_elements(elements)
        self.law = checks.checked_law(law)
        self.length = checks.checked_scalar("length", length, "m", least="> 0")
        self.stiffness = checks.checked_scalar("stiffness", stiffness, "N", least="> 0")
        self.density = checks.checked_density(density, n)
        self.gravity = checks.checked_scalar("gravity", gravity, "m/s^2")
        self.nodes = checks.checked_nodes(nodes, n)
        self.group = Product(Power(Translation(3), n), *[SO3()] * len(self.nodes))
        self.mass, self.arm, self.inertia = checks.checked_bodies(
            mass, arm, inertia, len(self.nodes)
        )
        self.damping = checks.checked_damping(damping).on(n)
        self.masses = chain.masses(n, self.density * (self.length / n), self.nodes, self.mass)
        self.factors = tridiagonal.factor(self.masses.diagonal, self.masses.below)
        self.columns = tridiagonal.solve(self.factors, jnp.asarray(chain.carriers(n, self.nodes)))
        self.reduced = turning.eliminated(self.bodies, self.carried(self.columns))
        require_output("force", force, arguments(self.group), (self.group.dim,), optional=True)
        self.force = as_pytree(force)

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        refuse_overrides(cls, _FIXED, "add loads by force=... when the system is made")

    @classmethod
    def paper(
        cls, reading: str = "A", elements: int = 20, law: str = "two-sided"
    ) -> tuple["StringPendulum", State, float, int]:
        """The example of the string pendulum paper: system, state, h, steps.

        See `strings/settings.py` for what the paper leaves open, and the readings A, B and C.
        """
        system = cls(**settings.PAPER, elements=elements, law=law)
        return system, settings.paper_state(system, reading), 1e-4, 50_000

    @property
    def name(self) -> str:
        return "string pendulum"

    @property
    def spacing(self) -> Scalar:
        """The length $u$ of an element, unstretched."""
        return self.length / self.elements

    @property
    def slack(self) -> bool:
        return self.law == "slack"

    @property
    def bodies(self) -> turning.Bodies:
        return turning.Bodies(self.mass, self.arm, self.inertia)

    def carried(self, x: Float[Array, " n *k"]) -> Float[Array, " b *k"]:
        """What nodes have that carry bodies."""
        return jnp.stack([x[node - 1] for node in self.nodes])

    def parts(self, g: Element) -> tuple[chain.Nodes, Float[Array, "b 3 3"]]:
        """The nodes, and the attitudes of the bodies."""
        return g[0], jnp.stack(g[1:])

    def momenta(self, mu: Coordinates) -> tuple[chain.Nodes, Float[Array, "b 3"]]:
        """Momenta, velocities or forces of the nodes, and of the bodies."""
        n = 3 * self.elements
        bodies = [mu[n + 3 * b : n + 3 * b + 3] for b in range(len(self.nodes))]
        return mu[:n].reshape(-1, 3), jnp.stack(bodies)

    def momentum(self, g: Element, xi: Coordinates) -> Coordinates:
        _, R = self.parts(g)
        v, omega = self.momenta(xi)
        spun = turning.spun(self.bodies, R, omega)
        unit = jnp.asarray(chain.carriers(self.elements, self.nodes))
        p = tridiagonal.product(self.masses.diagonal, self.masses.below, v) + unit @ spun  # (2)
        levers = turning.levers(self.bodies, R, self.carried(v))
        return joined(p, jax.vmap(jnp.matmul)(self.inertia, omega) + levers)  # (3)

    def velocity(self, g: Element, mu: Coordinates) -> Coordinates:
        return joined(*self.velocities(g, mu))

    def velocities(self, g: Element, mu: Coordinates) -> tuple[chain.Nodes, Float[Array, "b 3"]]:
        """Velocities of the nodes, and angular velocities of the bodies: (2) and (3) solved."""
        _, R = self.parts(g)
        p, pi = self.momenta(mu)
        bare = undamped(self, p)
        torque = pi - turning.levers(self.bodies, R, self.carried(bare.y))
        omega = turning.turning(self.bodies, R, bare.inertia, bare.alpha, torque)
        return bare.y - bare.columns @ turning.spun(self.bodies, R, omega), omega

    def differential(self, g: Element, xi: Coordinates, mu: Coordinates) -> Coordinates:
        _, R = self.parts(g)
        v, omega = self.momenta(xi)

        def swing(m, arm, R, w, v):
            return m * cross(cross(w, arm), R.T @ v)  # (4)

        swings = jax.vmap(swing)(self.mass, self.arm, R, omega, self.carried(v))
        return self.potential_force(g) + joined(jnp.zeros_like(v), swings)

    def potential_force(self, g: Element) -> Coordinates:
        """$-dV$: tension and weight at the nodes, the torque of the weight on the bodies."""
        r, R = self.parts(g)
        pull = chain.pull(r, self.spacing, self.stiffness / self.spacing, self.slack)
        weight = self.gravity * self.masses.weights
        down = jnp.array([0.0, 0.0, 1.0])
        torque = jax.vmap(lambda m, arm, R: m * self.gravity * cross(arm, R[2]))
        return joined(pull + weight[:, None] * down[None, :], torque(self.mass, self.arm, R))

    def total_force(self, g: Element, xi: Coordinates, mu: Coordinates, t: Scalar) -> Coordinates:
        force = super().total_force(g, xi, mu, t)
        if self.damping.drag is None and self.damping.viscosity is None:
            return force
        v, omega = self.momenta(xi)
        drag = damped(self.damping, g[0], v, self.spacing, self.slack)
        return force + joined(drag, jnp.zeros_like(omega))

    def hamiltonian_energy(self, g: Element, mu: Coordinates) -> Scalar:
        return mu @ self.velocity(g, mu) / 2 + self.potential_energy(g)

    def potential_energy(self, g: Element) -> Scalar:
        r, R = self.parts(g)
        kappa = self.stiffness / self.spacing
        elastic = jnp.sum(chain.elastic_energies(r, self.spacing, kappa, self.slack))
        hanging = self.mass @ jax.vmap(lambda R, arm: R[2] @ arm)(R, self.arm)
        return elastic - self.gravity * (self.masses.weights @ r[:, 2] + hanging)

    @property
    def feedback(self) -> bool:
        return self.force is not None and uses_velocity(self.force, self.group)

    def load(self, g: Element, xi: Coordinates, t: Scalar) -> Coordinates:
        return jnp.asarray(self.force(g, xi, t))

    def kick(self, g: Element, t: Scalar) -> Coordinates:
        force = self.potential_force(g)
        if self.force is None or self.feedback:
            return force
        return force + jnp.asarray(self.force(g, jnp.zeros_like(force), t))

    def drift(self, g: Element, mu: Coordinates, h: Scalar) -> Drift:
        return chord_drift(self, g, mu, h)

    def symmetries(self) -> Symmetries:
        """None: turning about the vertical is no translation of this group."""
        none = np.zeros((0, self.group.dim))
        return Symmetries(none, none)

    @property
    def conservative(self) -> bool:
        damped = self.damping.drag is not None or self.damping.viscosity is not None
        return super().conservative and not damped

    def further_invariants(self, state: State) -> dict[str, Scalar]:
        """The angular momentum about the vertical, where nothing outside exerts a torque."""
        if self.force is not None or self.damping.drag is not None:
            return {}
        return {"angular momentum e3": observe.angular_momentum(self, state)[2]}

    def observables(self, state: State) -> dict[str, Float[Array, "..."]]:
        return observe.observables(self, state)

    def state(self, g: Sequence[ArrayLike], **given: Any) -> State:
        """As for every system; the nodes of `g` may include the pivot, as their first row."""
        return super().state((checks.without_pivot(g[0], self.elements), *g[1:]), **given)

    def check_state(self, state: State) -> None:
        super().check_state(state)
        checks.require_apart(state.g[0])

    @property
    def drawing(self) -> str | None:
        many = is_traced(self) or self.mass.ndim != 1  # the members of an ensemble
        return None if many else settings.drawing(self)

    def hanging(self) -> State:
        """At rest, hanging straight down: the equilibrium."""
        return settings.hanging(self)

    def longest_stable_step(self) -> float:
        return limits.longest_stable_step(self)

    def check_step(self, state: State, h: float) -> None:
        limits.require_stable(self, h)
        limits.watch_rotation(self, state, h)

    def why_not(self, state: State, h: float) -> str:
        return limits.turned_too_far(self, state, h)
