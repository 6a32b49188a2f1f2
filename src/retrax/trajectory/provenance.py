"""How a run was made, so that it can be made again."""

import contextlib
import datetime
import os
import platform
import time
from collections.abc import Iterator
from contextvars import ContextVar
from functools import lru_cache
from importlib.metadata import version

import jax

from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.system import AbstractGroupSystem

_LABELS: ContextVar[dict[str, str] | None] = ContextVar("labels", default=None)


@contextlib.contextmanager
def label_runs(**labels: str) -> Iterator[None]:
    """Label all runs made meanwhile, from their first commit on."""
    before = _LABELS.set((_LABELS.get() or {}) | labels)
    try:
        yield
    finally:
        _LABELS.reset(before)


class Origin:
    """Who made a run, and when; told in words when somebody asks."""

    __slots__ = ("backend", "created", "integrator", "labels", "system")

    def __init__(self, system: AbstractGroupSystem, integrator: AbstractIntegrator, backend: str):
        self.system, self.integrator, self.backend = system, integrator, backend
        self.created, self.labels = time.time(), _LABELS.get()

    def describe(self) -> dict[str, str]:
        """Name what was run, and the versions of what ran it."""
        created = datetime.datetime.fromtimestamp(self.created, datetime.UTC)
        return {
            "system": self.system.name,
            "group": self.system.configuration_space.name,
            "integrator": repr(self.integrator),
            "counted": self.integrator.counted,
            "backend": self.backend,
            "device": jax.devices()[0].device_kind,
            "created": created.isoformat(timespec="seconds"),
            **versions(),
            **(self.labels or {}),
        }


def provenance(
    system: AbstractGroupSystem, integrator: AbstractIntegrator, backend: str
) -> dict[str, str]:
    """Name what is run now, and the versions of what runs it."""
    return Origin(system, integrator, backend).describe()


@lru_cache
def versions() -> dict[str, str]:
    """Return the versions of what a run depends on."""
    packages = ("retrax", "jax", "numpy", "llvmlite")
    return {"python": platform.python_version(), **{p: version(p) for p in packages}}


def environment(backend: str) -> dict[str, str]:
    """Return all that the bits of a run depend on, besides what is run."""
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
