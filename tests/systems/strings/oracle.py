"""The string pendulum written a second time: dense, in NumPy and by automatic differentiation.

Nothing here uses the code under test. One body hangs at each of `nodes`; the data are plain arrays.
"""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

import retrax as rx


class Chain:
    """The data of a string with bodies, and its semi-discrete equations of motion."""

    def __init__(self, length, density, stiffness, elements, nodes, mass, arm, inertia, g=9.81):
        self.n, self.g = elements, g
        self.u = length / elements
        self.m, self.kappa = density * self.u, stiffness / self.u
        self.nodes = [node - 1 for node in nodes]
        self.mass, self.arm, self.J = map(np.asarray, (mass, arm, inertia))
        n = elements
        T = np.zeros((n, n))
        for a in range(n):  # element by element: m/6 [[2, 1], [1, 2]]
            T[a, a] += self.m / 3
            if a > 0:
                T[a - 1, a - 1] += self.m / 3
                T[a, a - 1] += self.m / 6
                T[a - 1, a] += self.m / 6
        weight = np.full(n, self.m)
        weight[-1] = self.m / 2
        for k, node in enumerate(self.nodes):
            T[node, node] += self.mass[k]
            weight[node] += self.mass[k]
        self.T, self.weight = T, weight

    def forces(self, r):
        full = np.concatenate([np.zeros((1, 3)), r])
        x = np.diff(full, axis=0)
        size = np.linalg.norm(x, axis=1, keepdims=True)
        t = self.kappa * (size - self.u) / size * x
        f = -t
        f[:-1] += t[1:]
        f[:, 2] += self.g * self.weight
        return f

    def rates(self, t, y):
        """(r, v, R, Omega) -> its rate: the block equations, solved densely."""
        n, bodies = self.n, len(self.nodes)
        r, v = y[: 3 * n].reshape(n, 3), y[3 * n : 6 * n].reshape(n, 3)
        R = y[6 * n : 6 * n + 9 * bodies].reshape(bodies, 3, 3)
        Om = y[6 * n + 9 * bodies :].reshape(bodies, 3)
        size = 3 * n + 3 * bodies
        A, b = np.zeros((size, size)), np.zeros(size)
        A[: 3 * n, : 3 * n] = np.kron(self.T, np.eye(3))
        b[: 3 * n] = self.forces(r).ravel()
        for k, node in enumerate(self.nodes):
            M, rho, J, w = self.mass[k], self.arm[k], self.J[k], Om[k]
            at, turn = slice(3 * node, 3 * node + 3), slice(3 * n + 3 * k, 3 * n + 3 * k + 3)
            hat = hat_of(rho)
            A[at, turn] = -M * R[k] @ hat
            A[turn, at] = M * hat @ R[k].T
            A[turn, turn] = J
            b[at] -= M * R[k] @ np.cross(w, np.cross(w, rho))
            b[turn] = M * self.g * np.cross(rho, R[k][2]) - np.cross(w, J @ w)
        a = np.linalg.solve(A, b)
        Rdot = np.stack([R[k] @ hat_of(Om[k]) for k in range(bodies)])
        return np.concatenate([v.ravel(), a[: 3 * n], Rdot.ravel(), a[3 * n :]])

    def solve(self, r, v, R, Om, end, rtol=1e-12, atol=1e-13):
        y = np.concatenate([np.ravel(x) for x in (r, v, R, Om)])
        out = solve_ivp(self.rates, (0, end), y, method="DOP853", rtol=rtol, atol=atol)
        y, n, bodies = out.y[:, -1], self.n, len(self.nodes)
        return (
            y[: 3 * n].reshape(n, 3),
            y[6 * n : 6 * n + 9 * bodies].reshape(bodies, 3, 3),
            y[6 * n + 9 * bodies :].reshape(bodies, 3),
        )

    def discrete_lagrangian(self, r, R, d, F, h):
        """The discrete Lagrangian of the paper, corrected; (R, F) with a first axis of bodies."""
        zero = jnp.zeros((1, 3))
        r0, d0 = jnp.concatenate([zero, r]), jnp.concatenate([zero, d])
        e3 = jnp.array([0.0, 0.0, 1.0])
        total = 0.0
        for a in range(self.n):
            p, q = d0[a], d0[a + 1]
            x = r0[a + 1] - r0[a]
            total += self.m / (6 * h) * (p @ p + p @ q + q @ q)
            total += h * self.m * self.g / 4 * ((2 * r0[a] + 2 * r0[a + 1] + p + q) @ e3)
            total -= h * self.kappa / 4 * (jnp.sqrt(x @ x) - self.u) ** 2
            y = x + q - p
            total -= h * self.kappa / 4 * (jnp.sqrt(y @ y) - self.u) ** 2
        for k, node in enumerate(self.nodes):
            M, rho, J = self.mass[k], jnp.asarray(self.arm[k]), self.J[k]
            Jd = jnp.asarray(np.trace(J) / 2 * np.eye(3) - J)
            one, dN = jnp.eye(3), d[node]
            total += M / (2 * h) * dN @ dN + jnp.trace((one - F[k]) @ Jd) / h
            total += M / h * dN @ (R[k] @ ((F[k] - one) @ rho))
            total += h / 2 * M * self.g * ((r[node] + R[k] @ rho) @ e3)
            total += h / 2 * M * self.g * ((r[node] + dN + R[k] @ (F[k] @ rho)) @ e3)
        return total

    def legendre(self, r, R, r1, R1, h):
        """Both discrete Legendre transforms by automatic differentiation: (p, pi) and (p, pi)."""
        r, R, r1, R1 = map(jnp.asarray, (r, R, r1, R1))

        def action(r, x, r1, x1):
            A = jnp.stack([R[k] @ _cayley(x[k]) for k in range(len(R))])
            B = jnp.stack([R1[k] @ _cayley(x1[k]) for k in range(len(R1))])
            F = jnp.stack([A[k].T @ B[k] for k in range(len(R))])
            return self.discrete_lagrangian(r, A, r1 - r, F, h)

        zero = jnp.zeros((len(R), 3))
        p, pi, p1, pi1 = jax.grad(action, argnums=(0, 1, 2, 3))(r, zero, r1, zero)
        return (-p, -pi), (p1, pi1)


