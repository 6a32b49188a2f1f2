"""Programs are built instruction by instruction, and simplified on the way.

Constants are folded, additions of zero and multiplications by one dropped, equal expressions
shared; signs move outwards and powers of two are gathered.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from retrax.engine.program import Block, Instruction, Kind, Operand, Operation, Row, Value, kind_of


class Builder:
    """Emits instructions into nested blocks, simplifying as it goes."""

    def __init__(self):
        self._count = 0
        self._blocks = [Block()]
        self._known: list[dict] = [{}]
        self._made_by: dict[Value, Operation] = {}
        self._invariant: set[Value] = set()

    def value(self, kind: Kind, *, invariant: bool = False) -> Value:
        """A new value; `invariant` where it is the same in all steps of a run."""
        self._count += 1
        made = Value(self._count, kind)
        if invariant:
            self._invariant.add(made)
        return made

    @property
    def block(self) -> Block:
        return self._blocks[-1]

    def open(self) -> None:
        """Start an inner block; expressions of the outer ones may be used in it."""
        self._blocks.append(Block())
        self._known.append({})

    def close(self) -> Block:
        self._known.pop()
        return self._blocks.pop()

    def suspend(self) -> tuple[Block, dict]:
        """Leave an inner block for a while; `resume` goes on with it."""
        return self._blocks.pop(), self._known.pop()

    def resume(self, frame: tuple[Block, dict]) -> None:
        block, known = frame
        self._blocks.append(block)
        self._known.append(known)

    def encloses(self, block: Block) -> bool:
        """Whether what was written to a block has been done here too."""
        return any(block is b for b in self._blocks)

    def row(self, length: int, kind: Kind = "float", table: tuple[float, ...] | None = None) -> Row:
        self._count += 1
        return Row(self._count, length, kind, table)

    def append(self, instruction: Instruction) -> None:
        self.block.instructions.append(instruction)

    def emit(self, name: str, *operands: Operand) -> Operand:
        """The result of an operation: folded, simplified, shared, or newly computed."""
        simple = simplify(name, operands)
        if simple is None:
            simple = self._rewritten(name, operands)
        if simple is not None:
            return simple
        if name in _COMMUTATIVE:
            operands = tuple(sorted(operands, key=_order))
        key = (name, *(_identity(x) for x in operands))
        for known in reversed(self._known):
            if key in known:
                return known[key]
        invariant = all(x in self._invariant for x in operands if isinstance(x, Value))
        out = self.value(_result_kind(name, operands), invariant=invariant)
        operation = Operation(name, operands, out)
        self.append(operation)
        self._made_by[out] = operation
        self._known[-1][key] = out
        return out

    def _made(self, operand: Operand, name: str) -> tuple[Operand, ...] | None:
        """The operands of the operation `name` that made this value, if one did."""
        made = self._made_by.get(operand) if isinstance(operand, Value) else None
        return made.operands if made is not None and made.name == name else None

    def _rewritten(self, name: str, operands: tuple[Operand, ...]) -> Operand | None:
        """The same number by cheaper operations, without a rounding error of its own.

        Signs move outwards, so that x y and (-x) y share their work, and powers of two are
        gathered. The one exception to exactness is a quotient by something that is the same in all
        steps: it becomes a product with the reciprocal, which is found once.
        """
        if kind_of(operands[-1]) != "float":
            return None
        if name in ("neg", "abs"):
            (inner,) = self._made(operands[0], "neg") or (None,)
            if inner is not None:
                return inner if name == "neg" else self.emit("abs", inner)
        if name == "div":
            return self._quotient(*operands)
        if name not in ("add", "sub", "mul"):
            return None
        x, y = operands
        (u,), (v,) = self._made(x, "neg") or (None,), self._made(y, "neg") or (None,)
        if name == "mul":
            return self._product(x, y, u, v)
        if name == "add" and isinstance(x, Value) and x == y:
            return self.emit("mul", x, 2.0)
        if u is not None and v is not None:
            return self.emit("neg", self.emit(name, u, v))
        if v is not None:
            return self.emit("sub" if name == "add" else "add", x, v)
        if u is not None:
            if name == "add":
                return self.emit("sub", y, u)
            return self.emit("neg", self.emit("add", u, y))
        return None

    def _product(self, x, y, u, v) -> Operand | None:
        """x y, where x = -u or y = -v if those are given."""
        if u is not None and v is not None:
            return self.emit("mul", u, v)
        if u is not None and isinstance(y, Value):
            return self.emit("neg", self.emit("mul", u, y))
        if v is not None and isinstance(x, Value):
            return self.emit("neg", self.emit("mul", x, v))
        if isinstance(x, Value) == isinstance(y, Value):
            return None
        number, value = (y, x) if isinstance(x, Value) else (x, y)
        if number == -1.0:
            return self.emit("neg", value)
        factor = self._made(value, "mul")
        if factor is not None and _power_of_two(number):
            a, b = factor
            if not isinstance(a, Value) or not isinstance(b, Value):
                inner, c = (a, b) if isinstance(a, Value) else (b, a)
                if _power_of_two(c):
                    return self.emit("mul", inner, number * c)
        return None

    def _quotient(self, x: Operand, y: Operand) -> Operand | None:
        if not isinstance(y, Value):
            return self.emit("mul", x, 1.0 / y) if _power_of_two(y) else None
        if y in self._invariant and not _is(x, 1):
            return self.emit("mul", x, self.emit("div", 1.0, y))
        return None


_COMMUTATIVE = {"add", "mul", "max", "min", "and", "or", "eq", "ne"}
# Arithmetic, which is simple only where a constant takes part.
_PLAIN = {"add", "sub", "mul", "div", "neg", "max", "min", "and", "or"}
_TRUTH = {"lt", "le", "gt", "ge", "eq", "ne", "isfinite"}

_FOLD: dict[str, Callable] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: -a,
    "abs": abs,
    "max": lambda a, b: a if a != a or a > b else b,
    "min": lambda a, b: a if a != a or a < b else b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "not": lambda a: not a,
    "float": float,
    "int": int,
    "bool": bool,
    "isfinite": math.isfinite,
}
_NUMPY = {
    name: getattr(np, name)
    for name in (
        "sqrt sin cos tan sinh cosh tanh exp exp2 expm1 log log1p floor ceil sign "
        "arcsin arccos arctan arctan2 power cbrt"
    ).split()
}


def simplify(name: str, operands: Sequence[Operand]) -> Operand | None:
    """The value of an operation that needs no instruction, or `None`."""
    constants = [x for x in operands if not isinstance(x, Value)]
    if len(constants) == len(operands):
        return _folded(name, constants)
    if not constants and name in _PLAIN:
        return None
    match name, operands:
        case ("add", (x, y)) if _is(y, 0):
            return x
        case ("add", (x, y)) if _is(x, 0):
            return y
        case ("sub", (x, y)) if _is(y, 0):
            return x
        case ("mul", (x, y)) if _is(x, 0) or _is(y, 0):
            return 0.0 if "float" in (kind_of(x), kind_of(y)) else 0
        case ("mul", (x, y)) if _is(y, 1):
            return x
        case ("mul", (x, y)) if _is(x, 1):
            return y
        case ("div", (x, y)) if _is(y, 1):
            return x
        case ("div", (x, y)) if _is(x, 0):
            return x
        case ("select", (p, x, y)):
            if not isinstance(p, Value):
                return y if p else x
            if _identity(x) == _identity(y):
                return x
        case ("and", (x, y)) if x is True or y is True:
            return y if x is True else x
        case ("and", (x, y)) if x is False or y is False:
            return False
        case ("or", (x, y)) if x is False or y is False:
            return y if x is False else x
        case ("or", (x, y)) if x is True or y is True:
            return True
        case (("float" | "int" | "bool"), (x,)) if kind_of(x) == name:
            return x
    return None


def _folded(name: str, constants: Sequence[float | int | bool]) -> Operand | None:
    if name == "div":
        with np.errstate(all="ignore"):
            return float(np.float64(constants[0]) / np.float64(constants[1]))
    if name == "select":
        return constants[2] if constants[0] else constants[1]
    if name in _FOLD:
        return _FOLD[name](*constants)
    if name in _NUMPY:
        with np.errstate(all="ignore"):
            return float(_NUMPY[name](*constants))
    return None


def _power_of_two(x: Operand) -> bool:
    return isinstance(x, float) and x != 0 and math.isfinite(x) and abs(math.frexp(x)[0]) == 0.5


def _is(operand: Operand, number: int) -> bool:
    return not isinstance(operand, Value | bool) and operand == number


def _identity(operand: Operand):
    # Zero and minus zero, one and True, are different constants.
    if isinstance(operand, Value):
        return operand
    return type(operand), repr(operand)


def _order(operand: Operand):
    if isinstance(operand, Value):
        return (0, operand.number, "")
    return (1, 0, repr(operand))


def _result_kind(name: str, operands: Sequence[Operand]) -> Kind:
    if name in _TRUTH:
        return "bool"
    if name in ("float", "int", "bool"):
        return name
    if name == "select":
        return kind_of(operands[1])
    if name in _NUMPY or name == "div":
        return "float"
    return kind_of(operands[0])
