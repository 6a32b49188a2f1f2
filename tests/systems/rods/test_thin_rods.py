"""Rods down to 5 micrometres thick, 1 m long: vibrations and shapes at rest against closed forms.

All that depends on the thickness is of relative size $a^2$; what is left is the lattice, $1/n^2$.
"""

import jax
import numpy as np
import pytest

import retrax as rx

S = rx.systems
STEEL = {"young": 2e11, "poisson": 0.3, "density": 7800.0}
GLASS = {"young": 7e10, "poisson": 0.22, "density": 2500.0}
RUBBER = {"young": 1e6, "poisson": 0.49, "density": 1100.0}
MATERIALS = {"steel": STEEL, "glass": GLASS, "rubber": RUBBER}
# Roots of the frequency equations of Euler and Bernoulli, rigid motions and what the lattice adds
# to the first two frequencies, times n^2, measured at n = 50 and 400.
ENDS = {
    ("clamped", "free"): ([1.8751040687119611, 4.694091132974175], 0, [-0.26518, -0.24237]),
    ("clamped", "clamped"): ([4.730040744862704, 7.853204624095838], 0, [2.063, 4.551]),
    ("free", "free"): ([4.730040744862704, 7.853204624095838], 6, [-2.582, -3.314]),
    ("pinned", "pinned"): ([np.pi, 2 * np.pi], 1, [0.4113, 1.648]),
    ("clamped", "pinned"): ([3.926602312047919, 7.068582745628732], 0, [1.135, 2.972]),
}
THIN = [("steel", 1e-4), ("glass", 62.5e-6), ("steel", 20e-6), ("rubber", 5e-6), ("steel", 5e-6)]


def by_rounding(ends, radius):
    """What a strain of one rounding changes of the first frequency of a pinned rod, over itself."""
    return ("free" not in ends) * 2 * np.finfo(float).eps / (np.pi * radius) ** 2


def first_frequencies(n, ends, material, radius):
    """What is off in the first two frequencies, times n^2; and the frequencies of rigid motions."""
    _, rigid, _ = ENDS[ends]
    rod = S.Rod.from_material(n, 1.0, **MATERIALS[material], radius=radius, ends=ends)
    found = S.modes(rod, rod.straight([0.3, -0.5, 0.7]), rigid + 4)
    data = MATERIALS[material]
    unit = np.sqrt(data["young"] / data["density"]) * radius / 2
    exact = np.repeat(np.square(ENDS[ends][0]), 2)
    allowed = 1e-10 + by_rounding(ends, radius)
    assert np.all(found.errors[rigid:] < allowed * found.frequencies[rigid:])
    off = found.frequencies[rigid:] / (unit * exact) - 1
    return n**2 * off, found.frequencies[:rigid] / unit


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize(("material", "radius"), THIN)
def test_frequencies_of_a_thin_rod_are_those_of_euler_and_bernoulli(ends, material, radius):
    """Within 3e-3 of what the lattice adds; measured: 1.5e-3. What may move freely moves so.

    Both ends held, the rod carries the force of a strain of one rounding, which its places have:
    of a radius of 5 um it changes the first frequency by 1.8e-6 of itself; measured: 1.3e-6.
    """
    off, rigid = first_frequencies(50, ends, material, radius)
    strained = 50**2 * by_rounding(ends, radius)
    np.testing.assert_allclose(off, np.repeat(ENDS[ends][2], 2), rtol=3e-3, atol=strained)
    assert not np.any(rigid)


@pytest.mark.campaign
@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize(("material", "radius"), THIN)
def test_they_converge_with_the_square_of_the_number_of_segments(ends, material, radius):
    for n in (23, 37, 91, 170, 400):
        off, rigid = first_frequencies(n, ends, material, radius)
        # Shear and rotary inertia; measured: 0.8 of this.
        thick = np.repeat(np.square(n * radius * np.array(ENDS[ends][0])), 2)
        both = thick + n**2 * by_rounding(ends, radius)
        wanted = np.repeat(ENDS[ends][2], 2)
        assert np.all(np.abs(off - wanted) <= 3 / n * np.abs(wanted) + both), (n, off)
        assert not np.any(rigid)


