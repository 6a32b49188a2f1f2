"""A system from the user's own Python file. The file is run: it may do all that Python may."""

import contextlib
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from retrax.cases.makers import did_you_mean
from retrax.errors import BadInput, RetraxError
from retrax.mechanics.system import AbstractGroupSystem
from retrax.systems.case import Example

_PROMISE = "it must return (system, state, h, steps), or a system whose paper() does"


def is_reference(text: str) -> bool:
    """Return whether `text` names a function in a Python file, `my_system.py:make`."""
    return text.partition(":")[0].endswith(".py")


def load_setting(reference: str, folder: Path | None = None) -> Example:
    """Call the function that `my_system.py:make` names, and return (system, state, h, steps).

    Without a name the function is `make`. The file is run, and then the function, as Python runs
    them. A relative path starts from `folder`.
    """
    path, _, name = reference.partition(":")
    file = (folder or Path()) / path
    if not file.is_file():
        raise BadInput(f"{reference!r}: there is no file {str(file)!r}.")
    with _neighbours(file):
        module = _run_file(file)
        make = _function(module, file, name or "make")
        try:
            made = make()
            if isinstance(made, AbstractGroupSystem) and hasattr(made, "paper"):
                made = made.paper()  # pyright: ignore[reportAttributeAccessIssue]
        except (Exception, SystemExit) as cause:
            raise BadInput(_describe_error(file, f"{make.__name__}()", cause)) from cause
    return _check(file, make.__name__, made)


@contextlib.contextmanager
def _neighbours(file: Path) -> Iterator[None]:
    """Let the file import those beside it, as a script may."""
    folder = str(file.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _run_file(file: Path) -> ModuleType:
    spec = spec_from_file_location(f"retrax_user_{file.stem}", file)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as cause:
        del sys.modules[spec.name]
        raise BadInput(_describe_error(file, "the file", cause)) from cause
    return module


def _function(module: ModuleType, file: Path, name: str) -> Callable[[], Any]:
    own = {
        key: value
        for key, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", None) == module.__name__
    }
    if name not in own:
        listed = f"it has {', '.join(own)}" if own else "it has no functions"
        raise BadInput(
            f"{str(file)!r} has no function {name!r}: {listed}.{did_you_mean(name, own)}"
        )
    make = own[name]
    if isinstance(make, type) and hasattr(make, "paper"):
        make = make.paper
    needed = [
        parameter.name
        for parameter in inspect.signature(make).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if needed:
        raise BadInput(
            f"{name} in {str(file)!r} needs the arguments {', '.join(needed)}, but it is called "
            f"without any; {_PROMISE}."
        )
    return make


def _check(file: Path, name: str, made: object) -> Example:
    where = f"{name} in {str(file)!r}"
    if not isinstance(made, tuple) or len(made) != 4:
        what = f"a tuple of {len(made)}" if isinstance(made, tuple) else f"{type(made).__name__}"
        raise BadInput(f"{where} returns {what}, but {_PROMISE}.")
    system, state, h, steps = made
    if not isinstance(system, AbstractGroupSystem):
        raise BadInput(
            f"{where} returns {type(system).__name__} where the system is expected; {_PROMISE}."
        )
    return system, state, h, steps  # what `simulate` checks


def _describe_error(file: Path, what: str, cause: BaseException) -> str:
    """Return one sentence about an exception in the user's file, with the line of the file."""
    text = " ".join(str(cause).split())
    if isinstance(cause, SyntaxError):
        return f"{str(file)!r} is not Python: line {cause.lineno}: {cause.msg}."
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(cause.__traceback__)
        if Path(frame.filename).resolve() == file.resolve()
    ]
    where = f", line {lines[-1]}" if lines else ""
    kind = "" if isinstance(cause, RetraxError) else f" {type(cause).__name__}:"
    return f"{str(file)!r}{where}: {what} ends in an error:{kind} {text}"
