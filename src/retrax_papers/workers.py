"""Parts made one after the other, or by several processes that share them."""

import contextlib
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

from retrax_papers.catalogue import Paper, Part
from retrax_papers.catalogue import paper as by_name
from retrax_papers.report import write_json


class Made(NamedTuple):
    """A part that was made: its files in the gallery, and the seconds it took."""

    paper: Paper
    part: Part
    files: list[str]
    seconds: float


def made_parts(
    folder: Path,
    jobs: Sequence[tuple[Paper, Part]],
    quick: bool,
    workers: int,
    begin: Callable[[Paper, Part], object],
) -> Iterator[Made]:
    """Parts as they are finished; `begin` is called with each that is taken up.

    Several workers take the longest parts first, so that they end at about the same time; the
    papers must then be those of the catalogue.
    """
    if min(workers, len(jobs)) < 2:
        for paper, part in jobs:
            begin(paper, part)
            yield Made(paper, part, *make_part(folder, paper, part, quick))
        return
    waiting = sorted(jobs, key=lambda job: job[1].cost[0 if quick else 1])
    running: dict[Future, tuple[Paper, Part]] = {}
    with _pool(workers) as pool:
        while waiting or running:
            while waiting and len(running) < workers:
                paper, part = waiting.pop()
                begin(paper, part)
                future = pool.submit(_make_by_name, folder, paper.name, part.name, quick)
                running[future] = (paper, part)
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield Made(*running.pop(future), *future.result())


def make_part(folder: Path, paper: Paper, part: Part, quick: bool) -> tuple[list[str], float]:
    """Make a part and its record; returns the names of its files, and the seconds it took."""
    begun, place = time.perf_counter(), folder / paper.name
    place.mkdir(exist_ok=True)
    done = part.make(place, quick)
    path = record(folder, paper, part)
    path.parent.mkdir(exist_ok=True)
    write_json(path, done.data())
    files = [f"{paper.name}/{name}" for name in done.files()]
    return [*files, path.relative_to(folder).as_posix()], time.perf_counter() - begun


def record(folder: Path, paper: Paper, part: Part) -> Path:
    """Where what a part found is kept."""
    return folder / paper.name / "parts" / f"{part.name}.json"


def _make_by_name(folder: Path, paper: str, part: str, quick: bool) -> tuple[list[str], float]:
    found = by_name(paper)
    return make_part(folder, found, next(one for one in found.parts if one.name == part), quick)


@contextlib.contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with this block, however it is left, and with their parent."""
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, _end_with, (os.getpid(),))
    try:
        yield pool
        pool.shutdown()
    except BaseException:
        ours = set(multiprocessing.active_children()) - others
        pool.shutdown(wait=False, cancel_futures=True)
        for process in ours:
            process.terminate()
        raise


def _end_with(parent: int) -> None:
    """End this process when its parent is gone."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
