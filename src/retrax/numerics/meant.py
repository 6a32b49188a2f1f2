"""What somebody meant who writes a name that is not there: a synonym, or a name spelt alike."""

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, NoReturn, ParamSpec, TypeVar

from retrax.errors import RetraxError, UnknownKeyword

P = ParamSpec("P")
T = TypeVar("T")

# Each line names one quantity, the name that retrax uses first. In some places a word further on
# is the one that is taken, as `force` and `damping` are by different classes.
_ALIKE = tuple(
    line.split()
    for line in """
    h dt dT delta_t timestep time_step step step_size stepsize
    until T t_end tend tf t_f t_final t1 tmax t_max duration total_time time end
    steps n N nsteps n_steps num_steps n_step number_of_steps iterations nt niter max_steps
    save_every every stride saveat save_at save record_every output_every skip
    integrator method solver scheme algorithm
    system model body plant
    state states x0 y0 s0 z0 initial initial_state ic start
    g R q x X Q rot rotation orientation attitude pose position configuration quaternion quat R0 q0
    velocity omega Omega w v xi vel velocities angular_velocity body_velocity rates qdot dq xdot v0
    velocity omega0 w0 twist speed
    momentum p mu Pi momenta angular_momentum p0 L
    t time times ts
    energy energies E H hamiltonian total_energy
    inertia I J moments inertia_tensor moment_of_inertia moments_of_inertia
    mass masses m M
    gravity grav gravitational_acceleration g
    arm lever centre_of_mass center_of_mass com cm l
    length lengths L l
    radius r R
    stiffness k K spring_constant
    force torque tau forces torques wrench moment load f F external_force
    damping damper damp drag dissipation viscosity c
    friction mu
    density rho
    potential V U potential_energy
    lagrangian L
    hamiltonian H
    control u controller input inputs feedback policy law
    final last end final_state
    steps completed
    elements n N nodes segments n_elements
    simulate integrate solve odeint solve_ivp run
    ensemble batch simulate_many vmap
    """.strip().splitlines()
)
_FORCES = {"force", "torque", "tau", "forces", "torques", "wrench", "moment", "external_force"}
_LOSSES = {"damping", "damper", "damp", "drag", "dissipation", "viscosity", "friction"}


def resolve_name(name: str, known: Iterable[str]) -> str | None:
    """Return the one of the names `known` that `name` stands for, if there is one."""
    names = list(known)
    plain = {other.lower().replace("_", ""): other for other in reversed(names)}
    same = plain.get(name.lower().replace("_", ""))
    if same is not None and len(name) > 1:
        return same
    alike = [word for line in _ALIKE if name in line for word in line if word in names]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.66)
    return next(iter([*alike, *near]), None)


def no_attribute(owner: str, name: str, known: Iterable[str]) -> AttributeError:
    """Return what to raise for an attribute that is not there: it names the one that was meant."""
    word = None if name.startswith("_") else resolve_name(name, known)
    ending = "" if word is None else f": {word!r} is the name here."
    return AttributeError(f"{owner} has no attribute {name!r}{ending}")


def explain_keywords(function: Callable[P, T]) -> Callable[P, T]:
    """Make a function say what was meant when it is given a keyword that it does not have."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except TypeError as cause:
            reject_unknown(function, kwargs, cause)

    return call


def reject_unknown(
    function: Callable[..., Any], given: Mapping[str, Any], cause: TypeError
) -> NoReturn:
    """Raise a sentence if a call failed on a keyword that is not known, and `cause` otherwise."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise cause from None
    kinds = {parameter.kind for parameter in parameters.values()}
    unknown = [name for name in given if name not in parameters]
    if not unknown or inspect.Parameter.VAR_KEYWORD in kinds or isinstance(cause, RetraxError):
        raise cause
    called = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
    names = [n for n in parameters if n != "self"]
    raise UnknownKeyword(
        f"{called}() got an unexpected keyword argument {unknown[0]!r}: "
        f"{_instead(unknown[0], called, names)}"
    ) from None


def _instead(name: str, called: str, known: list[str]) -> str:
    word = resolve_name(name, known)
    if word is not None:
        return f"{word!r} is the name here."
    listed = f"{called} takes {', '.join(known)}" if known else f"{called} takes no arguments"
    if name in _LOSSES and "force" in known:
        return "it is a force here, such as force=lambda g, xi, t: -c * xi."
    if name in _FORCES | _LOSSES:
        return (
            f"{listed}. Forces and damping are given as rx.MechanicalSystem(..., force=f), where "
            "f(g, xi, t) is the force in body coordinates; inputs and a law for them as "
            "rx.Actuated(system, inputs=B) and simulate(..., control=law)."
        )
    return f"{listed}."
