"""Objects for other machines: small, and of the right machine; that of this one gives C's bits."""

import struct
import subprocess

import pytest

import retrax as rx
from retrax.exporting.llvm_step import section_sizes

MACHINES = {"x86_64": 62, "thumbv7em": 40, "aarch64": 183, "riscv32": 243}


@pytest.mark.parametrize("target", MACHINES)
def test_an_object_is_for_its_machine_and_small(tmp_path, target):
    system, state, h, _ = rx.systems.Pendulum3D.paper()
    path = rx.export(system, rx.LieVerlet(), tmp_path / "top.o", target, state=state, h=h)
    code = path.read_bytes()
    assert struct.unpack_from("<H", code, 18)[0] == MACHINES[target]
    assert sum(section_sizes(code).values()) < 13_000  # 10,756 on thumbv7em, 11,652 on riscv32
    assert (tmp_path / "top.h").exists()


@pytest.mark.parametrize("name", ["top", "string"])
def test_the_object_of_a_plain_processor_has_the_bits_of_c(tmp_path, steps, name):
    system, integrator, state, h = steps(name)
    rx.export(system, integrator, tmp_path / "top.c", state=state, h=h)
    rx.export(system, integrator, tmp_path / "top.o", "x86_64", state=state, h=h)
    said = []
    for step in ("top.c", "top.o"):
        command = ["gcc", "-std=c99", "-O2", "top_main.c", step, "-o", "run", "-lm"]
        subprocess.run(command, cwd=tmp_path, check=True)
        done = subprocess.run(["./run", "200"], cwd=tmp_path, check=True, capture_output=True)
        said.append(done.stdout)
    assert said[0] == said[1]
