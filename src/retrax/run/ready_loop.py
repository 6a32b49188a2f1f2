"""A system and an integrator made ready to run: what no call has to find out again."""

import math
import time
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from retrax.engine.backends import make_loop
from retrax.engine.backends.native import NativeLoop
from retrax.engine.changing import changes
from retrax.engine.progress import Packing
from retrax.errors import warn
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import is_traced, shape_and_dtype
from retrax.numerics.fingerprint import Content, Fingerprint, fingerprint
from retrax.numerics.known import nothing_is_traced
from retrax.numerics.looks import looking, settings
from retrax.numerics.reuse import remember
from retrax.numerics.watch import Watch, copy_parts, is_open
from retrax.run.checks import is_possible_anywhere, require_possible
from retrax.run.chunks import Chunks
from retrax.run.running import interruption
from retrax.spaces.group_itself import GroupItself
from retrax.trajectory.energy_band import escape
from retrax.trajectory.inputs import saturation
from retrax.trajectory.observe import SHORT, aliasing
from retrax.trajectory.provenance import Origin
from retrax.trajectory.records import Records
from retrax.trajectory.trajectory import Trajectory

_FLOAT = np.dtype(np.float64)
# So many loops are kept for calls of `simulate`.
_MOST = 16


class _Ready(NamedTuple):
    """A compiled loop, what its functions did when it was compiled, and its own parameters."""

    loop: NativeLoop
    read: Content
    settings: tuple
    own: np.ndarray


