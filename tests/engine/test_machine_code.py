"""What is loaded from disk is what was written there, by this user; or it is compiled again."""

import hashlib
import os
import pwd
import stat
import subprocess
import sys

import pytest

from retrax.engine.llvm import machine_code

ASSEMBLY = "define i64 @run() {\n  ret i64 42\n}"
NAME = "0" * 64


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RETRAX_CACHE", str(tmp_path / "kernels"))
    monkeypatch.setattr(machine_code, "_said", set())
    return tmp_path / "kernels"


@pytest.fixture
def file(folder):
    machine_code.store_code(NAME, b"machine code " * 20)
    return folder / f"{NAME}.kernel"


def test_a_kernel_comes_back_as_it_was_written(file):
    assert machine_code.stored_code(NAME) == b"machine code " * 20
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_single_flipped_bit_is_found_wherever_it_is(file):
    content = file.read_bytes()
    for place in range(len(content)):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[place] ^= 1 << bit
            assert machine_code._verify(NAME, bytes(damaged)) is None


def test_every_other_damage_is_found(file):
    content = file.read_bytes()
    noise = b"".join(hashlib.sha256(bytes([k])).digest() for k in range(20))
    damaged = [content[:k] for k in range(len(content))]
    damaged += [content + b"\0", content[1:], noise, bytes(len(content)), content[::-1], b"\x7fELF"]
    assert all(machine_code._verify(NAME, other) is None for other in damaged)
    for other in (b"", content[:100], noise, content[:-1] + b"\0"):
        file.write_bytes(other)
        assert machine_code.stored_code(NAME) is None
    file.write_bytes(content)
    other_name = file.with_name(f"{'1' * 64}.kernel")
    file.rename(other_name)
    assert machine_code.stored_code("1" * 64) is None


def test_a_damaged_kernel_is_compiled_again_and_replaced(folder):
    machine_code.Compiled(ASSEMBLY)
    (kept,) = folder.iterdir()
    whole = kept.read_bytes()
    for damage in (b"", whole[:200], b"\x00" * len(whole)):
        kept.write_bytes(damage)
        machine_code.Compiled(ASSEMBLY)
        assert kept.read_bytes() == whole


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, 0o1777])
def test_nothing_is_loaded_from_a_folder_that_others_can_write_to(file, mode):
    file.parent.chmod(mode)
    with pytest.warns(UserWarning, match="can be written by others.*chmod go-w") as said:
        assert machine_code.stored_code(NAME) is None
        assert machine_code.stored_code(NAME) is None
        machine_code.store_code("1" * 64, b"code")
    assert len(said) == 1
    assert len(list(file.parent.iterdir())) == 1
    file.parent.chmod(0o755)
    assert machine_code.stored_code(NAME) is not None


def test_nothing_is_loaded_from_a_folder_of_somebody_else(file, monkeypatch):
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.warns(UserWarning, match=f"belongs to user {owner}, and this process runs as"):
        assert machine_code.stored_code(NAME) is None


def test_nothing_is_loaded_from_a_file_that_others_can_write_to_or_that_is_none(file):
    code = machine_code.stored_code(NAME)
    file.chmod(0o666)
    assert machine_code.stored_code(NAME) is None
    file.chmod(0o600)
    assert machine_code.stored_code(NAME) == code
    elsewhere = file.with_name("elsewhere")
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    assert machine_code.stored_code(NAME) is None
    file.unlink()
    os.mkfifo(file)
    assert machine_code.stored_code(NAME) is None
    file.unlink()
    file.mkdir()
    assert machine_code.stored_code(NAME) is None
    machine_code.store_code(NAME, b"code")
    assert sorted(path.name for path in file.parent.iterdir()) == sorted([file.name, "elsewhere"])


def test_a_linked_folder_is_judged_by_where_it_leads(file, monkeypatch, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(file.parent)
    monkeypatch.setenv("RETRAX_CACHE", str(link))
    assert machine_code.stored_code(NAME) is not None
    file.parent.chmod(0o777)
    with pytest.warns(UserWarning, match="can be written by others"):
        assert machine_code.stored_code(NAME) is None


def test_a_folder_that_cannot_be_used_is_no_reason_to_stop(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file" / "below", tmp_path / ("x" * 300), "/proc/self/nowhere"):
        monkeypatch.setenv("RETRAX_CACHE", str(folder))
        machine_code.Compiled(ASSEMBLY)
    monkeypatch.setenv("RETRAX_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="is not a folder"):
        machine_code.Compiled(ASSEMBLY)


def test_a_user_without_name_and_home_compiles_without_a_folder(monkeypatch):
    for name in ("HOME", "XDG_CACHE_HOME", "RETRAX_CACHE"):
        monkeypatch.delenv(name, raising=False)

    def nameless(uid):
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr(pwd, "getpwuid", nameless)
    assert machine_code.cache_folder() is None
    machine_code.Compiled(ASSEMBLY)


def test_a_damaged_file_does_not_end_the_process(folder):
    """What crashed before: a file that is no object file, under the name of a kernel."""
    machine_code.Compiled(ASSEMBLY)
    (kept,) = folder.iterdir()
    kept.write_bytes(b"garbage" * 100)
    kept.with_suffix(".o").write_bytes(b"garbage" * 100)
    code = f"from retrax.engine.llvm.machine_code import Compiled; Compiled({ASSEMBLY!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
