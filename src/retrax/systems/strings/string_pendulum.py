"""Rigid bodies on an elastic string that hangs from a pivot."""

from collections.abc import Callable
from functools import partial
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
from retrax.mechanics.remembered import Drawing
from retrax.mechanics.split import AbstractSplitSystem, Drift
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Symmetries
from retrax.mechanics.system import ArrayLike, Coordinates, Element, refuse_overrides
from retrax.numerics import tridiagonal
from retrax.numerics.checks import finite_rows, is_traced, require_double_precision, require_output
from retrax.numerics.evaluate import evaluate_in_jax
from retrax.numerics.known import require_each
from retrax.numerics.meant import explain_keywords
from retrax.numerics.small_matrices import cross
from retrax.systems.strings import chain, checks, observe, stability, starts
from retrax.systems.strings.chain import StringDamping, damping_forces, join
from retrax.systems.strings.drift import (
    Bodies,
    MassMatrix,
    chord_drift,
    eliminate_undamped,
    levers,
    response,
    spin_forces,
)

Scalar = Float[Array, ""]
Force = Callable[[Element, Coordinates, Scalar], Coordinates]


# A subclass must not redefine these: the steps have them written out.
_FIXED = (
    "constraint", "differential", "drift", "hamiltonian_energy", "kick", "load", "momentum",
    "potential_energy", "potential_force", "symmetry", "total_force", "vector_field", "velocity",
)  # fmt: skip


