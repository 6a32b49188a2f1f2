"""Strict in tests, plain in use: no silent promotion of types or ranks anywhere in retrax.

Also here: what keeps a run of all tests small and quick. Programs are released after each module,
the modules that take longest begin first, compiled programs are kept on disk, long tests are left
to the second tier (`tiers.py`), and `--budget` ends that in time.
"""

import ctypes
import itertools
import os
import random
import shutil
import signal
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest

from shards import Shard
from tiers import Clock, seconds_listed

# Most of the time of the tests is XLA compiling programs that run once: let it compile quickly.
QUICK = ["--xla_backend_optimization_level=0"]
if version("jax") < "0.11":  # later versions stop at a flag that they do not know
    QUICK.append("--xla_cpu_use_fusion_emitters=false")
os.environ.setdefault("XLA_FLAGS", " ".join(QUICK))

# The compiled programs of all modules take 0.4 GB; those of former versions are left over.
MOST_KEPT = 2 * 2**30
NO_TIME = "no time left"
# A process may have 65,530 maps of memory on Linux, and each program takes some.
MOST_MAPS = 20_000
_tests = itertools.count()


@pytest.fixture
def key():
    import jax

    return jax.random.key(0)


@pytest.fixture(scope="module", autouse=True)
def _forget_programs():
    """Release what a module has compiled: a process that keeps all runs out of memory maps."""
    from retrax.numerics.reuse import forget

    yield
    forget()
    if sys.platform == "linux":  # the C library keeps freed memory until it is asked
        ctypes.CDLL(None).malloc_trim(0)


def pytest_runtest_teardown():
    """Release within a module, too, what many tests have compiled."""
    if sys.platform == "linux" and next(_tests) % 8 == 0:
        with open("/proc/self/maps", "rb") as maps:
            many = sum(1 for _ in maps) > MOST_MAPS
        if many:
            from retrax.numerics.reuse import forget

            forget()


def pytest_addoption(parser):
    parser.addoption(
        "--budget",
        type=float,
        metavar="SECONDS",
        help="end after so many seconds, say what was not run, and do not fail for it",
    )
    parser.addoption(
        "--shard", metavar="K/N", help="run the K-th of N parts that take equally long"
    )
    parser.addoption(
        "--clock", metavar="FOLDER", help="write the time of each test into this folder"
    )


def pytest_configure(config):
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell started this in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # The process that only hands tests to workers needs nothing of what they test.
    if worker is not None or not config.getoption("numprocesses", None):
        _be_strict()
        _keep_programs(config, worker or "one")
    if config.getoption("clock") is not None:
        folder = Path(config.getoption("clock"))
        folder.mkdir(parents=True, exist_ok=True)
        config.pluginmanager.register(Clock(folder / f"{worker}.jsonl"), "clock")
    shard, budget = config.getoption("shard"), config.getoption("budget")
    if shard is not None:
        config.pluginmanager.register(Shard(shard), "shard")
    if budget is not None:
        config.pluginmanager.register(Budget(budget, in_order=shard is not None), "budget")


def _be_strict() -> None:
    import jax

    from retrax.numerics.checks import require_double_precision

    require_double_precision()
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    jax.config.update("jax_numpy_rank_promotion", "raise")


def _keep_programs(config, worker: str) -> None:
    """Keep what XLA compiles on disk: for the next module that needs it, and for the next run.

    Each worker has a folder of its own, since JAX does not write whole files at once.
    """
    import jax

    if not config.pluginmanager.hasplugin("cacheprovider"):
        return
    folder: Path = config.cache.mkdir(f"xla-{worker}")
    if sum(file.stat().st_size for file in folder.iterdir()) > MOST_KEPT:
        shutil.rmtree(folder)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


@pytest.hookimpl(tryfirst=True)  # before the marks are looked at
def pytest_collection_modifyitems(items):
    """Mark the second tier, and begin with the files that take longest.

    Each file stays on one worker (`--dist loadfile`).
    """
    names = {name: k for k, name in enumerate(seconds_listed())}
    for item in items:
        if item.nodeid in names:
            item.add_marker("campaign")
    items.sort(key=lambda item: names.get(item.nodeid.partition("::")[0], 0))


class Budget:
    """Ends the tests in time, in another order on every day, so that each has its turn.

    Tests of a part are left `in_order`, the longest files first: there is time for all of it.
    """

    def __init__(self, seconds: float, in_order: bool = False):
        self.seconds, self.end = seconds, time.monotonic() + seconds
        self.in_order = in_order
        self.interrupted = False
        self.left: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        if self.in_order:
            return
        files = sorted({item.path for item in items})
        random.Random(time.strftime("%Y-%j")).shuffle(files)
        items.sort(key=lambda item: files.index(item.path))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Interrupt a test that is still running at the end."""
        self.interrupted = self.end <= time.monotonic()
        if self.interrupted:
            item.add_marker(pytest.mark.skip(reason=NO_TIME))
            return (yield)
        before = signal.signal(signal.SIGALRM, self._stop)
        signal.setitimer(signal.ITIMER_REAL, self.end - time.monotonic())
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def _stop(self, number, frame):
        self.interrupted = True
        pytest.skip(NO_TIME)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item):
        report = yield
        if report.failed and self.interrupted:  # whatever it made of being interrupted
            path, line, _ = item.location
            report.outcome, report.longrepr = "skipped", (path, line or 0, NO_TIME)
        return report

    def pytest_runtest_logreport(self, report):
        if report.skipped and NO_TIME in str(report.longrepr):
            self.left.append(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter):
        terminalreporter.section("time")
        if not self.left:
            terminalreporter.line(f"Everything was run within {self.seconds:.0f} s.")
            return
        terminalreporter.line(f"{len(self.left)} tests were not run within {self.seconds:.0f} s:")
        for file in sorted({name.partition("::")[0] for name in self.left}):
            count = sum(name.startswith(file + "::") for name in self.left)
            terminalreporter.line(f"  {file}: {count}")
