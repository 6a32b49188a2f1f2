"""What the code of a function reads from outside, and what of that is known not to change.

`params.g` reads the attribute `g` of what `params` names, and nothing else of it; `f(params)` may
read all of it. So each read has a path of attributes, which is empty where the whole is handed on.

Everything here is a list of what is known: instructions, attributes, functions of libraries. Code
with anything else in it is not `known`, and what it returns must be asked again.
"""

import builtins
import dis
import sys
import sysconfig
from array import array
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType, NoneType
from typing import NamedTuple

import jax
import numpy as np

_GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_CELL = {"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"}
_ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD"}
# Instructions that move values, call, compare, jump and store: what a store changes is looked at.
_INSTRUCTIONS = frozenset(
    "BINARY_OP BINARY_SLICE BINARY_SUBSCR BUILD_CONST_KEY_MAP BUILD_LIST BUILD_MAP BUILD_SET "
    "BUILD_SLICE BUILD_STRING BUILD_TUPLE CACHE CALL CALL_FUNCTION_EX CALL_INTRINSIC_1 CALL_KW "
    "COMPARE_OP CONTAINS_OP CONVERT_VALUE COPY COPY_FREE_VARS DICT_MERGE DICT_UPDATE END_FOR "
    "FORMAT_SIMPLE FORMAT_VALUE FORMAT_WITH_SPEC FOR_ITER GET_ITER GET_LEN IS_OP JUMP_BACKWARD "
    "JUMP_BACKWARD_NO_INTERRUPT JUMP_FORWARD JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP KW_NAMES "
    "LIST_APPEND LIST_EXTEND LIST_TO_TUPLE LOAD_ASSERTION_ERROR LOAD_ATTR LOAD_CLASSDEREF "
    "LOAD_CLOSURE LOAD_CONST LOAD_DEREF LOAD_FAST LOAD_FAST_AND_CLEAR LOAD_FAST_CHECK "
    "LOAD_FAST_LOAD_FAST LOAD_GLOBAL LOAD_METHOD LOAD_SUPER_ATTR MAKE_CELL MAKE_FUNCTION MAP_ADD "
    "NOP POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE "
    "POP_JUMP_BACKWARD_IF_TRUE POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_NONE "
    "POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_FORWARD_IF_TRUE POP_JUMP_IF_FALSE POP_JUMP_IF_NONE "
    "POP_JUMP_IF_NOT_NONE POP_JUMP_IF_TRUE POP_TOP PRECALL PUSH_NULL RAISE_VARARGS RESUME "
    "RETURN_CONST RETURN_GENERATOR RETURN_VALUE SET_ADD SET_FUNCTION_ATTRIBUTE SET_UPDATE "
    "STORE_ATTR STORE_DEREF STORE_FAST STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST STORE_SUBSCR "
    "SWAP TO_BOOL UNARY_INVERT UNARY_NEGATIVE UNARY_NOT UNARY_POSITIVE UNPACK_EX UNPACK_SEQUENCE "
    "YIELD_VALUE "
    # what Python writes at the end of a comprehension that is a part of its function
    "RERAISE".split()
)
# Functions of Python that depend on nothing but their arguments. `getattr` may ask for anything.
_BUILTINS = frozenset(
    "abs all any bool complex dict divmod enumerate filter float frozenset int isinstance "
    "issubclass len list map max min pow range repr reversed round set slice sorted str sum super "
    "tuple type zip AssertionError Ellipsis NotImplemented NotImplementedError RuntimeError "
    "TypeError ValueError".split()
)
# Modules of Python in which every function does, and names from others.
_MODULES = frozenset(
    "__future__ _collections_abc cmath collections fractions itertools math numbers".split()
)
_NAMES = frozenset(
    {
        *[("functools", name) for name in ("partial", "reduce", "wraps", "cached_property")],
        *[("_functools", name) for name in ("partial", "reduce")],
        *[("dataclasses", name) for name in ("asdict", "astuple", "replace")],
        ("dataclasses", "__repr__"),
        ("types", "SimpleNamespace"),
        ("types", "MappingProxyType"),
    }
)
# Modules of mathematics, packages of it, and the names of functions and constants there that do.
_FORMULARIES = frozenset(
    "numpy numpy.linalg scipy.linalg scipy.special jax jax.numpy jax.numpy.linalg jax.lax jax.nn "
    "jax.scipy.linalg jax.scipy.special jax.tree jax.tree_util jax._src.api jax._src.tree "
    "jax._src.traceback_util jax._src.tree_util".split()
)
_PACKAGES = tuple(
    "numpy._core. numpy.lib. numpy.linalg. scipy.linalg. scipy.special. jax._src.numpy. "
    "jax._src.lax. jax._src.nn. jax._src.scipy.".split()
)
_MATHEMATICS = frozenset(
    "abs absolute add all allclose any append arange arccos arccosh arcsin arcsinh arctan arctan2 "
    "arctanh argmax argmin argsort array array_equal asarray astype atan2 atleast_1d atleast_2d "
    "average block bool bool_ broadcast_to cbrt ceil cholesky clip column_stack complex128 "
    "concatenate cond conj convolve copysign cos cosh cov cross cummax cumprod cumsum deg2rad "
    "degrees det diag diagonal diff divide dot dot_general e einsum eig eigh eigvalsh elu equal "
    "erf erfc exp exp2 expand_dims expm expm1 expit eye fabs flip float32 float64 float_power "
    "floor floor_divide fmod fori_loop full full_like gammaln gelu grad greater greater_equal "
    "heaviside hessian hstack hypot i0 identity imag inf inner int32 int64 integer_pow interp inv "
    "isclose isfinite isinf isnan jacfwd jacobian jacrev jvp kron ldexp leaky_relu less less_equal "
    "linspace log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor "
    "log_sigmoid log_softmax logsumexp lu_factor lu_solve map matmul matrix_power max maximum mean "
    "meshgrid min minimum mod moveaxis multi_dot multiply nan nan_to_num negative newaxis norm "
    "not_equal ones ones_like outer permute_dims pi piecewise polyval positive power prod qr "
    "rad2deg radians ravel real reciprocal relu remainder repeat reshape roll round rsqrt scan "
    "select select_n sigmoid sign silu sin sinc sinh size slogdet softmax softplus solve "
    "solve_triangular sort sqrt square squeeze stack std stop_gradient subtract sum svd swapaxes "
    "switch take tan tanh tensordot tile trace transpose tree_map tril triu true_divide trunc "
    "value_and_grad vander var vdot vecdot vectorize vjp vmap vstack where while_loop zeros "
    "zeros_like ndarray Array ShapeDtypeStruct dtype map tree leaves flatten unflatten".split()
)
# Packages of retrax that do, and the modules of others that look at states.
_MECHANICS = frozenset(
    "contact groups integrators mechanics mechanisms nodal numerics spaces systems testing".split()
)
_LOOKING = frozenset(
    ["retrax.run.events", "retrax.estimation.unknowns"]
    + [f"retrax.trajectory.{name}" for name in ("inputs", "observe")]
)
# Attributes that lead from a function or a frame to everything around it, and some that do not.
_HIDDEN = ("__", "f_", "gi_", "cr_", "ag_", "tb_", "co_", "format")
_PLAIN = frozenset({"__class__"})
# Of numbers, texts, arrays and containers those that tell what is compared of them: `base` leads
# from an array to another, and `data` to where it lies.
_CONTENTS = frozenset(
    "T add all any append argmax argmin argsort as_integer_ratio astype at bit_count bit_length "
    "capitalize casefold clear clip conj conjugate copy count cumprod cumsum decode denominator "
    "diagonal difference discard dot dtype encode endswith extend fill find flat flatten get hex "
    "imag index insert intersection is_integer isalpha isdigit isdisjoint islower issubset "
    "issuperset isupper item items itemsize join keys kind ljust lower lstrip mT max mean min name "
    "names nbytes ndim nonzero numerator partition pop popitem popleft prod ravel real remove "
    "removeprefix removesuffix repeat replace reshape reverse rfind rjust rotate round rsplit "
    "rstrip searchsorted setdefault shape size sort split splitlines squeeze start startswith std "
    "step stop strides strip sum swapaxes symmetric_difference take title tobytes tolist trace "
    "transpose typecode union update upper values var zfill".split()
)
_VALUES = (
    *(np.ndarray, np.float64, np.dtype, jax.Array, float, int, complex, str, bytes, bytearray),
    *(tuple, list, dict, set, frozenset, range, slice, array, deque),
)
_UNTOLD = frozenset(name for kind in _VALUES for name in dir(kind)) - _CONTENTS

