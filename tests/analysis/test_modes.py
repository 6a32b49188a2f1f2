"""Small motions about equilibria and steady motions, against closed forms."""

import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx

S = rx.systems
GRAVITY, MASS, ARM = 9.81, 1.3, 0.6
TOP = S.HeavyTop(inertia=[1.1, 1.1, 0.5], mass=MASS, arm=[0.0, 0.0, ARM], gravity=GRAVITY)


def turned(*w):
    return np.asarray(rx.SO3().exp(jnp.array(w)))


def sorted_values(values):
    return np.sort_complex(np.round(np.asarray(values, complex), 12))


def both_signs(frequencies):
    return np.concatenate([1j * np.asarray(frequencies), -1j * np.asarray(frequencies)])


def at_rest(system):
    return system.state(system.reference, velocity=np.zeros(system.group.dim))


def test_a_top_that_hangs_swings_at_two_equal_frequencies():
    state = TOP.state(turned(np.pi, 0, 0), velocity=np.zeros(3))
    found = rx.analysis.modes(TOP, state)
    omega = np.sqrt(MASS * GRAVITY * ARM / 1.1)
    exact = both_signs([omega, omega, 0.0])
    assert np.abs(sorted_values(found.eigenvalues) - sorted_values(exact)).max() < 1e-12


@pytest.mark.parametrize("spin", [7.0, 25.0])
def test_a_sleeping_top_has_the_eigenvalues_of_its_precession_and_nutation(spin):
    """I z'' - i C w z' - m g l z = 0 for its tilt in axes that stand still; 15.9 1/s is enough."""
    found = rx.analysis.modes(TOP, TOP.state(np.eye(3), velocity=[0, 0, spin]))
    roots = np.roots([1.1, -0.5j * spin, -MASS * GRAVITY * ARM])
    exact = np.concatenate([roots, roots.conj(), [0, 0]])
    assert np.abs(sorted_values(found.eigenvalues) - sorted_values(exact)).max() < 1e-11
    assert (found.eigenvalues.real.max() > 0.1) == (spin < 15.9)


def test_a_top_that_precesses_steadily_nutates_at_the_known_frequency():
    """At a right angle: W = m g l / (C w3), and nutation^2 = W^2 + (C w3 / A)^2 (for cos = 0)."""
    A, C, spin = 1.1, 0.5, 40.0
    rate = MASS * GRAVITY * ARM / (C * spin)
    R = turned(0.0, np.pi / 2, 0.0)  # the axis lies level
    state = TOP.state(R, velocity=R.T @ [0, 0, rate] + [0, 0, spin])
    found = rx.analysis.modes(TOP, state)
    nutation = np.sqrt(rate**2 + (C * spin / A) ** 2)
    assert abs(found.eigenvalues.imag.max() - nutation) < 1e-11
    kept = np.abs(found.eigenvalues) > 1
    assert kept.sum() == 2 and np.abs(found.eigenvalues[~kept]).max() < 1e-7


def test_bars_that_hang_one_below_the_other_swing_as_the_textbook_says():
    """Two equal bars: w^2 = 3 g / l (1 +- 2 / sqrt 7)."""
    found = rx.analysis.modes(*(lambda s: (s, at_rest(s)))(S.double_pendulum()))
    exact = np.sqrt(3 * GRAVITY * (1 + np.array([2, -2]) / np.sqrt(7)))
    assert np.abs(sorted_values(found.eigenvalues) - sorted_values(both_signs(exact))).max() < 1e-12


def test_the_shape_of_a_mode_satisfies_the_linearised_motion():
    """Both bars turn: the ratio of their angles is (2 sqrt 7 - 1) / 3, or of the other sign."""
    system = S.double_pendulum()
    found = rx.analysis.modes(system, at_rest(system))
    slow = found.shapes[np.argmin(np.abs(found.eigenvalues - 2.6801140122533758j))]
    fast = found.shapes[np.argmin(np.abs(found.eigenvalues - 7.188670870287713j))]
    assert abs(slow[3] / slow[0] - (2 * np.sqrt(7) - 1) / 3) < 1e-12
    assert abs(fast[3] / fast[0] + (2 * np.sqrt(7) + 1) / 3) < 1e-12


