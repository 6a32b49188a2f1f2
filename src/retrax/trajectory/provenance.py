"""How a run was made, so that it can be made again."""

import contextlib
import datetime
import json
import os
import platform
from collections.abc import Iterator
from contextvars import ContextVar
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import jax

_LABELS: ContextVar[dict[str, str] | None] = ContextVar("labels", default=None)


@contextlib.contextmanager
def labelled(**labels: str) -> Iterator[None]:
    """Runs made meanwhile carry these labels, from their first commit on."""
    before = _LABELS.set((_LABELS.get() or {}) | labels)
    try:
        yield
    finally:
        _LABELS.reset(before)


def provenance(system: Any, integrator: Any, backend: str) -> dict[str, str]:
    """Names of what was run and versions of what ran it; for a body in gravity, where up is.

    A system that is more than its group tells says what there is to draw, and one that measures
    more than its invariants in what units, both in JSON.
    """
    upright = getattr(system, "e3_points_up", None)
    drawing = getattr(system, "drawing", None)
    return {
        "system": system.name,
        "group": system.configuration_space.name,
        "integrator": repr(integrator),
        "counted": integrator.counted,
        **({} if upright is None else {"up": "e3" if upright else "-e3"}),
        **({} if drawing is None else {"drawing": drawing}),
        **({"units": json.dumps(system.units)} if system.units else {}),
        "backend": backend,
        "device": jax.devices()[0].device_kind,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        **versions(),
        **(_LABELS.get() or {}),
    }


@lru_cache
def versions() -> dict[str, str]:
    """What a run depends on."""
    packages = ("retrax", "jax", "numpy", "llvmlite")
    return {"python": platform.python_version(), **{p: version(p) for p in packages}}


def environment(backend: str) -> dict[str, str]:
    """All that the bits of a run depend on, besides what is run."""
    import llvmlite.binding as llvm

    features = ",".join(sorted(k for k, on in llvm.get_host_cpu_features().items() if on))
    return {
        **versions(),
        "jaxlib": version("jaxlib"),
        "backend": backend,
        "device": jax.devices()[0].device_kind,
        "processor": f"{platform.machine()} {llvm.get_host_cpu_name()} {features}",
        **({"XLA_FLAGS": os.environ.get("XLA_FLAGS", "")} if backend == "xla" else {}),
    }
