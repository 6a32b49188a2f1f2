"""Print scalar operations as LLVM instructions, for one body or for several in lanes."""

import struct
from collections.abc import Sequence

from retrax.engine.kinds import Constant, Kind, bits, bounds, is_unsigned, is_whole
from retrax.engine.program import Operand, Value, kind_of

SCALAR: dict[Kind, str] = {
    "float": "double", "int": "i64", "bool": "i1", "i32": "i32", "i16": "i16", "i8": "i8",
    "u64": "i64", "u32": "i32", "u16": "i16", "u8": "i8",
}  # fmt: skip
_ARITHMETIC = {
    "add": "fadd contract", "sub": "fsub contract", "mul": "fmul contract",
    "div": "fdiv contract",
}  # fmt: skip
_BITWISE = {"and": "and", "or": "or", "xor": "xor", "add": "add", "sub": "sub", "mul": "mul"}
_COMPARE_FLOAT = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
_COMPARE_INT = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"}
_COMPARE_UNSIGNED = {**_COMPARE_INT, "lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge"}
# Emitter that LLVM knows as intrinsics, and those that the C library provides.
_INTRINSIC = {
    "sqrt": "sqrt", "abs": "fabs", "floor": "floor", "ceil": "ceil", "sin": "sin", "cos": "cos",
    "exp": "exp", "exp2": "exp2", "log": "log", "power": "pow", "round": "round",
    "roundeven": "roundeven",
}  # fmt: skip
_LIBRARY = {
    "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "expm1": "expm1",
    "log1p": "log1p", "cbrt": "cbrt", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
    "arctan2": "atan2", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "erf": "erf",
    "erfc": "erfc", "nextafter": "nextafter", "rem": "fmod",
}  # fmt: skip


