"""Write rows and commit records so that a crash at any moment leaves the last commit whole."""

import contextlib
import threading
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from retrax.errors import BadInput
from retrax.files import WritingLock, appearing, replacing, sync_folder
from retrax.store.checkpoint_format import (
    RECORD,
    START,
    Column,
    chunk_end,
    digest,
    record_text,
    rows_per_chunk,
    start_text,
)
from retrax.store.checkpoint_read import Stored


class Store:
    """One checkpoint that is being written.

    `append` fills a chunk of rows for each column, and writes it when it is full; `commit` writes
    what is in the unfinished chunks and replaces the commit record. A file is written beside its
    place, forced to disk, and then put there. Whoever makes a store holds its lock.
    """

    def __init__(self, path: Path, kinds: list[Column], record: dict[str, Any], lock: WritingLock):
        self.path, self.kinds, self.record = path, kinds, record
        self._per_chunk = record["rows_per_chunk"]
        self._chunks = [np.zeros((self._per_chunk, *k.shape), k.dtype) for k in kinds]
        self._crc, self._rows, self._again = [0] * len(kinds), 0, 0
        self._unsaved = self._unsynced = False
        self._lock = lock

    @classmethod
    def create(
        cls,
        path: Path,
        kinds: list[Column],
        record: dict[str, Any],
        start: dict[str, Any],
        leaves: list[np.ndarray],
    ) -> "Store":
        """Make a store with its first rows; it appears under its name when all of it is there."""
        require_free(path)
        try:
            with contextlib.ExitStack() as stack, appearing(path) as made:
                for folder in (*(kind.name for kind in kinds), Path(START).parent):
                    (made / folder).mkdir()
                begun = start_text(start)
                place(made / START, begun)
                sync_folder((made / START).parent)
                more = {"rows_per_chunk": rows_per_chunk(kinds), "commit": 0}
                whole = {**record, **more, "start": digest(begun)}
                lock = WritingLock(made)
                stack.callback(lock.release)
                store = cls(made, kinds, whole, lock)
                store.append(leaves)
                store.commit({})
                stack.pop_all()
        except OSError as cause:
            raise unwritable(path, cause) from cause
        store.path = path
        return store

    @classmethod
    def reopen(cls, stored: Stored, rows: int, again: int, lock: WritingLock) -> "Store":
        """Reopen a store after its first `rows` rows; the last `again` of them come once more."""
        store = cls(stored.path, stored.columns, stored.record, lock)
        store._fill([array[:rows] for array in stored.arrays], write=False)
        store._again = again
        return store

    def append(self, leaves: list[np.ndarray]) -> None:
        """Add rows to each column, except those that are there already."""
        known = min(self._again, len(leaves[0]))
        self._again -= known
        self._fill([leaf[known:] for leaf in leaves], write=True)

    def _fill(self, leaves: list[np.ndarray], write: bool) -> None:
        at, done, count = self._rows % self._per_chunk, 0, len(leaves[0])
        while done < count:
            many = min(count - done, self._per_chunk - at)
            for k, (chunk, leaf) in enumerate(zip(self._chunks, leaves, strict=True)):
                part = np.ascontiguousarray(leaf[done : done + many], dtype=chunk.dtype)
                chunk[at : at + many] = part
                self._crc[k] = zlib.crc32(part.tobytes(), self._crc[k])
            self._rows, done, at = self._rows + many, done + many, at + many
            self._unsaved = write
            if at == self._per_chunk:
                if write:
                    self._write_chunks(self._rows // self._per_chunk - 1, at)
                for chunk in self._chunks:
                    chunk[:] = 0
                at, self._unsaved = 0, False

    def commit(self, changes: dict[str, Any]) -> None:
        """Commit the rows so far, and the changes to the record."""
        if self._unsaved:
            self._write_chunks(*divmod(self._rows, self._per_chunk))
            self._unsaved = False
        if self._unsynced:
            for kind in self.kinds:
                sync_folder(self.path / kind.name)
            self._unsynced = False
        crc = {kind.name: value for kind, value in zip(self.kinds, self._crc, strict=True)}
        number = self.record["commit"] + 1
        record = {**self.record, **changes, "rows": self._rows, "crc": crc, "commit": number}
        place(self.path / RECORD, record_text(record, self.kinds))
        self.record = record
        sync_folder(self.path)

    def release(self) -> None:
        """Let others write."""
        self._lock.release()

    def _write_chunks(self, number: int, filled: int) -> None:
        for kind, chunk in zip(self.kinds, self._chunks, strict=True):
            rows, end = chunk[:filled].tobytes(), chunk_end(chunk.tobytes())
            place(self.path / kind.file(number), rows, end, size=chunk.nbytes)
        self._unsynced = True


def place(path: Path, data: bytes, end: bytes = b"", size: int | None = None) -> None:
    """Write a file beside its place, force it to disk, and put it there.

    With `size` there are zeros up to that many bytes before the `end`.
    """
    with replacing(path, f".{path.name}.tmp") as temporary:
        with open(temporary, "r+b", buffering=0) as file:
            _write(file, data)
            if end:
                file.seek(size or len(data))
                _write(file, end)


def _write(file: Any, data: bytes) -> None:
    """Write all bytes: a disk that is nearly full takes some at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def require_free(path: Path) -> None:
    """Reject a path where something is, or whose folder does not exist."""
    if not path.parent.is_dir():
        raise BadInput(
            f"checkpoint = {str(path)!r}: the folder {str(path.parent)!r} does not exist."
        )
    if path.exists() or path.is_symlink():
        what = "file" if path.is_file() else "folder"
        raise BadInput(
            f"checkpoint = {str(path)!r} is a {what} that exists already, and nothing is "
            "overwritten: go on with a run by rx.resume, or give a new one another name."
        )


def unwritable(path: Path, cause: OSError) -> BadInput:
    return BadInput(f"checkpoint = {str(path)!r} cannot be written: {cause.strerror}.")


Rows = list[np.ndarray]

# Writing may take this part of the processor's time: after a commit the thread rests so long, but
# no longer than this many seconds.
_PART, _LONGEST = 0.005, 10.0


class Writer:
    """A thread that takes rows and commits them, in order.

    After a commit it rests; it is `idle` when the next one would be written at once. What goes
    wrong is kept in `failure`, and nothing is written after it.
    """

    def __init__(self, store: Store):
        self.store, self.failure, self.idle = store, None, True
        self._waiting: list[tuple[list[Rows], dict[str, Any]]] = []
        self._changed, self._closing = threading.Condition(), False
        self._thread = threading.Thread(target=self._work, name="checkpoint", daemon=True)
        self._thread.start()

    def commit(self, rows: list[Rows], changes: dict[str, Any]) -> None:
        """Commit rows, and changes to the record, soon."""
        with self._changed:
            self.idle = False
            self._waiting.append((rows, changes))
            self._changed.notify()

    def close(self) -> None:
        """Wait until all is written."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()
        self.store.release()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                todo, self._waiting = self._waiting, []
            if not todo:
                return
            if self.failure is None:
                clock = time.thread_time()
                self._write(todo)
                self._rest((time.thread_time() - clock) / _PART)
                self.idle = True

    def _rest(self, seconds: float) -> None:
        """Wait until this process has had some seconds of the processor, but not too long."""
        end, latest = time.process_time() + seconds, time.monotonic() + _LONGEST
        with self._changed:
            while not self._closing and time.monotonic() < latest:
                left = end - time.process_time()
                if left <= 0:
                    return
                self._changed.wait_for(lambda: self._closing, timeout=min(left, _LONGEST))

    def _write(self, todo: list[tuple[list[Rows], dict[str, Any]]]) -> None:
        try:
            for rows, _ in todo:
                for leaves in rows:
                    self.store.append(leaves)
            self.store.commit(todo[-1][1])
        except Exception as cause:
            self.failure = cause