@pytest.mark.parametrize("radius", [1e-2, 1e-3, 1e-4, 20e-6, 5e-6])
def test_an_elastica_bends_alike_however_thin_it_is(radius):
    """A force of EI/L^2 on its end: the tip of the lattice, -0.3432/n^2 from the elastica's.

    A thick rod shears and stretches too, which adds 0.572 a^2/L^2, measured.
    """
    bend = 2e11 * np.pi * radius**4 / 4
    force = {"ends": ("clamped", "free"), "end_force": [bend, 0, 0]}
    for n, x, z in ((10, 0.30068977, 0.94402454), (40, 0.30165606, 0.94359552)):
        rod = S.Rod.from_material(n, 1.0, **STEEL, radius=radius, **force)
        found = S.equilibrium(rod, rod.straight())[1][-1]
        expected = [x + 0.572 * radius**2, 0.0, z - 0.098 * radius**2]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)


def test_a_glass_fibre_hangs_from_its_clamp_and_swings_there():
    """5 micrometres: it bends down at once, and swings as a chain does, at 1.2024 (g/l)^(1/2)."""
    rod = S.Rod.from_material(
        200, 1.0, **GLASS, radius=5e-6, ends=("clamped", "free"), gravity=[0, 0, -9.81]
    )
    g = S.equilibrium(rod, rod.straight([1, 0, 0]))
    length = -float(g[1][-1][2])
    found = S.modes(rod, g, 2)
    np.testing.assert_allclose(found.frequencies, 1.2024 * np.sqrt(9.81 / length), rtol=0.03)


def test_modes_about_what_is_no_rest_are_refused():
    rod = S.Rod.from_material(
        10, 1.0, **STEEL, radius=1e-3, ends=("clamped", "free"), gravity=[0, 0, -9.81]
    )
    with pytest.raises(rx.BadInput, match=r"no equilibrium of the rod.*would turn or stretch"):
        S.modes(rod, rod.straight([1, 0, 0]))


def test_a_column_beyond_its_load_is_unstable_in_two_planes():
    """Under twice the force of Euler."""
    bend = 2e11 * np.pi * 1e-16 / 4
    push = {"ends": ("clamped", "free"), "end_force": [0, 0, -2 * np.pi**2 / 4 * bend]}
    rod = S.Rod.from_material(40, 1.0, **STEEL, radius=1e-4, **push)
    upright = S.equilibrium(rod, rod.straight())
    found = S.modes(rod, upright, 4).frequencies
    assert found[0] < 0 and found[1] < 0 and found[2] > 0
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_modes_under_a_load_without_potential_are_refused():
    bend = 2e11 * np.pi * 1e-16 / 4
    follower = {"ends": ("clamped", "free"), "follower_end_force": [0, 0, -10 * bend]}
    rod = S.Rod.from_material(10, 1.0, **STEEL, radius=1e-4, **follower)
    g = S.equilibrium(rod, rod.straight())
    with pytest.raises(rx.BadInput, match=r"does not solve its equations.*potential"):
        S.modes(rod, g)


@pytest.mark.parametrize("transform", [jax.grad, jax.vmap, jax.jit])
def test_rest_and_modes_of_traced_rods_are_refused_in_words(transform):
    def tip(force):
        rod = S.Rod(
            4, 1.0, stretching=[1e3] * 3, bending=[1.0] * 3, mass=1.0, inertia=[1e-3] * 3,
            ends=("clamped", "free"), end_force=force * np.array([1.0, 0.0, 0.0]),
        )  # fmt: skip
        return S.equilibrium(rod, rod.straight())[1][-1, 0]

    with pytest.raises(rx.BadInput, match="JAX is tracing what it is given"):
        transform(tip)(np.ones(3) if transform is jax.vmap else 1.0)