class ReadyLoop:
    """The native loop of a system and an integrator, from any state, and what it reads, watched.

    One that is `frozen` keeps the functions of users as they were when it was made.

    What it does not do it leaves, with `None`, to the ordinary way of a run: values that JAX
    traces, a step without a scalar program, input that is not as usual, a long run, and one that
    fails. That way says all that there is to say.
    """

    def __init__(
        self,
        system: AbstractGroupSystem,
        integrator: AbstractIntegrator,
        backend: str,
        frozen: bool = False,
    ):
        self.system, self.integrator, self._backend = system, integrator, backend
        self._frozen = frozen
        space = self._space = system.configuration_space
        g = jax.tree.map(lambda x: np.zeros(x.shape), space.layout())
        momentum: Any = np.zeros(system.group.dim)
        self._example = integrator.begin(system, State(g=g, momentum=momentum, t=0.0))
        self._packing = Packing(self._example)
        parts = jax.tree.leaves((system, integrator))
        self._is_open = not frozen and is_open((system, integrator))
        self._changes_in_place = self._is_open or any(isinstance(x, np.ndarray) for x in parts)
        self._turns = bool(system.group.angles().any())
        self._looks = type(system).find_overlooked is not AbstractGroupSystem.find_overlooked
        self._checks_run = type(integrator).check_run is not AbstractIntegrator.check_run
        self._checks_step = type(integrator).check_step is not AbstractIntegrator.check_step
        self._anywhere = is_possible_anywhere(system)
        self._ends_fit = self._anywhere and "group" in integrator.preserves
        self._chunks = Chunks.of_run(8 * self._packing.size, 1, None)
        self._known: tuple[bytes, ...] = ()
        self._ready = self._compile()

    def _compile(self) -> _Ready | None:
        """Compile for what functions read now."""
        clock = time.perf_counter()
        self._known = ()
        self._shape = self._shape_now()
        self._watch = Watch(self._shape[0].children())
        with looking():
            read = self._watch.content()
            if not read.complete:
                return None
            loop = make_loop(self._backend, self.system, self.integrator, self._example, 1.0, True)
        self.compile_seconds = time.perf_counter() - clock
        if not isinstance(loop, NativeLoop) or not loop.identity.complete:
            return None
        found = loop.structure.content.looks
        if [look.number for look in found] != [look.number for look in read.looks]:
            return None
        own = Packing.rows((self.system, self.integrator))[:, 0]
        return _Ready(loop, read, settings(), own)

    def _shape_now(self) -> tuple[Any, list[Any]]:
        leaves, tree = jax.tree.flatten((self.system, self.integrator))
        return tree, [shape_and_dtype(x) for x in leaves]

    @property
    def is_native(self) -> bool:
        """Whether there is a loop: without one the ordinary way is taken."""
        return self._ready is not None

    def ask(self) -> None:
        """Have all functions asked what a step asks them, though there is no loop."""
        step = self.integrator.step
        jax.eval_shape(lambda s: step(self.system, s, jnp.ones(())), self._example)

    def run(self, state: object, h: float, steps: int, save_every: int) -> Trajectory | None:
        """Take `steps` steps; `None` where the ordinary way has to."""
        ready = self._ready
        if ready is None or not is_quiet():
            return None
        started = time.perf_counter()
        compiled = 0.0
        now = ready.read if self._frozen else self._same(ready)
        if now is None:
            ready = self._ready = self._compile()
            now = None if ready is None else ready.read
            compiled = time.perf_counter() - started
        if ready is None or now is None:
            return None
        numbers = self._start(state, h)
        records, rest = divmod(steps, save_every)
        if numbers is None or steps > self._chunks.most or records > self._chunks.capacity:
            return None
        clock = time.perf_counter()
        try:
            rows = ready.loop.records(
                numbers, h, records, save_every, rest, self._changed_parameters(ready, now)
            )
        except KeyboardInterrupt as stopped:
            raise interruption(0, steps) from stopped
        if rows is None:
            return None
        if self._checks_run:  # last: the ordinary way warns too
            doubt = self.integrator.check_run(float(numbers[-1]), h, steps)
            if doubt is not None:
                warn(doubt)
        return self._trajectory(
            Records(self._packing, *rows),
            _identity(ready, now),
            h=h,
            steps=steps,
            completed=steps,
            save_every=save_every,
            seconds=time.perf_counter() - clock,
            compile_seconds=compiled or clock - started,
        )

    def _trajectory(self, records: Records, identity: Fingerprint, **rest: Any) -> Trajectory:
        parts = self.system, self.integrator
        parts = copy_parts(parts) if self._is_open else parts
        run = Trajectory.of_records(
            records,
            Origin(*parts, NativeLoop.name),
            _identity=identity,
            **rest,
        )
        if self._ends_fit:
            self._known = (*self._known[:1], records.numbers[-1, :-1].tobytes())
        if self._looks and (doubt := self.system.find_overlooked(run.states)) is not None:
            warn(doubt)
        if self._turns and not records.intervals[:, 2].max() <= SHORT:
            warning = aliasing(run)
            if warning is not None:
                warn(warning)
        if self._checks_run and (warning := saturation(run)) is not None:
            warn(warning)
        if (warning := escape(run)) is not None:
            warn(warning)
        return run

    def _same(self, ready: _Ready) -> Content | None:
        """Return what functions do now, if only parameters have changed; else `None`."""
        if self._is_open and self._shape_now() != self._shape:
            return None
        now = self._watch.content()
        if not now.complete or settings() != ready.settings or now.parts != ready.read.parts:
            return None
        differ = changes(ready.read.looks, now.looks)
        return now if set(differ) <= set(ready.loop.structure.places) else None

    def _changed_parameters(self, ready: _Ready, now: Content) -> Sequence[np.ndarray]:
        """Return the parameters of a run, if they are not those with which the loop was made."""
        if not self._changes_in_place and now is ready.read:
            return ()
        own = ready.own
        if self._changes_in_place:
            own = Packing.rows((self.system, self.integrator))[:, 0]
        places = ready.loop.structure.places
        held = [np.ravel(now.looks[i].capture(call).numbers[k]) for i, call, k in places]
        return own, *map(np.asarray, held)

    def _start(self, state: object, h: float) -> np.ndarray | None:
        """Return the numbers of a state to start a run from; `None` if it is not as usual."""
        if type(state) is not State:
            return None
        g, leaves = state.g, (state.g, state.momentum, state.t)
        nested = type(g) is not np.ndarray and not isinstance(g, jax.Array)
        if nested or state.control is not None:
            leaves, structure = jax.tree.flatten(state)
            if structure != self._packing.structure:
                return None
        numbers = np.empty(self._packing.size)
        for leaf, (shape, first, last) in zip(leaves, self._packing.slots, strict=False):
            if type(leaf) is not np.ndarray:
                if not isinstance(leaf, jax.Array | np.float64) or isinstance(leaf, Tracer):
                    return None
                leaf = np.asarray(leaf)
            if leaf.shape != shape or leaf.dtype is not _FLOAT:
                return None
            numbers[first:last] = leaf.ravel()
        t = abs(float(numbers[-1]))
        if not (t < math.inf and abs(h) > 2 * math.ulp(t)):
            return None
        bits = numbers[:-1].tobytes()
        if bits not in self._known or not self._anywhere:
            if not self._fits(numbers):
                return None
            self._known = (bits, *self._known[1:])
        if self._checks_step:
            self.integrator.check_step(self.system, self._packing.unpack_one(numbers), abs(h))
        return numbers

    def _fits(self, numbers: np.ndarray) -> bool:
        """Look whether the system can be in a state with these numbers; raise what it is not."""
        if not np.isfinite(numbers).all():
            return False
        state = self._packing.unpack_one(numbers)
        if isinstance(self._space, GroupItself):
            self._space.group.check_membership("state.g", state.g)
        else:
            self._space.check("state.g", state.g)
        if not self._anywhere:
            require_possible(self.system, state, self.integrator)
        return True


