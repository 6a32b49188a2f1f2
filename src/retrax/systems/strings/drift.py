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
in (7) and the sum in (6) includes $c = b$.

References: [LeeLeokMcClamrochString2009] (1), for one body.
"""

from typing import TYPE_CHECKING

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.so3 import SO3
from retrax.mechanics.split import Drift
from retrax.mechanics.system import Coordinates, Element
from retrax.systems.strings import turning
from retrax.systems.strings.chain import Nodes
from retrax.systems.strings.coordinates import joined
from retrax.systems.strings.damping import damped
from retrax.systems.strings.elimination import eliminate

if TYPE_CHECKING:
    from retrax.systems.strings.string_pendulum import StringPendulum

_SO3 = SO3()


def chord_drift(
    system: "StringPendulum", g: Element, mu: Coordinates, h: Float[Array, ""]
) -> Drift:
    """The drift of (1): $g^+$ from (2) and (3), and the changes (4) and (8) of the momenta."""
    r, R = system.parts(g)
    p, pi = system.momenta(mu)
    left = eliminate(system, r, p, h)
    gamma = h * (pi - turning.levers(system.bodies, R, system.carried(left.y)))  # (6)
    x, status = turning.turn(system.bodies, R, left.inertia, left.alpha, gamma)  # (7)
    d = left.without(turning.swept(system.bodies, R, x), h)  # (2)
    r1 = r + d
    R1 = tuple(_SO3.advance(R, _SO3.caym1(x[b])) for b, R in enumerate(g[1:]))
    precession = turning.precession(system.bodies, R, x, system.carried(d), h)  # (4)
    change = joined(_lost(system, r, r1, d), precession)
    # Beyond a quarter of a turn, |x| = 2, (7) has another branch of solutions.
    in_chart = jnp.all(jnp.sum(x * x, axis=1) < 4.0)
    # Of the nodes the farthest: nobody asks for more, and a step is spared the copies.
    move = jnp.concatenate([jnp.max(jnp.abs(d))[None], x.reshape(-1)])
    return Drift((r1, *R1), change, move, status, in_chart)


def _lost(system: "StringPendulum", r: Nodes, r1: Nodes, d: Nodes) -> Nodes:
    """(8): what damping takes from the momenta of the nodes."""
    damping, u, slack = system.damping, system.spacing, system.slack
    if damping.drag is None and damping.viscosity is None:
        return jnp.zeros_like(d)
    return (damped(damping, r, d, u, slack) + damped(damping, r1, d, u, slack)) / 2
