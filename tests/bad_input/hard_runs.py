"""Fifty hard runs: each ends with a right answer or with a sentence.

Ten situations, five methods. The answers are known without the methods: from a scaling of the
equations, from a steady rotation, from rest, or from what is conserved.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

import retrax as rx

METHODS = (
    rx.LieVerlet(),
    rx.RKMK(),
    rx.CotangentLift(),
    rx.Collocation(rx.gauss(2)),
    rx.GalerkinVariational(rx.gauss(2)),
)
MOMENTS = np.array([1.0, 1.3, 0.9])


def top(
    mass: float = 1.0, gravity: float = 9.81, moments: Any = MOMENTS, arm: Any = (0.0, 0.1, 0.6)
) -> Any:
    return rx.systems.HeavyTop(mass * np.asarray(moments), mass, list(arm), gravity)


def run(
    method: Any, body: Any, h: float, steps: int, velocity: Any, g: Any = None, t: float = 0.0
) -> rx.Trajectory:
    start = body.state(jnp.eye(3) if g is None else g, velocity=velocity, t=t)
    return rx.simulate(body, method, start, h=h, steps=steps)


def kept(found: rx.Trajectory, relative: float) -> None:
    """Energy and vertical momentum as at the start, relative to their size."""
    for name, values in found.invariants().items():
        size = max(float(np.max(np.abs(values))), float(np.max(np.abs(found.momentum))), 1e-300)
        error = float(np.max(np.abs(values - values[0]))) / size
        assert error <= relative, f"{name} changes by {error:.2g} of its size"
    assert float(np.max(found.group_defect())) < 1e-12


def fast_spin(method: Any) -> None:
    """Ten thousand radians a second about an axis, a tenth of a radian a step."""
    found = run(method, top(gravity=0.0), 1e-5, 200, [0.0, 0.0, 1e4])
    angle = np.unwrap(np.arctan2(found.g[:, 1, 0], found.g[:, 0, 0]))[-1]
    assert abs(angle - 20.0) < 20.0 * 0.1**2 / 2, f"turned by {angle}"
    kept(found, 1e-11)


def scaled(mass: float) -> Callable[[Any], None]:
    def look(method: Any) -> None:
        """Masses scale out of the motion."""
        found, unit = (run(method, top(m), 0.01, 100, [0.3, 0.2, 6.0]) for m in (mass, 1.0))
        np.testing.assert_allclose(found.g, unit.g, atol=1e-9)
        np.testing.assert_allclose(found.momentum / mass, unit.momentum, atol=1e-8)

    return look


def late(method: Any) -> None:
    """Nothing depends on the time: a run at t = 1e9 s is the run at 0."""
    found, first = (run(method, top(), 0.01, 100, [0.3, 0.2, 6.0], t=t) for t in (1e9, 0.0))
    np.testing.assert_allclose(found.g, first.g, atol=1e-13)
    assert np.all(np.diff(found.t) > 0)


def hanging(method: Any) -> None:
    """At rest with its weight below: it stays."""
    down = jnp.diag(jnp.array([1.0, -1.0, -1.0]))
    found = run(method, top(arm=(0.0, 0.0, 0.6)), 0.05, 300, [0.0, 0.0, 0.0], down)
    np.testing.assert_allclose(found.g, np.broadcast_to(down, found.g.shape), atol=1e-12)


def upright(method: Any) -> None:
    """At rest with its weight exactly above: it stays, for nothing pushes it."""
    found = run(method, top(arm=(0.0, 0.0, 0.6)), 0.05, 300, [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(found.g, np.broadcast_to(np.eye(3), found.g.shape))


def separatrix(method: Any) -> None:
    """Nearly upright: it lingers, falls and comes back; the energy stays."""
    found = run(method, top(arm=(0.0, 0.0, 0.6)), 0.01, 900, [1e-6, 0.0, 0.0])
    assert np.min(found.g[:, 2, 2]) < -0.9
    kept(found, 2e-3)


def flat(method: Any) -> None:
    """A disk: its moments are on the edge of what a body can have."""
    kept(run(method, top(moments=[1.0, 1.0, 2.0]), 0.01, 300, [0.5, 0.3, 8.0]), 2e-3)


def stiff(method: Any) -> None:
    """A million times the gravity: a tenth of a radian of its swing a step."""
    found = run(method, top(gravity=1e6, arm=(0.0, 0.0, 0.6)), 1e-4, 400, [1.0, 0.0, 0.0])
    kept(found, 2e-2)


def edge_of_chart(method: Any) -> None:
    """Three radians a step about an axis: the momentum stays, whatever is made of the angle."""
    found = run(method, top(gravity=0.0), 1.0, 20, [0.0, 0.0, 3.0])
    kept(found, 1e-11)
    np.testing.assert_allclose(found.g[:, 2, 2], 1.0, atol=1e-12)


SITUATIONS: dict[str, Callable[[Any], None]] = {
    "fast spin": fast_spin,
    "tiny mass": scaled(1e-12),
    "huge mass": scaled(1e12),
    "late": late,
    "hanging": hanging,
    "upright": upright,
    "separatrix": separatrix,
    "flat": flat,
    "stiff": stiff,
    "edge of the chart": edge_of_chart,
}


def ends(situation: Callable[[Any], None], method: Any) -> str:
    """ "right", "sentence", or what is wrong."""
    try:
        situation(method)
    except rx.RetraxError as refusal:
        text = str(refusal)
        return "sentence" if text.endswith((".", "?")) else f"no sentence: {text}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "right"
