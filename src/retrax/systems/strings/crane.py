r"""A crane: the string pendulum with its pivot on a trolley that runs on horizontal rails.

Nodes are measured from the trolley. With $X \in \mathbb R^2$ its place, $E$ the embedding of the
horizontal plane in space and $D = d + E\,\Delta X$ how far nodes move in space, the discrete
kinetic energy of `strings/drift.py` gains that of the trolley and of the end of the string on it,

$$ T_d + \tfrac1{2h}m_{00}|\Delta X|^2 + \tfrac1hm_{01}\,E\,\Delta X\cdot D_1, \qquad
   m_{00} = m_t + \tfrac13m, \quad m_{01} = \tfrac16m, \tag{1} $$

with $D$ in place of $d$ and $m$ the mass of an element. The momenta $(p, \pi, P)$ go over to it:
$P$ is the horizontal momentum of everything, and the same before and after a drift. With
$z = T^{-1}e_1$ and $s = m_{00} - m_{01}^2z_1$,

$$
\begin{aligned}
h\,p &= T D + e_1m_{01}E\,\Delta X + \textstyle\sum_be_bw_b                          &&\text{(2)}\\
h\bigl(P - E^T\textstyle\sum_ap_a\bigr) &= m_{00}\,\Delta X + m_{01}E^TD_1           &&\text{(3)}
\end{aligned}
$$

Both together leave $D = h\,Y - \sum_bC_bw_b$, as without a trolley, but with blocks:

$$
\begin{aligned}
V_0 &= \bigl(P - E^T\textstyle\sum_ap_a - m_{01}E^Ty_1\bigr)/s, \qquad y = T^{-1}p   &&\text{(4)}\\
Y_a &= y_a - m_{01}z_aEV_0, \qquad
C_{ab} = (T^{-1})_{ab} + \tfrac{m_{01}^2}sz_az_bEE^T                                 &&\text{(5)}\\
\Delta X &= h\,V_0 + \tfrac{m_{01}}s\textstyle\sum_bz_bE^Tw_b                        &&\text{(6)}
\end{aligned}
$$
"""

import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput, warn
from retrax.groups.product import Product
from retrax.groups.translation import Translation
from retrax.mechanics.functions import Function, uses_velocity
from retrax.mechanics.remembered import Drawing
from retrax.mechanics.split import AbstractSplitSystem, Drift
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Symmetries
from retrax.mechanics.system import ArrayLike, Coordinates, Element, refuse_overrides
from retrax.numerics import tridiagonal
from retrax.numerics.checks import positive64, require_instance
from retrax.numerics.small_matrices import cross
from retrax.systems.strings import chain, checks, observe, stability
from retrax.systems.strings.drift import (
    Eliminated,
    drift,
    levers,
    response,
    spin_forces,
    sweep_forces,
)
from retrax.systems.strings.string_pendulum import StringPendulum

Scalar = Float[Array, ""]
Place = Float[Array, "2"]

# A subclass must not redefine these: the steps have them written out.
_FIXED = (
    "constraint", "differential", "drift", "hamiltonian_energy", "kick", "load", "momentum",
    "potential_energy", "potential_force", "symmetry", "total_force", "vector_field", "velocity",
)  # fmt: skip


