r"""The implicit half of a step: masses drift along chords, and the string is eliminated.

The discrete kinetic energy gives every point of mass the velocity of the chord it moves along in
a step. With $d = r^+ - r$, $F_b = R_b^TR_b^+$ and $J_d = \tfrac12\mathrm{tr}J - J$ of a body,

$$ T_d = \tfrac1{2h}\,d\cdot Td + \sum_b\Bigl\{\tfrac1h\mathrm{tr}[(1 - F_b)J_{d,b}]
   + \tfrac{M_b}h\,d_b\cdot R_b(F_b - 1)\rho_b\Bigr\}. \tag{1} $$

Momenta $(p, \pi)$ go over to it: with $w_b = M_bR_b(F_b - 1)\rho_b$ and $A = T$,

$$
\begin{aligned}
h\,p &= A\,d + \textstyle\sum_be_bw_b                                            &&\text{(2)}\\
h\,\pi_b &= (F_bJ_{d,b} - J_{d,b}F_b^T)^\vee + M_b\,\rho_b\times R_b^Td_b        &&\text{(3)}\\
\delta\pi_b &= -\tfrac1h\,\tfrac{4}{4+x^2}\,x\times J_bx
   + \tfrac{M_b}h\,\rho_b\times(F_b - 1)^TR_b^Td_b, \qquad F_b = \mathrm{cay}(x_b) &&\text{(4)}
\end{aligned}
$$

(4) being the change of $\pi_b$ in the step. By (2), $d = h\,y - \sum_bA^{-1}e_bw_b$ with
$y = A^{-1}p$. Put into (3), and with $\alpha_{bc} = e_b^TA^{-1}e_c$, this leaves three equations
for each body, those of a free body with a smaller inertia, coupled to its neighbours':

$$
\begin{aligned}
\tilde J_b &= J_b - \alpha_{bb}M_b^2(|\rho_b|^2 - \rho_b\rho_b^T)                &&\text{(5)}\\
\gamma_b &= h(\pi_b - M_b\rho_b\times R_b^Ty_b)
   + M_b\rho_b\times R_b^T\textstyle\sum_{c\ne b}\alpha_{bc}w_c                  &&\text{(6)}\\
\tilde J_bx_b &= \gamma_b + \tfrac12\gamma_b\times x_b
   + \tfrac14(\gamma_b\cdot x_b)\,x_b                                            &&\text{(7)}
\end{aligned}
$$

Damping: node drag $-c_av_a$ and a dashpot $-\eta(\hat x\cdot\dot x)\hat x$ in every element
act half with the start and half with the end of the step, so that with
$C = \mathrm{diag}(c) + D(r)$, $D$ the matrix of the dashpots,

$$ A = T + \tfrac h2C(r), \qquad \delta p = -\tfrac12\bigl(C(r) + C(r^+)\bigr)\,d. \tag{8} $$

With dashpots the entries of $A$, and $\alpha_{bc}$, are 3 x 3 blocks; then $\tilde J_b = J_b$
in (7) and the sum in (6) includes $c = b$. Without damping $A$ is factorised once, when the system
is made; drag adds to its diagonal in proportion to $h$, and viscosity changes it in every step.

References: [LeeLeokMcClamrochString2009] (1), for one body.
"""

from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from retrax.groups.so3 import SO3
from retrax.mechanics.split import Drift
from retrax.mechanics.system import Coordinates, Element
from retrax.numerics import tridiagonal
from retrax.numerics.newton import NewtonStatus, newton
from retrax.numerics.small_matrices import cross, solve
from retrax.systems.strings.chain import (
    Masses,
    Nodes,
    at_nodes,
    carriers,
    damping_forces,
    dashpots,
    join,
)

if TYPE_CHECKING:
    from retrax.systems.strings.string_pendulum import StringPendulum

_SO3 = SO3()
Vectors = Float[Array, "b 3"]


def chord_drift(
    system: "StringPendulum", g: Element, mu: Coordinates, h: Float[Array, ""]
) -> Drift:
    """Take the drift of (1): $g^+$ from (2) and (3), and the changes (4) and (8) of the momenta."""
    r, R = system.parts(g)
    p, pi = system.momenta(mu)
    left = eliminate(system, r, p, h)
    done = drift(system, g[1:], R, pi, left, h)
    r1 = r + done.d
    change = join(_loss(system, r, r1, done.d), done.change)
    return Drift((r1, *done.attitudes), change, done.move, done.status, done.in_chart)


class Drifted(NamedTuple):
    """How far nodes and bodies move: `d` and `x`, and what follows for the bodies."""

    d: Nodes
    x: Vectors
    attitudes: tuple[Float[Array, "3 3"], ...]
    change: Vectors
    move: Coordinates
    status: NewtonStatus
    in_chart: Bool[Array, ""]


