"""The binary format of WebAssembly: numbers, instructions, sections."""

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

I32, I64, F64 = 0x7F, 0x7E, 0x7C
_EMPTY = 0x40
PAGE = 65536

# Instructions without immediate arguments.
OPCODES = {
    "else": 0x05, "end": 0x0B, "return": 0x0F, "drop": 0x1A, "select": 0x1B,
    "i32.eqz": 0x45, "i32.eq": 0x46, "i32.ne": 0x47, "i32.lt_s": 0x48, "i32.lt_u": 0x49,
    "i32.gt_s": 0x4A, "i32.gt_u": 0x4B, "i32.le_s": 0x4C, "i32.le_u": 0x4D, "i32.ge_s": 0x4E,
    "i32.ge_u": 0x4F,
    "i64.eqz": 0x50, "i64.eq": 0x51, "i64.ne": 0x52, "i64.lt_s": 0x53, "i64.lt_u": 0x54,
    "i64.gt_s": 0x55, "i64.gt_u": 0x56, "i64.le_s": 0x57, "i64.le_u": 0x58, "i64.ge_s": 0x59,
    "i64.ge_u": 0x5A,
    "f64.eq": 0x61, "f64.ne": 0x62, "f64.lt": 0x63, "f64.gt": 0x64, "f64.le": 0x65,
    "f64.ge": 0x66,
    "i32.clz": 0x67, "i32.popcnt": 0x69, "i32.add": 0x6A, "i32.sub": 0x6B, "i32.mul": 0x6C,
    "i32.div_s": 0x6D, "i32.div_u": 0x6E, "i32.rem_s": 0x6F, "i32.rem_u": 0x70,
    "i32.shl": 0x74, "i32.shr_s": 0x75, "i32.shr_u": 0x76,
    "i32.and": 0x71, "i32.or": 0x72, "i32.xor": 0x73,
    "i64.clz": 0x79, "i64.popcnt": 0x7B, "i64.add": 0x7C, "i64.sub": 0x7D, "i64.mul": 0x7E,
    "i64.div_s": 0x7F, "i64.div_u": 0x80, "i64.rem_s": 0x81, "i64.rem_u": 0x82,
    "i64.shl": 0x86, "i64.shr_s": 0x87, "i64.shr_u": 0x88,
    "i64.and": 0x83, "i64.or": 0x84, "i64.xor": 0x85,
    "f64.abs": 0x99, "f64.neg": 0x9A, "f64.ceil": 0x9B, "f64.floor": 0x9C, "f64.nearest": 0x9E,
    "f64.sqrt": 0x9F, "f64.add": 0xA0, "f64.sub": 0xA1, "f64.mul": 0xA2, "f64.div": 0xA3,
    "f64.min": 0xA4, "f64.max": 0xA5, "f64.copysign": 0xA6,
    "i32.wrap_i64": 0xA7, "i64.extend_i32_s": 0xAC, "i64.extend_i32_u": 0xAD,
    "f64.convert_i32_s": 0xB7, "f64.convert_i32_u": 0xB8, "f64.convert_i64_s": 0xB9,
    "f64.convert_i64_u": 0xBA, "i64.reinterpret_f64": 0xBD, "f64.reinterpret_i64": 0xBF,
}  # fmt: skip
# Floats to whole numbers, cut off at the ends of the range.
_SATURATING = {
    "i32.trunc_sat_f64_s": 2, "i32.trunc_sat_f64_u": 3, "i64.trunc_sat_f64_s": 6,
    "i64.trunc_sat_f64_u": 7,
}  # fmt: skip
_LOADS = {I32: 0x28, I64: 0x29, F64: 0x2B}


def encode_unsigned(n: int) -> bytes:
    """Return LEB128 of a number without sign."""
    out = bytearray()
    while True:
        n, low = n >> 7, n & 0x7F
        out.append(low | (0x80 if n else 0))
        if not n:
            return bytes(out)


def encode_signed(n: int) -> bytes:
    """Return LEB128 of a number with a sign."""
    out = bytearray()
    while True:
        n, low = n >> 7, n & 0x7F
        done = (n == 0 and not low & 0x40) or (n == -1 and bool(low & 0x40))
        out.append(low | (0 if done else 0x80))
        if done:
            return bytes(out)