class Crane(AbstractSplitSystem):
    r"""A string pendulum that hangs from a trolley on horizontal rails.

    Gravity acts along $+e_3$: $e_3$ points **down**. A configuration is
    $(q, R_1, \dots, R_B, X)$: the nodes **from the trolley**, in space axes; the attitudes of the
    bodies, body axes to space axes; and the trolley along $e_1$ and $e_2$. The momenta are those of
    nodes and bodies as in `StringPendulum`, and the horizontal momentum $P$ of everything, trolley,
    string and load. A force on the trolley acts on $P$ alone:

    $$ \dot P = u, \qquad \dot\ell_3 = (X\times u)_3, \qquad
       \ell = \sum_aq_a\times p_a + \sum_bR_b\pi_b + X\times P, \tag{1} $$

    and both balances hold exactly in every step of `LieVerlet()`. `strings/crane.py` has the
    equations of the step.

    **Arguments:**

    - `string`: a `StringPendulum` without damping and without a force of its own.
    - `trolley`: the mass of the trolley (kg).

    **Invariants:** energy; the horizontal momentum; the angular momentum about the vertical.

    References: [LeeLeokMcClamrochString2009] (the pendulum).
    """

    string: StringPendulum
    trolley: Scalar
    force: Function | None = None

    symmetry: ClassVar[tuple[tuple[float, ...], ...] | None] = None
    quadratic: ClassVar[bool] = True
    units: ClassVar[dict[str, str]] = {
        **observe.UNITS,
        "place of the load": "m",
        "horizontal momentum": "kg m/s",
    }
    e3_points_up: ClassVar[bool] = False

    def __init__(self, string: StringPendulum, trolley: ArrayLike):
        self.string = require_instance("string", string, StringPendulum, "a StringPendulum")
        self.trolley = positive64("trolley", trolley)
        for name, given in (
            ("damping", string.damping.drag is not None or string.damping.viscosity is not None),
            ("force", string.force is not None),
        ):
            if given:
                raise BadInput(
                    f"string has a {name} of its own, but that of a crane has none: forces on the "
                    "trolley are inputs of rx.Actuated."
                )

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        refuse_overrides(cls, _FIXED, "add loads as inputs of rx.Actuated")

    @property
    def name(self) -> str:
        return "crane"

    @property
    def group(self) -> Product:
        return Product(*self.string.group.groups, Translation(2))

    def parts(self, g: Element) -> tuple[chain.Nodes, Float[Array, "b 3 3"]]:
        """Return the nodes, from the trolley, and the attitudes of the bodies."""
        return self.string.parts(g[:-1])

    def _masses(self) -> tuple[Scalar, Scalar]:
        """Return $m_{00}$ and $m_{01}$ of (1) in this file."""
        m = self.string.density * self.string.spacing
        return self.trolley + m / 3, m / 6

    def momentum(self, g: Element, xi: Coordinates) -> Coordinates:
        string, V = self.string, xi[-2:]
        v, omega = string.momenta(xi[:-2])
        v = v + _across(V)[None, :]
        own, shared = self._masses()
        p, pi = string.momenta(string.momentum(g[:-1], chain.join(v, omega)))
        p = p + _at_first(shared * _across(V), p)  # (2)
        P = jnp.sum(p, axis=0)[:2] + own * V + shared * v[0, :2]  # (3)
        return jnp.concatenate([chain.join(p, pi), P])

    def velocity(self, g: Element, mu: Coordinates) -> Coordinates:
        v, omega, V = self.velocities(g, mu)
        return jnp.concatenate([chain.join(v - _across(V)[None, :], omega), V])

    def velocities(
        self, g: Element, mu: Coordinates
    ) -> tuple[chain.Nodes, Float[Array, "b 3"], Place]:
        """Return the velocities of nodes, the angular ones of bodies, and that of the trolley."""
        _, R = self.parts(g)
        bodies = self.string.bodies
        _, pi = self.string.momenta(mu[:-2])
        left, V0 = self._eliminate(mu)
        torque = pi - levers(bodies, R, self.string.carrier_rows(left.y))
        omega = response(bodies, R, left.inertia, left.alpha, torque)
        w = spin_forces(bodies, R, omega)
        return left.without(w, jnp.ones(())), omega, V0 + self._drag(w)

    def _eliminate(self, mu: Coordinates) -> tuple[Eliminated, Place]:
        r"""Eliminate the string and the trolley by (4) and (5); return $V_0$ as well."""
        string = self.string
        p, _ = string.momenta(mu[:-2])
        _, factors, columns, _ = string.mass_matrix
        _, shared = self._masses()
        z, s = self._along()
        y = tridiagonal.solve(factors, p)
        V0 = (mu[-2:] - jnp.sum(p, axis=0)[:2] - shared * y[0, :2]) / s  # (4)
        Y = y - shared * z[:, None] * _across(V0)[None, :]
        flat = jnp.diag(jnp.array([1.0, 1.0, 0.0]))
        zb = string.carrier_rows(z)
        blocks = (
            columns[:, :, None, None] * jnp.eye(3)[None, None]
            + (shared**2 / s * z[:, None] * zb[None, :])[:, :, None, None] * flat[None, None]
        )  # (5)
        return Eliminated(Y, blocks, string.carrier_rows(blocks), string.inertia), V0

    def _along(self) -> tuple[Float[Array, " n"], Scalar]:
        r"""Return $z = T^{-1}e_1$ and $s$."""
        string = self.string
        own, shared = self._masses()
        first = _at_first(jnp.ones(1), jnp.zeros((string.elements, 1)))
        z = tridiagonal.solve(string.mass_matrix.factors, first)[:, 0]
        return z, own - shared**2 * z[0]

    def _drag(self, w: Float[Array, "b 3"]) -> Place:
        """Return what the turning bodies add to the motion of the trolley, in (6)."""
        _, shared = self._masses()
        z, s = self._along()
        return shared / s * (self.string.carrier_rows(z) @ w)[:2]

    def drift(self, g: Element, mu: Coordinates, h: Scalar) -> Drift:
        string = self.string
        q, R = self.parts(g)
        _, pi = string.momenta(mu[:-2])
        left, V0 = self._eliminate(mu)
        turned = drift(string, g[1:-1], R, pi, left, h)
        moved = h * V0 + self._drag(sweep_forces(string.bodies, R, turned.x))  # (6)
        q1 = q + (turned.d - _across(moved)[None, :])
        change = jnp.concatenate([chain.join(jnp.zeros_like(q), turned.change), jnp.zeros(2)])
        move = jnp.concatenate([turned.move, jnp.max(jnp.abs(moved))[None]])
        g1 = (q1, *turned.attitudes, g[-1] + moved)
        return Drift(g1, change, move, turned.status, turned.in_chart)

    def differential(self, g: Element, xi: Coordinates, mu: Coordinates) -> Coordinates:
        v, omega = self.string.momenta(xi[:-2])
        seen = chain.join(v + _across(xi[-2:])[None, :], omega)
        return self._still(self.string.differential(g[:-1], seen, mu[:-2]))

    def potential_force(self, g: Element) -> Coordinates:
        """Return $-dV$: as of the string; nothing that the trolley does changes it."""
        return self._still(self.string.potential_force(g[:-1]))

    def _still(self, force: Float[Array, " hanging"]) -> Coordinates:
        return jnp.concatenate([force, jnp.zeros(2)])

    def potential_energy(self, g: Element) -> Scalar:
        return self.string.potential_energy(g[:-1])

    def hamiltonian_energy(self, g: Element, mu: Coordinates) -> Scalar:
        return mu @ self.velocity(g, mu) / 2 + self.potential_energy(g)

    @property
    def feedback(self) -> bool:
        return self.force is not None and uses_velocity(self.force, self.group)

    def load(self, g: Element, xi: Coordinates, t: Scalar) -> Coordinates:
        return jnp.zeros_like(xi) if self.force is None else jnp.asarray(self.force(g, xi, t))

    def kick(self, g: Element, t: Scalar) -> Coordinates:
        force = self.potential_force(g)
        if self.force is None or self.feedback:
            return force
        return force + jnp.asarray(self.force(g, jnp.zeros_like(force), t))

    def symmetries(self) -> Symmetries:
        """Return no symmetry: those of space are among `further_invariants`."""
        none = np.zeros((0, self.group.dim))
        return Symmetries(none, none)

    def further_invariants(self, state: State) -> dict[str, Scalar]:
        """Return the horizontal momentum, and the angular momentum about the vertical."""
        if self.force is not None:
            return {}
        P = state.momentum[-2:]
        return {
            "momentum e1": P[0],
            "momentum e2": P[1],
            "angular momentum e3": self.angular_momentum(state),
        }

    def angular_momentum(self, state: State) -> Scalar:
        r"""Return $\ell_3$ of (1): about the vertical through the origin."""
        q, R = self.parts(state.g)
        p, pi = self.string.momenta(state.momentum[:-2])
        X, P = state.g[-1], state.momentum[-2:]
        hanging = jnp.sum(jax.vmap(cross)(q, p), axis=0) + jnp.sum(
            jax.vmap(jnp.matmul)(R, pi), axis=0
        )
        return hanging[2] + X[0] * P[1] - X[1] * P[0]

    def observables(self, state: State) -> dict[str, Float[Array, "..."]]:
        string = self.string
        q, R = self.parts(state.g)
        v, omega, _ = self.velocities(state.g, state.momentum)
        u, kappa = string.spacing, string.stiffness / string.spacing
        longer = chain.lengths(chain.spans(q)) - u
        arms = jax.vmap(jnp.matmul)(R, string.arm)
        v_body = string.carrier_rows(v)
        turned = jax.vmap(lambda R, w, arm: R @ cross(w, arm))(R, omega, string.arm)
        return {
            "strain": longer / u,
            "tension": kappa * (jnp.maximum(longer, 0.0) if string.slack else longer),
            "velocity of attachment": v_body,
            "velocity of centre of mass": v_body + turned,
            "angular velocity": omega,
            "place of the load": string.carrier_rows(q) + arms + _across(state.g[-1])[None, :],
            "horizontal momentum": state.momentum[-2:],
        }

    def check_state(self, state: State) -> None:
        super().check_state(state)
        checks.require_apart(state.g[0])

    @property
    def drawing(self) -> Drawing | None:
        string = self.string.drawing
        return None if string is None else {**string, "trolley": float(self.string.length)}

    def hanging(self, place: ArrayLike = (0.0, 0.0)) -> State:
        """Return the equilibrium with the trolley at `place`: at rest, hanging straight down."""
        below = self.string.hanging()
        return self.state((*below.g, place), velocity=np.zeros(self.group.dim))

    def longest_stable_step(self) -> float:
        r"""Return $2/\omega_{\max}$ of the waves along the string, with the trolley on its end."""
        string = self.string
        n, u = string.elements, float(string.spacing)
        m, kappa = float(string.density) * u, float(string.stiffness) / u
        mass, stiff = np.zeros((n + 1, n + 1)), np.zeros((n + 1, n + 1))
        for a in range(n):
            mass[a : a + 2, a : a + 2] += m / 6 * (np.eye(2) + 1)
            stiff[a : a + 2, a : a + 2] += kappa * (2 * np.eye(2) - 1)
        mass[0, 0] += float(self.trolley)
        for node, least in zip(string.nodes, stability.effective_masses(string), strict=True):
            mass[node, node] += least
        lower = np.linalg.inv(np.linalg.cholesky(mass))
        return 2 / math.sqrt(float(np.linalg.eigvalsh(lower @ stiff @ lower.T)[-1]))

    def check_step(self, state: State, h: float) -> None:
        if h > stability.safe_step(self.string) / 2:
            limit = self.longest_stable_step()
            if h >= limit:
                raise BadInput(
                    f"h = {h:.4g} s is unstable on this crane: waves along the "
                    f"{self.string.elements} elements of its string need h < {limit:.4g} s."
                )
            if h > limit / 2:
                warn(
                    f"h = {h:.4g} s is more than half of the longest stable step, {limit:.4g} s: "
                    "it resolves the fastest waves on the string poorly."
                )


def _across(x: Place) -> Float[Array, "3"]:
    """Return $E x$: a horizontal vector, in space."""
    return jnp.concatenate([x, jnp.zeros(1)])


def _at_first(row: Float[Array, " k"], like: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """Return rows of zeros like those of `like`, but for the first."""
    return jnp.concatenate([row[None, :], jnp.zeros_like(like[1:])])
