"""Whether a step preserves the symplectic form."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import StepFailed
from retrax.groups.base import AbstractLieGroup
from retrax.integrators.base import AbstractIntegrator, as_integrator
from retrax.mechanics.placement import changes_across
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import require_untraced
from retrax.numerics.evaluate import Evaluated
from retrax.numerics.small_matrices import null_space
from retrax.run.checks import require_run

# Rows are dependent where a singular value is this part of their size.
_DEPENDENT = 1e-10


def symplecticity(
    system: AbstractGroupSystem,
    integrator: AbstractIntegrator | str,
    state: State,
    *,
    h: float,
) -> float:
    r"""Return the defect $\max|M^T\Omega(\mu_1)M - \Omega(\mu_0)|$ of one step from `state`.

    In left-trivialised coordinates the canonical form of $T^*G$ at $(g, \mu)$ is

    $$ \Omega\bigl((\eta,\alpha),(\zeta,\beta)\bigr)
       = \langle\beta,\eta\rangle - \langle\alpha,\zeta\rangle
       + \langle\mu,[\eta,\zeta]\rangle, \tag{1} $$

    and $M$ is the Jacobian, by forward differentiation, of the step
    $(g_0, \mu_0) \mapsto (g_1, \mu_1)$ read in the coordinates

    $$ (\eta, \alpha) \mapsto \bigl(g_0\exp\eta,\ \mu_0 + \alpha\bigr), \qquad
       (g, \mu) \mapsto \bigl(\log(g_1^{-1}g),\ \mu - \mu_1\bigr). \tag{2} $$

    Under a constraint on positions both forms are restricted to the changes that it admits, those
    of $T^*\{\varphi = 0\}$. Round-off for a symplectic method, the local error for any other.
    """
    require_untraced("symplecticity", system, integrator, state, h)
    integrator = as_integrator(integrator)
    require_run(system, integrator, state, h, 1, 1)
    difference, across = map(np.asarray, _difference(system, integrator, state, float(h)))
    admitted = (
        null_space(across, _DEPENDENT * float(np.linalg.norm(across))) if len(across) else None
    )
    if admitted is not None:
        lengths = np.linalg.norm(admitted, axis=1, keepdims=True)
        difference = (admitted / lengths) @ difference @ (admitted / lengths).T
    defect = float(np.max(np.abs(difference)))
    if not math.isfinite(defect):
        raise StepFailed(
            f"{integrator!r} on the {system.name}: the step of h = {h:g} or its derivative gave "
            "numbers that are not finite; try a smaller h."
        )
    return defect


def symplectic_form(
    group: AbstractLieGroup, mu: Float[Array, " dim"]
) -> Float[Array, "twice_dim twice_dim"]:
    r"""Return the matrix of (1): $\Omega(u, v) = u^T W v$."""
    one = jnp.eye(group.dim)
    bracket = jax.vmap(lambda eta: group.coad(eta, mu))(one)
    return jnp.block([[bracket, one], [-one, jnp.zeros_like(one)]])


@Evaluated
def _difference(
    system: AbstractGroupSystem, integrator: AbstractIntegrator, state: State, h: Float[Array, ""]
) -> tuple[Float[Array, "twice_dim twice_dim"], Float[Array, "k twice_dim"]]:
    """Return the difference of the forms, and the rows that admissible changes annihilate."""
    group = system.group
    n = group.dim

    def step(z):  # from the coordinates (2) at the start, to what is stored at the end
        start = State(group.compose(state.g, group.exp(z[:n])), state.momentum + z[n:], state.t)
        end, _ = integrator.step(system, start, h)
        return (end.g, end.momentum), end

    (dg, dmu), end = jax.jacfwd(step, has_aux=True)(jnp.zeros(2 * n))

    def chart(g):  # (2) at the end
        return group.log(group.compose(group.inverse(end.g), g))

    def turn(column):
        return jax.jvp(chart, (end.g,), (column,))[1]

    deta = jax.vmap(turn, in_axes=-1, out_axes=-1)(dg)
    m = jnp.concatenate([deta, dmu])
    before, after = symplectic_form(group, state.momentum), symplectic_form(group, end.momentum)
    return m.T @ after @ m - before, changes_across(system, state)  # (1)
