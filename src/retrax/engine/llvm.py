"""Scalar operations as LLVM instructions, for one body or for several in the lanes of a vector."""

import struct
from collections.abc import Sequence
from typing import Any

from retrax.engine.program import Kind, Operand, Value, kind_of, widest

SCALAR: dict[Kind, str] = {"float": "double", "int": "i64", "bool": "i1"}
_ARITHMETIC = {
    ("add", "float"): "fadd contract", ("sub", "float"): "fsub contract",
    ("mul", "float"): "fmul contract", ("div", "float"): "fdiv contract",
    ("add", "int"): "add", ("sub", "int"): "sub", ("mul", "int"): "mul",
    ("and", "bool"): "and", ("or", "bool"): "or", ("and", "int"): "and", ("or", "int"): "or",
}  # fmt: skip
_COMPARE_FLOAT = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
_COMPARE_INT = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"}
# Operations that LLVM knows as intrinsics, and those that the C library provides.
_INTRINSIC = {
    "sqrt": "sqrt", "abs": "fabs", "floor": "floor", "ceil": "ceil", "sin": "sin", "cos": "cos",
    "exp": "exp", "exp2": "exp2", "log": "log", "power": "pow",
}  # fmt: skip
_LIBRARY = {
    "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "expm1": "expm1",
    "log1p": "log1p", "cbrt": "cbrt", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
    "arctan2": "atan2",
}  # fmt: skip


class Operations:
    """LLVM instructions on values of `lanes` lanes, in static single assignment form."""

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
        """The register or literal that stands for an operand, as a value of the given kind."""
        if isinstance(operand, Value):
            return self.renamed.get(operand, f"%v{operand.number}")
        kind = kind or kind_of(operand)
        one = literal(operand, kind)
        if self.lanes == 1:
            return one
        return "<" + ", ".join([f"{SCALAR[kind]} {one}"] * self.lanes) + ">"

    def let(self, text: str, stem: str = "x") -> str:
        """A new register that holds the value of an instruction."""
        register = f"%{self.fresh(stem)}"
        self.line(f"{register} = {text}")
        return register

    def splat(self, register: str, kind: Kind) -> str:
        """A scalar register in every lane."""
        if self.lanes == 1:
            return register
        wide, scalar = self.type(kind), SCALAR[kind]
        one = self.let(f"insertelement {wide} poison, {scalar} {register}, i64 0")
        mask = f"<{self.lanes} x i32> zeroinitializer"
        return self.let(f"shufflevector {wide} {one}, {wide} poison, {mask}")

    def copy(self, register: str, kind: Kind) -> str:
        """The value of a register, to be given another name; LLVM removes it."""
        t, b = self.type(kind), self.type("bool")
        return f"select {b} {self.name(True)}, {t} {register}, {t} {register}"

    def any(self, register: str) -> str:
        """Whether a truth holds in some lane, as a scalar."""
        if self.lanes == 1:
            return register
        function = f"llvm.vector.reduce.or.v{self.lanes}i1"
        self.declarations.add(f"declare i1 @{function}({self.type('bool')})")
        return self.let(f"call i1 @{function}({self.type('bool')} {register})")

    def operation(self, name: str, operands: Sequence[Operand]) -> str:
        """The right-hand side of an operation; what it needs first is emitted before it."""
        kind = widest(operands[1:] if name == "select" else operands)
        t, x = self.type(kind), [self.name(o, kind) for o in operands]
        if (name, kind) in _ARITHMETIC:
            return f"{_ARITHMETIC[name, kind]} {t} {x[0]}, {x[1]}"
        if name in _COMPARE_FLOAT:
            if kind == "float":
                return f"fcmp {_COMPARE_FLOAT[name]} {t} {x[0]}, {x[1]}"
            return f"icmp {_COMPARE_INT[name]} {t} {x[0]}, {x[1]}"
        if name in _INTRINSIC and kind == "float":
            return self.intrinsic(_INTRINSIC[name], x)
        if name in _LIBRARY:
            return self.library(_LIBRARY[name], x)
        return getattr(self, f"_{name}")(kind, t, x, operands)

    def intrinsic(self, function: str, x: Sequence[str]) -> str:
        t = self.type("float")
        suffix = "f64" if self.lanes == 1 else f"v{self.lanes}f64"
        full = f"llvm.{function}.{suffix}"
        self.declarations.add(f"declare {t} @{full}({', '.join([t] * len(x))})")
        return f"call {t} @{full}({', '.join(f'{t} {r}' for r in x)})"

    def library(self, function: str, x: Sequence[str]) -> str:
        """A call of the C library, lane by lane."""
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

    def _neg(self, kind, t, x, _):
        return f"fneg {t} {x[0]}" if kind == "float" else f"sub {t} {self.name(0, kind)}, {x[0]}"

    def _not(self, kind, t, x, _):
        return f"xor {t} {x[0]}, {self.name(True)}"

    def _abs(self, kind, t, x, _):
        negative = self.let(f"icmp slt {t} {x[0]}, {self.name(0)}")
        minus = self.let(f"sub {t} {self.name(0)}, {x[0]}")
        return f"select {self.type('bool')} {negative}, {t} {minus}, {t} {x[0]}"

    def _larger(self, kind, t, x, compare):
        # As in JAX, a NaN wins.
        b = self.type("bool")
        if kind != "float":
            chosen = self.let(f"icmp s{compare} {t} {x[0]}, {x[1]}")
        else:
            wins = self.let(f"fcmp o{compare} {t} {x[0]}, {x[1]}")
            nan = self.let(f"fcmp uno {t} {x[0]}, {x[0]}")
            chosen = self.let(f"or {b} {wins}, {nan}")
        return f"select {b} {chosen}, {t} {x[0]}, {t} {x[1]}"

    def _max(self, kind, t, x, _):
        return self._larger(kind, t, x, "gt")

    def _min(self, kind, t, x, _):
        return self._larger(kind, t, x, "lt")

    def _sign(self, kind, t, x, _):
        b, one, zero = self.type("bool"), self.name(1.0), self.name(0.0)
        up = self.let(f"fcmp ogt {t} {x[0]}, {zero}")
        down = self.let(f"fcmp olt {t} {x[0]}, {zero}")
        low = self.let(f"select {b} {down}, {t} {self.name(-1.0)}, {t} {x[0]}")
        return f"select {b} {up}, {t} {one}, {t} {low}"

    def _isfinite(self, kind, t, x, _):
        difference = self.let(f"fsub {t} {x[0]}, {x[0]}")
        return f"fcmp oeq {t} {difference}, {self.name(0.0)}"

    def _select(self, kind, t, x, operands):
        p = self.name(operands[0], "bool")
        return f"select {self.type('bool')} {p}, {t} {x[2]}, {t} {x[1]}"

    def _float(self, kind, t, x, _):
        return f"{'uitofp' if kind == 'bool' else 'sitofp'} {t} {x[0]} to {self.type('float')}"

    def _int(self, kind, t, x, _):
        return f"{'zext' if kind == 'bool' else 'fptosi'} {t} {x[0]} to {self.type('int')}"

    def _bool(self, kind, t, x, _):
        zero = self.name(0.0 if kind == "float" else 0)
        return f"{'fcmp une' if kind == 'float' else 'icmp ne'} {t} {x[0]}, {zero}"


def literal(number: Any, kind: Kind) -> str:
    """A constant in LLVM's notation; floats bit by bit, so that no digit is lost."""
    if kind == "float":
        return f"0x{struct.pack('>d', float(number)).hex().upper()}"
    return str(int(number)) if kind == "int" else ("true" if number else "false")
