"""Wrong calls that once ended badly, one for each defect that was found, and what is said now."""

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

import retrax as rx

from .entries import REGISTRY, Entry
from .judge import judge
from .values import Opaque, Stubborn, raises

FAR = np.outer(np.arange(4.0), [0.0, 0.0, 1e200])
PINNED: list[tuple[str, dict[str, Any], str]] = [
    # values whose text has several lines, or is long, or cannot be had
    ("Stiefel", {"n": Opaque()}, "n = <opaque object> must be a whole number"),
    ("Power", {"n": np.ones((40, 40))}, "n = array([[1., 1."),
    ("systems.HeavyTop", {"mass": 10**400}, "mass = 1000"),
    ("MatrixGroup", {"basis": Stubborn()}, "must be an array of real numbers"),
    # numbers that are none
    ("systems.HeavyTop", {"mass": "1"}, "mass = '1' must be an array of real numbers"),
    ("systems.HeavyTop", {"mass": None}, "mass = None must be an array of real numbers"),
    ("systems.HeavyTop", {"arm": np.array([1j, 0, 0])}, "must be an array of real numbers"),
    ("systems.HeavyTop", {"arm": np.ma.masked_equal([1.0, 2.0, 3.0], 2.0)}, "real numbers"),
    ("solids.about", {"mass": [[1.0], [2.0, 3.0]]}, "mass = [[1.0], [2.0, 3.0]] must be"),
    ("solids.about", {"inertia": np.zeros((0, 3))}, "inertia has shape (0, 3)"),
    ("solids.cylinder", {"height": 1e200}, "finite"),
    ("simulate", {"h": "0.01"}, "h = '0.01' must be a finite number of seconds"),
    ("simulate", {"h": True}, "h = True must be a finite number of seconds"),
    ("State", {"t": -6e257}, "h = 0.01 s is lost in rounding beside the time"),
    ("analysis.bias", {"t": np.zeros(40)}, "t must increase from each entry to the next"),
    ("analysis.bias", {"t": [1.0, 2.0]}, "t has shape (2,)"),
    ("analysis.growth_exponent", {"errors": "text"}, "errors = 'text' must be an array of real"),
    ("analysis.growth_exponent", {"errors": np.full(40, np.nan)}, "errors must be finite"),
    ("State", {"momentum": [[0.7, 0.3, 2.4], 1.0]}, "must be an array of float64"),
    ("State", {"t": range(3)}, "state.t has shape (3,)"),
    ("ensemble (states)", {"momentum": np.full((4, 3), b"1.5")}, "states holds |S3 numbers"),
    # numbers that overflow on the way
    ("analysis.bias", {"errors": 1e308 * (-1.0) ** np.arange(40)}, "have no finite slope"),
    ("systems.Rod", {"length": 2e-311}, "is not finite: the numbers it was made from"),
    ("nodes", {"c": [1e-301, 5e-301, 1e-300]}, "so close together that their weights"),
    ("systems.exact_force", {"amplitude": -1e308}, "must be finite"),
    ("analysis.drift", {"values": 1e308 * np.sin(np.arange(31))}, "too much for a slope"),
    ("systems.exact_momentum", {"t": [0.5, -1e308]}, "the phase of the motion is lost"),
    ("systems.dispersion", {"stretch": 1e199}, "the squares of the frequencies overflow"),
    ("systems.modes", {"g": (np.tile(np.eye(3), (4, 1, 1)), FAR)}, "stiffness of a rod placed"),
    ("systems.Pendulum3D", {"inertia": 1e308 * np.ones((3, 3))}, "inertia"),
    # counts without end
    ("SO", {"n": 10**9}, "SO: n = 1000000000 must be a whole number from 2 to 1000"),
    ("systems.StringPendulum", {"elements": 2**63}, "must be a whole number from 1 to 1000000"),
    ("systems.CubicHamiltonian", {"dim": 10**9}, "dim = 1000000000 must be a whole number"),
    ("analysis.kahan_integrals", {"degree": 36}, "monomials of 3 coordinates, but exact"),
    ("systems.characteristic_path", {"steps": 2**31}, "a whole number from 1 to 10000000"),
    # functions
    ("LagrangianSystem", {"lagrangian": None}, "lagrangian = None must be a function"),
    ("GroupFlow", {"field": None}, "field = None must be a function"),
    ("MechanicalSystem", {"potential": raises}, "RuntimeError: broken"),
    ("MechanicalSystem", {"inertia": lambda R, x: R}, "inertia cannot be evaluated"),
    ("MechanicalSystem", {"inertia": lambda R: R[0] * jnp.nan}, "inertia at the identity must"),
    ("MechanicalSystem", {"potential": lambda R: jnp.float32(1)}, "returns float32"),
    ("MechanicalSystem", {"potential": lambda R: jnp.nan}, "potential is nan everywhere"),
    ("HamiltonianSystem", {"hamiltonian": lambda R, mu: jnp.nan}, "hamiltonian is nan everywhere"),
    ("SpaceFlow", {"generator": -1e308}, "generator = -1e+308 must be a function"),
    ("SpaceFlow", {"invariants": 3}, "invariants = 3 is not a dictionary of functions"),
    ("CoadjointOrbit", {"casimirs": 3}, "casimirs = 3 is not a dictionary of functions"),
    ("simulate", {"progress": int}, "must be None, True, False or a function"),
    ("simulate", {"progress": lambda: None}, "must be a function of (done, total)"),
    ("factory", {"function": functools.partial(raises)}, "is not a function that makes a system"),
    # parts of another kind
    ("LieVerlet", {"retraction": None}, "retraction = None is not a retraction"),
    ("Composition", {"base": "LieVerlet"}, "base = 'LieVerlet' is not the name of an integrator"),
    ("Composition", {"order": np.array(4)}, "order = array(4) must be 4, 6 or 8"),
    ("Collocation", {"centred": np.zeros((0, 3))}, "must be True or False"),
    ("GroupItself", {"side": np.ones((3, 3))}, "must be -1 (g exp u) or +1 (exp u g)"),
    ("HamelFrame", {"group": np.inf}, "group = inf is not a Lie group"),
    ("HamelFrame.of", {"system": None}, "must have the same inertia everywhere"),
    ("HamiltonianSystem", {"symmetry": raises}, "must be an array of real numbers"),
    ("Tableau", {"embedded": np.nan}, "embedded of the tableau = nan is not a tuple of numbers"),
    ("Nodes", {"b": (-np.inf,)}, "b of the nodes must be finite"),
    ("systems.LiePoisson", {"algebra": np.zeros((2, 2, 2))}, "quadratic has shape (3, 3)"),
    ("QuadraticField", {"dim": np.ones((3, 3))}, "dim = array"),
    ("systems.equilibrium", {"rod": None}, "rod = None is not a Rod"),
    ("systems.modes", {"g": 1.0}, "g is not a"),
    ("systems.period", {"top": {}}, "top = {} is not an EulerTop"),
    ("systems.period", {"start": []}, "start has shape (0,)"),
    ("systems.first_echo", {"system": 1}, "system = 1 is not a StringsInContact"),
    ("systems.characteristic_path", {"u_t": 3}, "u_t = 3 must be a function of the place"),
    ("systems.Rod", {"ends": -1.0}, "ends = -1.0 must be two words"),
    ("Rod.velocity_of", {"omega": 1.0}, "omega has shape ()"),
    ("systems.StringDamping", {"drag": "0.5"}, "drag = '0.5' must be an array of real numbers"),
    ("State", {"t": "text"}, "t = 'text' must be an array of real numbers"),
    ("analysis.drift", {"t": None}, "t = None must be an array of real numbers"),
    ("analysis.symplecticity", {"system": rx.Exp()}, "system = Exp() is not a retrax system"),
    ("analysis.reversibility", {"h": None}, "h = None must be a finite number"),
    ("analysis.convergence", {"time": {1, 2}}, "time = {1, 2} s must be a positive, finite number"),
    ("analysis.lyapunov", {"skip": np.nan}, "skip = nan must be a whole number"),
    ("analysis.observe_members", {"runs": None}, "runs = None is not a dataset that ensemble"),
    ("testing.check_group", {"key": 3}, "key = 3 is not a key"),
    ("ensemble", {"devices": 3, "backend": "xla"}, "devices = 3 must be a list of JAX devices"),
    # files
    ("load", {"path": None}, "path = None must be the path of a file"),
    ("load (content)", {"content": b"no run"}, "is not a readable NetCDF file"),
    ("Trajectory.save", {"path": "."}, "path = '.' is a folder"),
    ("resume", {"path": Opaque()}, "path = <opaque object> must be the path of a checkpoint"),
    ("resume", {"path": "a\0b"}, "must be the path of a checkpoint"),
]  # fmt: skip


def broken(chosen: list[Entry]) -> list[str]:
    """The pinned calls, of the entries chosen, that do not end as they should."""
    names, wrong = {entry.name for entry in chosen}, []
    for name, change, sentence in PINNED:
        if name in names:
            entry = REGISTRY[name]
            verdict = judge(entry, entry.arguments() | change)
            if verdict.outcome != "refused" or sentence not in verdict.detail:
                wrong.append(f"PINNED {name}({change}): {verdict.outcome}: {verdict.detail[:300]}")
    return wrong
