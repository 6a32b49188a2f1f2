"""Whether JAX can compute in this process: a platform it knows, and no fork of one at work."""

import os
from functools import cache
from typing import Any

import jax

from retrax.errors import BadInput

try:
    from jax._src.xla_bridge import backends_are_initialized as _at_work
except ImportError:  # then a fork is taken for one of a process that has computed already

    def _at_work() -> bool:
        return True


class _Fork:
    """Whether this process is a fork of one in which the threads of JAX ran."""

    of_one_at_work = False


def _note_fork() -> None:
    _Fork.of_one_at_work = _Fork.of_one_at_work or _at_work()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def require_platform() -> None:
    """Reject a process in which JAX cannot compute, or would wait for ever.

    A fork has none of the threads of JAX, and its locks as they were.
    """
    if _Fork.of_one_at_work:
        raise BadInput(
            f"this process ({os.getpid()}) was forked from one that computes with JAX, whose "
            "threads it does not have: it would wait for ever. Start processes afresh, with "
            'multiprocessing.get_context("spawn").'
        )
    _platform()


@cache
def _platform() -> str:
    try:
        return jax.default_backend()
    except RuntimeError as cause:
        config: Any = jax.config
        wanted = config.jax_platforms or os.environ.get("JAX_PLATFORMS", "")
        raise BadInput(
            f"JAX_PLATFORMS = {wanted!r}: JAX cannot compute on that here; leave it out, or choose "
            '"cpu".'
        ) from cause
