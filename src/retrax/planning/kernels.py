"""The functions of a problem as machine code, or as JAX programs where they have no scalar one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from retrax.engine.backends.sweeps import Rows, Sweep, sweep_of
from retrax.engine.kinds import Unscalarisable
from retrax.engine.llvm.sweep_kernel import Ports
from retrax.errors import warn
from retrax.numerics.fingerprint import Fingerprint
from retrax.numerics.reuse import Reused, signature_of
from retrax.planning.measure import counts as measured_counts
from retrax.planning.measure import measure
from retrax.planning.model import Model, Sizes
from retrax.planning.recursion import backward, forward

# Operations of a stage that LLVM compiles in a few seconds, and of a recursion, which is plainer.
_MOST, _MOST_PLAIN = 40_000, 60_000


class Bindable(Protocol):
    """What runs over arrays: machine code or a JAX program."""

    def bind(
        self, arrays: Sequence[Rows], rounds: int, members: int, lanes: int
    ) -> Callable[[], None]: ...


@dataclass(frozen=True, eq=False)
class Programs:
    """The functions of a problem, over columns; `rooms` are workspaces that are free for use."""

    stage: Bindable
    last: Bindable
    move: Bindable
    aim: Bindable
    along: Bindable
    between: Bindable
    backward: Bindable
    forward: Bindable
    measure: Bindable
    native: bool
    rooms: dict[tuple[int, int], list[Any]] = field(default_factory=dict)


def programs(model: Model, native: bool = True) -> Programs:
    """Return the programs of a model: machine code where that can be made and is not too long."""
    return _programs(*signature_of(model), native)


@Reused
def _programs(tree: Any, avals: tuple, identity: Fingerprint, native: bool) -> Programs:
    shapes = [jax.ShapeDtypeStruct(*aval) for aval in avals]
    (model,) = jax.tree.unflatten(tree, shapes)
    s: Sizes = model.sizes
    counts = [int(np.prod(x.shape)) for x in shapes]

    def make(shared: jax.Array) -> Model:
        ends = np.cumsum([0, *counts])
        leaves = [
            shared[a:b].reshape(x.shape).astype(x.dtype)
            for a, b, x in zip(ends, ends[1:], shapes, strict=False)
        ]
        return jax.tree.unflatten(tree, leaves)[0]

    def stage(shared, carried, here, there, own, clock):
        return [carried, *make(shared).stage(here, there, own, clock)]

    def last(shared, carried, here, nu):
        return [carried, *make(shared).last(here, nu)]

    def move(shared, carried, there, own, dthere, down, lengths):
        return [carried, *make(shared).move(there, own, dthere, down, lengths)]

    def aim(shared, carried, start, clock):
        return [carried, *make(shared).aim(start, clock)]

    def along(shared, carried, start, way, bump, clock):
        return [carried, *make(shared).along(start, way, bump, clock)]

    def between(shared, carried, here, there, part):
        return [carried, *make(shared).between(here, there, part)]

    params = sum(counts)
    size = s.state * (s.state + 1) // 2
    result = 1 + s.ends + s.state + s.ends * s.state + size
    own = {
        "stage": (stage, Ports(params, 0, (s.node, s.node, s.stage, 3), (s.values, s.slopes))),
        "last": (last, Ports(params, 0, (s.node, s.ends), (result,))),
        "move": (
            move,
            Ports(params, 0, (s.node, s.stage, s.state, s.stage, 2), (s.node, s.stage)),
        ),
    }
    own["aim"] = aim, Ports(params, 0, (s.node, 3), (3 * s.dim,))
    own["along"] = along, Ports(params, 0, (s.node, 3 * s.dim, s.dim, 3), (s.node,))
    own["between"] = between, Ports(params, 0, (s.node, s.node, 1), (s.node,))
    if native:
        try:
            return Programs(
                *(_native(*part) for part in own.values()), *recursions(s, True), native=True
            )
        except Unscalarisable as why:
            warn(f"this plan is made by XLA, which takes longer to compile: {why}.")
    return Programs(
        *(_Compiled(*part) for part in own.values()), *recursions(s, False), native=False
    )


@lru_cache(maxsize=64)
def recursions(s: Sizes, native: bool) -> tuple[Bindable, ...]:
    """Return the programs that go along the stages: back, ahead, and measuring."""
    n, q = s.state, s.sides
    size = n * (n + 1) // 2
    gains = s.inputs * (n + q) + size + n * q
    limits = 2 * s.inputs if s.bounded else 0
    back = Ports(
        n + s.inputs,
        size + n * q + q * (q + 1) // 2 + 1,
        (s.values, s.slopes, s.stage, limits, 3),
        (gains,),
    )
    ahead = Ports(0, n + 3, (gains, s.values, s.slopes, s.stage, limits, 3, q), (n, s.stage))

    def onward(shared, *rest):
        return forward(s, *rest)

    along = Ports(n + s.path, n + sum(measured_counts(s)), (s.values, s.stage, limits, 3), ())
    make = partial(_native, most=_MOST_PLAIN) if native else _Compiled
    return (
        make(partial(backward, s), back),
        make(onward, ahead),
        make(partial(measure, s), along),
    )


def _native(function: Callable[..., list[jax.Array]], ports: Ports, most: int = _MOST) -> Sweep:
    """Return machine code of a function of vectors."""

    def on_numbers(*numbers: Sequence[jax.Array]) -> tuple[list[jax.Array], ...]:
        vectors = [jnp.stack(x) if x else jnp.zeros(0) for x in numbers]
        return tuple([x[k] for k in range(len(x))] for x in function(*vectors))

    return sweep_of(on_numbers, ports, most)


class _Compiled:
    """A function of vectors as a JAX program over columns and along rounds."""

    def __init__(self, function: Callable[..., list[jax.Array]], ports: Ports):
        self.ports = ports
        members = jax.vmap(function, in_axes=(None, *[1] * (1 + len(ports.reads))), out_axes=1)

        def scan(shared: jax.Array, carried: jax.Array, reads: list[jax.Array]) -> tuple:
            def round_(carried, reads):
                new, *writes = members(shared, carried, *reads)
                return new, writes

            return lax.scan(round_, carried, reads)

        self._run = jax.jit(scan)

    def bind(
        self, arrays: Sequence[Rows], rounds: int, members: int, lanes: int
    ) -> Callable[[], None]:
        counts = (self.ports.shared, self.ports.carried, *self.ports.reads, *self.ports.writes)
        views = [
            _view(rows, count, rounds, members if k else 1)
            for k, (rows, count) in enumerate(zip(arrays, counts, strict=True))
        ]
        first = 2 + len(self.ports.reads)

        def run() -> None:
            shared, carried = views[0][0, :, 0], views[1][0]
            new, writes = self._run(shared, carried, views[2:first])
            carried[...] = new
            for view, written in zip(views[first:], writes, strict=True):
                view[...] = written

        return run


def _view(rows: Rows, count: int, rounds: int, members: int) -> np.ndarray:
    """Return [round, row, member] of an array."""
    flat = rows.array.reshape(-1)[rows.first :]
    if count == 0:
        return np.zeros((rounds, 0, members))
    strides = (8 * rows.round, 8 * rows.row, 8)
    return np.lib.stride_tricks.as_strided(flat, (rounds, count, members), strides)