def test_redundant_rows_change_nothing():
    group = rx.Product(rx.SO3(), rx.Translation(3))
    inertia, mass = [0.3, 0.4, 0.5], 2.0

    def pendulum(phi):
        return rx.MechanicalSystem(
            group,
            jnp.array([*inertia, mass, mass, mass]),
            lambda g: mass * GRAVITY * g[1][2],
            constraint=rx.Holonomic(phi),
        )

    def hangs(g):
        return g[1] + g[0] @ jnp.array([0.0, 0.0, 1.0])

    exact = both_signs([np.sqrt(2 * GRAVITY / 2.3), np.sqrt(2 * GRAVITY / 2.4), 0.0])
    for phi in (hangs, lambda g: jnp.concatenate([hangs(g), 3 * hangs(g)])):
        system = pendulum(phi)
        state = system.state((np.eye(3), np.array([0, 0, -1.0])), velocity=np.zeros(6))
        found = rx.analysis.modes(system, state)
        assert np.abs(sorted_values(found.eigenvalues) - sorted_values(exact)).max() < 1e-12


def test_symmetries_are_left_out_when_asked():
    state = TOP.state(np.eye(3), velocity=[0, 0, 25.0])
    everything = rx.analysis.modes(TOP, state).eigenvalues
    rest = rx.analysis.modes(TOP, state, drop_symmetries=True).eigenvalues
    assert len(everything) == 6 and len(rest) == 5  # its spin about the vertical changes nothing


def test_a_sleigh_on_its_way_straight_ahead_comes_back_to_it():
    """With the centre of mass ahead, the turning rate dies as exp(-m a v t / (J + m a^2))."""
    mass, J, arm, speed = 1.5, 0.8, 0.6, 2.0
    sleigh = S.ChaplyginSleigh(mass=mass, inertia=J, arm=arm)
    state = sleigh.state((np.eye(2), np.zeros(2)), velocity=[0.0, speed, 0.0])
    found = rx.analysis.modes(sleigh, state)
    rate = -mass * arm * speed / (J + mass * arm**2)
    assert abs(found.eigenvalues.real.min() - rate) < 1e-12
    assert np.sum(np.abs(found.eigenvalues) < 1e-7) == len(found.eigenvalues) - 1


def test_the_table_shows_periods_and_damping():
    text = repr(rx.analysis.modes(TOP, TOP.state(turned(np.pi, 0, 0), velocity=np.zeros(3))))
    assert "2.637457453 i" in text and "period in s" in text


def test_a_state_that_is_not_steady_is_rejected_with_what_remains():
    with pytest.raises(rx.BadInput, match=r"not steady.* 0\.6\d* remain"):
        rx.analysis.modes(TOP, TOP.state(np.eye(3), velocity=[0.6, 0, 3.0]))
    with pytest.raises(rx.BadInput, match="not steady"):
        rx.analysis.modes(TOP, TOP.state(turned(0.3, 0, 0), velocity=[0, 0, 0.0]))


def test_a_system_that_is_driven_in_time_is_rejected():
    driven = rx.MechanicalSystem(
        rx.SO3(), [1.0, 2.0, 2.5], lambda g, t: (1 + t) * (g[2, 2] - g[2, 0])
    )
    with pytest.raises(rx.BadInput, match="depend on time"):
        rx.analysis.modes(driven, driven.state(np.eye(3), velocity=np.zeros(3)))


def oscillators(masses, frequencies):
    stiffness = np.asarray(masses) * np.square(frequencies)
    return rx.MechanicalSystem(rx.Translation(3), masses, lambda x: jnp.sum(stiffness * x * x) / 2)


def test_masses_that_differ_too_much_are_refused():
    system = oscillators([1e-12, 1.0, 1e9], [1.0, 2.0, 3.0])
    with pytest.raises(rx.BadInput, match=r"differ by a factor of 1e\+21"):
        rx.analysis.modes(system, system.state(np.zeros(3), velocity=np.zeros(3)))
