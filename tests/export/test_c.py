"""Exported C: no warning, the bits of the native loop, failure as a status."""

import ctypes
import subprocess

import equinox as eqx
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

STRICT = "-std=c99 -O2 -Wall -Wextra -Wconversion -pedantic -Werror -ffp-contract=off".split()


class Library:
    """The compiled C of a step: its structs as arrays of doubles."""

    def __init__(self, folder, name="top", flags=STRICT, real=np.float64):
        shared = folder / "step.so"
        told = f"int size(void);\nint size(void) {{ return (int)sizeof({name}_state); }}\n"
        (folder / "size.c").write_text(f'#include "{name}.h"\n{told}')
        sources = [str(folder / f) for f in (f"{name}.c", "size.c")]
        command = ["gcc", *flags, "-shared", "-fPIC", *sources, "-o", str(shared), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr, done.stderr
        self._library, self._name, self._real = ctypes.CDLL(str(shared)), name, real
        self.params = np.zeros(4096, real)
        self.state = np.zeros(self._library.size() // real().itemsize, real)
        self.info = np.zeros(8, real)
        self._call("defaults", self.params, self.state)

    def _call(self, function, *arguments):
        kinds = {float: ctypes.c_float if self._real == np.float32 else ctypes.c_double}
        given = [
            a.ctypes.data_as(ctypes.c_void_p)
            if isinstance(a, np.ndarray)
            else kinds.get(type(a), ctypes.c_long)(a)
            for a in arguments
        ]
        return getattr(self._library, f"{self._name}_{function}")(*given)

    def step(self, h):
        return self._call("step", self.params, self.state, float(h), self.info)

    def run(self, h, steps):
        return self._call("run", self.params, self.state, float(h), steps, self.info)

    def restart(self):
        self._call("restart", self.state)


@pytest.fixture
def exported(tmp_path, steps):
    def make(name, **settings):
        system, integrator, state, h = steps(name)
        assert rx.export(system, integrator, tmp_path / "top.c", state=state, h=h, **settings)
        return tmp_path

    return make


@pytest.mark.parametrize("name", KINDS)
def test_c_has_the_bits_of_the_native_loop_without_contraction(exported, steps, name):
    library = Library(exported(name))
    system, integrator, state, h = steps(name)
    wanted = uncontracted(system, integrator, state, h, 300)
    for _ in range(100):
        assert library.step(h) == 0
    assert library.run(h, 200) == 0
    np.testing.assert_array_equal(library.state[: len(wanted)], wanted)


def test_single_precision_follows_to_its_own_round_off(exported, steps):
    library = Library(exported("top", precision="float"), real=np.float32)
    wanted = uncontracted(*steps("top"), 100)
    assert library.run(0.01, 100) == 0
    np.testing.assert_allclose(library.state[:12], wanted[:12], atol=2e-5)  # 2.3e-6 measured


def test_a_step_carries_its_controller(exported, steps, tmp_path):
    """`control=` puts what drives a plant into the step; keys need double precision."""
    body, driven, start, h = steps("noisy")
    plant, by = rx.Actuated(body, jnp.eye(3)[:, :2]), driven.control
    begin = rx.State(start.g, start.momentum, start.t)
    options = {"state": begin, "h": h, "control": by}
    rx.export(plant, rx.LieVerlet(), tmp_path / "top.c", **options)
    library = Library(tmp_path)
    assert library.run(h, 60) == 0
    made = rx.simulate(plant, rx.LieVerlet(), begin, h=h, steps=60, control=by, progress=False)
    own = made.final.control.own
    np.testing.assert_array_equal(library.state[15:19], [*own["key"], *own["old"]])
    np.testing.assert_allclose(library.state[:9].reshape(3, 3), made.g[-1], rtol=0, atol=1e-14)
    with pytest.raises(rx.BadInput, match="export it with precision = 'double'"):
        rx.export(plant, rx.LieVerlet(), tmp_path / "top.c", precision="float", **options)
    with pytest.raises(rx.BadInput, match="drives a plant"):
        rx.export(body, rx.LieVerlet(), tmp_path / "top.c", control=by)
    with pytest.raises(rx.BadInput, match=r"period = 0.02 s is 0.66.* steps"):
        rx.export(plant, rx.LieVerlet(), tmp_path / "top.c", **(options | {"h": 0.03}))


def test_the_example_runs_and_prints_the_state(exported, steps):
    folder = exported("top")
    command = ["gcc", *STRICT, "top.c", "top_main.c", "-o", "top", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    said = subprocess.run(["./top", "50"], cwd=folder, check=True, capture_output=True, text=True)
    numbers = [float(line.split(" = ")[1]) for line in said.stdout.splitlines()]
    wanted = uncontracted(*steps("top"), 50)
    assert numbers == [wanted[-1], *wanted[:-1]]


def test_a_step_that_fails_leaves_the_state_and_says_why(exported):
    library = Library(exported("top"))
    library.run(0.01, 10)
    before = library.state.copy()
    assert library.step(1e9) in (1, 2, 3)
    np.testing.assert_array_equal(library.state[:13], before[:13])
    assert library.step(0.01) == 0


def test_the_clock_counts_steps_and_starts_anew_where_time_or_step_change(exported):
    library = Library(exported("top"))
    library.run(0.1, 3)
    assert library.state[12] == 3 * 0.1  # not 0.1 + 0.1 + 0.1
    library.run(0.25, 2)
    assert library.state[12] == 3 * 0.1 + 2 * 0.25
    library.state[12] = 7.0
    library.run(0.25, 1)
    assert library.state[12] == 7.25


def test_memory_is_made_anew_after_a_restart(exported, steps):
    library = Library(exported("string"))
    system, integrator, state, h = steps("string")
    library.run(h, 50)
    Library._call(library, "defaults", library.params, library.state)
    library.run(h, 20)
    wanted = uncontracted(system, integrator, state, h, 20)
    np.testing.assert_array_equal(library.state[: len(wanted)], wanted)


def test_parameters_and_state_have_the_names_of_the_fields(exported):
    header = (exported("top") / "top.h").read_text()
    for line in ("double inertia[3];", "double mass;", "double g[3][3];", "double momentum[3];"):
        assert line in header


def test_arrays_of_a_module_have_the_names_of_its_fields(tmp_path):
    layer = eqx.nn.Linear(1, "scalar", key=jax.random.key(0))
    system = rx.MechanicalSystem(rx.Translation(1), [1.0], layer)
    rx.export(system, rx.LieVerlet(), tmp_path / "layer.c")
    header = (tmp_path / "layer.h").read_text()
    assert "double potential_weight[1][1];" in header and "double potential_bias[1];" in header


def test_comments_say_which_function_computes_what(exported):
    text = (exported("top") / "top.c").read_text()
    assert "SO3.advance" in text and "update of a step" in text and "/* Parameters. */" in text


def test_a_cmakelists_of_somebody_else_is_left_alone(tmp_path, steps):
    (tmp_path / "CMakeLists.txt").write_text("project(mine)\n")
    system, integrator, *_ = steps("top")
    with pytest.raises(rx.BadInput, match="not written by retrax"):
        rx.export(system, integrator, tmp_path / "top.c")
    assert (tmp_path / "CMakeLists.txt").read_text() == "project(mine)\n"
    assert not (tmp_path / "top.c").exists()


def test_what_has_no_scalar_program_says_why(tmp_path):
    def potential(g):
        return jnp.sum(jax.scipy.special.gammaln(2.0 + g[0] ** 2))

    body = rx.MechanicalSystem(rx.SO3(), jnp.array([1.0, 2.0, 3.0]), potential)
    with pytest.raises(rx.BadInput, match=r"cannot be exported.*lgamma"):
        rx.export(body, rx.RKMK("rk4"), tmp_path / "top.c")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"path": "top.py"}, "written to .c"),
        ({"path": "2top.c"}, "no name in C"),
        ({"path": "top.c", "precision": "half"}, "precision"),
        ({"path": "top.c", "target": "aarch64"}, "leave target out"),
        ({"path": "top.o", "target": "z80"}, "not known"),
        ({"path": "top.c", "h": float("nan")}, "finite"),
    ],
)
def test_wrong_arguments_are_told(tmp_path, steps, settings, said):
    system, integrator, *_ = steps("top")
    path = tmp_path / settings.pop("path")
    with pytest.raises(rx.BadInput, match=said):
        rx.export(system, integrator, path, **settings)
    assert not path.exists()