def _identity(ready: _Ready, now: Content) -> Fingerprint:
    return ready.loop.structure.content._replace(looks=now.looks).fingerprint()


def is_quiet() -> bool:
    """Tell whether JAX is tracing nothing, and computes in double precision."""
    config: Any = jax.config
    return config.jax_enable_x64 and nothing_is_traced()


class _ReadyLoops:
    """Those of the last pairs of system and integrator that were run more than once.

    A pair is found by which objects they are, or by a system and how its integrator is written.
    Only pairs that fit each other may be kept: a loop that is ready asks no more.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, _Pair] = OrderedDict()
        remember(self)

    def cache_clear(self) -> None:
        self._kept.clear()

    def of(
        self, system: object, integrator: AbstractIntegrator, backend: object
    ) -> ReadyLoop | None:
        """Return the loop; `None` for a pair that is new, or that JAX traces."""
        if type(backend) is not str or not is_quiet():
            return None
        these = (id(system), id(integrator), backend)
        pair = self._kept.get(these)
        if pair is not None:
            self._kept.move_to_end(these)
            return pair.ready_loop()
        if not isinstance(system, AbstractGroupSystem) or is_traced(system, integrator):
            return None
        alike = (id(system), _shared_identity(integrator), backend)
        pair = self._kept.get(alike)
        if pair is None:
            return None
        self._kept.move_to_end(alike)
        return pair.ready_loop()

    def keep(
        self, system: AbstractGroupSystem, integrator: AbstractIntegrator, backend: str
    ) -> None:
        """Keep a pair that has been seen to fit, so that its next run finds a loop."""
        pair = _Pair(system, integrator, backend)
        self._kept[id(system), id(integrator), backend] = pair
        self._kept[id(system), _shared_identity(integrator), backend] = pair
        while len(self._kept) > 2 * _MOST:
            self._kept.popitem(last=False)


class _Pair:
    """What was run together, and keeps its place in memory; made ready the second time."""

    def __init__(self, *parts: Any):
        self._parts, self._made = parts, None

    def ready_loop(self) -> ReadyLoop:
        if self._made is None:
            self._made = ReadyLoop(*self._parts)
        return self._made


def _shared_identity(integrator: AbstractIntegrator) -> Hashable:
    """Return what is the same for integrators that are written alike, where they have no arrays."""
    leaves, structure = jax.tree.flatten(integrator)
    found = fingerprint(structure)
    return found if found.complete and not leaves else id(integrator)


READY_LOOPS = _ReadyLoops()