class StringPendulum(AbstractSplitSystem):
    r"""Rigid bodies on an elastic string: tethers, cranes, towed bodies.

    The string has $N$ elements and hangs from the origin. Gravity acts along $+e_3$: $e_3$ points
    **down**, as in `Pendulum3D` and unlike `HeavyTop`. A configuration is $(r, R_1, \dots, R_B)$ on
    $(\mathbb R^3)^N\times SO(3)^B$: the nodes $1, \dots, N$, and the attitude of each body, body
    axes to space axes. Body $b$ hangs at node $n_b$, and its centre of mass is at $\rho_b$ from
    there. With the masses $T$ and the forces of `strings/chain.py`,

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
    chord. The waves along the string limit the step, $h < u/(\sqrt3\,c)$: a run with a longer step
    is rejected, and one with more than half of it warns.

    **Arguments:**

    - `length`, `density`, `stiffness`: unstretched $l$ (m), $\mu$ (kg/m), $EA$ (N).
    - `elements`: $N$.
    - `mass`, `arm`, `inertia`: of the body, $M$ (kg), $\rho$ (m) and $J$ about the **point of
        attachment** (kg m^2, see `rx.solids`); several bodies come along the first axis.
    - `gravity`: $g$ in m/s^2, along $+e_3$.
    - `law`: `"two-sided"`, or `"slack"` for a string that cannot push.
    - `damping`: a `StringDamping`: drag at the nodes, viscosity of the string.
    - `nodes`: the nodes that carry the bodies; by default one body, at the end.
    - `force`: `force(g, xi, t)`, loads and control in the coordinates of the momenta.

    **Invariants:** energy; the angular momentum about the vertical, to round-off in every step.

    References: [LeeLeokMcClamrochString2009].
    """

    length: Scalar
    density: Scalar
    stiffness: Scalar
    gravity: Scalar
    bodies: Bodies
    damping: StringDamping
    mass_matrix: MassMatrix
    force: Force | None
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
        elements: int,
        mass: ArrayLike,
        arm: ArrayLike,
        inertia: ArrayLike,
        gravity: ArrayLike = 9.81,
        *,
        law: str = "two-sided",
        damping: StringDamping | None = None,
        nodes: ArrayLike | None = None,
        force: Force | None = None,
    ):
        require_double_precision()
        self.elements = n = checks.check_elements(elements)
        self.law = checks.check_law(law)
        self.length = checks.check_scalar("length", length, "m", least="> 0")
        self.stiffness = checks.check_scalar("stiffness", stiffness, "N", least="> 0")
        self.density = checks.check_density(density, n)
        self.gravity = checks.check_scalar("gravity", gravity, "m/s^2")
        self.nodes = checks.check_nodes(nodes, n)
        self.bodies = checks.check_bodies(mass, arm, inertia, len(self.nodes))
        self.damping = checks.check_damping(damping).on(n)
        self.mass_matrix = evaluate_in_jax(
            partial(_mass_matrix, n, self.nodes), self.density, self.length, self.bodies
        )
        require_output("force", force, arguments(self.group), (self.group.dim,), optional=True)
        self.force = as_pytree(force)

    def __check_init__(self):
        _, _, columns, reduced = self.mass_matrix
        for name, value in (("columns", columns), ("reduced", reduced)):
            require_each(partial(self._require_finite, name), value, fine=finite_rows)

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        refuse_overrides(cls, _FIXED, "add loads by force=... when the system is made")

    @classmethod
    def paper(
        cls, reading: str = "A", elements: int = 20, law: str = "two-sided"
    ) -> tuple["StringPendulum", State, float, int]:
        """Return the example of the string pendulum paper: system, state, h, steps.

        `strings/starts.py` says what the paper leaves open, and what the readings A, B and C are.
        """
        system = cls(**starts.PAPER, elements=elements, law=law)
        return system, starts.paper_state(system, reading), 1e-4, 50_000

    @property
    def name(self) -> str:
        return "string pendulum"

    @property
    def group(self) -> Product:
        return Product(Power(Translation(3), self.elements), *[SO3()] * len(self.nodes))

    @property
    def spacing(self) -> Scalar:
        """The length $u$ of an element, unstretched."""
        return self.length / self.elements

    @property
    def slack(self) -> bool:
        return self.law == "slack"

    @property
    def mass(self) -> Float[Array, " b"]:
        return self.bodies.mass

    @property
    def arm(self) -> Float[Array, "b 3"]:
        return self.bodies.arm

    @property
    def inertia(self) -> Float[Array, "b 3 3"]:
        return self.bodies.inertia

    def carrier_rows(self, x: Float[Array, " n *k"]) -> Float[Array, " b *k"]:
        """Return the rows of `x` that belong to the nodes with bodies."""
        return chain.at_nodes(x, self.nodes)

    def parts(self, g: Element) -> tuple[chain.Nodes, Float[Array, "b 3 3"]]:
        """Return the nodes, and the attitudes of the bodies."""
        return g[0], jnp.stack(g[1:])

    def momenta(self, mu: Coordinates) -> tuple[chain.Nodes, Float[Array, "b 3"]]:
        """Return momenta, velocities or forces of the nodes, and of the bodies."""
        n = 3 * self.elements
        bodies = [mu[n + 3 * b : n + 3 * b + 3] for b in range(len(self.nodes))]
        return mu[:n].reshape(-1, 3), jnp.stack(bodies)

    def momentum(self, g: Element, xi: Coordinates) -> Coordinates:
        _, R = self.parts(g)
        v, omega = self.momenta(xi)
        unit = jnp.asarray(chain.carriers(self.elements, self.nodes))
        swung = unit @ spin_forces(self.bodies, R, omega)
        diagonal, below, _ = self.mass_matrix.masses
        p = tridiagonal.product(diagonal, below, v) + swung  # (2)
        lever = levers(self.bodies, R, self.carrier_rows(v))
        return join(p, jax.vmap(jnp.matmul)(self.inertia, omega) + lever)  # (3)

    def velocity(self, g: Element, mu: Coordinates) -> Coordinates:
        return join(*self.velocities(g, mu))

    def velocities(self, g: Element, mu: Coordinates) -> tuple[chain.Nodes, Float[Array, "b 3"]]:
        """Solve (2) and (3) for velocities of the nodes and angular velocities of the bodies."""
        _, R = self.parts(g)
        p, pi = self.momenta(mu)
        bare = eliminate_undamped(self, p)
        torque = pi - levers(self.bodies, R, self.carrier_rows(bare.y))
        omega = response(self.bodies, R, bare.inertia, bare.alpha, torque)
        return bare.y - bare.columns @ spin_forces(self.bodies, R, omega), omega

    def differential(self, g: Element, xi: Coordinates, mu: Coordinates) -> Coordinates:
        _, R = self.parts(g)
        v, omega = self.momenta(xi)

        def swing(m, arm, R, w, v):
            return m * cross(cross(w, arm), R.T @ v)  # (4)

        swings = jax.vmap(swing)(self.mass, self.arm, R, omega, self.carrier_rows(v))
        return self.potential_force(g) + join(jnp.zeros_like(v), swings)

    def potential_force(self, g: Element) -> Coordinates:
        """Return $-dV$: tension and weight at the nodes, the torque of the weight on the bodies."""
        r, R = self.parts(g)
        pull = chain.pull(r, self.spacing, self.stiffness / self.spacing, self.slack)
        weight = self.gravity * self.mass_matrix.masses.weights
        down = jnp.array([0.0, 0.0, 1.0])
        torque = jax.vmap(lambda m, arm, R: m * self.gravity * cross(arm, R[2]))
        return join(pull + weight[:, None] * down[None, :], torque(self.mass, self.arm, R))

    def total_force(self, g: Element, xi: Coordinates, mu: Coordinates, t: Scalar) -> Coordinates:
        force = super().total_force(g, xi, mu, t)
        if self.damping.drag is None and self.damping.viscosity is None:
            return force
        v, omega = self.momenta(xi)
        drag = damping_forces(self.damping, g[0], v, self.spacing, self.slack)
        return force + join(drag, jnp.zeros_like(omega))

    def hamiltonian_energy(self, g: Element, mu: Coordinates) -> Scalar:
        return mu @ self.velocity(g, mu) / 2 + self.potential_energy(g)

    def potential_energy(self, g: Element) -> Scalar:
        r, R = self.parts(g)
        kappa = self.stiffness / self.spacing
        elastic = jnp.sum(chain.elastic_energies(r, self.spacing, kappa, self.slack))
        hanging = self.mass @ jax.vmap(lambda R, arm: R[2] @ arm)(R, self.arm)
        return elastic - self.gravity * (self.mass_matrix.masses.weights @ r[:, 2] + hanging)

    @property
    def feedback(self) -> bool:
        return self.force is not None and uses_velocity(self.force, self.group)

    def load(self, g: Element, xi: Coordinates, t: Scalar) -> Coordinates:
        if self.force is None:
            return jnp.zeros_like(xi)
        return jnp.asarray(self.force(g, xi, t))

    def kick(self, g: Element, t: Scalar) -> Coordinates:
        force = self.potential_force(g)
        if self.force is None or self.feedback:
            return force
        return force + jnp.asarray(self.force(g, jnp.zeros_like(force), t))

    def drift(self, g: Element, mu: Coordinates, h: Scalar) -> Drift:
        return chord_drift(self, g, mu, h)

    def symmetries(self) -> Symmetries:
        """Return no symmetry, as rotations about the vertical are not translations of the group."""
        none = np.zeros((0, self.group.dim))
        return Symmetries(none, none)

    @property
    def conservative(self) -> bool:
        damped = self.damping.drag is not None or self.damping.viscosity is not None
        return super().conservative and not damped

    def further_invariants(self, state: State) -> dict[str, Scalar]:
        """Return the angular momentum about the vertical, unless something exerts a torque."""
        if self.force is not None or self.damping.drag is not None:
            return {}
        return {"angular momentum e3": observe.angular_momentum(self, state)[2]}

    def observables(self, state: State) -> dict[str, Float[Array, "..."]]:
        return observe.observables(self, state)

    @explain_keywords
    def state(
        self,
        g: ArrayLike,
        *,
        velocity: ArrayLike | None = None,
        momentum: ArrayLike | None = None,
        t: ArrayLike = 0.0,
        project: bool = False,
    ) -> State:
        """Return a state; the first row of the nodes of `g` may be the pivot."""
        if isinstance(g, tuple | list):
            g = (checks.without_pivot(g[0], self.elements), *g[1:])
        return super().state(g, velocity=velocity, momentum=momentum, t=t, project=project)

    def check_state(self, state: State) -> None:
        super().check_state(state)
        checks.require_apart(state.g[0])

    @property
    def drawing(self) -> Drawing | None:
        many = is_traced(self) or self.mass.ndim != 1  # the members of an ensemble
        return None if many else starts.drawing(self)

    def hanging(self) -> State:
        """Return the equilibrium: string and bodies at rest, hanging straight down."""
        return starts.hanging(self)

    def longest_stable_step(self) -> float:
        return stability.longest_stable_step(self)

    def check_step(self, state: State, h: float) -> None:
        stability.require_stable(self, h)
        stability.watch_rotation(self, state, h)

    def hardest(self, states: State) -> int:
        """Return the state with the body that turns fastest; the waves are the same for all."""
        return stability.fastest_turning(self, states)

    def why_not(self, state: State, h: float) -> str:
        return stability.turn_warning(self, state, h)


def _mass_matrix(
    elements: int, nodes: tuple[int, ...], density: Scalar, length: Scalar, bodies: Bodies
) -> MassMatrix:
    masses = chain.masses(elements, density * (length / elements), nodes, bodies.mass)
    return MassMatrix.of(masses, nodes, bodies)
