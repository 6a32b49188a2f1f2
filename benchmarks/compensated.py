r"""Does compensated summation pay? The heavy top by Stoermer-Verlet, with and without it.

    python -m benchmarks.compensated [steps]

A step adds small changes to the attitude and the momentum, and each sum is rounded once. A
compensated step keeps what rounding took away and adds it to the next change (two more arrays in
the state, and six operations for a number). Four variants of one step, from the same starts:
as retrax takes it; without the correction of R; both sums compensated; the momentum's alone.
"""

import sys
import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import retrax as rx
from benchmarks.results import save
from retrax.integrators.lifted import midpoint_velocity
from retrax.numerics.newton import newton
from retrax.testing.problems import asymmetric_top

STEPS, STARTS, H = 10**6, 16, 0.02
VARIANTS = ("as it is", "uncorrected", "compensated", "momentum compensated")
TAU = rx.Cayley()


def two_sum(a, b):
    """The rounded sum, and what rounding took away."""
    s = a + b
    v = s - a
    return s, (a - (s - v)) + (b - v)


def step(system: Any, variant: str, carried: tuple) -> tuple:
    """One step of `LieVerlet` on a system whose potential alone exerts force."""
    g, mu, lost_g, lost_mu = carried
    group, still = system.group, jnp.zeros(3)

    def kick(g):
        return H / 2 * system.total_force(g, still, mu, jnp.zeros(()))

    pushed = mu + kick(g)

    def mismatch(xi):
        return TAU.dR_inv_dual(group, H * xi, system.momentum(g, xi)) - pushed

    guess = midpoint_velocity(system, rx.State(g, mu, jnp.zeros(())), jnp.asarray(H))
    xi, _ = newton(mismatch, guess, jnp.max(jnp.abs(mu)))
    delta = TAU.minus_identity(group, H * xi)
    if variant == "compensated":
        g1, lost_g = two_sum(g, g @ delta + (lost_g + lost_g @ delta))
    elif variant == "uncorrected":
        g1 = g + g @ delta
    else:
        g1 = group.advance(g, delta)
    change = kick(g) + group.coAdm1(delta, pushed) + kick(g1)
    if "compensated" in variant:
        mu1, lost_mu = two_sum(mu, change + (lost_mu + group.coAdm1(delta, lost_mu)))
    else:
        mu1 = mu + change
    return g1, mu1, lost_g, lost_mu


@partial(jax.jit, static_argnums=(1, 2))
def run(system: Any, variant: str, steps: int, g, mu):
    """Attitude and momentum at the end, with what is still to be added to them."""
    start = (g, mu, jnp.zeros((3, 3)), jnp.zeros(3))
    return jax.lax.fori_loop(0, steps, lambda _, c: step(system, variant, c), start)


def measure(variant: str, steps: int) -> dict[str, float]:
    system, state = asymmetric_top()
    factors = np.linspace(0.9, 1.1, STARTS)
    g, mu = jnp.tile(state.g, (STARTS, 1, 1)), factors[:, None] * np.asarray(state.momentum)
    move = jax.vmap(lambda g, mu: run(system, variant, steps, g, mu))
    move(g, mu)
    clock = time.process_time()
    g1, mu1, lost_g, lost_mu = (np.asarray(x, np.longdouble) for x in move(g, mu))
    seconds = time.process_time() - clock

    def vertical(g, mu):  # in extended precision: the look must not round what is looked at
        return np.einsum("mj,mj->m", np.asarray(g, np.longdouble)[:, 2], mu)

    errors = vertical(g1 + lost_g, mu1 + lost_mu) - vertical(g, np.asarray(mu, np.longdouble))
    defect = np.einsum("mji,mjk->mik", g1, g1) - np.eye(3)
    return {
        "momentum": float(np.sqrt(np.mean(errors**2))),
        "defect": float(np.max(np.abs(defect))),
        "nanoseconds": seconds / steps / STARTS * 1e9,
    }


def main(arguments: list[str]) -> None:
    steps = int(float(arguments[0])) if arguments else STEPS
    rows = {variant: measure(variant, steps) for variant in VARIANTS}
    for variant, row in rows.items():
        print(variant, row)
    save("compensated", {"steps": steps, "starts": STARTS, "h": H, "rows": rows})


if __name__ == "__main__":
    main(sys.argv[1:])
