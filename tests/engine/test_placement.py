"""Where buffers lie in memory, and what a step leaves to the next one."""

import jax.numpy as jnp
import numpy as np
import pytest
from evaluate import evaluate_program

import retrax as rx
from retrax.engine.llvm.host import lanes
from retrax.engine.llvm.kernel import assemble
from retrax.engine.passes.live import buffers_of, live
from retrax.engine.passes.placement import (
    LINE,
    MemoryPlan,
    place_of,
    size_of,
    view_in_columns,
    widths,
)
from retrax.engine.program import Buffer, CodeBlock, Each, View, walk
from retrax.engine.step_program import signature, step_program
from retrax.engine.trace.scalarise import scalarise

N = 37
RNG = np.random.default_rng(8)
X = jnp.asarray(RNG.normal(size=(N, 3)))
F = jnp.asarray(RNG.normal(size=3 * N))


def rod(elements=24, **others):
    return rx.systems.Rod(
        elements, 1.3, stretching=(9.0, 8.0, 30.0), bending=(0.02, 0.03, 0.015), mass=0.9,
        inertia=(2e-3, 1.5e-3, 3e-3), **others,
    )  # fmt: skip


def thrown(system):
    s = np.linspace(0.0, 1.0, system.nodes)
    v = 0.4 * np.stack([s, 1 - s**2, np.sin(5 * s)], axis=1)
    omega = 0.7 * np.stack([np.cos(3 * s), s, s**2], axis=1)
    return system.state(system.straight((0.3, -0.2, 1.0)), velocity=system.velocity_of(omega, v))


@pytest.mark.parametrize("width, length", [(3, 37), (9, 16), (2, 1024)])
def test_every_entry_has_a_place_of_its_own(width, length):
    buffer = Buffer(1, width * length)
    places = [place_of(buffer, i, width) for i in range(buffer.length)]
    assert len(set(places)) == buffer.length and max(places) < size_of(buffer, width)
    view = view_in_columns(View(buffer, width + 1, 2 * width, 5), width)
    assert [view.offset + k * view.stride for k in range(5)] == [
        places[width + 1 + 2 * width * k] for k in range(5)
    ]
    starts = [places[c] for c in range(width)]
    assert all(start % LINE == 0 for start in starts)
    assert (starts[1] - starts[0]) % 512


def test_a_row_that_is_read_number_by_number_stays_as_it_is():
    by_things = live(scalarise(lambda x: x[1:] - 2.0 * x[:-1], X))
    assert set(widths(by_things, ()).values()) == {3}
    both = live(scalarise(lambda f: (f[1:] - f[:-1], f.reshape(N, 3) * 2.0), F))
    assert both.inputs[0] not in widths(both, ())


def springs(x):
    d = x[1:] - x[:-1]
    return x + jnp.sin(jnp.concatenate([d[:1], d]) * jnp.sqrt(jnp.sum(d * d)))


def test_buffers_that_are_in_use_together_lie_apart():
    """Memory is used again, but never while a buffer in it may still be read."""
    program = live(scalarise(lambda x: springs(springs(springs(x))), X))
    plan = MemoryPlan(widths(program, ()))
    block = plan.place(program.block, program.outputs, program.inputs)
    used = [set().union(*buffers_of(CodeBlock([one]))) for one in block.instructions]
    outputs = {x for x in program.outputs if isinstance(x, Buffer)}
    spans = {}
    for buffer in set().union(*used) & set(plan.offsets):
        at = [k for k, buffers in enumerate(used) if buffer in buffers]
        spans[buffer] = (min(at), len(used) if buffer in outputs else max(at))
    assert len(spans) > 12 and plan.size < sum(plan.extent(buffer) for buffer in spans)
    for a, (first, last) in spans.items():
        for b, (begin, end) in spans.items():
            together = a.number < b.number and begin <= last and first <= end
            start, other = plan.offsets[a], plan.offsets[b]
            if together and a not in outputs and b not in outputs:
                assert start + plan.extent(a) <= other or other + plan.extent(b) <= start


