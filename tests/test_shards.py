"""The parts of the second tier: equally long, whole files, everything in its turn."""

import json
import subprocess
from types import SimpleNamespace

import pytest

import shards
from shards import BESIDE_OTHERS, FAILED, PASSED, Shard, chosen, parts, run_part, turn
from tiers import seconds_listed

SECONDS = {f"tests/f{k}.py::test_{i}": 1.0 + k % 7 for k in range(40) for i in range(1 + k % 5)}


def _length(files, seconds):
    return sum(s for test, s in seconds.items() if test.partition("::")[0] in files)


def test_parts_are_all_files_once_and_equally_long():
    shares = parts(SECONDS, 3, SECONDS)
    files = {test.partition("::")[0] for test in SECONDS}
    assert sorted(f for share in shares for f in share) == sorted(files)
    lengths = [_length(set(share), SECONDS) for share in shares]
    assert max(lengths) - min(lengths) < 0.03 * sum(lengths)


def test_parts_do_not_depend_on_the_order_of_the_tests():
    assert parts(reversed(list(SECONDS)), 4, SECONDS) == parts(SECONDS, 4, SECONDS)


def test_the_longest_files_of_a_part_come_first():
    for share in parts(SECONDS, 3, SECONDS):
        lengths = [_length({file}, SECONDS) for file in share]
        assert lengths == sorted(lengths, reverse=True)


def test_the_parts_of_the_listed_tests_differ_by_less_than_two_percent():
    listed = {test: s for test, s in seconds_listed().items() if "::" in test}
    lengths = [_length(set(share), listed) for share in parts(listed, 3, listed)]
    assert max(lengths) < 1.02 * min(lengths)


def test_tests_that_are_not_listed_count_too():
    shares = parts([f"tests/new_{k}.py::test" for k in range(6)], 3, {})
    assert [len(share) for share in shares] == [2, 2, 2]


def test_more_parts_than_files_leave_some_empty():
    assert sorted(map(len, parts(["tests/a.py::test"], 3, {}))) == [0, 0, 1]


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b", "1/0", "-1/3"])
def test_a_part_that_is_none_is_refused(text):
    with pytest.raises(pytest.UsageError, match="write it as 2/3"):
        chosen(text)


def test_a_shard_keeps_its_files_and_tells_of_the_others():
    names, told = [*SECONDS, "tests/new.py::test_a"], []
    config = SimpleNamespace(
        hook=SimpleNamespace(pytest_deselected=lambda items: told.extend(items))
    )
    seen = []
    for part in (1, 2, 3):
        items = [SimpleNamespace(nodeid=name) for name in names]
        told.clear()
        Shard(f"{part}/3").pytest_collection_modifyitems(config, items)
        assert len(items) + len(told) == len(names)
        seen += [item.nodeid for item in items]
    assert sorted(seen) == sorted(names)


def _commit(folder, count):
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "init", "-q", folder], check=True)
    for k in range(count):
        words = ["commit", "-q", "--allow-empty", "-m", f"{k}"]
        subprocess.run(["git", *who, "-C", folder, *words], check=True)


def test_the_turn_goes_round_with_the_commits_and_is_said(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(shards, "ROOT", tmp_path)
    turns = []
    for _ in range(3):
        _commit(tmp_path, 1)
        turns.append(turn(3, said.append))
    assert sorted(turns) == [1, 2, 3]
    assert said[0] == "Second tier, part 2 of 3: commit number 1."


def test_a_clone_without_history_goes_by_the_name_of_its_commit(tmp_path, monkeypatch):
    _commit(tmp_path / "whole", 3)
    where = [f"file://{tmp_path / 'whole'}", tmp_path / "cut"]
    subprocess.run(["git", "clone", "-q", "--depth", "1", *where], check=True)
    said = []
    monkeypatch.setattr(shards, "ROOT", tmp_path / "cut")
    assert turn(3, said.append) in (1, 2, 3)
    assert "without its history" in said[0]


def test_without_commits_it_goes_by_the_day(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(shards, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert turn(3, said.append) in (1, 2, 3)
    assert "the day" in said[0]


class _Runs:
    """Stands for pytest: the first call fails with these tests, later ones end as they are told."""

    def __init__(self, folder, failed, later):
        self.folder, self.failed, self.later, self.calls = folder, failed, list(later), []

    def __call__(self, words, cwd, timeout=None):
        self.calls.append(words)
        if len(self.calls) > 1:
            outcome = self.later.pop(0)
            if outcome is None:
                raise subprocess.TimeoutExpired(words, timeout)
            return outcome
        place = self.folder / ".pytest_cache" / "v" / "cache"
        place.mkdir(parents=True)
        if self.failed:
            (place / "lastfailed").write_text(json.dumps(dict.fromkeys(self.failed, True)))
        return FAILED if self.failed else PASSED


@pytest.mark.parametrize(
    ("failed", "later", "status"),
    [
        ([], [], PASSED),
        (["a.py::t"], [PASSED], PASSED),
        (["a.py::t"], [FAILED], FAILED),
        (["a.py::t"], [None], FAILED),
        (["a.py::t", "b.py::t"], [PASSED, FAILED], FAILED),
        ([f"a.py::t{k}" for k in range(shards.MOST_AGAIN + 1)], [], FAILED),
    ],
)
def test_what_fails_counts_only_if_it_fails_by_itself_too(
    failed, later, status, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(shards, "ROOT", tmp_path)
    run = _Runs(tmp_path, failed, later)
    assert run_part(2, 3, 1500.0, "2", run) == status
    assert "--shard" in run.calls[0] and run.calls[0][-1] == "1350"
    assert [words[-1] for words in run.calls[1:]] == (failed if later else [])
    assert all(words[words.index("-n") + 1] == "0" for words in run.calls[1:])
    assert (BESIDE_OTHERS in capsys.readouterr().out) == (PASSED in later)


def test_a_part_that_did_not_begin_has_failed(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "ROOT", tmp_path)
    assert run_part(1, 1, 100.0, "2", lambda words, cwd: 4) == 4
    assert run_part(1, 1, 100.0, "2", lambda words, cwd: shards.NONE) == PASSED
