"""Sections: closed forms of bending and torsion, tapered rods, both planes of bending."""

import numpy as np
import pytest

import retrax as rx

S = rx.systems
MATERIAL = {"young": 2e6, "poisson": 0.25, "density": 1000.0}
G = 2e6 / 2.5
CANTILEVER = ("clamped", "free")
THICK, THIN, LENGTH = 0.05, 0.04, 1.0


def tapered(elements, **options):
    """A truncated cone."""
    radius = {"radius": lambda s: THICK + (THIN - THICK) * s / LENGTH}
    return S.Rod.from_material(elements, LENGTH, **MATERIAL, **(radius | options))


def tip(rod):
    return np.asarray(S.equilibrium(rod, rod.straight())[1][-1])


def test_a_tapered_cantilever_bends_as_a_cone():
    """By 4 P L^3/(3 pi E a^3 b), and P L/(pi G a b) more by shear; of order two."""
    load = 1e-3
    exact = load * 4 * LENGTH**3 / (3 * np.pi * 2e6 * THICK**3 * THIN)
    exact += load * LENGTH / (np.pi * G * THICK * THIN)
    errors = [
        tip(tapered(n, ends=CANTILEVER, end_force=[load, 0.0, 0.0]))[0] / exact - 1
        for n in (10, 20, 40)
    ]
    assert abs(errors[2]) < 1e-3
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.05)
    assert np.log2(errors[1] / errors[2]) == pytest.approx(2, abs=0.05)


def test_a_tapered_rod_twists_as_a_cone():
    """By T/G times the integral of 2/(pi a^4), which is 2 L (a^2 + a b + b^2)/(3 pi a^3 b^3)."""
    torque = 1e-3
    sum_ = THICK**2 + THICK * THIN + THIN**2
    exact = torque / G * 2 * LENGTH * sum_ / (3 * np.pi * (THICK * THIN) ** 3)
    turns = []
    for n in (10, 20):
        rod = tapered(n, ends=CANTILEVER, end_torque=[0.0, 0.0, torque])
        frames = S.equilibrium(rod, rod.straight())[0]
        turns.append(np.arctan2(frames[-1, 1, 0], frames[-1, 0, 0]) / exact - 1)
    assert np.log2(turns[0] / turns[1]) == pytest.approx(2, abs=0.05)


def test_radii_of_segments_and_a_function_make_the_same_rod():
    middles = LENGTH * (np.arange(12) + 0.5) / 12
    one, two = tapered(12), tapered(12, radius=THICK + (THIN - THICK) * middles / LENGTH)
    for name in ("stretching", "bending", "inertia"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-14)
    mass = np.asarray(one.inertia).reshape(-1, 6)[:, 3].sum()
    cone = 1000.0 * np.pi * LENGTH * (THICK**2 + THICK * THIN + THIN**2) / 3
    assert mass == pytest.approx(cone, rel=1e-3)


def test_a_radius_given_for_each_segment_makes_the_round_rod():
    one = S.Rod.from_material(6, 1.0, **MATERIAL, radius=0.03)
    two = S.Rod.from_material(6, 1.0, **MATERIAL, radius=np.full(6, 0.03))
    for name in ("stretching", "bending"):
        np.testing.assert_allclose(getattr(two, name), np.tile(getattr(one, name), (6, 1)), 1e-15)
    np.testing.assert_allclose(two.inertia, one.inertia, rtol=1e-15)


def saint_venant(a, b, terms=600):
    """The torsion constant of a rectangle from the double sine series of its stress function."""
    n = np.arange(1, 2 * terms, 2, dtype=float)
    m = n[:, None]
    return 256 / np.pi**6 * a * b * np.sum(1 / (m**2 * n**2 * (m**2 / a**2 + n**2 / b**2)))


@pytest.mark.parametrize("sides", [(0.03, 0.03), (0.02, 0.05), (0.05, 0.002)])
def test_rectangles(sides):
    a, b = sides
    rod = S.Rod.from_material(4, 1.0, **MATERIAL, section=S.Rectangle(a, b))
    moments = np.array([a * b**3, b * a**3]) / 12
    np.testing.assert_allclose(rod.bending[:2], 2e6 * moments, rtol=1e-14)
    assert float(rod.bending[2]) / G == pytest.approx(saint_venant(a, b), rel=1e-6)
    node = np.asarray(rod.inertia).reshape(-1, 6)[1] / 0.25
    np.testing.assert_allclose(node[:3], 1000.0 * np.array([*moments, moments.sum()]), rtol=1e-14)
    assert node[3] == pytest.approx(1000.0 * a * b)


