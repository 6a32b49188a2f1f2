"""Host-side checks of an ensemble before it starts: each member, and whose system it has."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.translation import Translation
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.inertia import plainly_a_body, require_positive
from retrax.mechanics.mechanical import AbstractMechanicalSystem
from retrax.mechanics.split import AbstractSplitSystem
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Element
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
    may_be_anywhere,
    require_arrays,
    require_count,
    require_fit,
    require_parts,
    require_possible,
    require_step_size,
    require_members_time,
    uses_traced,
)
from retrax.spaces.base import AbstractHomogeneousSpace

System = TypeVar("System", bound=AbstractGroupSystem)

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
) -> bool:
    """Reject an ensemble that cannot start; return whether its members share one system.

    `shared` says so where it is known; otherwise the shapes tell.
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
    if uses_traced(one, integrator, alike):
        raise BadInput(_TRACED)
    _require_each(one, states)
    if not shared:
        _require_each_system(system)
    _require_possible(system, integrator, states, as_float(h), shared)
    _require_stable(system, integrator, states, as_float(h), shared)
    return shared


def _require_members(states: State) -> int:
    """The number of members: the length of the first axis of every array of the states."""
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(states)]
    lengths = {shape[0] if shape else 0 for shape in shapes}
    if len(lengths) != 1 or lengths == {0}:
        raise BadInput(
            f"states has arrays of shapes {shapes}, but all must have a first axis of one length, "
            "the members, as jax.vmap(lambda v: system.state(g, velocity=v))(velocities) gives."
        )
    return lengths.pop()


def stacked_systems(systems: Sequence[System]) -> System:
    """Systems of the same kind as one, its arrays stacked along a first axis."""
    kinds = {
        (jax.tree.structure(system), tuple(np.shape(x) for x in jax.tree.leaves(system)))
        for system in systems
    }
    if len(kinds) != 1:
        raise BadInput(
            f"the {len(systems)} systems of an ensemble must be of one kind, differing in numbers "
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
    """Whether this is one system for all members, or one for each along the first axis."""
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
    warnings.warn(
        f"the {members} x {members} inertia is taken for the matrix of one body that all {members} "
        "members share; for one row a member pass a list of systems.",
        stacklevel=4,
    )
    return True


def _fits(system: AbstractGroupSystem, state: State) -> bool:
    """Whether the arrays of a system have the shapes that one body needs."""
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
    if _on_gpu(states):
        unfinished, worst = map(int, _looked_at(space, states))
    else:
        unfinished = int(np.argmin(_finite(np, states)))
        worst = int(np.argmax(np.asarray(_defects(space, states.g))))
    ill = jax.tree.map(lambda x: np.asarray(x[unfinished]), states)
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(ill)):
        raise BadInput(f"member {unfinished} of states has numbers that are not finite.")
    space.check(f"g of member {worst}", jax.tree.map(lambda x: np.asarray(x[worst]), states.g))


def _on_gpu(states: State) -> bool:
    """Whether states lie in the memory of a GPU, where they are looked at without copying them."""
    leaves = jax.tree.leaves(states)
    return all(isinstance(x, jax.Array) and {d.platform for d in x.devices()} == {"gpu"} for x in leaves)


def _finite(numpy: Any, states: State) -> Any:
    """Whether all numbers of a member are finite, by NumPy or by `jax.numpy`."""
    parts = [numpy.isfinite(x).reshape(len(x), -1).all(axis=1) for x in jax.tree.leaves(states)]
    return numpy.stack(parts).all(axis=0)


@Jitted
def _looked_at(space: AbstractHomogeneousSpace, states: State) -> tuple[Array, Array]:
    """The first member whose numbers are not finite, if there is one; and that off the group."""
    return jnp.argmin(_finite(jnp, states)), jnp.argmax(jax.vmap(space.defect)(states.g))


def _require_possible(
    system: AbstractGroupSystem,
    integrator: AbstractIntegrator,
    states: State,
    h: float,
    shared: bool,
) -> None:
    """Reject what `require_run` rejects of one run: by `jax.vmap`, which knows all numbers."""
    require_members_time(np.asarray(states.t), h)
    if may_be_anywhere(system):
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
        integrator.check_step(system, jax.tree.map(lambda x: np.asarray(x[worst]), states), abs(h))
        return
    systems, states = jax.tree.map(np.asarray, (system, states))
    for k in range(len(states.t)):
        one = system if shared else jax.tree.map(lambda x, k=k: x[k], systems)
        integrator.check_step(one, jax.tree.map(lambda x, k=k: x[k], states), abs(h))


@Jitted
def _defects(space: AbstractHomogeneousSpace, g: Element) -> Float[Array, " member"]:
    return jax.vmap(space.defect)(g)


def _require_each_system(system: AbstractGroupSystem) -> None:
    """What constructors have not seen: numbers that `jax.jit` hid, or that were put in later."""
    for leaf in jax.tree.leaves(system):
        array = np.asarray(leaf)
        finite = np.isfinite(array).reshape(len(array), -1).all(axis=1)
        if not finite.all():
            raise BadInput(f"the system of member {np.argmin(finite)} has numbers not finite.")
    jax.vmap(_require_body)(jax.tree.map(jnp.asarray, system))


def _require_body(system: AbstractGroupSystem) -> None:
    """Reject masses and inertias that are not positive."""
    mass = getattr(system, "mass", None)
    if isinstance(mass, jax.Array):
        require_above_zero("mass", mass)
    if isinstance(system, AbstractMechanicalSystem):
        inertia = system.inertia_at(system.group.identity())
        plain = partial(plainly_a_body, Translation(1))
        require_each(require_positive, inertia, fine=plain)
