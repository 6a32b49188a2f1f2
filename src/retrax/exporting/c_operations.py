"""Scalar operations as expressions of C99, with the answers of the native back end."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from retrax.engine.kinds import Constant, Kind, bits, bounds, is_unsigned
from retrax.errors import BadInput

TYPE: dict[Kind, str] = {
    "int": "int64_t", "bool": "int", "i32": "int32_t", "i16": "int16_t", "i8": "int8_t",
    "u64": "uint64_t", "u32": "uint32_t", "u16": "uint16_t", "u8": "uint8_t",
}  # fmt: skip
_INFIX = {
    "add": ("+", 12), "sub": ("-", 12), "mul": ("*", 13), "div": ("/", 13), "lt": ("<", 10),
    "le": ("<=", 10), "gt": (">", 10), "ge": (">=", 10), "eq": ("==", 9), "ne": ("!=", 9),
}  # fmt: skip
_COMPARE = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
# Functions of <math.h>.
LIBRARY = {
    "sqrt": "sqrt", "abs": "fabs", "floor": "floor", "ceil": "ceil", "sin": "sin", "cos": "cos",
    "exp": "exp", "exp2": "exp2", "log": "log", "power": "pow", "round": "round",
    "roundeven": "rint", "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh",
    "expm1": "expm1", "log1p": "log1p", "cbrt": "cbrt", "arcsin": "asin", "arccos": "acos",
    "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "erf": "erf", "erfc": "erfc", "nextafter": "nextafter", "rem": "fmod",
}  # fmt: skip
# What reads the same bits as another type: which it reads, and as which.
_REINTERPRETED = {
    "float_of_bits": ("uint64_t", "double"), "bits_of_float": ("double", "uint64_t"),
}  # fmt: skip
ATOM, _UNARY, _LOGIC, _CHOICE = 20, 15, 4, 3
_EPS64, _EPS32 = 2.0**-52, 2.0**-23
_TINY64, _TINY32 = 2.0**-1022, 2.0**-126
_MOST32 = (2.0 - 2.0**-23) * 2.0**127
# Numbers that are smaller are there to keep others from being zero.
_NOTHING = 1e-280
# As many rounding errors at most are a tolerance.
_ERRORS = 2.0**16


class Text(NamedTuple):
    """An expression, and how tightly its outermost operator binds."""

    text: str
    binds: int = ATOM

    def within(self, binds: int) -> str:
        """Return the text as an operand of something that binds so tightly."""
        return f"({self.text})" if self.binds < binds else self.text


class COperations:
    """Writes operations; `helpers` are the functions that they need, by name."""

    def __init__(self, real: str):
        self.real = real
        self.helpers: dict[str, str] = {}

    def type(self, kind: Kind) -> str:
        return self.real if kind == "float" else TYPE[kind]

    def literal(self, number: Constant, kind: Kind) -> Text:
        """Return a constant; floats with as many digits as tell them apart from all others."""
        if kind == "float":
            return self._float(float(number))
        if kind == "bool":
            return Text("1" if number else "0")
        whole = int(number)
        if is_unsigned(kind):
            return Text(f"UINT64_C({whole})" if kind == "u64" else f"{whole}u")
        if whole == bounds("int")[0]:
            return Text("INT64_MIN")
        text = str(whole) if abs(whole) < 2**31 else f"INT64_C({whole})"
        return Text(text, _UNARY if whole < 0 else ATOM)

    def _float(self, x: float) -> Text:
        if math.isnan(x):
            return Text("(float)NAN" if self.real == "float" else "(double)NAN", _UNARY)
        single = self.real == "float"
        number = in_single(x) if single else x
        if math.isinf(number):
            name = "INFINITY" if single else "(double)INFINITY"
            return Text(name if number > 0 else f"-{name}", _UNARY)
        text = repr(number)
        if "e" not in text and "." not in text:
            text += ".0"
        return Text(f"{text}f" if single else text, _UNARY if text.startswith("-") else ATOM)

    def operation(self, name: str, kind: Kind, x: Sequence[Text]) -> Text:
        """Return an operation on operands of a kind."""
        if name == "select":
            test, otherwise, chosen = x
            return Text(
                f"{test.within(_LOGIC)} ? {chosen.within(_LOGIC)} : {otherwise.within(_LOGIC)}",
                _CHOICE,
            )
        if name in _REINTERPRETED:
            return self._reinterpret(name, x)
        if name in _COMPARE or (kind == "float" and name in _INFIX):
            return self._infix(*_INFIX[name], *x)
        if kind == "float":
            return self._on_floats(name, x)
        if kind == "bool":
            return self._on_truths(name, x)
        return self._on_whole(name, kind, x)

    def _reinterpret(self, name: str, x: Sequence[Text]) -> Text:
        """Return the bits of a number as those of another."""
        if self.real == "float":
            raise BadInput(
                "precision = 'float', but this step reads the bits of numbers in double "
                "precision, as random numbers are made; export it with precision = 'double'."
            )
        old, new = _REINTERPRETED[name]
        body = f"union {{ {old} given; {new} made; }} both;\n    both.given = a;\n"
        return self._call(name, [old], new, f"{body}    return both.made;", x)

    def _infix(self, sign: str, binds: int, a: Text, b: Text) -> Text:
        right = b.within(binds + 1)
        if sign in "+-" and right.startswith("-"):
            right = f"({right})"
        # Compilers warn of comparisons of comparisons.
        left = a.within(ATOM if binds < 11 and a.binds < 11 else binds)
        return Text(f"{left} {sign} {right}", binds)

    def _on_floats(self, name: str, x: Sequence[Text]) -> Text:
        if name == "neg":
            inner = x[0].within(_UNARY)
            return Text(f"-({inner})" if inner.startswith("-") else f"-{inner}", _UNARY)
        if name == "stored":
            return x[0]
        if name == "isfinite":
            return Text(f"isfinite({x[0].text}) != 0", 9)
        if name in ("max", "min"):
            sign = ">" if name == "max" else "<"
            body = f"return a {sign} b || a != a ? a : b;"
            return self._call(f"{name}_real", [self.real] * 2, self.real, body, x)
        if name == "sign":
            zero, one = self._float(0.0).text, self._float(1.0).text
            body = f"return a > {zero} ? {one} : a < {zero} ? -{one} : a;"
            return self._call("sign_real", [self.real], self.real, body, x)
        if name in TYPE:
            return self._from_float(name, x)
        return Text(f"{self.library(name)}({', '.join(y.text for y in x)})")

    def library(self, name: str) -> str:
        """Return the function of the C library for an operation."""
        return LIBRARY[name] + ("f" if self.real == "float" else "")

    def _from_float(self, new: Kind, x: Sequence[Text]) -> Text:
        if new == "bool":
            return Text(f"{x[0].within(10)} != {self._float(0.0).text}", 9)
        if new == "u32" and self.real == "float":
            raise BadInput(
                "precision = 'float', but this step reads numbers as words of 32 bits, as keys of "
                "random numbers are made of; export it with precision = 'double'."
            )
        low, high = bounds(new)
        t, least, most = TYPE[new], self.literal(low, new).text, self.literal(high, new).text
        # The largest number may not be a float; what is not below it is cut off there.
        body = (
            f"if (a != a) return 0;\n    if (a <= ({self.real}){least}) return {least};\n"
            f"    if (a >= ({self.real}){most}) return {most};\n    return ({t})a;"
        )
        return self._call(f"to_{new}", [self.real], t, body, x)

    def _on_truths(self, name: str, x: Sequence[Text]) -> Text:
        signs = {"and": "&&", "min": "&&", "or": "||", "max": "||"}
        if name in signs:
            return Text(f" {signs[name]} ".join(y.within(9) for y in x), 5)
        if name == "xor":
            return Text(f"{x[0].within(ATOM)} != {x[1].within(ATOM)}", 9)
        if name == "not":
            return Text(f"!{x[0].within(_UNARY)}", _UNARY)
        if name == "float":
            one, zero = self._float(1.0).text, self._float(0.0).text
            return Text(f"{x[0].within(_LOGIC)} ? {one} : {zero}", _CHOICE)
        return self._cast(name, x[0])  # to a whole number

    def _cast(self, name: str, x: Text) -> Text:
        new = next(t for kind, t in TYPE.items() if kind == name)
        return Text(f"({new}){x.within(_UNARY)}", _UNARY)

    def _on_whole(self, name: str, kind: Kind, x: Sequence[Text]) -> Text:
        if name == "float":
            return Text(f"({self.real}){x[0].within(_UNARY)}", _UNARY)
        if name == "bool":
            return Text(f"{x[0].within(10)} != 0", 9)
        if name in TYPE:
            return self._cast(name, x[0])
        t = TYPE[kind]
        return self._call(f"{name}_{kind}", [t] * len(x), t, _whole_body(name, kind), x)

    def _call(
        self, name: str, takes: Sequence[str], gives: str, body: str, x: Sequence[Text]
    ) -> Text:
        given = ", ".join(f"{t} {letter}" for t, letter in zip(takes, "ab", strict=False))
        self.helpers[name] = f"static inline {gives} {name}({given})\n{{\n    {body}\n}}\n"
        return Text(f"{name}({', '.join(y.text for y in x)})")


def in_single(x: float) -> float:
    """Return a constant of a program in single precision.

    A few rounding errors of double precision become as many of single precision, and the smallest
    terms that count those that single precision has: both are tolerances.
    """
    size = abs(x)
    if size < _NOTHING:
        scaled = size / (_TINY64 / _EPS64) * (_TINY32 / _EPS32)
        return math.copysign(max(scaled, _TINY32) if size else 0.0, x)
    errors = size / _EPS64
    if errors <= _ERRORS and math.frexp(errors)[0] == 0.5:
        return math.copysign(errors * _EPS32, x)
    return x if math.isinf(x) else math.copysign(min(max(size, _TINY32), _MOST32), x)


def _whole_body(name: str, kind: Kind) -> str:
    """Return arithmetic of whole numbers that wraps around, with XLA's answers where C has none."""
    t, u, n = TYPE[kind], f"uint{bits(kind)}_t", bits(kind)
    wide = "uint64_t" if n == 64 else "uint32_t"
    signed = not is_unsigned(kind)
    least = "INT64_MIN" if kind == "int" else f"INT{n}_MIN"
    over = f"\n    if (a == {least} && b == -1) return {{}};" if signed else ""
    sign = f"({t})1" if signed else "1"
    bodies = {
        "add": f"return ({t})(({wide})a + ({wide})b);",
        "sub": f"return ({t})(({wide})a - ({wide})b);",
        "mul": f"return ({t})(({wide})a * ({wide})b);",
        "neg": f"return ({t})(0u - ({wide})a);",
        "abs": f"return a < 0 ? ({t})(0u - ({wide})a) : a;" if signed else "return a;",
        "sign": (
            f"return a > 0 ? {sign} : a < 0 ? ({t})-1 : ({t})0;" if signed else "return a > 0;"
        ),
        "max": "return a > b ? a : b;",
        "min": "return a < b ? a : b;",
        "and": f"return ({t})(a & b);",
        "or": f"return ({t})(a | b);",
        "xor": f"return ({t})(a ^ b);",
        "not": f"return ({t})~a;",
        "div": f"if (b == 0) return ({t})-1;{over.format('a')}\n    return ({t})(a / b);",
        "rem": f"if (b == 0) return a;{over.format('0')}\n    return ({t})(a % b);",
        "shl": f"return ({u})b < {n}u ? ({t})(({wide})a << b) : ({t})0;",
        "shr": f"return ({u})b < {n}u ? ({t})(({u})a >> b) : ({t})0;",
        "sar": (
            f"const {u} places = ({u})b < {n}u ? ({u})b : ({u}){n - 1}; const {u} bits = ({u})a;\n"
            f"    const {wide} filled = (bits >> {n - 1}) ? ~(({wide})({u})~({u})0 >> places) : 0u;"
            f"\n    return ({t})(({wide})(bits >> places) | filled);"
        ),
        "popcount": (
            f"{u} left = ({u})a; int count = 0;\n"
            f"    while (left) {{ left = ({u})(left & (left - 1u)); ++count; }}\n"
            f"    return ({t})count;"
        ),
        "clz": (
            f"{u} left = ({u})a; int count = {n};\n"
            f"    while (left) {{ left = ({u})(left >> 1); --count; }}\n"
            f"    return ({t})count;"
        ),
    }
    return bodies[name]
