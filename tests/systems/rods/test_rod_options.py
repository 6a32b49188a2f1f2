"""Loads, muscles, rest shapes, drag and a moving base, each against a closed form or an oracle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import retrax as rx

S = rx.systems
MADE = {
    "stretching": [4.0, 3.0, 9.0],
    "bending": [0.2, 0.3, 0.4],
    "mass": 1.1,
    "inertia": [0.01, 0.02, 0.025],
}
SLENDER = {
    "stretching": [400.0, 400.0, 1000.0],
    "bending": [1.0, 1.0, 0.8],
    "mass": 1.0,
    "inertia": [1e-3, 1e-3, 2e-3],
}
CANTILEVER = ("clamped", "free")


def turned(t):
    return rx.SO3().exp(jnp.sin(t) * jnp.array([0.3, -0.2, 0.5]))


def carried(t):
    return jnp.stack([jnp.sin(2 * t), 0.1 * t, t * t])


OPTIONS = {
    "drag": {"drag": [0.3, 0.5, 0.1], "spin_drag": [0.01, 0.02, 0.005]},
    "drag and damping": {"drag": 0.4, "spin_drag": 0.01, "damping": 0.01},
    "end": {"follower_end_force": [0.1, 0.2, -0.3], "dead_end_torque": [0.02, 0.01, 0.03]},
    "end in time": {
        "end_force": lambda t: [jnp.sin(t), 0.0, 0.1],
        "end_torque": lambda t: 0.1 * t * jnp.array([1.0, 0.0, 0.2]),
    },
    "line": {
        "line_force": [0.1, 0.2, -0.3],
        "line_torque": lambda s: jnp.stack([0.1 * s, 0.0 * s, 0.02 * jnp.sin(s)]),
        "follower_line_force": lambda s, t: [0.1 * s * t, 0.2 * jnp.sin(t), 0.1],
        "dead_line_torque": [0.01, 0.02, 0.03],
    },
    "muscle": {"muscle": lambda s, t: [0.02 * jnp.sin(6 * s - 2 * t), 0.03, 0.02 * t]},
    "rest shape": {
        "rest_curvature": lambda s, t: [0.3 * jnp.sin(3 * s - 2 * t), 0.1, 0.3 * s],
        "rest_stretch": lambda s, t: [0.0, 0.05 * s, 1 + 0.02 * jnp.sin(t)],
    },
    "clamp": {"ends": CANTILEVER, "base": lambda t: (turned(t), carried(t)), "drag": 0.1},
    "pin": {"ends": ("pinned", "free"), "base": carried, "damping": 0.02, "gravity": [0, 0, -1.0]},
}


def moving(rod):
    """A rod that bends, twists and turns, with no symmetry at all."""
    s = np.linspace(0.0, 1.0, rod.nodes)[:, None]
    omega = np.hstack([0.3 * np.sin(3 * s), 0.2 * np.cos(2 * s), s**2])
    v = np.hstack([0.3 * s, 0.2 * (1 - s**2), 0.1 * np.sin(5 * s)])
    return rod.state(rod.straight(), velocity=rod.velocity_of(omega, v))


@pytest.mark.parametrize("option", OPTIONS)
def test_options_act_to_order_two_and_their_work_is_booked(option):
    """Against RKMK, which knows the vector field only; natively, and with the energy balanced."""
    rod = S.Rod(16, 1.3, **MADE, **OPTIONS[option])
    start = moving(rod)
    ends = []
    for steps in (100, 200):
        run = rx.simulate(
            rod, rx.LieVerlet(), start, h=0.4 / steps, steps=steps, save_every=steps // 20
        )
        assert run.provenance["backend"] == "native"
        ends.append(np.asarray(run.final.momentum))
    exact = rx.simulate(rod, rx.RKMK("rk4"), start, h=1e-3, steps=400, save_every=400).final
    errors = [np.abs(end - exact.momentum).max() for end in ends]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.15)
    balance = run.energy_balance()
    assert balance is not None and "energy" not in run.invariants()
    assert abs(balance.difference[-1]) < balance.uncertainty
    # Muscles and rest shapes act within the rod.
    assert ("momentum x" in run.invariants()) == (option in ("muscle", "rest shape"))


@pytest.mark.parametrize("option", ["drag", "line", "muscle", "rest shape", "clamp"])
def test_the_power_is_the_rate_of_the_energy(option):
    rod = S.Rod(4, 1.3, **MADE, **OPTIONS[option])
    start = moving(rod)

    @jax.jit
    def energies(g, mu, t):
        xi, rate = rod.vector_field(g, mu, t)

        def energy(dt):
            moved = rod.group.compose(g, rod.group.exp(dt * xi))
            return rod.energy(rx.State(moved, mu + dt * rate, t + dt))

        return energy(1e-4) - energy(-1e-4)

    g, mu, t = jax.tree.map(jnp.asarray, (start.g, start.momentum, start.t + 0.3))
    if rod.bases:
        g = jax.jit(lambda t: rod.at_time(t).flight(g, mu, 0.0 * t).g)(t)
    slope = float(energies(g, mu, t)) / 2e-4
    power = jax.jit(lambda g, mu, t: rod.power(rx.State(g, mu, t)))(g, mu, t)
    assert abs(slope) > 1e-3
    assert float(power) == pytest.approx(slope, rel=1e-6)


def test_a_constant_rest_shape_and_a_dead_line_force_have_a_potential():
    """Loads are minus the derivative of the energy, and the energy is kept."""
    rod = S.Rod(
        6,
        1.3,
        **MADE,
        rest_curvature=lambda s: [1.0 + s, 0.5, 0.3 * s],
        rest_stretch=[0.05, 0.0, 1.1],
        line_force=lambda s: [0.0, s, 0.3],
    )
    moved = 0.3 * jax.random.normal(jax.random.key(1), (rod.group.dim,), jnp.float64)
    g = rod.group.compose(rod.straight([1.0, 0.3, -0.2]), rod.group.exp(moved))

    @jax.jit
    def both(g):
        derivative = rod.group.cotangent(g, jax.grad(rod.potential_energy)(g))
        return rod.differential(g, moved, moved), -derivative

    np.testing.assert_allclose(*both(g), rtol=0, atol=4e-14)
    spread = []
    for steps in (200, 400):
        run = rx.simulate(rod, rx.LieVerlet(), moving(rod), h=2 / steps, steps=steps)
        spread.append(np.ptp(run.invariants()["energy"]))
    assert spread[0] / spread[1] == pytest.approx(4, rel=0.1)


def test_drag_takes_speed_and_spin_away_exponentially():
    """Exactly, at any step that the waves allow."""
    rod = S.Rod(8, 1.0, **SLENDER, drag=3.0, spin_drag=0.02)
    v, spin = np.tile([0.1, 0.2, 0.3], (9, 1)), np.tile([0.0, 0.0, 0.5], (9, 1))
    start = rod.state(rod.straight(), velocity=rod.velocity_of(spin, v))
    end = rx.simulate(rod, rx.LieVerlet(), start, h=2e-3, steps=100).final
    rows = np.asarray(rod.mobility * end.momentum).reshape(-1, 6)
    np.testing.assert_allclose(rows[:, 3:], np.exp(-3.0 * 0.2) * v, rtol=1e-12)
    np.testing.assert_allclose(rows[:, 2], 0.5 * np.exp(-0.02 / 2e-3 * 0.2), rtol=1e-12)


def test_a_slanting_rod_sinks_sideways():
    """Its last speed is that at which the drag along the axes of the section carries the weight.

    Kicks and drag take turns, which leaves an error of order two.
    """
    c, weight = np.array([2.0, 2.0, 1.0]), np.array([0.0, 0.0, -9.81])
    rod = S.Rod(16, 1.0, **(MADE | {"mass": 1.0}), drag=c, gravity=weight)
    frames, places = rod.straight([1.0, 0.0, 1.0])
    start = rod.state((frames, places), velocity=np.zeros(rod.group.dim))
    exact = np.asarray(frames[0] @ ((frames[0].T @ weight) / c))
    errors = []
    for h in (0.01, 0.005):
        steps = round(25 / h)
        end = rx.simulate(rod, rx.LieVerlet(), start, h=h, steps=steps, save_every=steps).final
        rows = np.asarray(rod.mobility * end.momentum).reshape(-1, 6)[:, 3:]
        assert np.ptp(rows, axis=0).max() < 1e-9
        errors.append(np.abs(rows[0] - exact).max())
    assert errors[1] < 5e-5
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.01)


def test_a_line_force_is_a_weight():
    option = {"ends": CANTILEVER}
    one = S.Rod(20, 1.3, **MADE, **option, line_force=[0.1, 0.2, -1.0])
    two = S.Rod(20, 1.3, **MADE, **option, gravity=np.array([0.1, 0.2, -1.0]) / 1.1)
    ends = [rx.simulate(rod, rx.LieVerlet(), moving(rod), h=0.004, steps=50) for rod in (one, two)]
    np.testing.assert_allclose(ends[0].final.momentum, ends[1].final.momentum, rtol=0, atol=1e-14)
    assert np.ptp(ends[0].energy() - ends[1].energy()) < 1e-13


def test_a_cantilever_under_a_line_force():
    """Its tip moves by w L^4/(8 EI) + w L^2/(2 GA), on any lattice: the errors of order two cancel.

    That is for small loads; the rest is of the order of the square of the slope.
    """
    load = 1e-4
    rod = S.Rod(8, 1.0, **SLENDER, ends=CANTILEVER, line_force=[load, 0.0, 0.0])
    bent = float(S.equilibrium(rod, rod.straight())[1][-1, 0])
    assert bent == pytest.approx(load / 8 + load / 800, rel=1e-8)


def follower_cantilever(push):
    """The plane Cosserat rod, from its tip, whose frame the load knows, to the clamp."""
    GA, EA, EI = 400.0, 1000.0, 1.0

    def rates(_, y):
        angle, moment = y[2], y[3]
        axes = _axes(angle)
        n = axes @ push
        gamma = np.array([n[0] / GA, 1 + n[1] / EA])
        slope = axes.T @ gamma
        return [*-slope, -moment / EI, slope[1] * push[0] - slope[0] * push[1]]

    y = solve_ivp(rates, (0, 1), [0.0, 0.0, 0.0, 0.0], rtol=1e-11, atol=1e-12).y[:, -1]
    return _axes(y[2]) @ -y[:2]


def _axes(angle):
    """The first and the third axis of a section that has turned about y, in x and z."""
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def test_a_follower_force_bends_a_cantilever_far():
    """Against the plane rod integrated from its tip by SciPy; of order two."""
    exact = follower_cantilever(np.array([4.0, 0.0]))
    errors = []
    for n in (32, 64):
        g = None
        for part in (0.25, 0.5, 0.75, 1.0):
            rod = S.Rod(
                n, 1.0, **SLENDER, ends=CANTILEVER, follower_end_force=[4.0 * part, 0.0, 0.0]
            )
            g = S.equilibrium(rod, rod.straight() if g is None else g)
        errors.append(np.abs(np.asarray(g[1])[-1, [0, 2]] - exact).max())
    assert errors[1] < 1e-3
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.1)


def test_a_dead_torque_keeps_its_axis_in_space():
    """It turns a free rod about that axis alone, whatever the frames do."""
    rod = S.Rod(16, 1.0, **MADE, dead_end_torque=[0.0, 0.0, 0.3])
    start = rod.state(rod.straight([1.0, 0.2, 0.5]), velocity=np.zeros(rod.group.dim))
    end = rx.simulate(rod, rx.LieVerlet(), start, h=0.005, steps=200).final
    np.testing.assert_allclose(
        rod.total_angular_momentum(jax.tree.map(jnp.asarray, end)), [0, 0, 0.3], rtol=0, atol=1e-13
    )


def test_a_muscle_bends_a_rod_as_a_rest_curvature_does():
    active = np.array([0.01, 0.02, -0.03])
    one = S.Rod(12, 1.0, **MADE, ends=CANTILEVER, muscle=active)
    two = S.Rod(12, 1.0, **MADE, ends=CANTILEVER, rest_curvature=active / MADE["bending"])
    g = S.equilibrium(one, one.straight())
    np.testing.assert_allclose(
        jax.jit(one.strains)(g).curvature, np.tile(active / MADE["bending"], (12, 1)), atol=1e-13
    )
    for rod in (one, two):
        assert np.abs(jax.jit(rod.kick)(two.relaxed(), jnp.zeros(()))).max() < 5e-14


@pytest.mark.parametrize("strain", ["mid", "cay", "left"])
def test_a_rest_shape_of_constant_curvature_and_twist_is_a_helix(strain):
    """Of radius k/(k^2 + t^2) and pitch 2 pi t/(k^2 + t^2), to order two; it has no stress."""
    k, twist = 3.0, 2.0
    found = []
    for n in (40, 80):
        rod = S.Rod(n, 2.0, **MADE, strain=strain, rest_curvature=[0.0, k, twist])
        frames, places = g = rod.relaxed()
        assert np.abs(jax.jit(rod.kick)(g, jnp.zeros(()))).max() < 1e-13
        axis = frames[0] @ np.array([0.0, k, twist]) / np.hypot(k, twist)
        along = np.diff(places @ axis) / rod.spacing
        across = places - np.outer(places @ axis, axis)
        second = across[2:] - 2 * across[1:-1] + across[:-2]
        angle = 2 * np.arctan(float(rod.spacing) * np.hypot(k, twist) / 2)
        radius = np.linalg.norm(second, axis=1) / (2 - 2 * np.cos(angle))
        assert np.ptp(along) < 1e-12 and np.ptp(radius) < 1e-12
        found.append(
            [radius[0] / (k / (k**2 + twist**2)) - 1, along[0] * np.hypot(k, twist) / twist - 1]
        )
    for coarse, fine in zip(*found, strict=True):
        assert abs(fine) < 1e-11 or np.log2(coarse / fine) == pytest.approx(2, abs=0.05)


def test_a_base_that_falls_is_a_weight():
    """A rod on a base with the acceleration a moves about it as under the weight -a, exactly."""
    a = np.array([0.2, -0.3, 1.0])
    option = {"ends": CANTILEVER, "damping": 0.01}
    one = S.Rod(16, 1.3, **MADE, **option, base=lambda t: (jnp.eye(3), t * t / 2 * a))
    two = S.Rod(16, 1.3, **MADE, **option, gravity=-a)
    runs = [rx.simulate(rod, rx.LieVerlet(), moving(rod), h=0.004, steps=100) for rod in (one, two)]
    shift = (np.asarray(runs[0].t) ** 2 / 2)[:, None] * a
    np.testing.assert_allclose(runs[0].g[1] - shift[:, None], runs[1].g[1], rtol=0, atol=1e-13)
    np.testing.assert_allclose(runs[0].g[0], runs[1].g[0], rtol=0, atol=1e-13)


def test_a_base_is_where_it_is_to_the_last_bit():
    rod = S.Rod(16, 1.3, **MADE, **OPTIONS["clamp"])
    run = rx.simulate(rod, rx.LieVerlet(), moving(rod), h=0.004, steps=100, save_every=10)
    for t, frames, places in zip(run.t, *run.g, strict=True):
        np.testing.assert_allclose(places[0], carried(t), rtol=0, atol=4e-16)
        np.testing.assert_allclose(frames[0], turned(t), rtol=0, atol=4e-16)
    xi = np.asarray(rod.velocity_at(run.final)).reshape(-1, 6)
    np.testing.assert_allclose(xi[0, 3:], jax.jacfwd(carried)(run.final.t), rtol=1e-13)


def test_bad_options_are_refused():
    def rod(**options):
        return S.Rod(4, 1.0, **MADE, **options)

    with pytest.raises(rx.BadInput, match="base moves the first node, but ends says that it is fr"):
        rod(base=carried)
    with pytest.raises(rx.BadInput, match="frame and the place of a clamped node"):
        rod(base=carried, ends=CANTILEVER)
    with pytest.raises(rx.BadInput, match=r"base\(0\.1\) has a frame that is not a rotation"):
        rod(base=lambda t: (jnp.eye(3) * (1 + t), carried(t)), ends=CANTILEVER)
    with pytest.raises(rx.BadInput, match="its base is at"):
        pinned = rod(base=lambda t: carried(t) + 1.0, ends=("pinned", "free"))
        pinned.state(pinned.straight(), velocity=np.zeros(30))
    with pytest.raises(rx.BadInput, match="muscle returns float64 of shape"):
        rod(muscle=lambda s, t: s * t)
    with pytest.raises(rx.BadInput, match="one for each of the segments"):
        rod(rest_curvature=np.zeros((5, 3)))
    with pytest.raises(rx.BadInput, match="one for each of the nodes"):
        rod(line_force=np.zeros((4, 3)))
    with pytest.raises(rx.BadInput, match=r"drag = .* must not be negative"):
        rod(drag=-1.0)
    for name in ("follower_end_force", "end_force"):
        with pytest.raises(rx.BadInput, match=f"{name} acts on the last node.*pinned"):
            rod(ends=("free", "pinned"), **{name: lambda t: [t, 0.0, 0.0]})
    with pytest.raises(rx.BadInput, match="dead_end_torque acts on the last node"):
        rod(ends=("free", "clamped"), dead_end_torque=[1.0, 0.0, 0.0])
    with pytest.raises(rx.BadInput, match=r"rod\.at_time\(t\)"):
        moved = S.Rod(4, 1.0, **MADE, **OPTIONS["rest shape"])
        moved.potential_energy(moved.straight())
