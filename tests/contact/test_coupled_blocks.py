"""Rows that reach two bodies each, and matrices of blocks, against dense ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from retrax.contact.solver.coupled_blocks import (
    Couples,
    carry_rows,
    impulse_of,
    solve_with_contacts,
    speeds_along,
    spread,
    velocity_changes,
)
from retrax.engine.passes.fusion import fuse
from retrax.engine.passes.live import live
from retrax.engine.passes.sinking import sink
from retrax.engine.trace.scalarise import scalarise
from retrax.numerics.jax_hints import keep_axis

CASES = {
    "four bodies": Couples(
        tuple((6 * k, 6) for k in range(4)),
        ((0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 2), (0, 1)),
    ),
    "bodies of different kinds": Couples(
        ((0, 3), (3, 6), (9, 1), (10, 3), (13, 6)), ((0, 1), (3, 1), (4, 0), (1, 3), (4, 1))
    ),
    "one pair": Couples(((0, 6), (6, 6)), ((1, 0),) * 6),
    "one body": Couples(((0, 6),), ((0, 0),) * 14),
}


def drawn(couples):
    """Rows with zeros where a part has no entries, and their dense form."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(len(couples.of), 3, couples.width, couples.size))
    for i, both in enumerate(couples.of):
        for k, part in enumerate(both[: couples.width]):
            rows[i, :, k, couples.parts[part][1] :] = 0
    rows = jnp.asarray(rows.reshape(len(couples.of), 3, -1))
    dense = np.zeros((len(couples.of), 3, couples.dim))
    for i, both in enumerate(couples.of):
        for k, part in enumerate(both[: couples.width]):
            start, size = couples.parts[part]
            first = k * couples.size
            dense[i, :, start : start + size] = rows[i, :, first : first + size]
    return rng, rows, dense


@pytest.mark.parametrize("case", CASES)
def test_rows_of_parts_are_those_of_all_velocities(case):
    """Measured: 4e-15."""
    couples = CASES[case]
    rng, rows, dense = drawn(couples)
    np.testing.assert_array_equal(spread(rows, couples), dense)
    xi, z = rng.normal(size=couples.dim), rng.normal(size=(len(rows), 3))
    close = dict(rtol=0, atol=2e-14)
    np.testing.assert_allclose(speeds_along(rows, jnp.asarray(xi), couples), dense @ xi, **close)
    total = np.einsum("iak,ia->k", dense, z)
    np.testing.assert_allclose(impulse_of(rows, jnp.asarray(z), couples), total, **close)
    mobility = rng.normal(size=(couples.dim, couples.dim))
    found = spread(velocity_changes(rows, jnp.asarray(mobility), couples), couples)
    inside = spread(jnp.ones_like(rows), couples) > 0
    np.testing.assert_allclose(found, np.where(inside, dense @ mobility, 0.0), **close)
    matrix = np.zeros_like(mobility)
    for start, size in couples.parts:
        own = slice(start, start + size)
        matrix[own, own] = mobility[own, own]
    carried = carry_rows(rows[:, 0], lambda row: row @ matrix, couples)
    found = spread(carried[:, None], couples)[:, 0]
    np.testing.assert_allclose(found, dense[:, 0] @ matrix, **close)


@pytest.mark.parametrize("case", CASES)
def test_elimination_from_part_to_part(case):
    """Measured: 3e-15 of the solution. Open contacts do not count."""
    couples = CASES[case]
    rng, rows, dense = drawn(couples)
    E = rng.normal(size=(len(rows), 3, 3))
    E = E @ E.transpose(0, 2, 1)
    closed = rng.random(len(rows)) < 0.7
    D, right = np.diag(1 + rng.random(couples.dim)), rng.normal(size=couples.dim)
    D[0, -1] = 0.3
    K = D + np.einsum("iak,iab,ibl->kl", dense[closed], E[closed], dense[closed])
    exact = np.linalg.solve(K, right)
    given = (jnp.asarray(x) for x in (D, right, rows, E, rows, closed))
    found = jax.jit(lambda *x: solve_with_contacts(*x, couples))(*given)
    np.testing.assert_allclose(found, exact, rtol=0, atol=3e-14 * np.max(np.abs(exact)))


def test_a_program_for_many_contacts_is_not_longer():
    """Twice as many contacts between the same bodies take the same code."""

    def length(count):
        couples = Couples(((0, 6), (6, 6)), ((0, 1), (1, 0)) * count)

        def solved(w, e, d):
            some = keep_axis(jnp.arange(2.0 * count))
            W = some[:, None, None] * w[None]
            E = jnp.broadcast_to(e, (2 * count, 3, 3)) + some[:, None, None]
            return solve_with_contacts(jnp.diag(d), d, W, E, W, some > 3, couples)

        examples = (jnp.ones((3, 12)), jnp.eye(3), jnp.ones(12))
        return fuse(sink(live(scalarise(solved, *examples)))).count()

    assert length(16) == length(32) < 2_500
