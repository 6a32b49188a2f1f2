"""Many bodies on NVIDIA's GPUs: the native time loop, compiled for them.

Members are shared out to the cards. Their states stay there until the end; the host fetches what is
saved, straight from where a kernel has written it. A launch takes about a tenth of a second, after
which signals are heard and the progress bar moves.
"""

import ctypes
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from retrax.engine.backends.cuda import card
from retrax.engine.backends.gpu_kernels import BLOCK, GPUKernel, address_of, place_function
from retrax.engine.backends.members import Members
from retrax.engine.llvm.ptx_kernel import WARP, KernelLayout
from retrax.engine.progress import FAILURE, INTERVAL, Packing

# Seconds of a launch: as long as Ctrl-C may have to wait.
_PIECE = 0.1
# A first guess of what a card does, in operations per second, and the seconds of the first launch.
_RATE, _FIRST = 1e13, 0.02
# Bytes of new memory that a thread makes ready at a time, and how many threads do.
_PORTION, _THREADS = 2**23, 8
# The most memory of buffers that do not fit into shared memory, in numbers.
_MOST_HEAP = 2**28


class _Numbers(NamedTuple):
    """What a launch is told besides addresses."""

    step: int
    records: int
    every: int
    begun: bool


class _Share:
    """The members of one card: columns `first` to `last` of all."""

    def __init__(
        self,
        kernel: GPUKernel,
        device: Any,
        params: "Params",
        states: Any,
        h: float,
        first: int,
        last: int,
    ):
        self.first, self.last, self.members = first, last, last - first
        self._layout = layout = kernel.layout
        self._device, self._card = device, card(device.local_hardware_id)
        self._run, self._h = kernel.on(self._card), h
        self._inline = params.inline
        n = self.members
        heap = layout.heap * min(n, max(1, _MOST_HEAP // max(layout.heap, 1)))
        self._at_once = heap // layout.heap if heap else n
        own = 0 if params.inline is not None else params.count * (1 if params.shared else n)
        sizes = {
            "params": own,
            "state": layout.state * n,
            "memory": layout.memory * n,
            "failure": len(FAILURE) * n,
            "heap": heap,
        }
        # One array for all: JAX compiles a program for each length that it makes.
        self._arena = self._room(sum(sizes.values()))
        at, self._places = address_of(self._arena), {}
        for name, size in sizes.items():
            self._places[name], at = at, at + 8 * size
        self._records: tuple[jax.Array, int] | None = None
        self._card.fill_with_nan(self._places["failure"], sizes["failure"])
        self._fill("state", jax.tree.leaves(states), layout.state)
        if own and params.shared:
            self._upload("params", params.shared_rows)
        elif own:
            self._fill("params", params.own, params.count)
        self._card.wait()

    def _room(self, numbers: int) -> jax.Array:
        room = jnp.zeros(max(numbers, 1), jnp.float64, device=self._device)
        return room.block_until_ready()

    def _fill(self, name: str, leaves: Sequence[Any], width: int) -> None:
        """Bring the numbers of members, in arrays with a first axis of them, to their places."""
        row = 0
        for leaf in leaves:
            here = leaf if self.members == len(leaf) else leaf[self.first : self.last]
            if here.dtype != np.float64:
                here = np.asarray(here, dtype=np.float64)
            array = jax.device_put(here, self._device).block_until_ready()
            numbers = array.size // self.members
            if numbers:
                self._place(array, self._places[name], row, numbers, width)
            row += numbers

    def _place(self, array: jax.Array, target: int, row: int, numbers: int, width: int) -> None:
        steps = (1, width) if self._layout.pieces else (self.members, 1)
        first = target + 8 * row * steps[0]
        count = numbers * self.members
        sizes = (numbers, count, *steps)
        places = [ctypes.c_uint64(first), ctypes.c_uint64(address_of(array))]
        arguments = [*places, *map(ctypes.c_int64, sizes)]
        place_function(self._card).launch(-(-count // BLOCK), BLOCK, arguments)
        self._card.wait()  # the array may go

    def _upload(self, name: str, numbers: np.ndarray) -> None:
        array = jax.device_put(numbers.ravel(), self._device).block_until_ready()
        places = [ctypes.c_uint64(self._places[name]), ctypes.c_uint64(address_of(array))]
        arguments = [*places, *map(ctypes.c_int64, (1, array.size, 1, 1))]
        place_function(self._card).launch(-(-array.size // BLOCK), BLOCK, arguments)
        self._card.wait()

    def begin(self, records: int) -> None:
        """Allocate memory for this number of records."""
        if self._records is None or self._records[1] < records:
            self._records = None
            width = self._layout.state + len(INTERVAL)
            self._records = self._room(width * records * self.members), records

    def _record_places(self, record: int) -> tuple[int, int]:
        """Return where the states of a record lie, and its statistics."""
        assert self._records is not None
        array, room = self._records
        first, n = address_of(array), self.members
        intervals = first + 8 * self._layout.state * room * n
        return (
            first + 8 * self._layout.state * record * n,
            intervals + 8 * len(INTERVAL) * record * n,
        )

    def launch(self, record: int, told: _Numbers) -> None:
        """Take steps from record number `record` of the room on; return before they are taken."""
        layout, n, places = self._layout, self.members, self._places
        out, interval = self._record_places(record)
        opens = int(told.step == 0)
        stride = 1 if layout.pieces else n
        numbers = (told.step, told.records, told.every, stride, n, opens, int(told.begun))
        for first in range(0, n, self._at_once):
            arrays = (
                (places["state"], layout.state),
                (places["memory"], layout.memory),
                (out, layout.state),
                (interval, len(INTERVAL)),
                (places["failure"], len(FAILURE)),
            )
            params: Any = self._inline
            if params is None:
                params = ctypes.c_uint64(places["params"])
            moved = [ctypes.c_uint64(at + 8 * first * width) for at, width in arrays]
            arguments = [params, *moved, ctypes.c_uint64(places["heap"])]
            arguments += [ctypes.c_double(self._h), *map(ctypes.c_int64, numbers)]
            threads = WARP if layout.pieces else BLOCK
            blocks = -(-min(self._at_once, n - first) * layout.lanes // threads)
            self._run.launch(blocks, threads, arguments)

    def wait(self) -> None:
        self._card.wait()

    def fetch(self, saved: np.ndarray, interval: np.ndarray) -> None:
        """Copy records to the host: these are [record, row, member] of all members."""
        out, statistics = self._record_places(0)
        self._copy(out, saved[..., self.first : self.last])
        self._copy(statistics, interval[..., self.first : self.last])

    def fetch_state(self, saved: np.ndarray) -> None:
        """Copy the states that steps start from to the host, [row, member] of all members."""
        self._copy(self._places["state"], saved[None, :, self.first : self.last])

    def fetch_failure(self) -> np.ndarray:
        """Fetch how members failed, [row, member]; all NaN where none has."""
        shape = (1, len(FAILURE), self.members)
        if not self._layout.pieces:
            steps = np.empty(self.members)
            self._card.to_host(self._places["failure"], steps)
            if np.isnan(steps).all():
                return np.broadcast_to(np.nan, shape[1:])
        failure = _host_room(shape, self._layout.pieces)
        self._copy(self._places["failure"], failure)
        return failure[0]

    def _copy(self, address: int, target: np.ndarray) -> None:
        """Copy [record, row, member] from an address, in as few pieces as the host's array has."""
        ordered = target.transpose(0, 2, 1) if self._layout.pieces else target
        if ordered.flags.c_contiguous:
            self._card.to_host(address, ordered)
            return
        parts = ordered if self._layout.pieces else ordered.reshape(-1, ordered.shape[-1])
        for part in parts:
            self._card.to_host(address, part)
            address += part.nbytes


def _host_room(shape: tuple[int, int, int], pieces: bool) -> np.ndarray:
    """Allocate [record, row, member], where each member is in one piece, or each row is."""
    records, rows, members = shape
    if pieces:
        return np.empty((records, members, rows)).transpose(0, 2, 1)
    return np.empty(shape)


def _make_ready(room: np.ndarray) -> list[Future[Any]]:
    """Have threads touch every page of new memory; what is there afterwards does not matter."""
    size = room.nbytes

    def touch(start: int) -> None:
        ctypes.memset(room.ctypes.data + start, 0, min(_PORTION, size - start))

    starts = range(0, size, _PORTION) if size > _PORTION else ()
    return [_threads().submit(touch, start) for start in starts]


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="retrax memory")


class Params:
    """The parameters of members, as a kernel wants them.

    **Attributes:**

    - `shared`: whether all members have the same.
    - `count`: how many numbers these are.
    - `inline`: the numbers as one argument of the kernel, where they are few.
    - `shared_rows`, `own`: the numbers in memory: of all, or arrays with a first axis of members.
    """

    def __init__(self, layout: KernelLayout, parts: Any, shared: bool):
        self.shared, self.inline, self.own = shared, None, []
        self.shared_rows = np.empty(0)
        if shared:
            self.shared_rows = Packing.rows(parts)[:, 0]
            self.count = len(self.shared_rows)
            if layout.inline:
                self.inline = (ctypes.c_double * self.count)(*self.shared_rows)
            return
        self.own = [*jax.tree.leaves(parts)]
        self.count = sum(int(np.prod(np.shape(x)[1:])) for x in self.own)


class GPUMembers(Members):
    """Members on GPUs, each card with its share of them."""

    name = "gpu"
    at_once = float("inf")

    def __init__(
        self,
        kernel: GPUKernel,
        parts: Any,
        states: Any,
        h: float,
        shared: bool,
        devices: Sequence[Any],
    ):
        members = len(states.t)
        params = Params(kernel.layout, parts, shared)
        bounds = np.linspace(0, members, min(len(devices), members) + 1).astype(int)
        parts = zip(devices, bounds[:-1], bounds[1:], strict=False)
        self._shares = [
            _Share(kernel, device, params, states, h, int(a), int(b)) for device, a, b in parts
        ]
        self.columns, self._step, self._layout = members, 0, kernel.layout
        largest = max(share.members for share in self._shares)
        self._seconds = largest * kernel.operations / _RATE
        self._target = _FIRST
        self._readying: list[Future[Any]] = []

    @property
    def failure(self) -> np.ndarray:
        parts = [share.fetch_failure() for share in self._shares]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def room(self, records: int, rows: int) -> np.ndarray:
        """Allocate memory while the cards work: that takes longer than to fill it."""
        room = _host_room((records, rows, self.columns), self._layout.pieces)
        self._readying += _make_ready(room)
        return room

    def _be_ready(self) -> None:
        for part in self._readying:
            part.result()
        self._readying = []

    def write_start(self, saved: np.ndarray) -> None:
        self._be_ready()
        for share in self._shares:
            share.fetch_state(saved)

    def compile(self, saved: np.ndarray, interval: np.ndarray) -> None:
        for share in self._shares:
            share.begin(len(saved))

    def run(self, saved: np.ndarray, interval: np.ndarray, every: int) -> Iterator[int]:
        records, done = len(saved), 0
        for share in self._shares:
            share.begin(records)
        while done < records * every:
            record, begun = divmod(done, every)
            told = self._next_piece(records - record, every, begun)
            clock = time.perf_counter()
            for share in self._shares:
                share.launch(record, told)
            for share in self._shares:
                share.wait()
            taken = told.records * told.every
            self._seconds = max((time.perf_counter() - clock) / taken, 1e-9)
            self._target = _PIECE
            self._step += taken
            done += taken
            yield taken
        self._be_ready()
        for share in self._shares:
            share.fetch(saved, interval)

    def _next_piece(self, records: int, every: int, begun: int) -> _Numbers:
        """Return a number of steps that take a moment: several records, or a part of one."""
        steps = max(1, int(self._target / self._seconds))
        if begun or steps < every:
            return _Numbers(self._step, 1, min(steps, every - begun), bool(begun))
        return _Numbers(self._step, min(records, steps // every), every, False)