def hat_of(w):
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0.0]])


def _cayley(x):
    """A rotation with derivative hat at x = 0."""
    hat = jnp.array([[0.0, 0, 0], [0, 0, -1], [0, 1, 0]]) * x[0]
    hat += jnp.array([[0.0, 0, 1], [0, 0, 0], [-1, 0, 0]]) * x[1]
    hat += jnp.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 0]]) * x[2]
    return jnp.linalg.solve(jnp.eye(3) - hat / 2, jnp.eye(3) + hat / 2)


ARM = np.array([0.04, 0.01, 0.05])
BODY = rx.solids.elliptic_cylinder(0.1, (0.06, 0.04), 0.1, ARM)
ARM2 = np.array([-0.03, 0.02, 0.04])
BODY2 = rx.solids.box(0.2, (0.1, 0.06, 0.08), ARM2)


def one_body(elements=3, **more):
    """A short, soft string with one body, and the same data for the oracle."""
    data = {"length": 0.6, "density": 0.05, "stiffness": 20.0, "elements": elements}
    system = rx.systems.StringPendulum(**data, mass=0.1, arm=ARM, inertia=BODY, **more)
    return system, Chain(**data, nodes=[elements], mass=[0.1], arm=[ARM], inertia=[BODY])


def two_bodies(elements=4, nodes=(2, 4), **more):
    data = {"length": 0.6, "density": 0.05, "stiffness": 20.0, "elements": elements}
    both = {"mass": [0.2, 0.1], "arm": [ARM2, ARM], "inertia": [BODY2, BODY], "nodes": nodes}
    system = rx.systems.StringPendulum(**data, **both, **more)
    return system, Chain(**data, **both)


def random_state(system, seed=1, spin=2.0, stretch=0.1):
    """A bent string, its elements longer and shorter by turns, whose nodes and bodies all move."""
    rng = np.random.default_rng(seed)
    n, u = system.elements, float(system.spacing)
    steps = rng.normal(size=(n, 3)) + np.array([0.5, 0.0, 2.0])
    longer = 1 + stretch * np.where(np.arange(n) % 2, -0.5, 1.0)
    steps *= longer[:, None] * u / np.linalg.norm(steps, axis=1)[:, None]
    R = [rx.SO3().exp(jnp.asarray(rng.normal(size=3))) for _ in system.nodes]
    velocity = np.concatenate(
        [0.3 * rng.normal(size=3 * n), spin * rng.normal(size=3 * len(system.nodes))]
    )
    return system.state((np.cumsum(steps, axis=0), *R), velocity=velocity)