class Emitter:
    """Prints LLVM instructions on values of `lanes` lanes, in static single assignment form.

    `lines` are those of the function, `globals` and `declarations` those that go before it.
    """

    def __init__(self, lanes: int = 1):
        self.lanes = lanes
        self.lines: list[str] = []
        self.globals: list[str] = []
        self.declarations: set[str] = set()
        self.label = "entry"
        # Other registers that stand for a value, in some part of the program.
        self.renamed: dict[Value, str] = {}
        self._count = 0

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def begin(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.label = label

    def fresh(self, stem: str = "x") -> str:
        self._count += 1
        return f"{stem}.{self._count}"

    def type(self, kind: Kind) -> str:
        scalar = SCALAR[kind]
        return scalar if self.lanes == 1 else f"<{self.lanes} x {scalar}>"

    def name(self, operand: Operand, kind: Kind | None = None) -> str:
        """Return the register or literal of an operand, as a value of the given kind."""
        if isinstance(operand, Value):
            return self.renamed.get(operand, f"%v{operand.number}")
        kind = kind or kind_of(operand)
        one = literal(operand, kind)
        if self.lanes == 1:
            return one
        return "<" + ", ".join([f"{SCALAR[kind]} {one}"] * self.lanes) + ">"

    def let(self, text: str, stem: str = "x") -> str:
        """Emit an instruction, and return a new register that holds its value."""
        register = f"%{self.fresh(stem)}"
        self.line(f"{register} = {text}")
        return register

    def splat(self, register: str, kind: Kind) -> str:
        """Put a scalar register in every lane."""
        if self.lanes == 1:
            return register
        wide, scalar = self.type(kind), SCALAR[kind]
        one = self.let(f"insertelement {wide} poison, {scalar} {register}, i64 0")
        mask = f"<{self.lanes} x i32> zeroinitializer"
        return self.let(f"shufflevector {wide} {one}, {wide} poison, {mask}")

    def copy(self, register: str, kind: Kind) -> str:
        """Copy the value of a register, to give it another name; LLVM removes the copy."""
        t, b = self.type(kind), self.type("bool")
        return f"select {b} {self.name(True)}, {t} {register}, {t} {register}"

    def any(self, register: str) -> str:
        """Return whether a truth holds in some lane, as a scalar."""
        if self.lanes == 1:
            return register
        function = f"llvm.vector.reduce.or.v{self.lanes}i1"
        self.declarations.add(f"declare i1 @{function}({self.type('bool')})")
        return self.let(f"call i1 @{function}({self.type('bool')} {register})")

    def operation(self, name: str, operands: Sequence[Operand]) -> str:
        """Return the right-hand side of an operation; what it needs first is emitted before it."""
        kind = kind_of(operands[1] if name == "select" else operands[0])
        t, x = self.type(kind), [self.name(o) for o in operands]
        if kind == "float" and name in _ARITHMETIC:
            return f"{_ARITHMETIC[name]} {t} {x[0]}, {x[1]}"
        if kind != "float" and name in _BITWISE:
            return f"{_BITWISE[name]} {t} {x[0]}, {x[1]}"
        if name in _COMPARE_FLOAT:
            if kind == "float":
                return f"fcmp {_COMPARE_FLOAT[name]} {t} {x[0]}, {x[1]}"
            table = _COMPARE_INT if is_whole(kind) and not is_unsigned(kind) else _COMPARE_UNSIGNED
            return f"icmp {table[name]} {t} {x[0]}, {x[1]}"
        if name in _INTRINSIC and kind == "float":
            return self.intrinsic(_INTRINSIC[name], x)
        if name in _LIBRARY and kind == "float":
            return self.library(_LIBRARY[name], x)
        if name in SCALAR:
            return self.convert(x[0], kind, name)
        return getattr(self, f"_{name}")(kind, t, x)

    def convert(self, register: str, kind: Kind, new: Kind) -> str:
        """Convert a number of one kind to another."""
        t, target = self.type(kind), self.type(new)
        if new == "bool":
            zero = self.name(0.0 if kind == "float" else 0, kind)
            return f"{'fcmp une' if kind == 'float' else 'icmp ne'} {t} {register}, {zero}"
        if new == "float":
            sign = "s" if is_whole(kind) and not is_unsigned(kind) else "u"
            return f"{sign}itofp {t} {register} to {target}"
        if kind == "float":
            # NaN becomes zero, and what is beyond the range its end.
            function = f"llvm.fpto{'u' if is_unsigned(new) else 's'}i.sat"
            full = f"{function}.{self.suffix(new)}.{self.suffix(kind)}"
            self.declarations.add(f"declare {target} @{full}({t})")
            return f"call {target} @{full}({t} {register})"
        if bits(new) == bits(kind):
            return self.copy(register, new)
        if bits(new) < bits(kind):
            return f"trunc {t} {register} to {target}"
        signed = is_whole(kind) and not is_unsigned(kind)
        return f"{'sext' if signed else 'zext'} {t} {register} to {target}"

    def suffix(self, kind: Kind) -> str:
        """Return what intrinsics call a type in their names."""
        scalar = "f64" if kind == "float" else SCALAR[kind]
        return scalar if self.lanes == 1 else f"v{self.lanes}{scalar}"

    def intrinsic(self, function: str, x: Sequence[str]) -> str:
        t = self.type("float")
        full = f"llvm.{function}.{self.suffix('float')}"
        self.declarations.add(f"declare {t} @{full}({', '.join([t] * len(x))})")
        return f"call {t} @{full}({', '.join(f'{t} {r}' for r in x)})"

    def library(self, function: str, x: Sequence[str]) -> str:
        """Call the C library, lane by lane."""
        self.declarations.add(f"declare double @{function}({', '.join(['double'] * len(x))})")
        if self.lanes == 1:
            return f"call double @{function}({', '.join(f'double {r}' for r in x)})"
        t, result = self.type("float"), "poison"
        for lane in range(self.lanes):
            parts = [self.let(f"extractelement {t} {r}, i64 {lane}") for r in x]
            one = self.let(f"call double @{function}({', '.join(f'double {p}' for p in parts)})")
            last = f"insertelement {t} {result}, double {one}, i64 {lane}"
            result = self.let(last) if lane < self.lanes - 1 else result
        return last

    def _neg(self, kind: Kind, t: str, x: Sequence[str]) -> str:
        return f"fneg {t} {x[0]}" if kind == "float" else f"sub {t} {self.name(0, kind)}, {x[0]}"

    def _not(self, kind: Kind, t: str, x: Sequence[str]) -> str:
        return f"xor {t} {x[0]}, {self.name(True if kind == 'bool' else -1, kind)}"

    def _abs(self, kind: Kind, t: str, x: Sequence[str]) -> str:
        if is_unsigned(kind):
            return self.copy(x[0], kind)
        negative = self.let(f"icmp slt {t} {x[0]}, {self.name(0, kind)}")
        minus = self.let(f"sub {t} {self.name(0, kind)}, {x[0]}")
        return f"select {self.type('bool')} {negative}, {t} {minus}, {t} {x[0]}"

    def _larger(self, kind: Kind, t: str, x: Sequence[str], compare: str) -> str:
        # As in JAX, a NaN wins.
        b = self.type("bool")
        if kind != "float":
            sign = "s" if is_whole(kind) and not is_unsigned(kind) else "u"
            chosen = self.let(f"icmp {sign}{compare} {t} {x[0]}, {x[1]}")
        else:
            wins = self.let(f"fcmp o{compare} {t} {x[0]}, {x[1]}")
            nan = self.let(f"fcmp uno {t} {x[0]}, {x[0]}")
            chosen = self.let(f"or {b} {wins}, {nan}")
        return f"select {b} {chosen}, {t} {x[0]}, {t} {x[1]}"

    def _max(self, kind: Kind, t: str, x: Sequence[str]) -> str:
        return self._larger(kind, t, x, "gt")

    def _min(self, kind: Kind, t: str, x: Sequence[str]) -> str:
        return self._larger(kind, t, x, "lt")

    def _sign(self, kind: Kind, t: str, x: Sequence[str]) -> str:
        b, zero = self.type("bool"), self.name(0, kind)
        if kind != "float":
            positive, negative = ("ugt", "ult") if is_unsigned(kind) else ("sgt", "slt")
            up = self.let(f"icmp {positive} {t} {x[0]}, {zero}")
            down = self.let(f"icmp {negative} {t} {x[0]}, {zero}")
        else:
            up = self.let(f"fcmp ogt {t} {x[0]}, {zero}")
            down = self.let(f"fcmp olt {t} {x[0]}, {zero}")
        low = self.let(f"select {b} {down}, {t} {self.name(-1, kind)}, {t} {x[0]}")
        return f"select {b} {up}, {t} {self.name(1, kind)}, {t} {low}"

    def _isfinite(self, kind: Kind, t: str, x: Sequence[str]) -> str:
        difference = self.let(f"fsub {t} {x[0]}, {x[0]}")
        return f"fcmp oeq {t} {difference}, {self.name(0.0)}"

    def _float_of_bits(self, kind: Kind, t: str, x: Sequence[str]) -> str:
        return f"bitcast {t} {x[0]} to {self.type('float')}"

    def _bits_of_float(self, kind: Kind, t: str, x: Sequence[str]) -> str:
        return f"bitcast {t} {x[0]} to {self.type('u64')}"

    def _stored(self, kind: Kind, t: str, x: Sequence[str]) -> str:
        """Return a number as memory would give it back: nothing is contracted or shared past it."""
        return self.intrinsic("arithmetic.fence", x)

    def _select(self, kind: Kind, t: str, x: Sequence[str]) -> str:
        return f"select {self.type('bool')} {x[0]}, {t} {x[2]}, {t} {x[1]}"

    def _divide(
        self, kind: Kind, t: str, x: Sequence[str], instruction: str, by_zero: str, overflow: str
    ) -> str:
        """Divide whole numbers, or take a remainder, with XLA's answers where LLVM has none."""
        b = self.type("bool")
        zero = self.let(f"icmp eq {t} {x[1]}, {self.name(0, kind)}")
        least, minus = self.name(bounds(kind)[0], kind), self.name(-1, kind)
        signed = not is_unsigned(kind)
        bad = zero
        if signed:
            lowest = self.let(f"icmp eq {t} {x[0]}, {least}")
            down = self.let(f"icmp eq {t} {x[1]}, {minus}")
            over = self.let(f"and {b} {lowest}, {down}")
            bad = self.let(f"or {b} {zero}, {over}")
        safe = self.let(f"select {b} {bad}, {t} {self.name(1, kind)}, {t} {x[1]}")
        plain = self.let(f"{'s' if signed else 'u'}{instruction} {t} {x[0]}, {safe}")
        if signed:
            plain = self.let(f"select {b} {over}, {t} {overflow}, {t} {plain}")
        return f"select {b} {zero}, {t} {by_zero}, {t} {plain}"

    def _div(self, kind: Kind, t: str, x: Sequence[str]) -> str:
        return self._divide(kind, t, x, "div", self.name(-1, kind), x[0])

    def _rem(self, kind: Kind, t: str, x: Sequence[str]) -> str:
        return self._divide(kind, t, x, "rem", x[0], self.name(0, kind))

    def _shift(self, kind: Kind, t: str, x: Sequence[str], instruction: str, beyond: str) -> str:
        """Shift bits: further than there are, taken without sign, nothing is left but `beyond`."""
        b, most = self.type("bool"), self.name(bits(kind), kind)
        within = self.let(f"icmp ult {t} {x[1]}, {most}")
        places = self.let(f"select {b} {within}, {t} {x[1]}, {t} {self.name(0, kind)}")
        moved = self.let(f"{instruction} {t} {x[0]}, {places}")
        return f"select {b} {within}, {t} {moved}, {t} {beyond}"

    def _shl(self, kind: Kind, t: str, x: Sequence[str]) -> str:
        return self._shift(kind, t, x, "shl", self.name(0, kind))

    def _shr(self, kind: Kind, t: str, x: Sequence[str]) -> str:
        return self._shift(kind, t, x, "lshr", self.name(0, kind))

    def _sar(self, kind: Kind, t: str, x: Sequence[str]) -> str:
        # As in XLA, the first bit counts as a sign for numbers without one too.
        filled = self.let(f"ashr {t} {x[0]}, {self.name(bits(kind) - 1, kind)}")
        return self._shift(kind, t, x, "ashr", filled)

    def _count_bits(
        self, kind: Kind, t: str, x: Sequence[str], function: str, extra: str = ""
    ) -> str:
        full = f"llvm.{function}.{self.suffix(kind)}"
        self.declarations.add(f"declare {t} @{full}({t}{', i1' if extra else ''})")
        return f"call {t} @{full}({t} {x[0]}{extra})"

    def _popcount(self, kind: Kind, t: str, x: Sequence[str]) -> str:
        return self._count_bits(kind, t, x, "ctpop")

    def _clz(self, kind: Kind, t: str, x: Sequence[str]) -> str:
        return self._count_bits(kind, t, x, "ctlz", ", i1 false")


def literal(number: Constant, kind: Kind) -> str:
    """Return a constant in LLVM's notation; floats bit by bit, so that no digit is lost."""
    if kind == "float":
        return f"0x{struct.pack('>d', float(number)).hex().upper()}"
    if not is_whole(kind):
        return "true" if number else "false"
    # LLVM's whole numbers have no sign of their own; it reads them with one.
    half = 1 << (bits(kind) - 1)
    return str((int(number) + half) % (2 * half) - half)
