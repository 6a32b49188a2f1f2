"""Short axes kept on request, and costly sides of choices that run only where they are chosen."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from evaluate import evaluate_program
from jax import lax
from native_function import function_of

import retrax as rx
from retrax.engine.backends import make_members
from retrax.engine.llvm.kernel import assemble
from retrax.engine.passes.live import live
from retrax.engine.passes.sinking import COSTLY, is_costly, sink
from retrax.engine.program import Choose, Each, Operation, walk
from retrax.engine.step_program import signature, step_program
from retrax.engine.trace.scalarise import scalarise
from retrax.numerics.jax_hints import keep_axis
from retrax.numerics.series import sinc

RNG = np.random.default_rng(7)
V = jnp.asarray(RNG.normal(size=3))


def stages(s):
    """A fixed point as a collocation step iterates it: matrix products, work alike, a judgement."""
    A = jnp.asarray(np.tril(RNG.uniform(0.0, 0.3, size=(s, s))))
    b = jnp.asarray(RNG.uniform(size=s))

    def solve(v):
        def better(carry):
            K, _, count = carry
            U = A @ K
            new = jax.vmap(lambda u: jnp.cross(u, v) * 0.3 + jnp.stack([v[2], u[0], v[0]]))(U)
            return new, jnp.max(jnp.abs(new - K)), count + 1

        def going(carry):
            return (carry[1] > 1e-13) & (carry[2] < 200)

        K = keep_axis(jnp.broadcast_to(v, (s, 3)))
        K, change, count = lax.while_loop(going, better, (K, jnp.inf, 0))
        return b @ K, (K.T @ A)[1], K[1:-1, 2], change, count

    return solve


def flat(tree):
    return np.concatenate([np.ravel(np.asarray(x, float)) for x in jax.tree.leaves(tree)])


@pytest.mark.parametrize("s", [4, 5, 8, 13])
def test_stages_stay_a_loop(s):
    solve = stages(s)
    program = live(scalarise(solve, V))
    assert any(isinstance(i, Each) for i in walk(program.block))
    unrolled = live(scalarise(solve, V, unroll=True))
    assert not any(isinstance(i, Each) for i in walk(unrolled.block))
    for one in (program, sink(program), unrolled):
        ours = np.array(evaluate_program(one, flat(V)), float)
        np.testing.assert_allclose(ours, flat(solve(V)), rtol=1e-13, atol=1e-13)


def test_fewer_stages_than_four_are_taken_apart():
    program = live(scalarise(stages(3), V))
    assert not any(isinstance(i, Each) for i in walk(program.block))


@pytest.mark.parametrize("s", [6, 11])
def test_machine_code_of_short_axes(s):
    """Lengths that are one vector, several, or several of different widths."""
    pendulum, start, *_ = rx.systems.Pendulum3D.paper()
    runs = [
        rx.simulate(pendulum, rx.Collocation(rx.gauss(s)), start, h=0.3, steps=20, backend=backend)
        for backend in ("native", "xla")
    ]
    ours, theirs = (np.asarray(run.momentum) for run in runs)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-14)


def test_sines_wait_until_they_are_needed():
    """Below the switch `sinc` is a polynomial, and no sine is taken."""
    program = sink(live(scalarise(lambda x: sinc(x) + sinc(x + 1.0), jnp.asarray(0.3))))
    choices = [i for i in walk(program.block) if isinstance(i, Choose)]
    assert choices and all(any(map(is_costly, c.blocks)) for c in choices)
    outside = [i for i in program.block.instructions if isinstance(i, Operation)]
    assert not any(i.name in COSTLY for i in outside)
    for x in (0.3, 9.5, 30.0):
        (ours,) = evaluate_program(program, np.array([x]))
        assert ours == pytest.approx(
            float(sinc(jnp.asarray(x)) + sinc(jnp.asarray(x + 1))), abs=1e-16
        )


def test_long_blocks_of_a_choice_are_branches():
    """A block that is longer than a branch is not run where it is not chosen."""

    def chosen(rounds):
        def long(x):
            for _ in range(rounds):
                x = x * x + 1.0
            return x

        program = scalarise(lambda x: lax.cond(x > 0, long, lambda x: x, x), jnp.asarray(0.3))
        return function_of(live(program), 1)[0]

    assert "br i1" in chosen(60)
    assert "br i1" not in chosen(10)


def test_what_both_sides_need_is_not_moved():
    def both(x):
        y = jnp.exp(x)
        return jnp.where(x > 0, y, 1.0 / y)

    program = sink(live(scalarise(both, jnp.asarray(0.3))))
    assert [i.name for i in program.block.instructions if isinstance(i, Operation)].count(
        "exp"
    ) == 1
    assert not any(isinstance(i, Choose) for i in walk(program.block))


@pytest.mark.filterwarnings("ignore:a step near t = .* turned")
def test_a_costly_side_is_branched_around():
    body = rx.systems.FreeRigidBody([1.0, 2.0, 2.5])
    state = body.state(jnp.eye(3), velocity=[0.3, 0.2, 4.0])
    program, layout = step_program(*signature(body, rx.RKMK("rk4"), state))
    text = assemble(program, layout, lanes=1, shared=True)
    before, _, after = text.partition("costly.")
    assert "@llvm.sin" in after and "call double @llvm.sin" not in before
    for h in (0.1, 1.2):  # steps that turn by less and by more than the switch
        runs = [
            rx.simulate(body, rx.RKMK("rk4"), state, h=h, steps=3, backend=backend)
            for backend in ("native", "xla")
        ]
        ours, theirs = (np.asarray(run.g) for run in runs)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-14)


def test_what_an_inner_loop_needs_is_not_moved():
    def inside(x):
        slow = jnp.exp(x)

        def body(carry):
            y, k = carry
            return jnp.where(x > 0.5, slow, y + 1.0), k + 1

        y, _ = lax.while_loop(lambda c: c[1] < 3, body, (x, 0))
        return jnp.where(x > 0.5, slow, y)

    program = sink(live(scalarise(inside, jnp.asarray(0.3))))
    for x in (0.3, 0.8):
        (ours,) = evaluate_program(program, np.array([x]))
        assert ours == pytest.approx(float(inside(jnp.asarray(x))), abs=1e-15)


def test_a_choice_may_depend_on_the_one_before():
    def twice(x):
        y = jnp.where(x > 0.5, jnp.exp(x), x)
        return jnp.where(x > 0.5, jnp.log(y + 2.0), y)

    program = sink(live(scalarise(twice, jnp.asarray(0.3))))
    assert len([i for i in walk(program.block) if isinstance(i, Choose)]) == 2
    for x in (0.3, 0.8):
        (ours,) = evaluate_program(program, np.array([x]))
        assert ours == pytest.approx(float(twice(jnp.asarray(x))), abs=1e-15)


def test_arrays_of_members_take_short_axes_apart():
    """They have no rows; without this a method of four stages would run as it is, with a notice."""
    body = rx.systems.FreeRigidBody([1.0, 2.8, 2.0])
    start = body.state(jnp.eye(3), velocity=[0.5, -0.5, 0.4])
    states = jax.tree.map(lambda x: jnp.stack([x, x]), start)
    method = rx.Collocation(rx.gauss(4))
    made_for = signature(body, method, start)
    assert step_program(*made_for)[0].has_buffers
    program, _ = step_program(*made_for, unroll=True)
    assert not program.has_buffers
    make_members("xla", body, method, states, 0.1, None, shared=True)


def test_the_same_step_gives_the_same_machine_code():
    """Or two processes could round differently."""
    pendulum, start, *_ = rx.systems.Pendulum3D.paper()
    made_for = signature(pendulum, rx.Collocation(rx.gauss(8)), start)
    texts = [assemble(*step_program.__wrapped__(*made_for), lanes=1, shared=True) for _ in range(2)]
    assert texts[0] == texts[1]
