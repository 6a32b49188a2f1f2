"""Scalar operations as instructions of WebAssembly, on its stack."""

from collections.abc import Callable, Sequence

from retrax.engine.kinds import Constant, Kind, bits, is_unsigned
from retrax.engine.program import Operand, kind_of
from retrax.errors import BadInput
from retrax.exporting.wasm_encoding import F64, I32, I64, Code

MACHINE: dict[Kind, int] = {
    "float": F64, "int": I64, "u64": I64, "i32": I32, "u32": I32, "bool": I32,
}  # fmt: skip
_LETTER = {F64: "f64", I64: "i64", I32: "i32"}
_FLOAT = {
    "add": "add", "sub": "sub", "mul": "mul", "div": "div", "neg": "neg", "abs": "abs",
    "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "roundeven": "nearest", "max": "max",
    "min": "min", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "eq": "eq", "ne": "ne",
}  # fmt: skip
_WHOLE = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_WHOLE |= {"eq": "eq", "ne": "ne", "popcount": "popcnt", "clz": "clz"}
_REINTERPRETED = {"float_of_bits": "f64.reinterpret_i64", "bits_of_float": "i64.reinterpret_f64"}
_SHIFTS = {"shl": "shl", "shr": "shr_u", "sar": "shr_s"}
_ORDERED = ("lt", "le", "gt", "ge")
# Functions that JavaScript has, with what it calls them and how many numbers they take.
OUTSIDE: dict[str, tuple[str, int]] = {
    "sin": ("sin", 1), "cos": ("cos", 1), "tan": ("tan", 1), "exp": ("exp", 1),
    "exp2": ("exp2", 1), "log": ("log", 1), "power": ("pow", 2), "sinh": ("sinh", 1),
    "cosh": ("cosh", 1), "tanh": ("tanh", 1), "expm1": ("expm1", 1), "log1p": ("log1p", 1),
    "cbrt": ("cbrt", 1), "arcsin": ("asin", 1), "arccos": ("acos", 1), "arctan": ("atan", 1),
    "arctan2": ("atan2", 2), "arcsinh": ("asinh", 1), "arccosh": ("acosh", 1),
    "arctanh": ("atanh", 1), "rem": ("fmod", 2), "round": ("round", 1),
}  # fmt: skip