FLAT = {
    "sum": lambda x, f: (x.reshape(-1) * 2.0 - f) * f,
    "total": lambda x, f: jnp.sum(f * f) + jnp.max(f) + x[0, 0],
    "neighbours": lambda x, f: f[1:] * f[:-1] + jnp.sum(x),
    "back": lambda x, f: x + (f + jnp.arange(3.0 * N)).reshape(N, 3),
    "both": lambda x, f: (jnp.flip(f * 3.0), jnp.where(f > 0, x.reshape(-1), 1.0)),
}


@pytest.mark.parametrize("name", FLAT)
def test_flat_coordinates_are_computed_thing_by_thing(name):
    program = live(scalarise(FLAT[name], X, F))
    ours = np.array(evaluate_program(program, np.concatenate([X.ravel(), F])), float)
    exact = FLAT[name](X, F)
    exact = np.concatenate([np.ravel(e) for e in (exact if isinstance(exact, tuple) else (exact,))])
    np.testing.assert_allclose(ours, exact, rtol=1e-13, atol=1e-13)
    if name != "neighbours" and name != "both":
        lengths = {i.length for i in walk(program.block) if isinstance(i, Each)}
        assert 3 * N not in lengths


def test_the_force_between_two_kicks_is_found_once():
    system = rod()
    state = thrown(system)
    program, layout = step_program(*signature(system, rx.LieVerlet(), state))
    assert len(program.memory.items) == 1
    square_roots = assemble(program, layout, lanes=1, shared=True).count(
        f"call <{lanes()} x double> @llvm.sqrt"
    )
    assert square_roots == 2  # one before the first step, one in each


@pytest.mark.parametrize("ends", [("free", "free"), ("clamped", "free")])
def test_steps_do_not_depend_on_where_a_run_is_cut(ends):
    system = rod(ends=ends, gravity=(0.3, -9.81, 0.1), damping=1e-4)
    state, h = thrown(system), 2e-3
    whole = rx.simulate(system, rx.LieVerlet(), state, h=h, steps=60, backend="native")
    first = rx.simulate(system, rx.LieVerlet(), state, h=h, steps=23, backend="native")
    second = rx.simulate(system, rx.LieVerlet(), first.final, h=h, steps=37, backend="native")
    plain = rx.simulate(system, rx.LieVerlet(), state, h=h, steps=60, backend="xla")
    for run, tolerance in ((second, 1e-14), (plain, 1e-12)):
        for ours, other in zip(whole.final.g, run.final.g, strict=True):
            np.testing.assert_allclose(ours, other, atol=tolerance)
        np.testing.assert_allclose(whole.final.momentum, run.final.momentum, atol=tolerance)


def test_a_result_that_changes_places_with_the_state_has_memory_of_its_own():
    """Or else the next step overwrites, while it begins, the state that it starts from."""
    n = 20

    def potential(x):
        d = x.reshape(n, 3)[1:] - x.reshape(n, 3)[:-1]
        return 25.0 * jnp.sum((jnp.sqrt(jnp.sum(d * d, axis=1)) - 0.1) ** 2)

    chain = rx.MechanicalSystem(rx.Translation(3 * n), 0.01 * jnp.ones(3 * n), potential)
    places = jnp.stack([jnp.linspace(0.0, 1.9, n), jnp.zeros(n), jnp.zeros(n)], axis=1)
    state = chain.state(places.ravel(), velocity=jnp.linspace(-1.0, 1.0, 3 * n))
    native, xla = (
        rx.simulate(chain, rx.RKMK("rk4"), state, h=1e-3, steps=5, backend=backend).final
        for backend in ("native", "xla")
    )
    np.testing.assert_allclose(native.g, xla.g, rtol=0, atol=1e-14)
    np.testing.assert_allclose(native.momentum, xla.momentum, rtol=0, atol=1e-14)