AttributePath = tuple[str, ...]


class Reads(NamedTuple):
    """Names with the paths read from them, each in the order in which it first appears.

    `known` is true where the code consists of known instructions, binds no name outside anew,
    imports nothing, asks for no attribute that leads around it, and not whether two things are one.
    """

    names: tuple[tuple[str, tuple[AttributePath, ...]], ...]
    cells: tuple[tuple[str, tuple[AttributePath, ...]], ...]
    known: bool


@lru_cache(maxsize=4096)
def reads(code: CodeType) -> Reads:
    """Return what this code and all code nested in it reads. Cells are those it has closed over."""
    names: dict[str, dict[AttributePath, None]] = {}
    cells: dict[str, dict[AttributePath, None]] = {name: {} for name in code.co_freevars}
    known = True
    for part in _nested_code(code):
        instructions = [i for i in dis.get_instructions(part) if i.opname != "EXTENDED_ARG"]
        for k, one in enumerate(instructions):
            outer = one.opname == "STORE_DEREF" and one.argval in part.co_freevars
            hidden = one.opname in _ATTRIBUTE and _is_hidden(str(one.argval))
            alike = k > 0 and _tells_equals_apart(instructions[k - 1], one)
            known = known and one.opname in _INSTRUCTIONS and not (outer or hidden or alike)
            if one.opname in _GLOBAL:
                names.setdefault(one.argval, {})[_path(instructions, k)] = None
            elif one.opname in _CELL and one.argval in cells:
                cells[one.argval][_path(instructions, k)] = None
    return Reads(
        tuple((name, _shortest(paths)) for name, paths in names.items()),
        # A cell that only passes through may be read in ways that are not seen here.
        tuple((name, _shortest(paths) or ((),)) for name, paths in cells.items()),
        known,
    )