class WasmOperations:
    """Writes operations; `imports` are the functions that a module calls, in order."""

    def __init__(
        self,
        code: Code,
        push: Callable[[Operand, Kind], None],
        imports: list[tuple[str, int]],
    ):
        self.code, self._push, self.imports = code, push, imports

    def machine(self, kind: Kind) -> int:
        """Return the type of a kind in WebAssembly."""
        if kind not in MACHINE:
            raise BadInput(
                f"this step computes with whole numbers of type {kind}, which are not written as "
                "WebAssembly; use 32 or 64 bits, or export C."
            )
        return MACHINE[kind]

    def constant(self, number: Constant, kind: Kind) -> None:
        machine = self.machine(kind)
        if machine == F64:
            self.code.f64(float(number))
        elif machine == I64:
            self.code.i64((int(number) + 2**63) % 2**64 - 2**63)
        else:
            self.code.i32((int(number) + 2**31) % 2**32 - 2**31)

    def operation(self, name: str, operands: Sequence[Operand]) -> None:
        """Leave the result of an operation on the stack."""
        code = self.code
        kind = kind_of(operands[1] if name == "select" else operands[0])
        machine = self.machine(kind)
        if name == "select":
            test, otherwise, chosen = operands
            self._push(chosen, kind)
            self._push(otherwise, kind)
            self._push(test, "bool")
            code.op("select")
            return
        if name == "sign":
            self._sign(operands[0], kind)
            return
        if machine != F64 and name in ("max", "min", "abs", "neg"):
            self._compare(name, operands, kind)
            return
        if machine != F64 and name in ("div", "rem"):
            self._divide(name, operands, kind)
            return
        if machine != F64 and name in _SHIFTS:
            self._shift(name, operands, kind)
            return
        for operand in operands:
            self._push(operand, kind)
        if name in _REINTERPRETED:
            code.op(_REINTERPRETED[name])
        elif machine == F64:
            self.on_floats(name)
        else:
            self._on_whole(name, kind)

    def on_floats(self, name: str) -> None:
        """Do an operation on the floats on the stack."""
        code = self.code
        if name in _FLOAT:
            code.op(f"f64.{_FLOAT[name]}")
        elif name == "isfinite":
            code.op("f64.abs")
            code.f64(float("inf"))
            code.op("f64.lt")
        elif name == "bool":
            code.f64(0.0)
            code.op("f64.ne")
        elif name in MACHINE:
            code.op(f"{_LETTER[MACHINE[name]]}.trunc_sat_f64_{'u' if is_unsigned(name) else 's'}")
        elif name in OUTSIDE:
            wanted = OUTSIDE[name]
            if wanted not in self.imports:
                self.imports.append(wanted)
            code.call(self.imports.index(wanted))
        elif name != "stored":
            raise BadInput(f"this step calls {name}, which JavaScript has not; export C instead.")

    def _on_whole(self, name: str, kind: Kind) -> None:
        code, letter = self.code, _LETTER[MACHINE[kind]]
        sign = "u" if is_unsigned(kind) or kind == "bool" else "s"
        if kind == "bool" and name == "not":
            code.op("i32.eqz")
        elif name == "not":
            self.constant(-1, kind)
            code.op(f"{letter}.xor")
        elif name in _WHOLE:
            code.op(f"{letter}.{_WHOLE[name]}")
        elif name in _ORDERED:
            code.op(f"{letter}.{name}_{sign}")
        elif name == "float":
            code.op(f"f64.convert_{letter}_{sign}")
        elif name == "bool":
            self.constant(0, kind)
            code.op(f"{letter}.ne")
        elif name in MACHINE:
            there = _LETTER[MACHINE[name]]
            if letter == "i64" and there == "i32":
                code.op("i32.wrap_i64")
            elif letter == "i32" and there == "i64":
                code.op(f"i64.extend_i32_{sign}")
        else:
            raise BadInput(
                f"this step needs the operation {name} on whole numbers, which is not written as "
                "WebAssembly; export C instead."
            )

    def _compare(self, name: str, operands: Sequence[Operand], kind: Kind) -> None:
        """Write what a comparison decides: the larger, the smaller, the one without sign."""
        code, letter = self.code, _LETTER[MACHINE[kind]]
        sign = "u" if is_unsigned(kind) or kind == "bool" else "s"
        if name == "neg":
            self.constant(0, kind)
            self._push(operands[0], kind)
            code.op(f"{letter}.sub")
            return
        a, b = code.local(MACHINE[kind]), code.local(MACHINE[kind])
        self._push(operands[0], kind)
        code.set(a)
        if name == "abs":
            self.constant(0, kind)
            code.get(a)
            code.op(f"{letter}.sub")
            code.set(b)
            order = (b, a)
        else:
            self._push(operands[1], kind)
            code.set(b)
            order = (a, b)
        for local in order:
            code.get(local)
        if name == "abs":
            code.get(a)
            self.constant(0, kind)
            code.op(f"{letter}.lt_{sign}")
        else:
            code.get(a)
            code.get(b)
            code.op(f"{letter}.{'gt' if name == 'max' else 'lt'}_{sign}")
        code.op("select")

    def _two(self, operands: Sequence[Operand], kind: Kind) -> tuple[int, int]:
        """Put two operands in local variables."""
        a, b = (self.code.local(MACHINE[kind]) for _ in operands)
        for operand, local in zip(operands, (a, b), strict=True):
            self._push(operand, kind)
            self.code.set(local)
        return a, b

    def _divide(self, name: str, operands: Sequence[Operand], kind: Kind) -> None:
        """Divide with XLA's answers where WebAssembly traps: by zero, and the least by -1."""
        code, letter = self.code, _LETTER[MACHINE[kind]]
        sign = "u" if is_unsigned(kind) else "s"
        a, b = self._two(operands, kind)
        safe = code.local(MACHINE[kind])
        self.constant(1, kind)
        code.get(b)
        code.get(b)
        code.op(f"{letter}.eqz")
        if sign == "s":
            code.get(b)
            self.constant(-1, kind)
            code.op(f"{letter}.eq")
            code.op("i32.or")
        code.op("select")
        code.set(safe)
        # By zero: all bits set, or all of it left.
        self.constant(-1, kind) if name == "div" else code.get(a)
        code.get(a)
        code.get(safe)
        code.op(f"{letter}.{name}_{sign}")
        if sign == "s":  # by -1: the negative, or nothing left
            negative = code.local(MACHINE[kind])
            code.set(safe)
            self.constant(0, kind)
            if name == "div":
                code.get(a)
                code.op(f"{letter}.sub")
            code.set(negative)
            code.get(negative)
            code.get(safe)
            code.get(b)
            self.constant(-1, kind)
            code.op(f"{letter}.eq")
            code.op("select")
        code.get(b)
        code.op(f"{letter}.eqz")
        code.op("select")

    def _shift(self, name: str, operands: Sequence[Operand], kind: Kind) -> None:
        """Shift by places without sign; beyond the width nothing, or the sign, is left."""
        code, letter, width = self.code, _LETTER[MACHINE[kind]], bits(kind)
        a, b = self._two(operands, kind)
        code.get(a)
        code.get(b)
        code.op(f"{letter}.{_SHIFTS[name]}")
        if name == "sar":
            code.get(a)
            self.constant(width - 1, kind)
            code.op(f"{letter}.shr_s")
        else:
            self.constant(0, kind)
        code.get(b)
        self.constant(width, kind)
        code.op(f"{letter}.lt_u")
        code.op("select")

    def _sign(self, operand: Operand, kind: Kind) -> None:
        code, letter = self.code, _LETTER[MACHINE[kind]]
        x = code.local(MACHINE[kind])
        suffix = "" if kind == "float" else "_u" if is_unsigned(kind) else "_s"
        self._push(operand, kind)
        code.set(x)
        self.constant(1, kind)
        self.constant(-1, kind)
        code.get(x)
        for compare in ("lt", "gt"):  # -1 or x, then 1 or that
            code.get(x)
            self.constant(0, kind)
            code.op(f"{letter}.{compare}{suffix}")
            code.op("select")
