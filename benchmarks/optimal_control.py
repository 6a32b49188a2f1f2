"""Optimal control of a rigid body: retrax beside CasADi with IPOPT and with FATROP.

Run it where CasADi is installed (`pip install casadi`); without it the rivals are left out:

    python benchmarks/optimal_control.py

All times are processor times of the whole call, warm: the least and the median of several. The
rivals have unit quaternions and multiple shooting with the fourth-order Runge-Kutta method, their
functions are differentiated symbolically, and building their problem is not counted.
"""

import importlib.util
import time
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

import retrax as rx

INERTIA, ROTATION, T, STEPS = (1.4, 2.2, 3.1), (0.7, 1.1, -0.8), 1.5, 100
BIG, QUICK = (5621.0, 4547.0, 2364.0), (np.deg2rad(150.0), 0.0, 0.0)


def measured(call: Callable[[], object], times: int) -> str:
    """Return the least and the median processor time of several calls, in milliseconds."""
    spent = []
    for _ in range(times):
        began = time.process_time()
        call()
        spent.append(1e3 * (time.process_time() - began))
    return f"{min(spent):8.2f} ms at the least, {np.median(spent):8.2f} ms in the middle"


def problem(inertia: tuple[float, ...], rotation: tuple[float, ...], **rest: object):
    """A slew from rest to rest."""
    craft = rx.Actuated(rx.systems.FreeRigidBody(list(inertia)), inputs=jnp.eye(3))
    return rx.ControlProblem(
        craft,
        rx.LieVerlet(),
        start=craft.state(jnp.eye(3), velocity=jnp.zeros(3)),
        end=rx.Reach(rx.SO3().exp(jnp.array(rotation)), velocity=jnp.zeros(3)),
        **rest,
    )


def ours() -> None:
    effort = problem(INERTIA, ROTATION, duration=T, steps=STEPS, cost=rx.MinimumEffort())
    quick = problem(
        BIG, QUICK, duration=rx.Free(30.0), steps=200, cost=rx.MinimumTime(), bounds=(-50.0, 50.0)
    )
    for name, one, times in (("least effort", effort, 100), ("least time", quick, 20)):
        began = time.process_time()
        plan = rx.optimise(one)
        cold = time.process_time() - began
        told = measured(lambda one=one: rx.optimise(one), times)
        print(f"retrax, {name:13} cost {plan.cost:.9g}, {plan.iterations:3} iterations: {told}")
        print(f"        first call {cold:.2f} s; end missed by {np.abs(plan.miss).max():.1e}")


def rival(solver: str, quick: bool, rotation: tuple[float, ...]) -> None:
    """The same with CasADi: quaternions, multiple shooting, Runge-Kutta."""
    import casadi as ca

    inertia = np.array(BIG if quick else INERTIA)
    steps = 200 if quick else STEPS
    x, u, duration = ca.SX.sym("x", 7), ca.SX.sym("u", 3), ca.SX.sym("T")

    def rate(x: ca.SX) -> ca.SX:
        q, w = x[:4], x[4:]
        turn = ca.vertcat(
            -q[1] * w[0] - q[2] * w[1] - q[3] * w[2],
            q[0] * w[0] + q[2] * w[2] - q[3] * w[1],
            q[0] * w[1] + q[3] * w[0] - q[1] * w[2],
            q[0] * w[2] + q[1] * w[1] - q[2] * w[0],
        )
        return ca.vertcat(turn / 2, (u - ca.cross(w, inertia * w)) / inertia)

    h = duration / steps
    k1 = rate(x)
    k2 = rate(x + h / 2 * k1)
    k3 = rate(x + h / 2 * k2)
    k4 = rate(x + h * k3)
    step = ca.Function("step", [x, u, duration], [x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)])
    angle = np.linalg.norm(rotation)
    end = np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * np.array(rotation) / angle])
    opti = ca.Opti()
    xs, us, Ts = [], [], []
    for k in range(steps + 1):
        xs.append(opti.variable(7))
        if quick:
            Ts.append(opti.variable())
        if k < steps:
            us.append(opti.variable(3))
    total = Ts if quick else [T] * (steps + 1)
    for k in range(steps):
        opti.subject_to(xs[k + 1] == step(xs[k], us[k], total[k]))
        if quick:
            opti.subject_to(Ts[k + 1] == Ts[k])
        if k == 0:
            opti.subject_to(xs[0] == np.array([1.0, 0, 0, 0, 0, 0, 0]))
        if quick:
            opti.subject_to(opti.bounded(-50.0, us[k], 50.0))
    # One entry of the quaternion is left out: its length is kept by the steps.
    opti.subject_to(xs[-1][1:4] == end[1:])
    opti.subject_to(xs[-1][4:] == 0)
    opti.minimize(Ts[-1] if quick else sum(ca.dot(v, v) for v in us) * T / steps / 2)
    for k in range(steps + 1):
        part = k / steps * angle / 2
        way = np.concatenate([[np.cos(part)], np.sin(part) * np.array(rotation) / angle])
        opti.set_initial(xs[k][:4], way)
        if quick:
            opti.set_initial(Ts[k], 30.0)
    options = {"print_time": False, "expand": True}
    if solver == "fatrop":
        opti.solver("fatrop", options | {"structure_detection": "auto"}, {"print_level": 0})
    else:
        opti.solver("ipopt", options, {"print_level": 0, "sb": "yes", "tol": 1e-8})
    try:
        found = opti.solve()
        told = measured(opti.solve, 5)
        print(
            f"{solver}, {'least time' if quick else 'least effort':12} cost "
            f"{found.value(opti.f):.9g}: {told}"
        )
    except Exception as why:
        print(f"{solver}: {str(why).splitlines()[0]}")


if __name__ == "__main__":
    ours()
    if importlib.util.find_spec("casadi") is None:
        print("CasADi is not installed: no rivals.")
    else:
        for which in ("ipopt", "fatrop"):
            rival(which, False, ROTATION)
        rival("ipopt", True, QUICK)