class Code:
    """The instructions of a function with parameters of the given types."""

    def __init__(self, parameters: Sequence[int]):
        self.bytes = bytearray()
        self._parameters, self._locals = len(parameters), list[int]()

    def local(self, kind: int) -> int:
        """Make a new local variable; return its index."""
        self._locals.append(kind)
        return self._parameters + len(self._locals) - 1

    def op(self, name: str) -> None:
        if name in _SATURATING:
            self.bytes += bytes([0xFC, _SATURATING[name]])
        else:
            self.bytes.append(OPCODES[name])

    def get(self, local: int) -> None:
        self.bytes += b"\x20" + encode_unsigned(local)

    def set(self, local: int) -> None:
        self.bytes += b"\x21" + encode_unsigned(local)

    def tee(self, local: int) -> None:
        self.bytes += b"\x22" + encode_unsigned(local)

    def f64(self, x: float) -> None:
        self.bytes += b"\x44" + struct.pack("<d", x)

    def i32(self, n: int) -> None:
        self.bytes += b"\x41" + encode_signed(n)

    def i64(self, n: int) -> None:
        self.bytes += b"\x42" + encode_signed(n)

    def load(self, kind: int, offset: int) -> None:
        align = 2 if kind == I32 else 3
        self.bytes += bytes([_LOADS[kind]]) + encode_unsigned(align) + encode_unsigned(offset)

    def store(self, offset: int) -> None:
        """Store a float."""
        self.bytes += b"\x39\x03" + encode_unsigned(offset)

    def copy(self, target: int, source: int, count: int) -> None:
        """Copy bytes of memory."""
        for number in (target, source, count):
            self.i32(number)
        self.bytes += b"\xfc\x0a\x00\x00"

    def begin(self, what: str) -> None:
        """Open a block, a loop or an if."""
        self.bytes += bytes([{"block": 0x02, "loop": 0x03, "if": 0x04}[what], _EMPTY])

    def branch(self, depth: int, conditional: bool = False) -> None:
        self.bytes += bytes([0x0D if conditional else 0x0C]) + encode_unsigned(depth)

    def call(self, function: int) -> None:
        self.bytes += b"\x10" + encode_unsigned(function)

    def function(self) -> bytes:
        """Return the body of the function: locals, instructions, the end."""
        groups: list[list[int]] = []
        for kind in self._locals:
            if groups and groups[-1][1] == kind:
                groups[-1][0] += 1
            else:
                groups.append([1, kind])
        declared = b"".join(encode_unsigned(n) + bytes([kind]) for n, kind in groups)
        body = encode_unsigned(len(groups)) + declared + bytes(self.bytes) + b"\x0b"
        return encode_unsigned(len(body)) + body


def _vector(items: Iterable[bytes]) -> bytes:
    found = list(items)
    return encode_unsigned(len(found)) + b"".join(found)


def _section(number: int, content: bytes) -> bytes:
    return bytes([number]) + encode_unsigned(len(content)) + content


def _name(text: str) -> bytes:
    return encode_unsigned(len(text.encode())) + text.encode()


class Function(NamedTuple):
    """A function that a module exports; it returns a 32-bit whole number, or nothing."""

    name: str
    parameters: tuple[int, ...]
    returns: bool
    code: Code


def module(
    imports: Sequence[tuple[str, int]],
    functions: Sequence[Function],
    size: int,
    data: Sequence[tuple[int, bytes]],
) -> bytes:
    """Return a module with its functions and its memory.

    **Arguments:** `imports`: functions of floats from outside, by their names in the module `math`,
    with how many floats each takes; `size`: of the memory, in bytes; `data`: what it holds at
    first, by its place.
    """
    arities = sorted({count for _, count in imports})
    types = [bytes([0x60]) + _vector([bytes([F64])] * n) + b"\x01\x7c" for n in arities]
    types += [
        bytes([0x60])
        + _vector(bytes([x]) for x in one.parameters)
        + (bytes([1, I32]) if one.returns else b"\x00")
        for one in functions
    ]
    outside = [
        _name("math") + _name(name) + b"\x00" + encode_unsigned(arities.index(count))
        for name, count in imports
    ]
    segments = [
        b"\x00\x41" + encode_signed(place) + b"\x0b" + encode_unsigned(len(content)) + content
        for place, content in data
    ]
    names = [
        _name(one.name) + b"\x00" + encode_unsigned(len(imports) + k)
        for k, one in enumerate(functions)
    ]
    parts = [
        _section(1, _vector(types)),
        _section(2, _vector(outside)),
        _section(3, _vector(encode_unsigned(len(arities) + k) for k in range(len(functions)))),
        _section(5, _vector([b"\x00" + encode_unsigned(-(-size // PAGE))])),
        _section(7, _vector([*names, _name("memory") + b"\x02\x00"])),
        _section(10, _vector(one.code.function() for one in functions)),
        _section(11, _vector(segments)),
    ]
    return b"\x00asm\x01\x00\x00\x00" + b"".join(parts)