def test_a_square_and_a_thin_strip_have_the_constants_of_the_books():
    square = S.Rod.from_material(4, 1.0, **MATERIAL, section=S.Rectangle(1.0, 1.0))
    assert float(square.bending[2]) / G == pytest.approx(0.14057701495515555, rel=1e-14)
    strip = S.Rod.from_material(4, 1.0, **MATERIAL, section=S.Rectangle(1e-3, 1.0))
    assert float(strip.bending[2]) / G == pytest.approx(1e-9 / 3 * (1 - 0.63025e-3), rel=1e-8)


def test_ellipses_and_tubes():
    a, b = 0.03, 0.01
    rod = S.Rod.from_material(4, 1.0, **MATERIAL, section=S.Ellipse(a, b), shear_correction=0.9)
    stiff = [2e6 * np.pi * a * b**3 / 4, 2e6 * np.pi * a**3 * b / 4]
    stiff.append(G * np.pi * (a * b) ** 3 / (a**2 + b**2))
    np.testing.assert_allclose(rod.bending, stiff, rtol=1e-14)
    area = np.pi * a * b
    np.testing.assert_allclose(rod.stretching, [0.9 * G * area, 0.9 * G * area, 2e6 * area], 1e-14)
    tube = S.Rod.from_material(4, 1.0, **MATERIAL, section=S.Tube(a, b))
    second = np.pi * (a**4 - b**4) / 4
    np.testing.assert_allclose(tube.bending, [2e6 * second, 2e6 * second, G * 2 * second], 1e-14)
    whole, hole = (S.Rod.from_material(4, 1.0, **MATERIAL, radius=r) for r in (a, b))
    np.testing.assert_allclose(tube.inertia, whole.inertia - hole.inertia, rtol=1e-13)


def test_a_flat_rod_bends_more_across_its_flat_side():
    """Pushed along the first axis of the frame it bends about the second one: E I_2."""
    section, load = S.Rectangle(0.05, 0.01), 1e-6
    bent = []
    for k in range(2):
        force = load * np.eye(3)[k]
        rod = S.Rod.from_material(
            30, 1.0, **MATERIAL, section=section, ends=CANTILEVER, end_force=force
        )
        bent.append(tip(rod)[k])
    moments = 0.05 * 0.01 / 12 * np.array([0.05**2, 0.01**2])
    exact = load / (3 * 2e6 * moments) + load / (G * 0.05 * 0.01)
    np.testing.assert_allclose(bent, exact, rtol=2e-3)


def test_the_fastest_wave_of_a_tapered_rod_is_bounded():
    """No frequency of the lattice is above the bound, which is not far off."""
    rod = tapered(10)
    highest = S.modes(rod, rod.straight(), 66).frequencies[-1]
    state = rod.state(rod.straight(), velocity=np.zeros(rod.group.dim))
    with pytest.raises(rx.BadInput, match="fastest wave at the frequency omega") as no:
        rx.simulate(rod, rx.LieVerlet(), state, h=1.0, steps=1)
    bound = float(str(no.value).split("omega = ")[1].split(" rad")[0])
    assert highest <= bound < 1.2 * highest


def test_bad_sections_are_refused():
    with pytest.raises(rx.BadInput, match="exactly one of them"):
        S.Rod.from_material(4, 1.0, **MATERIAL)
    with pytest.raises(rx.BadInput, match="exactly one of them"):
        S.Rod.from_material(4, 1.0, **MATERIAL, radius=0.1, section=S.Tube(0.2, 0.1))
    with pytest.raises(rx.BadInput, match=r"inner radius of a Tube, 0\.3 m, must be below"):
        S.Rod.from_material(4, 1.0, **MATERIAL, section=S.Tube(0.2, [0.1, 0.1, 0.3, 0.1]))
    with pytest.raises(rx.BadInput, match=r"radius has shape \(3,\).*one for each segment"):
        S.Rod.from_material(4, 1.0, **MATERIAL, radius=[0.1, 0.2, 0.3])
    with pytest.raises(rx.BadInput, match=r"radius = .* must be positive"):
        S.Rod.from_material(4, 1.0, **MATERIAL, radius=lambda s: 0.3 - s)
    with pytest.raises(rx.BadInput, match="a row for each segment"):
        S.Rod(4, 1.0, stretching=np.ones((3, 3)), bending=[1, 1, 1], mass=1, inertia=[1, 1, 1])
    with pytest.raises(rx.BadInput, match="not the same all along"):
        S.dispersion(tapered(4), 1.0)
