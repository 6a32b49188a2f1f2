"""`python -m tests.bad_input --examples 10000`: how many calls end as they should."""

import argparse
import collections
import faulthandler
import os
import resource
import sys
import time

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

from .campaign import examine
from .files import folder
from .pinned import broken
from .registry import REGISTRY


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bad_input", description=__doc__)
    parser.add_argument("--examples", type=int, default=300, help="calls in all")
    parser.add_argument("--only", default="", help="entries whose name has this in it")
    parser.add_argument("--seed", type=int, default=0, help="which calls; the same ones for each")
    parser.add_argument("--show", type=int, default=5, help="wrong calls to show of each entry")
    parser.add_argument("--cheap", action="store_true", help="leave out what takes seconds a call")
    parser.add_argument("--list", action="store_true", help="print the names of the entries")
    options = parser.parse_args()
    if options.list:
        print("\n".join(REGISTRY))
    faulthandler.enable()
    _limit_memory()
    os.chdir(folder())  # paths that are accepted by mistake are written here

    chosen = [e for e in REGISTRY.values() if options.only in e.name and e.cheap >= options.cheap]
    missed = broken(chosen)
    print("\n".join(missed))
    total = sum(e.weight for e in chosen)
    kinds: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    clock = time.perf_counter()
    for entry in chosen:
        began = time.perf_counter()
        count = examine(entry, max(1, round(options.examples * entry.weight / total)), options.seed)
        kinds[entry.kind].update(count.outcomes)
        seen = set()
        for what, verdict in count.wrong:
            if verdict.detail[:60] not in seen and len(seen) < options.show:
                print(f"WRONG {entry.name}({what}): {verdict.detail}")
                seen.add(verdict.detail[:60])
        seconds = time.perf_counter() - began
        print(f"{entry.name}: {dict(count.outcomes)} in {seconds:.1f} s", flush=True)
    _print_table(kinds, time.perf_counter() - clock)
    return int(bool(missed) or any(c["wrong"] for c in kinds.values()))


def _limit_memory() -> None:
    """A call that asks for more memory than there is fails by itself, and not the machine.

    What is only reserved, as threads and drivers do by the gigabyte, does not count.
    """
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = 10 * 2**30
    least = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(resource.RLIMIT_DATA, (least, most))


def _print_table(kinds: dict[str, collections.Counter[str]], seconds: float) -> None:
    columns = ("accepted", "refused", "python", "wrong")
    print(f"| {'input':24} | " + " | ".join(f"{c:>8}" for c in (*columns, "all")) + " |")
    print(f"|{'-' * 26}|" + f"{'-' * 9}:|" * 5)
    everything = sum(kinds.values(), collections.Counter())
    for kind, count in [*sorted(kinds.items()), ("all", everything)]:
        numbers = [*(count[c] for c in columns), sum(count.values())]
        print(f"| {kind:24} | " + " | ".join(f"{n:8d}" for n in numbers) + " |")
    print(f"{seconds:.0f} s")


sys.exit(main())
