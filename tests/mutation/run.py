"""Mutation testing of the numerical core: `docs/mutation.md` is its report.

    python tests/mutation/run.py [--workers 2] [--sample 20] [--limit 60] [module ...]
    python tests/mutation/run.py --page

Of every module a sample of its mutants is planted, chosen with a fixed seed; `--sample 0` takes
all. Results go to `results.json` beside this file: what is in it is not done again.
`--survivors` plants the survivors among them again, and only these, after tests have become better.
A mutant on which the checks take longer than `--limit` seconds hangs, and has been noticed.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path
from queue import Empty, Queue

from checks import MODULES
from mutants import Mutant, mutants

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RESULTS = HERE / "results.json"
SEED = 10


class Worker:
    """A process that plants mutants; ended and started anew where one hangs."""

    def __init__(self, limit: float):
        self.limit, self.process = limit, None

    def ask(self, module: str, number: str) -> str | None:
        """What notices the mutant; `None` where nothing does."""
        process = self.process or self._start()
        assert process.stdin is not None and process.stdout is not None
        timer = threading.Timer(self.limit, process.kill)
        timer.start()
        try:
            process.stdin.write(f"{module} {number}\n")
            process.stdin.flush()
            for line in process.stdout:
                if line.startswith("answer "):
                    return json.loads(line.removeprefix("answer "))
        except BrokenPipeError:
            pass
        finally:
            timer.cancel()
        process.wait()
        self.process = None
        return "time limit" if process.returncode == -9 else "the process ended"

    def _start(self) -> subprocess.Popen:
        path = os.pathsep.join(
            [str(ROOT / "src"), str(HERE), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        )
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        return self.process

    def close(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait()


def sampled(module: str, size: int) -> list[Mutant]:
    everything = [m for m in mutants(module) if m.changes_something]
    if size == 0 or len(everything) <= size:
        return everything
    chosen = set(random.Random(f"{SEED} {module}").sample(everything, size))
    return [mutant for mutant in everything if mutant in chosen]


def written() -> dict[Mutant, str | None]:
    """What noticed each mutant that has been planted, however its module has changed since."""
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    return {Mutant(*row[:-1]): row[-1] for row in rows}


def write(results: dict[Mutant, str | None]) -> None:
    rows = [json.dumps([*mutant, noticed]) for mutant, noticed in sorted(results.items(), key=str)]
    RESULTS.write_text("[\n" + ",\n".join(rows) + "\n]\n")


def work(queue: Queue, limit: float, lock: threading.Lock) -> None:
    """Take module after module; the first time round in a process everything is compiled."""
    worker = Worker(limit)
    while True:
        try:
            batch = queue.get_nowait()
        except Empty:
            return worker.close()
        for mutant in batch:
            if worker.process is None or mutant is batch[0]:
                worker.limit = 10 * limit
                wrong = worker.ask(mutant.module, "-")
                if wrong is not None:
                    print(f"{mutant.module} fails without a change: {wrong}", flush=True)
                    break
                worker.limit = limit
            site = mutants(mutant.module)[mutant]
            answer = worker.ask(mutant.module, str(site.number))
            with lock:
                write({**written(), mutant: answer})
            verdict = "killed  " if answer else "SURVIVED"
            print(verdict, mutant.module, site.line, mutant.change, flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--sample", type=int, default=20)
    options.add_argument("--limit", type=float, default=60.0)
    options.add_argument("--survivors", action="store_true", help="plant these again")
    options.add_argument("--page", action="store_true")
    options.add_argument("modules", nargs="*", default=[])
    chosen = options.parse_args()
    if chosen.page:
        from page import write_page

        return write_page(written())
    queue = Queue()
    done = written()
    alive = {mutant for mutant, noticed in done.items() if noticed is None}
    for module in chosen.modules or MODULES:
        if chosen.survivors:
            batch = [m for m in sampled(module, 0) if m in alive]
        else:
            batch = [m for m in sampled(module, chosen.sample) if m not in done]
        if batch:
            queue.put(batch)
    lock = threading.Lock()
    threads = [
        threading.Thread(target=work, args=(queue, chosen.limit, lock))
        for _ in range(min(chosen.workers, queue.qsize()))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
