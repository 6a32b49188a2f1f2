"""Build programs instruction by instruction, and simplify them on the way.

The builder folds constants, drops additions of zero and multiplications by one, shares equal
expressions, moves signs outwards and gathers powers of two.
"""

import math
from collections.abc import Sequence

from retrax.engine.kinds import DTYPE, Kind, constant, fold
from retrax.engine.origins import active_notes
from retrax.engine.program import Buffer, CodeBlock, Instruction, Operand, Operation, Value, kind_of


class Builder:
    """Emits instructions into nested blocks, simplifying as it goes."""

    def __init__(self):
        self._count = 0
        self._blocks = [CodeBlock()]
        self._known: list[dict] = [{}]
        self._made_by: dict[Value, Operation] = {}
        self._invariant: set[Value] = set()
        self._singular: set[Value] = set()
        self._wide: set[Value] = set()
        self.origins = active_notes()

    def value(self, kind: Kind, *, invariant: bool = False) -> Value:
        """Make a new value; `invariant` says that it is the same in all steps of a run."""
        self._count += 1
        made = Value(self._count, kind)
        if invariant:
            self._invariant.add(made)
        return made

    @property
    def count(self) -> int:
        """How many values and buffers there are so far."""
        return self._count

    @property
    def block(self) -> CodeBlock:
        return self._blocks[-1]

    def open(self) -> None:
        """Start an inner block; expressions of the outer ones may be used in it."""
        self._blocks.append(CodeBlock())
        self._known.append({})

    def close(self) -> CodeBlock:
        self._known.pop()
        return self._blocks.pop()

    def suspend(self) -> tuple[CodeBlock, dict]:
        """Leave an inner block for a while; `resume` goes on with it."""
        return self._blocks.pop(), self._known.pop()

    def resume(self, frame: tuple[CodeBlock, dict]) -> None:
        block, known = frame
        self._blocks.append(block)
        self._known.append(known)

    def encloses(self, block: CodeBlock) -> bool:
        """Return whether what was written to a block has been done here too."""
        return any(block is b for b in self._blocks)

    def buffer(
        self, length: int, kind: Kind = "float", table: tuple[float, ...] | None = None
    ) -> Buffer:
        self._count += 1
        return Buffer(self._count, length, kind, table)

    def append(self, instruction: Instruction) -> None:
        self.block.instructions.append(instruction)

    def emit(self, name: str, *operands: Operand) -> Operand:
        """Return the result of an operation: folded, simplified, shared, or newly computed."""
        simple = simplify(name, operands)
        if simple is None:
            simple = self._rewritten(name, operands)
        return self.emit_as_is(name, *operands) if simple is None else simple

    def emit_as_is(self, name: str, *operands: Operand) -> Operand:
        """Return the result of an operation: shared with an equal one, or newly computed."""
        if name in _COMMUTATIVE:
            operands = tuple(sorted(operands, key=_order))
        key = (name, *(_identity(x) for x in operands))
        for known in reversed(self._known):
            if key in known:
                return known[key]
        invariant = all(x in self._invariant for x in operands if isinstance(x, Value))
        out = self.value(_result_kind(name, operands), invariant=invariant)
        # A choice guards against what is infinite on its other side.
        if name in _SINGULAR or (name != "select" and any(map(self.is_singular, operands))):
            self._singular.add(out)
        if out.kind in ("int", "u64") and (_widens(name, operands) or self._from_wide(operands)):
            self._wide.add(out)
        operation = Operation(name, operands, out)
        self.append(operation)
        if self.origins is not None:
            self.origins.note(out)
        self._made_by[out] = operation
        self._known[-1][key] = out
        return out

    def is_wide(self, operand: Operand) -> bool:
        """Return whether a whole number may have more digits than a float: memory holds floats."""
        if isinstance(operand, Value):
            return operand in self._wide
        return not isinstance(operand, float) and abs(int(operand)) > 2**53

    def _from_wide(self, operands: Sequence[Operand]) -> bool:
        return any(isinstance(x, Value) and x in self._wide for x in operands)

    def is_singular(self, operand: Operand) -> bool:
        """Return whether a value may be infinite or NaN although the state's numbers are small."""
        return isinstance(operand, Value) and operand in self._singular

    def operands_of(self, operand: Operand, name: str) -> tuple[Operand, ...] | None:
        """Return the operands of the operation `name` that made this value, if one did."""
        made = self._made_by.get(operand) if isinstance(operand, Value) else None
        return made.operands if made is not None and made.name == name else None

    def _rewritten(self, name: str, operands: tuple[Operand, ...]) -> Operand | None:
        """Find the same number by cheaper operations, without a rounding error of its own.

        Signs move outwards, so that x y and (-x) y share their work, and powers of two are
        gathered. The one exception to exactness is a quotient by something that is the same in all
        steps: it becomes a product with the reciprocal, which is found once.
        """
        if kind_of(operands[-1]) != "float":
            return None
        if name in ("neg", "abs"):
            (inner,) = self.operands_of(operands[0], "neg") or (None,)
            if inner is not None:
                return inner if name == "neg" else self.emit("abs", inner)
        if name == "div":
            return self._quotient(*operands)
        if name not in ("add", "sub", "mul"):
            return None
        x, y = operands
        (u,), (v,) = self.operands_of(x, "neg") or (None,), self.operands_of(y, "neg") or (None,)
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
        """Simplify x y, where x = -u or y = -v if those are given."""
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
        factor = self.operands_of(value, "mul")
        if factor is not None and _power_of_two(number):
            a, b = factor
            if not isinstance(a, Value) or not isinstance(b, Value):
                inner, c = (a, b) if isinstance(a, Value) else (b, a)
                # Not where the two together are too large or too small for a float.
                if _power_of_two(c) and _power_of_two(number * c):
                    return self.emit("mul", inner, number * c)
        return None

    def _quotient(self, x: Operand, y: Operand) -> Operand | None:
        if not isinstance(y, Value):
            exact = _power_of_two(y) and math.isfinite(1.0 / y)
            return self.emit("mul", x, 1.0 / y) if exact else None
        if y in self._invariant and not _is(x, 1):
            return self.emit("mul", x, self.emit("div", 1.0, y))
        return None


