"""Every family of nodes has its order on every space, against exact answers."""

import pytest
from space_problems import FLOWS, error, slope

import retrax as rx
from retrax.integrators.collocation import Collocation
from retrax.numerics.nodes import chebyshev_lobatto, gauss, lobatto, radau

NODES = {
    "gauss(1)": gauss(1),
    "gauss(2)": gauss(2),
    "gauss(3)": gauss(3),
    "radau(2)": radau(2),
    "lobatto(3)": lobatto(3),
    "chebyshev_lobatto(4)": chebyshev_lobatto(4),
}
GROUPS = [name for name in FLOWS if name.startswith("S") and "(" in name]
SPACES = [name for name in FLOWS if name not in GROUPS]
# One family tells the sides apart: with the wrong sign it falls to order 2. It runs on all spaces,
# each other family on one of them; `make test-all` runs all on all.
APART = "gauss(3)"
ROTATING = [name for name in NODES if name != APART]
CASES = [pytest.param(space, APART) for space in (*SPACES, *GROUPS)]
CASES += [
    pytest.param(space, nodes, marks=() if i % len(SPACES) == k else pytest.mark.campaign)
    for k, space in enumerate(SPACES)
    for i, nodes in enumerate(ROTATING)
]


def has_order(space, integrator):
    seen, coarse, fine = slope(space, integrator, 8 if integrator.order == 6 else 16)
    # Measured: between 2.94 - 3 and 6.62 - 6 away from the order.
    assert -0.1 < seen - integrator.order < 0.7, (coarse, fine)


@pytest.mark.parametrize("space, nodes", CASES)
def test_collocation(space, nodes):
    has_order(space, Collocation(NODES[nodes]))


@pytest.mark.parametrize(
    "space, tableau", [("sphere", "rk4"), ("sphere", "dopri5"), ("coadjoint orbit", "dopri5")]
)
def test_runge_kutta_munthe_kaas(space, tableau):
    has_order(space, rx.RKMK(tableau))


@pytest.mark.parametrize("space, order", [("sphere", 6), ("isospectral", 4), ("SE(3), left", 6)])
def test_taylor(space, order):
    has_order(space, rx.Taylor(order))


def test_the_plain_method_leaves_the_space():
    """The baseline sees numbers only: the right order, and a defect of the size of its error."""
    _, run = error("Stiefel", rx.RungeKutta("rk4"), 32)
    assert 1e-9 < run.group_defect()[-1] < 1e-5  # measured: 1.5e-7
    has_order("Stiefel", rx.RungeKutta("rk4"))
    has_order("sphere", rx.PlainCollocation(gauss(2)))
    has_order("sphere", rx.Magnus(4))


def test_long_runs_stay_on_their_space():
    """Ten thousand steps: defects of one rounding error, orbits to their accumulation."""
    for name, orbit in [("sphere", 0.0), ("Grassmann", 0.0), ("isospectral", 2e-13)]:
        system, start, _ = FLOWS[name]()
        run = rx.simulate(system, rx.RKMK("rk4"), start, h=0.05, steps=10_000, save_every=1000)
        assert run.group_defect().max() < 5e-15, name  # measured: at most 9e-16
        for invariant, values in run.invariants().items():
            if invariant.startswith("eigenvalue"):
                assert abs(values - values[0]).max() < orbit  # measured: 3e-14
