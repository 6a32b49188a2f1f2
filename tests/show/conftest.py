"""Small runs on several groups; each is made once."""

import jax.numpy as jnp
import pytest

import retrax as rx


def _top():
    top = rx.systems.HeavyTop([1.2, 1.6, 0.8], 1.0, [0.0, 0.0, 0.6])
    state = top.state(rx.SO3().exp(jnp.array([1.0, 0.0, 0.0])), velocity=[0.6, 0.2, 4.0])
    return rx.simulate(top, rx.LieVerlet(), state, h=0.02, steps=300)


def _pendulum():
    system, state, h, _ = rx.systems.Pendulum3D.paper()
    return rx.simulate(system, rx.LieVerlet(), state, h=h, steps=40)


def _rigid_motion():
    spring = rx.MechanicalSystem(
        rx.SE3(),
        inertia=jnp.array([1.0, 2.0, 2.5, 1.0, 1.0, 1.0]),
        potential=lambda g: 0.5 * jnp.sum(g[1] ** 2),
    )
    start = (jnp.eye(3), jnp.array([1.0, 0.0, 0.0]))
    state = spring.state(start, velocity=[0.3, 0.2, 2.0, 0.0, 1.0, 0.5])
    return rx.simulate(spring, rx.RKMK("midpoint"), state, h=0.05, steps=100)


def _planet():
    planet = rx.MechanicalSystem(
        rx.Translation(2), inertia=jnp.ones(2), potential=lambda x: -1 / jnp.sqrt(x @ x)
    )
    state = planet.state(jnp.array([1.0, 0.0]), velocity=[0.0, 1.2])
    return rx.simulate(planet, rx.RKMK("midpoint"), state, h=0.05, steps=100)


def _two_bodies():
    pair = rx.MechanicalSystem(
        rx.Product(rx.SO3(), rx.Power(rx.SO2(), 2)), inertia=jnp.array([1.0, 2.0, 2.5, 1.0, 2.0])
    )
    start = (jnp.eye(3), jnp.stack([jnp.eye(2)] * 2))
    state = pair.state(start, velocity=[0.3, 0.2, 2.0, 0.5, 1.0])
    return rx.simulate(pair, rx.RKMK("midpoint"), state, h=0.05, steps=60)


def _unknown():
    """A run on a group that has no picture."""
    body = rx.MechanicalSystem(rx.SO(4), inertia=jnp.array([1.0, 2.0, 2.5, 1.5, 3.0, 2.2]))
    state = body.state(jnp.eye(4), velocity=[0.3, 0.2, 2.0, 0.4, -0.1, 0.6])
    return rx.simulate(body, rx.RKMK("midpoint"), state, h=0.05, steps=20)


MAKERS = {
    "SO(3)": _top,
    "SO(3), third axis down": _pendulum,
    "SE(3)": _rigid_motion,
    "R^2": _planet,
    "SO(3) x SO(2)^2": _two_bodies,
    "SO(4)": _unknown,
}


@pytest.fixture(scope="session")
def runs():
    """Runs by name, made when first asked for."""
    made = {}

    def get(name: str):
        if name not in made:
            made[name] = MAKERS[name]()
        return made[name]

    return get


@pytest.fixture(params=MAKERS)
def any_run(request, runs):
    return runs(request.param)
