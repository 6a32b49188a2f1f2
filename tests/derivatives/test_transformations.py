"""Every transformation of JAX finds the native derivative, and the same numbers."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.derivatives import evaluation

P = jnp.array([1.0, 0.4])
MOMENTS = jnp.array([1.0, 2.8, 2.0])


def height(parameters, backend="auto", h=0.02, steps=23):
    """Arm in a closure, spin in the start; loss terms at several saved states."""
    arm, spin = parameters
    body = rx.MechanicalSystem(rx.SO3(), MOMENTS, lambda R: -9.81 * arm * R[2, 2])
    start = body.state(jnp.eye(3), velocity=jnp.stack([0.5, -0.5, spin]))
    run = rx.simulate(body, rx.LieVerlet(), start, h=h, steps=steps, save_every=10, backend=backend)
    assert run.provenance["backend"] == ("xla" if backend == "xla" else "native")
    return -arm * run.final.g[2, 2] + jnp.sum(run.momentum[1] ** 2) + run.velocity[2][0]


@pytest.fixture(scope="module")
def by_xla():
    """The gradient of the JAX program."""
    return jax.jit(jax.grad(partial(height, backend="xla")))(P)


WAYS = {
    "grad": lambda: jax.grad(height)(P),
    "jit of grad": lambda: jax.jit(jax.grad(height))(P),
    "grad of jit": lambda: jax.grad(jax.jit(height))(P),
    "jacfwd": lambda: jax.jacfwd(height)(P),
    "jit of jacfwd": lambda: jax.jit(jax.jacfwd(height))(P),
    "jacrev": lambda: jax.jacrev(height)(P),
    "vmap of grad": lambda: jax.vmap(jax.grad(height))(jnp.stack([2 * P, P, 3 * P]))[1],
    "jit of vmap of grad": lambda: jax.jit(jax.vmap(jax.grad(height)))(jnp.stack([P] * 9))[8],
    "grad of vmap": lambda: jax.grad(lambda p: jnp.sum(jax.vmap(height)(p)))(jnp.stack([P, P]))[0],
    "shared by members": lambda: (
        jax.grad(lambda p: jnp.sum(jax.vmap(lambda a: height(a * p))(jnp.array([1.0, 1.0]))))(P) / 2
    ),
    "vmap in vmap": lambda: jax.vmap(jax.vmap(jax.grad(height)))(
        jnp.stack([P] * 6).reshape(2, 3, 2)
    )[1, 2],
    "vmap of jacfwd": lambda: jax.vmap(jax.jacfwd(height))(jnp.stack([P, 2 * P]))[0],
    "linearize": lambda: jnp.stack([jax.linearize(height, P)[1](e) for e in jnp.eye(2)]),
    "vjp": lambda: jax.vjp(height, P)[1](1.0)[0],
    "checkpoint": lambda: jax.grad(jax.checkpoint(height))(P),
    "in a scan": lambda: jax.lax.scan(lambda c, p: (c, jax.grad(height)(p)), 0, P[None])[1][0],
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_gives_the_gradient_of_the_jax_program(way, by_xla):
    np.testing.assert_allclose(WAYS[way](), by_xla, rtol=1e-11)


SECOND = {
    "forwards over reverse": jax.hessian(height),
    "reverse twice": jax.jacrev(jax.grad(height)),
    "reverse over members": lambda p: (
        jnp.sum(
            jax.jacrev(lambda q: jax.vmap(jax.grad(height))(jnp.stack([q, 2 * q - p])))(p), axis=0
        )
        / 3
    ),
}


@pytest.mark.parametrize("way", SECOND)
def test_second_derivatives_are_differences_of_first_ones(way):
    """Measured: 2e-10, the accuracy of the differences."""
    gradient, e = jax.jit(jax.grad(height)), 1e-5
    slopes = [(gradient(P + e * d) - gradient(P - e * d)) / (2 * e) for d in jnp.eye(2)]
    np.testing.assert_allclose(jax.jit(SECOND[way])(P), jnp.stack(slopes), rtol=2e-9)


def test_what_iterates_as_often_as_numbers_ask_for_names_the_other_way():
    """JAX said that `lax.while_loop` has no derivative in reverse."""

    def end(speed):
        body = rx.systems.FreeRigidBody(MOMENTS)
        start = body.state(jnp.eye(3), velocity=jnp.stack([speed, 0.3, 0.1]))
        method = rx.Adaptive(rx.RKMK("dopri5"), 1e-6)
        return rx.simulate(body, method, start, h=0.1, steps=2).final.g[0, 1]

    with pytest.raises(rx.BadInput, match=r"by Adaptive has no.*forwards, with jax\.jvp"):
        jax.grad(end)(1.0)
    step = 1e-5
    slope = (end(1.0 + step) - end(1.0 - step)) / (2 * step)
    assert float(jax.jvp(end, (1.0,), (1.0,))[1]) == pytest.approx(float(slope), abs=1e-9)


def test_the_step_and_the_time_of_the_start_are_differentiated():
    """A force that depends on time: the start time matters, and h in two ways."""

    def end(t, h):
        body = rx.MechanicalSystem(
            rx.SO3(), MOMENTS, lambda R: -R[2, 2], force=lambda R, xi, t: jnp.sin(3 * t) * MOMENTS
        )
        start = body.state(jnp.eye(3), velocity=jnp.array([0.5, -0.5, 0.3]), t=t)
        run = rx.simulate(body, rx.RKMK("rk4"), start, h=h, steps=9, save_every=4)
        return jnp.sum(run.momentum[1:] ** 2) + run.t[-1] ** 2

    at, e = np.array([0.3, 0.05]), 1e-5
    found = jax.grad(end, argnums=(0, 1))(*at)
    forward = jax.jacfwd(end, argnums=(0, 1))(*at)
    members = jax.vmap(jax.grad(end, argnums=1))(*at[:, None])
    slopes = [
        (
            end(*(at - 2 * e * d))
            - 8 * end(*(at - e * d))
            + 8 * end(*(at + e * d))
            - end(*(at + 2 * e * d))
        )
        / (12 * e)
        for d in np.eye(2)
    ]
    np.testing.assert_allclose(found, slopes, rtol=1e-8)
    np.testing.assert_allclose(forward, found, rtol=1e-12)
    np.testing.assert_allclose(members[0], found[1], rtol=1e-12)


def test_machine_code_is_what_runs(monkeypatch):
    def nothing(*arguments, **rest):
        raise AssertionError("a JAX program was made")

    jax.grad(height)(P)  # loads what derivatives need
    monkeypatch.setattr(evaluation.mlir, "lower_fun", nothing)
    jax.jit(jax.value_and_grad(height))(1.1 * P)


def test_a_derivative_of_a_failed_run_is_not_a_number():
    body = rx.MechanicalSystem(
        rx.Translation(1), [1.0], lambda x: jnp.where(x[0] > 1.0, jnp.nan, 1.0) * x[0]
    )

    def end(v):
        start = body.state(jnp.zeros(1), velocity=jnp.stack([v]))
        run = rx.simulate(body, rx.RKMK("rk4"), start, h=0.1, steps=6, save_every=2)
        return run.final.g[0]

    (well, ill), slopes = jax.vmap(jax.value_and_grad(end))(jnp.array([-0.5, 3.0]))
    assert np.isfinite(well) and np.isnan(ill)
    assert np.isfinite(slopes[0]) and np.isnan(slopes[1])
    assert np.isnan(jax.grad(end)(3.0)) and np.isnan(jax.jvp(end, (3.0,), (1.0,))[1])


def test_what_is_not_known_is_not_a_number():
    """The largest increment of a record: which step has it, nobody has written down."""

    def largest(spin):
        body = rx.systems.FreeRigidBody([1.0, 2.0, 3.0])
        start = body.state(jnp.eye(3), velocity=jnp.stack([0.3, 0.1, spin]))
        run = rx.simulate(body, rx.LieVerlet(), start, h=0.1, steps=4)
        return run.info.increment[-1]

    assert np.isnan(jax.grad(largest)(0.5)) and np.isnan(jax.jvp(largest, (0.5,), (1.0,))[1])


def test_a_gpu_is_refused_for_one_body_inside_a_derivative_too():
    with pytest.raises(rx.BadInput, match="one body runs on 'native' or 'xla'"):
        jax.grad(lambda p: height(p, "gpu"))(P)


def test_a_step_without_a_scalar_program_goes_to_xla_or_says_so():
    def end(k, backend):
        body = rx.MechanicalSystem(
            rx.Translation(1), [1.0], lambda x: k * jax.scipy.special.gammaln(2.0 + x[0] ** 2)
        )
        start = body.state(jnp.ones(1), velocity=jnp.zeros(1))
        run = rx.simulate(body, rx.RKMK("rk4"), start, h=0.1, steps=3, backend=backend)
        return run.final.g[0], run.provenance["backend"]

    slope, backend = jax.grad(lambda k: end(k, "auto"), has_aux=True)(2.0)
    assert backend == "xla" and np.isfinite(slope)
    with pytest.raises(rx.BadInput, match=r"backend = 'native': .* has no scalar program here"):
        jax.grad(lambda k: end(k, "native")[0])(2.0)


def test_two_functions_may_hold_the_same_traced_number():
    """They share a cell of their closure, and so must their copies."""

    def place(p, **options):
        system = rx.MechanicalSystem(
            rx.Translation(2),
            [1.0, 1.5],
            potential=lambda x: p[0] * (x @ x) / 2,
            force=lambda x, v, t: -p[1] * v,
        )
        start = system.state(jnp.array([1.0, 0.5]), velocity=jnp.array([0.0, 0.3]))
        run = rx.simulate(system, rx.RKMK("rk4"), start, h=0.05, steps=20, **options)
        return run.states.g[-1] @ jnp.array([1.0, 2.0])

    p = jnp.array([2.0, 0.3])
    assert float(jax.jit(place)(p)) == pytest.approx(float(place(p)), rel=1e-14)
    theirs = jax.grad(lambda p: place(p, backend="xla"))(p)
    np.testing.assert_allclose(jax.grad(place)(p), theirs, rtol=1e-12)
    np.testing.assert_allclose(jax.jacfwd(place)(p), theirs, rtol=1e-12)


def test_a_string_is_differentiated_through_several_steps_and_records():
    """Its rows are carried from step to step in memory, to which every record adds."""
    system, state, h, _ = rx.systems.StringPendulum.paper()

    def loss(h, backend):
        plan = {"steps": 6, "save_every": 2}
        run = rx.simulate(system, rx.LieVerlet(), state, h=h, backend=backend, **plan)
        return sum(jnp.sum(jnp.sin(x)) for x in jax.tree.leaves((run.g, run.momentum)))

    ours, theirs = (jax.grad(partial(loss, backend=name))(h) for name in ("native", "xla"))
    assert float(ours) == pytest.approx(float(theirs), rel=1e-11)
