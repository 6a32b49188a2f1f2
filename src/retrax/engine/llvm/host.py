"""The processor that this process runs on."""

from functools import cache


@cache
def lanes() -> int:
    """Return how many numbers are worked on side by side: as many as a vector register holds.

    There are four where it holds fewer. Where every number takes two registers, half of them are on
    their way to memory, and LLVM takes twice as long.
    """
    import llvmlite.binding as llvm

    return 8 if llvm.get_host_cpu_features().get("avx512f") else 4