def _is_hidden(attribute: str) -> bool:
    return (attribute.startswith(_HIDDEN) or attribute in _UNTOLD) and attribute not in _PLAIN


def _tells_equals_apart(before: dis.Instruction, one: dis.Instruction) -> bool:
    """Tell whether code asks which of two equal things one is, or for the order of a set."""
    constant = before.opname == "LOAD_CONST"
    if one.opname == "IS_OP":
        return not (constant and before.argval is None)
    return constant and isinstance(before.argval, frozenset) and one.opname != "CONTAINS_OP"


def _nested_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested_code(constant)


def _path(instructions: list[dis.Instruction], k: int) -> AttributePath:
    """Return the attributes that are looked up, one by one, on what instruction k loads."""
    path = []
    for following in instructions[k + 1 :]:
        if following.opname not in _ATTRIBUTE:
            break
        path.append(following.argval)
    return tuple(path)


def _shortest(paths: dict[AttributePath, None]) -> tuple[AttributePath, ...]:
    """Return the paths, or the empty one alone where the whole is read anyway."""
    return ((),) if () in paths else tuple(paths)


_PYTHON = str(sysconfig.get_path("stdlib"))
_LIBRARIES = frozenset(
    "jax jaxlib numpy scipy equinox jaxtyping beartype ml_dtypes opt_einsum retrax".split()
)


@lru_cache(maxsize=1024)
def is_own(cls: type) -> bool:
    """Tell whether a class, or one that it derives from, is the user's."""
    return not all(map(is_library_class, cls.__mro__))


def is_library_class(cls: type) -> bool:
    """Return whether a class is a library's; made ones may claim to be Python's own."""
    if cls is NoneType:
        return True
    module = sys.modules.get(cls.__module__)
    if not is_library(cls.__module__, file_of(module)):
        return False
    first = cls.__qualname__.partition(".")[0]
    return cls.__module__.partition(".")[0] in _LIBRARIES or hasattr(module, first)


def is_of_library(f: FunctionType) -> bool:
    """Judge by the module it was written in; `functools.wraps` gives it the name of another."""
    return is_library(f.__globals__.get("__name__"), f.__globals__.get("__file__"))


def file_of(module: object) -> str | None:
    """Return the file of a module; those built into Python have none."""
    return getattr(module, "__file__", None)


@lru_cache(maxsize=4096)
def is_library(module: str | None, file: str | None) -> bool:
    """Tell whether this is Python's or one of the libraries that do not change.

    A module of the user's may have the name of one of Python's, but lies elsewhere.
    """
    top = (module or "").partition(".")[0]
    if top in _LIBRARIES:
        return True
    return top in sys.stdlib_module_names and (file is None or _lies_in_python(file))


def _lies_in_python(file: str) -> bool:
    return file.startswith(_PYTHON) and "-packages" not in file


def is_library_module(module: ModuleType) -> bool:
    """Tell the same of a module."""
    return is_library(module.__name__, file_of(module))


@lru_cache(maxsize=4096)
def is_pure(module: str, name: str) -> bool:
    """Tell whether what a library calls `name` is known to depend on its arguments alone."""
    top, _, rest = module.partition(".")
    if top == "retrax" and rest.partition(".")[0] in _MECHANICS:
        return True
    if module in _MODULES or module in _LOOKING or (module, name) in _NAMES:
        return True
    return name in _MATHEMATICS and (module in _FORMULARIES or module.startswith(_PACKAGES))


def is_pure_builtin(name: str, value: object) -> bool:
    """Tell the same of what code without an import finds by this name."""
    return name in _BUILTINS and value is getattr(builtins, name)
