"""Host-side checks of an ensemble before it starts: each member, and whose system it has."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.engine.passes.live import live
from retrax.engine.trace.scalarise import Unscalarisable, scalarise
from retrax.errors import BadInput, warn
from retrax.groups.translation import Translation
from retrax.integrators.base import AbstractIntegrator, require_fit
from retrax.mechanics.inertia import plainly_a_body, require_positive
from retrax.mechanics.mechanical import AbstractMechanicalSystem
from retrax.mechanics.split import AbstractSplitSystem
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import (
    as_float,
    is_traced,
    require_above_zero,
    require_shape,
)
from retrax.numerics.fingerprint import Fingerprint
from retrax.numerics.known import LEAKED, has_leaked, require_each
from retrax.numerics.reuse import Jitted, Reused, signature_of
from retrax.run.checks import (
    is_possible_anywhere,
    require_arrays,
    require_count,
    require_members_time,
    require_parts,
    require_possible,
    require_step_size,
    uses_traced,
)
from retrax.spaces.base import AbstractHomogeneousSpace

if TYPE_CHECKING:
    from retrax.engine.backends.gpu_kernels import GPUFunction

Stacked = TypeVar("Stacked")

_TRACED = (
    "an ensemble runs many bodies outside of JAX and cannot be traced; for derivatives use "
    "jax.vmap of simulate, which can be differentiated."
)


def require_ensemble(
    system: object,
    integrator: AbstractIntegrator,
    states: object,
    h: object,
    steps: object,
    save_every: object,
    shared: bool | None = None,
    host: State | None = None,
) -> bool:
    """Reject an ensemble that cannot start; return whether its members share one system.

    `shared` says so where it is known; otherwise the shapes tell. `host` are the same states in
    arrays of NumPy, where the others lie on a GPU.
    """
    system, states = require_parts(system, states)
    if is_traced(system, integrator, states, h):
        raise BadInput(LEAKED if has_leaked(system, integrator, states, h) else _TRACED)
    require_step_size(h)
    require_count("steps", steps)
    if save_every is not None:
        require_count("save_every", save_every)
    require_arrays("states", states)
    members = _require_members(states)
    alike = jax.tree.map(lambda x: np.zeros(np.shape(x)[1:]), states)
    if shared is None:
        shared = _is_shared(system, alike, members)
    elif not shared:
        _require_a_system_each(system, members)
    one = system if shared else jax.tree.map(lambda x: x[0], system)
    require_fit(one, integrator)
    if uses_traced(one, integrator, integrator.begin(one, alike)):
        raise BadInput(_TRACED)
    _require_each(one, states)
    if not shared:
        _require_each_system(system)
    near = states if host is None else host
    _require_possible(system, integrator, near, as_float(h), shared)
    _require_stable(system, integrator, near, as_float(h), shared)
    return shared


def _require_members(states: State) -> int:
    """Return the number of members: the length of the first axis of every array of the states."""
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(states)]
    lengths = {shape[0] if shape else 0 for shape in shapes}
    if len(lengths) != 1 or lengths == {0}:
        raise BadInput(
            f"states has arrays of shapes {shapes}, but all must have a first axis of one length, "
            "the members, as jax.vmap(lambda v: system.state(g, velocity=v))(velocities) gives."
        )
    return lengths.pop()


def stack_systems(systems: Sequence[Stacked], what: str = "systems") -> Stacked:
    """Stack systems of the same kind, with a first axis in all arrays."""
    kinds = {
        (jax.tree.structure(system), tuple(np.shape(x) for x in jax.tree.leaves(system)))
        for system in systems
    }
    if len(kinds) != 1:
        raise BadInput(
            f"the {len(systems)} {what} of an ensemble must be of one kind, differing in numbers "
            f"only, but they are of {len(kinds)} kinds."
        )
    return jax.tree.map(lambda *xs: jnp.stack(xs), *systems)


def _require_a_system_each(system: AbstractGroupSystem, members: int) -> None:
    lengths = {np.shape(leaf)[0] for leaf in jax.tree.leaves(system)}
    if lengths - {members}:
        raise BadInput(
            f"system is a list of {lengths.pop()} systems, but there are {members} states: one "
            "system for each member is needed, or one for all."
        )


def _is_shared(system: AbstractGroupSystem, state: State, members: int) -> bool:
    """Return whether this is one system for all members, or one for each along the first axis."""
    leaves = jax.tree.leaves(system)
    stacked = all(np.shape(leaf)[:1] == (members,) for leaf in leaves)
    own = bool(leaves) and stacked and _fits(jax.tree.map(lambda x: x[0], system), state)
    if not _fits(system, state):
        if own:
            return False
        raise BadInput(
            f"system is neither one {system.configuration_space.name} system for all {members} "
            f"members nor one for each: then all its arrays have a first axis of length {members}, "
            "as jax.vmap(make_system)(parameters) gives them."
        )
    if not own:
        return True
    # As many members as dimensions: an inertia matrix, or principal moments one row a member?
    inertia = getattr(system, "inertia", None)
    if inertia is None:
        return False
    try:
        require_positive(np.asarray(inertia))
    except BadInput:
        return False
    warn(
        f"the {members} x {members} inertia is taken for the matrix of one body that all {members} "
        "members share; for one row a member pass a list of systems."
    )
    return True


def _fits(system: AbstractGroupSystem, state: State) -> bool:
    """Return whether the arrays of a system have the shapes that one body needs."""
    return _shapes_fit(*signature_of(system, state))


@Reused
def _shapes_fit(tree: Any, avals: tuple, identity: Fingerprint) -> bool:
    def rates(system, state):
        return system.vector_field(state.g, state.momentum, state.t)

    leaves = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in avals]
    system, state = jax.tree.unflatten(tree, leaves)
    try:
        return all(x.shape == state.momentum.shape for x in jax.eval_shape(rates, system, state))
    except Exception:  # whatever a system says of arrays that are not its own
        return False


def _require_each(system: AbstractGroupSystem, states: State) -> None:
    """Reject states of which one is not on the group or not finite, and name the member."""
    require_shape("states.t", states.t, np.shape(states.momentum)[:1])
    require_shape("states.momentum", states.momentum, (len(states.t), system.group.dim))
    space = system.configuration_space
    defect = _defects_on_gpu(space, states) if _on_gpu(states) else _defects(space, states)
    worst = int(np.argmax(defect))
    if np.isnan(defect[worst]):
        raise BadInput(f"member {worst} of states has numbers that are not finite.")
    space.check(f"g of member {worst}", _member(states.g, worst))


def _on_gpu(tree: Any) -> bool:
    """Return whether arrays lie in the memory of a GPU, to be checked without copying them."""
    leaves = jax.tree.leaves(tree)
    return all(isinstance(x, jax.Array) and _platform(x) == "gpu" for x in leaves)


def _platform(array: jax.Array) -> str:
    return next(iter(array.devices())).platform


def _member(tree: Any, k: int) -> Any:
    """Return one member of arrays with a first axis of members."""
    if _on_gpu(tree):
        from retrax.engine.backends.gpu_kernels import member_of

        return member_of(tree, k)
    return jax.tree.map(lambda x: x[k], tree)


def _defects_on_gpu(space: AbstractHomogeneousSpace, states: State) -> np.ndarray:
    """Return how far each member is off the group, and NaN where its numbers are not finite."""
    alike = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), states)
    function = _defect_function(*signature_of(space, alike))
    if function is None:
        return np.asarray(_all_defects(space, states))
    return function(jax.tree.leaves(states))[0]


def _defects(space: AbstractHomogeneousSpace, states: State) -> np.ndarray:
    """Return how far each member is off the group, for states on the host."""
    with _on_host():
        return np.asarray(_all_defects(space, states))


@Jitted
def _all_defects(space: AbstractHomogeneousSpace, states: State) -> Float[Array, " member"]:
    return jax.vmap(partial(_defect, space))(states)


def _defect(space: AbstractHomogeneousSpace, state: State) -> Float[Array, ""]:
    finite = [jnp.isfinite(x).all() for x in jax.tree.leaves(state)]
    return jnp.where(jnp.stack(finite).all(), space.defect(state.g), jnp.nan)


@Reused
def _defect_function(tree: Any, avals: tuple, identity: Fingerprint) -> "GPUFunction | None":
    """Return the distance from the group as a kernel; `None` with a long axis or no program."""
    from retrax.engine.backends.gpu_kernels import GPUFunction

    leaves = [jax.ShapeDtypeStruct(*aval) for aval in avals]
    space, state = jax.tree.unflatten(tree, leaves)
    if jax.tree.leaves(space):
        return None
    try:
        program = live(scalarise(partial(_defect, space), state, unroll=True))
    except Unscalarisable:
        return None
    if program.has_buffers:
        return None
    return GPUFunction(program, [math.prod(leaf.shape) for leaf in jax.tree.leaves(state)])


def _require_possible(
    system: AbstractGroupSystem,
    integrator: AbstractIntegrator,
    states: State,
    h: float,
    shared: bool,
) -> None:
    """Reject what `require_run` rejects of one run: by `jax.vmap`, which knows all numbers."""
    require_members_time(np.asarray(states.t), h)
    if is_possible_anywhere(system):
        return
    with _on_host():
        systems, here = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)), (system, states))
        look = partial(require_possible, integrator=integrator)
        jax.vmap(look, in_axes=(None if shared else 0, 0))(systems, here)


@contextmanager
def _on_host() -> Iterator[None]:
    """Compute with JAX on the processor, if it may."""
    try:
        processor = jax.devices("cpu")[0]
    except RuntimeError:  # JAX_PLATFORMS names GPUs only
        processor = None
    with jax.default_device(processor):
        yield


def _require_stable(
    system: AbstractGroupSystem,
    integrator: AbstractIntegrator,
    states: State,
    h: float,
    shared: bool,
) -> None:
    """Reject a step size that is unstable for a member, where the system has such a bound."""
    if not isinstance(system, AbstractSplitSystem):
        return
    worst = system.hardest(states) if shared else None
    if worst is not None:
        integrator.check_step(system, _member(states, worst), abs(h))
        return
    systems, states = jax.tree.map(np.asarray, (system, states))
    for k in range(len(states.t)):
        one = system if shared else jax.tree.map(lambda x, k=k: x[k], systems)
        integrator.check_step(one, jax.tree.map(lambda x, k=k: x[k], states), abs(h))


def _require_each_system(system: AbstractGroupSystem) -> None:
    """Check what constructors have not seen: numbers that `jax.jit` hid, or later ones."""
    for leaf in jax.tree.leaves(system):
        array = np.asarray(leaf)
        finite = np.isfinite(array).reshape(len(array), -1).all(axis=1)
        if not finite.all():
            raise BadInput(f"the system of member {np.argmin(finite)} has numbers not finite.")
    with _on_host():
        jax.vmap(_require_body)(jax.tree.map(lambda x: jnp.asarray(np.asarray(x)), system))


def _require_body(system: AbstractGroupSystem) -> None:
    """Reject masses and inertias that are not positive."""
    mass = getattr(system, "mass", None)
    if isinstance(mass, jax.Array):
        require_above_zero("mass", mass)
    if isinstance(system, AbstractMechanicalSystem):
        inertia = system.inertia_at(system.group.identity())
        plain = partial(plainly_a_body, Translation(1))
        require_each(require_positive, inertia, fine=plain)
