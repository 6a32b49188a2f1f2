"""Derivatives of impulses and velocities under the law of contact, against differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from retrax.contact.solver.complementarity import Contact, Found, Law, weights
from retrax.contact.solver.solution import solve_contact

N, JOINED = 5, 1
RNG = np.random.default_rng(2)
ROWS, TIES = RNG.normal(size=(2, 3, N)), RNG.normal(size=(JOINED, N))
MASS = np.eye(N) + 0.2 * np.ones((N, N))
# Friction, and what pushes the first contact: into it or away from it, and along it.
CASES = {"sticks": (5.0, -3.0, 0.1), "slips": (0.1, -3.0, 1.0), "is open": (0.4, 1.0, 0.3)}


def solved(a, friction, along, across, joined):
    """Velocities and impulses; `a` moves every number of the problem."""
    k = JOINED if joined else 0
    rows = jnp.asarray(ROWS * np.array([1.0, 0.6])[:, None, None]) + 0.1 * a[0]
    ties = jnp.asarray(TIES[:k]) * (1 + a[1])
    mass = jnp.asarray(MASS) + jnp.diag(jnp.full(N, a[2]))
    pulled = jnp.asarray(ROWS[0, 0] * along + ROWS[0, 1] * across) * (1 + a[3])

    def answers(given):
        return given @ jnp.linalg.inv(mass)

    problem = Contact(
        need=lambda xi: mass @ xi + 0.01 * xi**3 - pulled,
        speeds=lambda xi, _: jnp.einsum("iak,k->ia", rows, xi) + 0.05 * jnp.sin(a[4]),
        slopes=lambda xi, _: (rows, ties),
        held=lambda xi: ties @ xi - 0.1 * a[5],
        answers=answers,
        law=Law(
            rows=rows,
            friction=jnp.full(2, friction) * (1 + a[6]),
            pushed=jnp.array([0.0, 0.02]) * (1 + a[7]),
            touching=jnp.ones(2, bool),
            ties=ties,
            weights=weights(rows, ties, answers),
            terms=jnp.asarray(1.0),
            unseen=jnp.asarray(0.0),
            rounding=jnp.asarray(0.0),
        ),
    )
    guess = Found(jnp.zeros(N), jnp.zeros((2, 3)), jnp.zeros(k), jnp.zeros(N))
    found, status = solve_contact(problem, guess)
    return jnp.concatenate([found.xi, found.z.ravel(), found.lam]), status.converged


@pytest.mark.parametrize("joined", [False, True], ids=["free", "joined"])
@pytest.mark.parametrize("case", CASES)
def test_derivatives_are_those_of_the_solution(case, joined):
    """Measured: 4e-10 of differences, 1e-13 between forward and reverse."""

    @jax.jit
    def numbers(a):
        return solved(a, *CASES[case], joined)

    a, e = jnp.full(8, 0.02), 1e-5
    found, converged = numbers(a)
    assert converged
    pushes = np.asarray(found[N : N + 6]).reshape(2, 3)
    limit = CASES[case][0] * 1.02 * pushes[0, 0]
    across = np.hypot(*pushes[0, 1:])
    kind = "is open" if pushes[0, 0] == 0 else "slips" if across > limit - 1e-12 else "sticks"
    assert kind == case
    forward = jax.jacfwd(lambda a: numbers(a)[0])(a)
    reverse = jax.jacrev(lambda a: numbers(a)[0])(a)
    slopes = [(numbers(a + e * d)[0] - numbers(a - e * d)[0]) / (2 * e) for d in jnp.eye(8)]
    np.testing.assert_allclose(forward, jnp.stack(slopes, axis=1), atol=2e-8)
    np.testing.assert_allclose(reverse, forward, atol=1e-12)
