"""Small motions about an equilibrium or a steady motion."""

import math

import numpy as np
from jaxtyping import Complex, Float

from retrax.analysis.linearisation import linearise
from retrax.analysis.steady_motion import steady_motion
from retrax.errors import BadInput
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import require_flag, require_instance, require_untraced
from retrax.spaces.group_itself import GroupItself

# A state is steady if what is left of the motion is at most this, or this share of it.
ALLOWED_RESIDUAL = 1e-8
# Parts of eigenvalues below this share of the largest one are printed as zero.
_NOISE = 1e-10
# Eigenvalues of symmetries below this share of their block are zeros of a chain.
_SMEARED = 1e-6
# Masses and moments of coordinates may differ by this factor.
_ALIKE = 1e10


class Modes:
    r"""Small motions $\mathrm{Re}\,(s\,e^{\lambda t})$ about a steady motion.

    **Attributes:**

    - `eigenvalues`: $\lambda$ in 1/s, the fastest growing first.
    - `shapes`: $s$, a row a mode: the displacement in the coordinates of the group, and then the
        change of the momentum; the largest displacement has size 1.
    - `residual`: how far the state is from a steady one.
    """

    def __init__(
        self,
        eigenvalues: Complex[np.ndarray, " mode"],
        shapes: Complex[np.ndarray, "mode y"],
        residual: float,
    ):
        self.eigenvalues, self.shapes, self.residual = eigenvalues, shapes, residual

    def __repr__(self) -> str:
        noise = _NOISE * float(np.max(np.abs(self.eigenvalues), initial=0.0))
        lines = [f"{'eigenvalue in 1/s':>34} {'period in s':>12} {'damping ratio':>14}"]
        for value in self.eigenvalues:
            growth = 0.0 if abs(value.real) <= noise else value.real
            if value.imag > noise:
                period, ratio = 2 * math.pi / value.imag, -growth / abs(value) + 0.0
                both = f"{growth:.10g} +- {value.imag:.10g} i"
                lines.append(f"{both:>34} {period:12.5g} {ratio:14.5g}")
            elif value.imag >= -noise:
                lines.append(f"{growth:34.10g}")
        return "\n".join(lines)


def modes(system: AbstractGroupSystem, state: State, *, drop_symmetries: bool = False) -> Modes:
    r"""Linearise the motion about an equilibrium or a steady motion, and return its modes.

    With $X$ the motion on the states that the constraint admits, and $Z$ the symmetry that carries
    the state along ($Z = 0$ at an equilibrium),

    $$ \delta\dot y = D(X - Z)\,\delta y, \qquad
       \delta y = \mathrm{Re}\,(s\,e^{\lambda t}), \tag{1} $$

    on changes $\delta y$ of the state that the constraint admits to first order: positions along
    it, velocities that also roll. $D(X - Z)$ is exact; rows may be redundant. Symmetries are found
    by themselves; they and conserved quantities have eigenvalues zero. Motions
    thousands of times slower than the fastest may be taken for symmetries where masses of
    coordinates differ much.

    **Arguments:** `system`; `state`: an equilibrium, or a state of a steady motion: a wheel that
    rolls ahead, a top that precesses; `drop_symmetries`: leave out the displacements by which a
    symmetry only moves the state to an equal one. All modes are returned otherwise.

    **Returns:** `Modes`, which prints as a table.

    **Raises:** `BadInput` if the state is not steady, with the size of what remains, and if masses
    of coordinates differ by more than a factor of $10^{10}$.

    References: [MarsdenRatiu1999].
    """
    require_instance("system", system, AbstractGroupSystem, "a system on a group")
    drop = require_flag("drop_symmetries", drop_symmetries)
    if not system.has_momentum or not isinstance(system.configuration_space, GroupItself):
        raise BadInput(f"modes: the {system.name} has no momenta on a group to linearise.")
    require_instance("state", state, State, "a state; make one with system.state(...)")
    require_untraced("modes", system, state)
    system.check_state(state)
    system.require_admissible(state)
    here = linearise(system, state)
    _require_alike(system, here.scale)
    if here.in_time > ALLOWED_RESIDUAL * max(1.0, float(np.linalg.norm(here.field))):
        raise BadInput(
            f"modes: the forces on the {system.name} depend on time (|dX/dt| = "
            f"{here.in_time:.3g}), so it has no steady motion."
        )
    seen = steady_motion(system, state, here)
    if not seen.residual <= ALLOWED_RESIDUAL * max(1.0, seen.size):
        raise BadInput(
            f"modes: the state of the {system.name} is not steady. No symmetry carries it along: "
            f"of velocities and accelerations of size {seen.size:.3g}, {seen.residual:.3g} remain "
            f"(allowed {ALLOWED_RESIDUAL:.0e}). Give an equilibrium, or a motion that looks the "
            "same at all times to somebody who moves along."
        )
    return _modes_of(seen.derivative, here.tangent, seen.symmetric, here.scale, seen.residual, drop)


