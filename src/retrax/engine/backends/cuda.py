"""The part of NVIDIA's driver that a kernel needs, called through ctypes.

Memory is JAX's: a kernel is given the addresses of its arrays, in the context that JAX works in.
"""

import ctypes
import sys
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import numpy as np

from retrax.errors import BadInput, RetraxError

_SUCCESS = 0
# Numbers of the driver's own lists: inputs and options of the linker, attributes.
_PTX, _MAX_REGISTERS, _ERROR_LOG, _ERROR_LOG_SIZE = 1, 0, 5, 6
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
_DYNAMIC_SHARED_BYTES = 8
_REGISTERS, _LOCAL_BYTES = 4, 3
_LOG_BYTES = 8192


class GPUFailed(RetraxError):
    """The driver of the GPU refused a call."""


@cache
def _driver() -> ctypes.CDLL:
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        library = ctypes.CDLL(name)
    except OSError as cause:
        raise BadInput(
            f"backend = 'gpu' needs NVIDIA's driver, but {name} cannot be loaded: {cause}."
        ) from cause
    _require(library, "cuInit", library.cuInit(0))
    return library


def _require(library: ctypes.CDLL, name: str, result: int) -> None:
    if result != _SUCCESS:
        text = ctypes.c_char_p()
        library.cuGetErrorString(result, ctypes.byref(text))
        words = (text.value or b"unknown").decode()
        raise GPUFailed(f"the driver of the GPU refused {name}: {words} (error {result}).")


class Card:
    """A GPU, with the context of it that JAX uses."""

    def __init__(self, ordinal: int):
        self._library = _driver()
        self._device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(self._device), ctypes.c_int(ordinal))
        major, minor = map(self._attribute, (_CAPABILITY_MAJOR, _CAPABILITY_MINOR))
        # The compute capability, ten times: 90 for a Hopper.
        self.capability = 10 * major + minor
        self._context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._device)

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of the driver, which must succeed."""
        _require(self._library, name, getattr(self._library, name)(*arguments))

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, self._device)
        return value.value

    @contextmanager
    def current(self) -> Iterator[None]:
        """Work on this card inside."""
        before = ctypes.c_void_p()
        self.call("cuCtxPushCurrent_v2", self._context)
        try:
            yield
        finally:
            self.call("cuCtxPopCurrent_v2", ctypes.byref(before))

    def assemble(self, ptx: str, registers: int | None = None) -> bytes:
        """Assemble PTX to machine code, with at most `registers` registers for a thread."""
        log = ctypes.create_string_buffer(_LOG_BYTES)
        options = {_ERROR_LOG: ctypes.addressof(log), _ERROR_LOG_SIZE: _LOG_BYTES}
        if registers is not None:
            options[_MAX_REGISTERS] = registers
        keys = (ctypes.c_int * len(options))(*options)
        values = (ctypes.c_void_p * len(options))(*options.values())
        state, code, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        text = ptx.encode() + b"\0"
        with self.current():
            self.call("cuLinkCreate_v2", len(options), keys, values, ctypes.byref(state))
            try:
                given = (_PTX, text, ctypes.c_size_t(len(text)), b"kernel", 0, None, None)
                self.call("cuLinkAddData_v2", state, *given)
                self.call("cuLinkComplete", state, ctypes.byref(code), ctypes.byref(size))
                return ctypes.string_at(code.value or 0, size.value)
            except GPUFailed as failure:
                said = log.value.decode(errors="replace").strip()
                raise GPUFailed(f"{failure} {said}".strip()) from failure
            finally:
                self.call("cuLinkDestroy", state)

    def wait(self) -> None:
        """Wait until all work is done."""
        with self.current():
            self.call("cuCtxSynchronize")

    def fill_with_nan(self, address: int, count: int) -> None:
        """Make numbers NaN: all their bits are set."""
        with self.current():
            size = ctypes.c_size_t(8 * count)
            self.call("cuMemsetD8_v2", ctypes.c_uint64(address), ctypes.c_ubyte(0xFF), size)

    def to_host(self, address: int, array: np.ndarray) -> None:
        """Copy as many bytes as a contiguous array has."""
        with self.current():
            where = ctypes.c_void_p(array.ctypes.data)
            source = ctypes.c_uint64(address)
            self.call("cuMemcpyDtoH_v2", where, source, ctypes.c_size_t(array.nbytes))


class Function:
    """A kernel on a card, ready to be launched; it stays loaded as long as this object lives."""

    def __init__(self, card: Card, code: bytes, name: str, shared_bytes: int = 0):
        self._card, self._shared_bytes = card, shared_bytes
        self._module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        with card.current():
            card.call("cuModuleLoadData", ctypes.byref(self._module), code)
            found = ctypes.byref(self._function)
            card.call("cuModuleGetFunction", found, self._module, name.encode())
            if shared_bytes:
                most = (_DYNAMIC_SHARED_BYTES, shared_bytes)
                card.call("cuFuncSetAttribute", self._function, *most)
        weakref.finalize(self, _unload, card, self._module).atexit = False

    @property
    def registers(self) -> int:
        """How many registers a thread has."""
        return self._attribute(_REGISTERS)

    @property
    def local_bytes(self) -> int:
        """How much memory a thread has for what does not fit into its registers."""
        return self._attribute(_LOCAL_BYTES)

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self._card.call("cuFuncGetAttribute", ctypes.byref(value), number, self._function)
        return value.value

    def launch(self, blocks: int, threads: int, arguments: Sequence[object]) -> None:
        """Start `blocks` times `threads` threads; arguments are ctypes values."""
        places = [ctypes.cast(ctypes.pointer(x), ctypes.c_void_p) for x in arguments]
        packed = (ctypes.c_void_p * len(places))(*places)
        grid, block = (blocks, 1, 1), (threads, 1, 1)
        with self._card.current():
            given = (*grid, *block, self._shared_bytes, None, packed, None)
            self._card.call("cuLaunchKernel", self._function, *given)


def _unload(card: Card, module: ctypes.c_void_p) -> None:
    with card.current():
        card.call("cuModuleUnload", module)


@cache
def card(ordinal: int) -> Card:
    """Return the GPU of this number."""
    return Card(ordinal)