_COMMUTATIVE = {"add", "mul", "max", "min", "and", "or", "xor", "eq", "ne"}
# Arithmetic, which is simple only where a constant takes part.
_PLAIN = {"add", "sub", "mul", "div", "neg", "max", "min", "and", "or"}
# Operations that are infinite or NaN somewhere. Not quotients: every step has many, with
# denominators that are never zero.
_SINGULAR = {"rem", "log", "log1p", "power", "arcsin", "arccos", "arccosh", "arctanh"}
_TRUTH = {"lt", "le", "gt", "ge", "eq", "ne", "isfinite"}
_REINTERPRETED: dict[str, Kind] = {"float_of_bits": "float", "bits_of_float": "u64"}


def simplify(name: str, operands: Sequence[Operand]) -> Operand | None:
    """Return the value of an operation that needs no instruction, or `None`."""
    constants = [x for x in operands if not isinstance(x, Value)]
    if len(constants) == len(operands):
        return fold(name, constants)
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
            return constant(0, kind_of(x))
        case ("mul", (x, y)) if _is(y, 1):
            return x
        case ("mul", (x, y)) if _is(x, 1):
            return y
        case ("div", (x, y)) if _is(y, 1):
            return x
        case ("div", (x, y)) if _is(x, 0) and kind_of(x) == "float":
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
        case (_, (x,)) if kind_of(x) == name:
            return x
    return None


def _widens(name: str, operands: Sequence[Operand]) -> bool:
    """Return whether an operation makes numbers of many digits from those of few."""
    if name == "mul":
        return all(isinstance(x, Value) for x in operands)
    if name == "bits_of_float":
        return True
    return name in ("shl", "not", "xor", "neg") and kind_of(operands[0]) in ("int", "u64")


def _power_of_two(x: Operand) -> bool:
    return isinstance(x, float) and x != 0 and math.isfinite(x) and abs(math.frexp(x)[0]) == 0.5


def _is(operand: Operand, number: int) -> bool:
    return not isinstance(operand, Value | bool) and operand == number


def same(a: Operand, b: Operand) -> bool:
    """Return whether two operands are the same value, or the same constant, sign and type too."""
    return _identity(a) == _identity(b)


def _identity(operand: Operand):
    # Zero and minus zero, one and True, are different constants.
    return operand if isinstance(operand, Value) else (type(operand), repr(operand))


def _order(operand: Operand):
    if isinstance(operand, Value):
        return (0, operand.number, "")
    return (1, 0, repr(operand))


def _result_kind(name: str, operands: Sequence[Operand]) -> Kind:
    if name in _TRUTH:
        return "bool"
    if name in DTYPE:
        return name
    if name in _REINTERPRETED:
        return _REINTERPRETED[name]
    return kind_of(operands[1] if name == "select" else operands[0])