def _require_alike(system: AbstractGroupSystem, scale: Float[np.ndarray, "y y"]) -> None:
    """Reject masses so different that symmetries cannot be told from slow motions."""
    n = len(scale) // 2
    given = np.diag(scale)[n:]
    given = given[given > 0]
    ratio = float(np.max(given, initial=1.0) / np.min(given, initial=np.inf)) if len(given) else 1.0
    if not ratio <= _ALIKE:
        raise BadInput(
            f"modes: the coordinates of the {system.name} have masses and moments that differ by a "
            f"factor of {ratio:.1g} (allowed {_ALIKE:.0e}), so that slow motions are lost beside "
            "fast ones: measure lengths and angles in other units, or use systems.modes for a rod."
        )


def _modes_of(
    derivative: Float[np.ndarray, "y y"],
    tangent: Float[np.ndarray, "m y"],
    symmetric: Float[np.ndarray, "s y"],
    scale: Float[np.ndarray, "y y"],
    residual: float,
    drop: bool,
) -> Modes:
    """Return the eigenvalues of a derivative on a tangent space, symmetries apart.

    Symmetries span an invariant subspace. Its zeros come in chains, which round-off smears to its
    root: so its block and that of the rest are solved one after the other.
    """
    inside = np.linalg.svd(tangent @ symmetric.T)[0].T @ tangent  # symmetric directions first
    s = len(symmetric)
    A = inside @ derivative @ inside.T
    values, vectors = np.linalg.eig(A[s:, s:])
    values, n = values.astype(complex), len(values)
    rest = np.zeros((s + n, n), complex)
    rest[s:] = vectors
    for k, value in enumerate(values):
        chain = A[:s, :s] - value * np.eye(s)
        rest[:s, k] = -np.linalg.lstsq(chain, A[:s, s:] @ vectors[:, k], rcond=None)[0]
    if not drop:
        zeros, along = np.linalg.eig(A[:s, :s])
        smeared = np.abs(zeros) < _SMEARED * max(1.0, float(np.linalg.norm(A[:s, :s])))
        values = np.concatenate([values, np.where(smeared, 0.0, zeros)])
        rest = np.concatenate([rest, np.concatenate([along, np.zeros((n, s))])], axis=1)
    size = max(float(np.max(np.abs(values), initial=0.0)), 1e-300)
    order = sorted(range(len(values)), key=lambda k: _rank(values[k], size))
    shapes = np.linalg.solve(scale, inside.T @ rest).T[order]
    return Modes(values[order], np.stack([_normalise(shape) for shape in shapes]), residual)


def _rank(value: complex, size: float) -> tuple[float, float, float]:
    """Return by what eigenvalues are ordered: growth, then frequency, pairs side by side."""
    growth = round(value.real / size, 9)
    return -growth, -round(abs(value.imag) / size, 9), -value.imag


def _normalise(shape: Complex[np.ndarray, " y"]) -> Complex[np.ndarray, " y"]:
    """Return a shape whose largest displacement, or else change of momentum, is 1."""
    half = len(shape) // 2
    places, momenta = shape[:half], shape[half:]
    part = places if np.max(np.abs(places)) > 1e-9 * np.max(np.abs(momenta)) else momenta
    return shape / part[int(np.argmax(np.abs(part)))]