def drift(
    system: "StringPendulum",
    attitudes: tuple[Float[Array, "3 3"], ...],
    R: Float[Array, "b 3 3"],
    pi: Vectors,
    left: "Eliminated",
    h: Float[Array, ""],
) -> Drifted:
    """Turn the bodies by (7), and move the nodes that were eliminated."""
    gamma = h * (pi - levers(system.bodies, R, system.carrier_rows(left.y)))  # (6)
    x, status = turns(system.bodies, R, left.inertia, left.alpha, gamma)  # (7)
    d = left.without(sweep_forces(system.bodies, R, x), h)  # (2)
    new = tuple(_SO3.advance(R, _SO3.caym1(x[b])) for b, R in enumerate(attitudes))
    change = precession(system.bodies, R, x, system.carrier_rows(d), h)  # (4)
    # Beyond a quarter of a turn, |x| = 2, (7) has another branch of solutions.
    in_chart = jnp.all(jnp.sum(x * x, axis=1) < 4.0)
    # One number for all nodes, the farthest move: copying all of them would slow down the step.
    move = jnp.concatenate([jnp.max(jnp.abs(d))[None], x.reshape(-1)])
    return Drifted(d, x, new, change, move, status, in_chart)


def _loss(system: "StringPendulum", r: Nodes, r1: Nodes, d: Nodes) -> Nodes:
    """Return the momentum (8) that damping takes from the nodes."""
    damping, u, slack = system.damping, system.spacing, system.slack
    if damping.drag is None and damping.viscosity is None:
        return jnp.zeros_like(d)
    return (damping_forces(damping, r, d, u, slack) + damping_forces(damping, r1, d, u, slack)) / 2


class MassMatrix(NamedTuple):
    r"""$T$ with the bodies on it: its entries, its factors, the columns $T^{-1}e_b$, and (5)."""

    masses: Masses
    factors: tridiagonal.Factor
    columns: Float[Array, "n b"]
    reduced: Float[Array, "b 3 3"]

    @classmethod
    def of(cls, masses: Masses, nodes: tuple[int, ...], bodies: "Bodies") -> "MassMatrix":
        """Factorise the matrix with the entries `masses`."""
        factors = tridiagonal.factor(masses.diagonal, masses.below)
        unit = jnp.asarray(carriers(len(masses.diagonal), nodes))
        columns = tridiagonal.solve(factors, unit)
        return cls(masses, factors, columns, eliminate_bodies(bodies, at_nodes(columns, nodes)))


class Eliminated(NamedTuple):
    r"""$y = A^{-1}p$, the columns $A^{-1}e_b$, their entries $\alpha$, the inertias left over."""

    y: Nodes
    columns: Float[Array, "n b *block"]
    alpha: Float[Array, "b b *block"]
    inertia: Float[Array, "b 3 3"]

    def without(self, w: Float[Array, "b 3"], h: Float[Array, ""]) -> Nodes:
        r"""Return $d = h\,y - \sum_bA^{-1}e_bw_b$: how far the nodes move."""
        if self.columns.ndim == 2:
            return h * self.y - self.columns @ w
        return h * self.y - jnp.einsum("nbij,bj->ni", self.columns, w)


def eliminate(system: "StringPendulum", r: Nodes, p: Nodes, h: Float[Array, ""]) -> Eliminated:
    """Eliminate the string from a step of size `h` at `r`."""
    drag, viscosity = system.damping.drag, system.damping.viscosity
    if viscosity is not None:
        return _by_blocks(system, r, p, h, viscosity)
    if drag is None:
        return eliminate_undamped(system, p)
    diagonal, below, _ = system.mass_matrix.masses
    factors = tridiagonal.factor(diagonal + h / 2 * drag, below)
    unit = jnp.asarray(carriers(system.elements, system.nodes))
    both = tridiagonal.solve(factors, jnp.concatenate([p, unit], axis=1))
    columns = both[:, 3:]
    alpha = system.carrier_rows(columns)
    return Eliminated(both[:, :3], columns, alpha, eliminate_bodies(system.bodies, alpha))


def eliminate_undamped(system: "StringPendulum", p: Nodes) -> Eliminated:
    """Eliminate the string with $A = T$, for the velocities at an instant."""
    _, factors, columns, reduced = system.mass_matrix
    y = tridiagonal.solve(factors, p)
    return Eliminated(y, columns, system.carrier_rows(columns), reduced)


def _by_blocks(
    system: "StringPendulum",
    r: Nodes,
    p: Nodes,
    h: Float[Array, ""],
    viscosity: Float[Array, ""],
) -> Eliminated:
    """Eliminate the string where dashpots make the entries of $A$ blocks."""
    n, count = system.elements, len(system.nodes)
    diagonal, below, _ = system.mass_matrix.masses
    if system.damping.drag is not None:
        diagonal = diagonal + h / 2 * system.damping.drag
    one = jnp.eye(3)
    D = h / 2 * dashpots(r, system.spacing, viscosity, system.slack)
    after = jnp.concatenate([D[1:], jnp.zeros_like(D[:1])])
    blocks = jax.vmap(lambda a, here, after: a * one + here + after)(diagonal, D, after)
    coupling = jax.vmap(lambda b, here: b * one - here)(below, D)
    # The right sides: the momenta, then three columns for the node of each body.
    unit = jnp.asarray(carriers(n, system.nodes))
    units = jax.vmap(lambda e: jnp.concatenate([e[b] * one for b in range(count)], axis=1))(unit)
    sides = jnp.concatenate([p[:, :, None], units], axis=2)
    x = tridiagonal.solve_blocks(blocks, coupling, sides)
    parts = [x[:, None, :, 1 + 3 * b : 4 + 3 * b] for b in range(count)]
    columns = jnp.concatenate(parts, axis=1)
    return Eliminated(x[:, :, 0], columns, system.carrier_rows(columns), system.inertia)


