"""One rod against closed forms, exact solutions of the continuum and its lattice frequencies."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.systems.rods.strain import STRAINS

S = rx.systems
SLENDER = {
    "stretching": [400.0, 400.0, 1000.0],
    "bending": [1.0, 1.0, 0.8],
    "mass": 1.0,
    "inertia": [1e-3, 1e-3, 2e-3],
}
PINNED = ("pinned", "pinned")
CANTILEVER = ("clamped", "free")


def crooked(kind="mid", elements=6, **others):
    """A rod with no two stiffnesses alike, bent, sheared and twisted at random."""
    rod = S.Rod(
        elements,
        1.3,
        stretching=[4.0, 3.0, 9.0],
        bending=[0.2, 0.3, 0.4],
        mass=1.1,
        inertia=[0.01, 0.02, 0.025],
        strain=kind,
        **others,
    )
    moved = 0.3 * jax.random.normal(jax.random.key(1), (rod.group.dim,), jnp.float64)
    return rod, rod.group.compose(rod.straight([1.0, 0.3, -0.2]), rod.group.exp(moved)), moved


@pytest.mark.parametrize("kind", STRAINS)
def test_loads_are_minus_the_derivative_of_the_energy(kind):
    rod, g, xi = crooked(kind, gravity=[0.1, 0.2, -9.0], end_force=[0.3, 0.2, 0.1])

    @jax.jit
    def both(g):
        derivative = rod.group.cotangent(g, jax.grad(rod.potential_energy)(g))
        return rod.differential(g, xi, xi), -derivative

    np.testing.assert_allclose(*both(g), rtol=0, atol=4e-14)


def tip(rod):
    return np.asarray(S.equilibrium(rod, rod.straight())[1][-1])


@pytest.mark.parametrize(
    ("elements", "expected"), [(8, 0.3023225848), (16, 0.3035226222), (32, 0.3038246514)]
)
def test_cantilever_on_the_lattice(elements, expected):
    rod = S.Rod(elements, 1.0, **SLENDER, ends=CANTILEVER, end_force=[1.0, 0.0, 0.0])
    assert tip(rod)[0] == pytest.approx(expected, abs=1e-10)


def test_cantilever_converges_to_the_exact_rod_with_order_two():
    """Exact solution of the shearable cantilever, P = 5; the one-sided strain is of order 1."""
    exact = np.array([0.7209868339, 0.6110143830])
    errors = {}
    for kind in ("mid", "cay", "left"):
        for n in (16, 32):
            rod = S.Rod(n, 1.0, **SLENDER, ends=CANTILEVER, end_force=[5.0, 0.0, 0.0], strain=kind)
            errors[kind, n] = np.abs(tip(rod)[[0, 2]] - exact).max()
    orders = {kind: np.log2(errors[kind, 16] / errors[kind, 32]) for kind in ("mid", "cay", "left")}
    assert orders["mid"] == pytest.approx(2, abs=0.05)
    assert orders["cay"] == pytest.approx(2, abs=0.1)
    assert orders["left"] == pytest.approx(1, abs=0.1)


def test_elastica():
    """Euler's curve for P L^2 / EI = 10; Richardson's value of two lattices."""
    stiff = SLENDER | {"stretching": [1e9, 1e9, 1e9]}
    coarse, fine = (
        tip(S.Rod(n, 1.0, **stiff, ends=CANTILEVER, end_force=[10.0, 0.0, 0.0])) for n in (32, 64)
    )
    best = (4 * fine - coarse) / 3
    np.testing.assert_allclose(best[[0, 2]], [0.8106090249, 0.4450044022], rtol=0, atol=2e-6)


@pytest.mark.parametrize(("elements", "torque"), [(8, 7.764501988), (16, 6.617041918)])
def test_a_torque_closes_the_rod_to_a_circle(elements, torque):
    exact = 2 * elements * np.tan(np.pi / elements) / np.cos(np.pi / elements) ** 2
    assert exact == pytest.approx(torque, abs=1e-9)
    rod = S.Rod(elements, 1.0, **SLENDER, ends=CANTILEVER, end_torque=[0.0, exact, 0.0])
    frames, places = S.equilibrium(rod, rod.straight())
    assert np.abs(places[-1]).max() < 1e-13
    assert np.abs(frames[-1] - frames[0]).max() < 1e-13


def test_a_rod_that_hangs_from_a_pin_is_at_rest_though_it_may_turn():
    """It stretches by its weight, (N z - z^2/2) m g/EA summed over the segments, and not round."""
    rod = S.Rod(10, 1.0, **SLENDER, ends=("pinned", "free"), gravity=[0, 0, 9.81])
    _, places = S.equilibrium(rod, rod.straight())
    masses = np.asarray(rod.inertia).reshape(-1, 6)[:, 3]
    carried = 9.81 * np.cumsum(masses[::-1])[::-1][1:]
    np.testing.assert_allclose(np.diff(places[:, 2]), 0.1 * (1 + carried / 1000), rtol=1e-12)
    assert np.abs(places[:, :2]).max() < 1e-12


def test_a_free_rod_straightens_where_it_is():
    rod, _, moved = crooked()
    rest = S.equilibrium(rod, rod.group.compose(rod.straight(), rod.group.exp(0.1 * moved)))
    gamma, omega = (np.asarray(x) for x in jax.jit(rod.strains)(rest))
    assert np.abs(gamma - np.array([0.0, 0.0, 1.0])).max() < 1e-12 and np.abs(omega).max() < 1e-12


def test_a_free_rod_under_gravity_has_no_equilibrium():
    rod = S.Rod(6, 1.0, **SLENDER, gravity=[0, 0, -9.81])
    with pytest.raises(rx.NoEquilibrium, match=r"without resistance along a load.*-9\.81\) N"):
        S.equilibrium(rod, rod.straight([1, 0, 0]))


def test_no_equilibrium_is_said():
    rod = S.Rod(8, 1.0, **SLENDER, end_force=[1.0, 0.0, 0.0])
    with pytest.raises(rx.NoEquilibrium, match="found no equilibrium"):
        S.equilibrium(rod, rod.straight())


def test_frequencies_of_a_pinned_rod_are_those_of_the_lattice():
    rod = S.Rod(32, 1.0, **SLENDER, ends=PINNED)
    found = S.modes(rod, rod.straight(), 10).frequencies[1:]  # the first is its free spin
    bending = [9.7081807059, 37.1064341522, 78.1961121601]
    expected = sorted([*bending, *bending, 62.8066231391, 99.3059906317])
    np.testing.assert_allclose(found[: len(expected)], expected, rtol=0, atol=2e-9)
    waves = S.dispersion(rod, np.pi * np.arange(1, 4))
    np.testing.assert_allclose(waves["bending x"], bending, rtol=0, atol=1e-9)
    smooth = S.dispersion(rod, np.pi * np.arange(1, 4), lattice=False)
    continuum = [9.7045358276, 37.0605115479, 78.0360555156]
    np.testing.assert_allclose(smooth["bending y"], continuum, rtol=0, atol=1e-9)


def test_frequencies_of_a_timoshenko_cantilever():
    rod = S.Rod(32, 1.0, **SLENDER, ends=CANTILEVER)
    found = S.modes(rod, rod.straight(), 8).frequencies
    expected = [3.4869440891, 20.8818160514, 54.8983994384]
    np.testing.assert_allclose(found[[0, 2, 6]], expected, rtol=0, atol=2e-9)
    np.testing.assert_allclose(found[[1, 3, 7]], expected, rtol=0, atol=2e-9)


def test_waves_of_a_stretched_rod_and_those_of_the_paper():
    made = {
        "stretching": [1 / 3, 1 / 3, 1.0],
        "bending": [6.25e-4, 6.25e-4, 6.25e-4 / 1.5],
        "mass": 1.0,
        "inertia": [6.25e-4, 6.25e-4, 1.25e-3],
    }
    rod = S.Rod(20, 2.0, **made, ends=PINNED)
    k = np.pi / 2 * np.arange(1, 4)
    smooth = S.dispersion(rod, k, stretch=1.2, lattice=False)
    exact = [0.6429785865, 1.2958727163, 1.9671762409]
    np.testing.assert_allclose(smooth["bending x"], exact, rtol=0, atol=1e-9)
    assert k[0] * S.wave_speeds(rod, 1.2)["string"] == pytest.approx(0.6412749151, abs=1e-9)
    printed = S.printed_dispersion(rod, k)
    assert printed["shear"][0] == pytest.approx(0.906900, abs=1e-6)
    assert printed["bending"][0] == pytest.approx(1.570796, abs=1e-6)
    g = rod.straight(stretch=1.2)
    lattice = S.dispersion(rod, k, stretch=1.2)["bending x"]
    found = S.modes(rod, g, 6).frequencies[[1, 2, 4, 5]]  # between them, the first of twist
    np.testing.assert_allclose(found, np.repeat(lattice[:2], 2), rtol=0, atol=1e-10)


def test_material_data():
    rod = S.Rod.from_material(
        4, 2.0, young=3e6, poisson=0.25, density=1200.0, radius=0.1, gravity=[0.0, 0.0, -9.81]
    )
    area = np.pi * 0.01
    np.testing.assert_allclose(rod.stretching, [1.2e6 * area, 1.2e6 * area, 3e6 * area])
    np.testing.assert_allclose(rod.bending, np.array([3e6, 3e6, 2.4e6]) * area * 0.01 / 4)
    _, mass = rod.parts(rod.inertia)
    assert float(jnp.sum(mass[:, 0])) == pytest.approx(1200.0 * area * 2.0)


def test_bad_rods_are_refused():
    with pytest.raises(rx.BadInput, match="elements = 1 must be a whole number of at least 2"):
        S.Rod(1, 1.0, **SLENDER)
    with pytest.raises(rx.BadInput, match="ends = 'loose' is not known: choose one of free"):
        S.Rod(8, 1.0, **SLENDER, ends=("loose", "free"))
    with pytest.raises(rx.BadInput, match=r"bending = .* must be positive"):
        S.Rod(8, 1.0, **(SLENDER | {"bending": [1.0, -1.0, 1.0]}))
    with pytest.raises(rx.BadInput, match=r"poisson = 0.7 must be above -1 and at most 1/2"):
        S.Rod.from_material(4, 2.0, young=3e6, poisson=0.7, density=1200.0, radius=0.1)
    rod = S.Rod(8, 1.0, **SLENDER, ends=CANTILEVER)
    with pytest.raises(rx.BadInput, match="velocity moves a held node"):
        rod.state(rod.straight(), velocity=np.ones(rod.group.dim))
    frames, places = rod.straight()
    folded = frames.at[4:].set(frames[4:] @ jnp.diag(jnp.array([-1.0, 1.0, -1.0])))
    with pytest.raises(rx.BadInput, match="nodes 3 and 4 of the rod are half a turn apart"):
        rod.state((folded, places), velocity=np.zeros(rod.group.dim))
    start = rod.state(rod.straight(), velocity=np.zeros(rod.group.dim))
    with pytest.raises(rx.BadInput, match=r"h = 0.02 s is unstable for the rod of 8 elements"):
        rx.simulate(rod, rx.LieVerlet(), start, h=0.02, steps=1)