class Bodies(NamedTuple):
    """Mass, arm and inertia about the point of attachment of each body."""

    mass: Float[Array, " b"]
    arm: Vectors
    inertia: Float[Array, "b 3 3"]


def eliminate_bodies(bodies: Bodies, alpha: Float[Array, "b b"]) -> Float[Array, "b 3 3"]:
    """Return the inertias (5)."""

    def one(mass, arm, inertia, a):
        return inertia - a * mass**2 * (arm @ arm * jnp.eye(3) - jnp.outer(arm, arm))

    return jax.vmap(one)(*bodies, jnp.stack([alpha[b, b] for b in range(len(alpha))]))


def levers(bodies: Bodies, R: Float[Array, "b 3 3"], y: Vectors) -> Vectors:
    r"""Return $M_b\,\rho_b\times R_b^Ty_b$."""
    return jax.vmap(lambda m, arm, R, y: m * cross(arm, R.T @ y))(bodies.mass, bodies.arm, R, y)


def spin_forces(bodies: Bodies, R: Float[Array, "b 3 3"], omega: Vectors) -> Vectors:
    r"""Return $M_bR_b(\Omega_b\times\rho_b)$."""
    return jax.vmap(lambda m, arm, R, w: m * (R @ cross(w, arm)))(bodies.mass, bodies.arm, R, omega)


def sweep_forces(bodies: Bodies, R: Float[Array, "b 3 3"], x: Vectors) -> Vectors:
    r"""Return $w_b = M_bR_b(F_b - 1)\rho_b$."""
    return jax.vmap(lambda m, arm, R, x: m * (R @ (_SO3.caym1(x) @ arm)))(
        bodies.mass, bodies.arm, R, x
    )


def couple(alpha: Float[Array, "b b *block"], w: Vectors, own: bool) -> Vectors:
    r"""Return $\sum_c\alpha_{bc}w_c$; without `own` the term $c = b$ is left out."""
    rows = []
    for b in range(len(w)):
        others = [c for c in range(len(w)) if own or c != b]
        parts = [alpha[b, c] * w[c] if alpha.ndim == 2 else alpha[b, c] @ w[c] for c in others]
        rows.append(sum(parts, jnp.zeros(3)))
    return jnp.stack(rows)


def response(
    bodies: Bodies,
    R: Float[Array, "b 3 3"],
    inertia: Float[Array, "b 3 3"],
    alpha: Float[Array, "b b *block"],
    torque: Vectors,
) -> Vectors:
    """Return the velocities that a `torque` gives the bodies: (7), linearised."""
    own = alpha.ndim == 4
    if len(torque) == 1 and not own:
        return solve(inertia[0], torque[0])[None]

    def resist(x):
        x = x.reshape(-1, 3)
        direct = jax.vmap(jnp.matmul)(inertia, x)
        return (direct - levers(bodies, R, couple(alpha, spin_forces(bodies, R, x), own))).reshape(
            -1
        )

    matrix = jax.jacfwd(resist)(jnp.zeros(torque.size))
    return solve(matrix, torque.reshape(-1)).reshape(-1, 3)


def turns(
    bodies: Bodies,
    R: Float[Array, "b 3 3"],
    inertia: Float[Array, "b 3 3"],
    alpha: Float[Array, "b b *block"],
    gamma: Vectors,
) -> tuple[Vectors, NewtonStatus]:
    """Return the turns $x_b$ of (7); `gamma` is the first part of (6)."""
    own = alpha.ndim == 4

    def residual(x):
        x = x.reshape(-1, 3)
        given = gamma
        if own or len(gamma) > 1:
            given = gamma + levers(bodies, R, couple(alpha, sweep_forces(bodies, R, x), own))  # (6)
        twisted = jax.vmap(lambda x, g: _SO3.dcay_inv(-x, g))(x, given)
        return (twisted - jax.vmap(jnp.matmul)(inertia, x)).reshape(-1)  # (7)

    guess = response(bodies, R, inertia, alpha, gamma).reshape(-1)
    x, status = newton(residual, guess, jnp.max(jnp.abs(gamma)))
    return x.reshape(-1, 3), status


def precession(
    bodies: Bodies, R: Float[Array, "b 3 3"], x: Vectors, d: Vectors, h: Float[Array, ""]
) -> Vectors:
    """Return the change (4) of the body momenta."""

    def one(mass, arm, inertia, R, x, d):
        gyration = -4 / (4 + x @ x) * cross(x, inertia @ x)
        return (gyration + mass * cross(arm, _SO3.caym1(x).T @ (R.T @ d))) / h

    return jax.vmap(one)(*bodies, R, x, d)
