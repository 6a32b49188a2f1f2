"""Many balls that touch each other and what stands in space."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.contact.ball_contact import BallContact
from retrax.contact.pictures import picture
from retrax.contact.shapes import AbstractSurface, Ball
from retrax.errors import BadInput
from retrax.groups.so3 import SO3
from retrax.mechanics.remembered import Drawing
from retrax.mechanics.state import State
from retrax.mechanics.system import ArrayLike, Coordinates, refuse_overrides
from retrax.nodal.drag import Drag
from retrax.nodal.nodes import AbstractNodes, Flight, Placement
from retrax.numerics.checks import (
    MOST_NODES,
    finite64,
    float64,
    is_traced,
    positive64,
    require_whole,
)
from retrax.numerics.evaluate import evaluate_in_jax
from retrax.numerics.known import require_each
from retrax.numerics.meant import explain_keywords
from retrax.numerics.newton import NewtonStatus

_OF_CONTACT = ("friction", "restitution", "skin", "against", "capacity")
# A subclass must not redefine these: steps are made for balls.
FIXED = (
    "constraint", "contact", "differential", "drift", "flight", "group", "hamiltonian_energy",
    "inertia_at", "kick", "kinetic_energy", "load", "momentum", "potential_energy", "symmetry",
    "total_force", "vector_field", "velocity",
)  # fmt: skip


class Balls(AbstractNodes):
    r"""Many balls under gravity that roll, slide, hit and pile up; their step is `NonsmoothRattle`.

    Ball $k$ has the frame $\Lambda_k$ and the centre $x_k$; velocities are $\omega_k$ in the body
    and $v_k = \dot x_k$ in space. With radii $r$, masses $m$ and moments $J$,

    $$
    \begin{aligned}
    L &= \sum_k\left[\tfrac12m_k|v_k|^2 + \tfrac12J_k|\omega_k|^2 + m_k\,a\cdot x_k\right],
      \qquad J_k = \tfrac25m_kr_k^2                                               &&\text{(1)}\\
    \gamma_{jk} &= |x_j - x_k| - r_j - r_k \ge 0,                                 &&\text{(2)}
    \end{aligned}
    $$

    and the same against planes, balls and posts that stand in space. Contacts obey Coulomb's law,
    and the part $e$ of an approach comes back. Who is near whom is found in a grid, so that the
    work of a step grows with the number of balls and contacts.

    **Arguments:**

    - `radius`: in m, one number, or one for each ball.
    - `mass`: in kg, likewise.
    - `count`: how many balls there are, where neither of them says so.
    - `inertia`: $J$ in kg m^2 about any axis, likewise; that of a solid ball by default. A thin
        shell has $\tfrac23mr^2$.
    - `gravity`: the acceleration $a$ in space.
    - `friction`, `restitution`: $f$ and $e$ of all contacts.
    - `against`: what stands in space: a list of `rx.Plane`, `rx.Ball` and `rx.Capsule`.
    - `drag`, `spin_drag`: $c$ (N s/m) and $c_r$ (N m s) of a fluid at rest, $-cv$ and $-c_r\omega$:
        one number, or one for each ball.
    - `skin`: in m. Pairs whose surfaces are nearer than this are looked at in every step, and found
        anew when a ball has moved by nearly half of it. Half of the smallest radius by default.
    - `capacity`: the number of such pairs that there is room for, those with what stands in space
        included; eight for each ball, and one for each thing in space, by default.

    A subclass adds further loads by a method `force(self, g, xi, t)`, in the coordinates of the
    momenta: for each ball a torque in the body and a force in space.

    **Raises:** `BadInput` for numbers that no ball can have, and for arrays of different lengths.

    References: [Moreau1988], [AcaryBrogliato2008].
    """

    radius: Float[Array, " n"]
    inertia: Float[Array, " dim"]
    mobility: Float[Array, " dim"]
    gravity: Float[Array, "3"] | None
    contact: BallContact
    count: int = eqx.field(static=True)

    def __init__(
        self,
        radius: ArrayLike,
        mass: ArrayLike,
        *,
        count: int | None = None,
        inertia: ArrayLike | None = None,
        gravity: ArrayLike | None = (0.0, 0.0, -9.81),
        friction: ArrayLike = 0.0,
        restitution: ArrayLike = 0.0,
        against: Sequence[AbstractSurface] = (),
        drag: ArrayLike | None = None,
        spin_drag: ArrayLike | None = None,
        skin: ArrayLike | None = None,
        capacity: int | None = None,
    ):
        more = {"inertia": inertia, "drag": drag, "spin_drag": spin_drag}
        given = {"radius": radius, "mass": mass} | {k: x for k, x in more.items() if x is not None}
        numbers = {k: float64(k, x) for k, x in given.items()}
        self.count = n = _count(numbers, count)
        each = {k: evaluate_in_jax(_each, x, np.zeros(n)) for k, x in numbers.items()}
        for name in ("radius", "mass", "inertia"):
            if name in each:
                positive64(name, each[name], (n,))
        self.radius = each["radius"]
        self.inertia, self.mobility = evaluate_in_jax(
            _inertia, each["radius"], each["mass"], each.get("inertia")
        )
        self.gravity = None if gravity is None else finite64("gravity", gravity, (3,))
        known = self.gravity is not None and not is_traced(self.gravity)
        if known and not np.any(np.asarray(self.gravity)):  # in jit JAX would trace the answer
            self.gravity = None
        rates = [
            None
            if name not in each
            else evaluate_in_jax(rate, _drag(name, each[name]), self.inertia)
            for name, rate in (("drag", _slowing), ("spin_drag", _calming))
        ]
        self.drag = None if rates == [None, None] else Drag(*rates)
        self.contact = BallContact(
            self.radius, friction, restitution, against=against, skin=skin, capacity=capacity
        )

    @staticmethod
    def _arguments(fields: dict[str, Any]) -> dict[str, Any]:
        """Return what made it, from its parts in a file."""
        contact, rows = fields["contact"], np.asarray(fields["inertia"]).reshape(-1, 6)
        drag = fields["drag"]
        lost = {} if drag is None else {"drag": (drag.rates, 3), "spin_drag": (drag.spin_rates, 0)}
        return {
            "mass": rows[:, 3],
            "inertia": rows[:, 0],
            **{name: fields[name] for name in ("radius", "gravity", "count")},
            **{name: getattr(contact, name) for name in _OF_CONTACT},
            **{
                name: None if rates is None else np.asarray(rates)[:, 0] * rows[:, k]
                for name, (rates, k) in lost.items()
            },
        }

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        refuse_overrides(cls, FIXED, "add loads by a method force(self, g, xi, t)")

    @property
    def nodes(self) -> int:
        return self.count

    @property
    def name(self) -> str:
        return f"system of {self.count} ball{'' if self.count == 1 else 's'}"

    @property
    def holds(self) -> bool:
        return False

    @property
    def round(self) -> bool:
        return True

    @property
    def isolated(self) -> bool:
        outside = (self.gravity, self.drag)
        return not self.contact.against and not self.feedback and all(x is None for x in outside)

    @explain_keywords
    def state(
        self,
        g: ArrayLike,
        *,
        velocity: ArrayLike | None = None,
        spin: ArrayLike | None = None,
        momentum: ArrayLike | None = None,
        t: ArrayLike = 0.0,
        project: bool = False,
    ) -> State:
        """Make a state, and check it; balls are at rest by default.

        **Arguments:** `g`: the centres, a row for each ball, or frames and centres; `velocity`: of
        the centres, in space, one for all balls or a row for each; `spin`: angular velocities in
        space, likewise. Coordinates of all balls in one array are a `velocity` or a `momentum` as
        those of any system.

        **Raises:** `BadInput` where balls overlap each other or what stands in space.
        """
        n = self.count
        if not isinstance(g, tuple):
            centres = float64("g", g)
            if centres.ndim == 2 and centres.shape[1] == 3 and len(centres) != n:
                raise BadInput(
                    f"g has {len(centres)} rows, a centre each, but this is a {self.name}: say how "
                    f"many there are with Balls(..., count={len(centres)}), or give radius or mass "
                    "as one number for each."
                )
            g = (np.tile(np.eye(3), (n, 1, 1)), finite64("g", g, (n, 3)))
        if momentum is not None:
            if spin is not None:
                raise BadInput("spin and momentum say the same twice; leave out one of them.")
            return super().state(g, velocity=velocity, momentum=momentum, t=t, project=project)
        if velocity is None or np.shape(velocity) != (self.group.dim,):
            v, w = (_rows(name, y, n) for name, y in (("velocity", velocity), ("spin", spin)))
            velocity = evaluate_in_jax(_in_the_body, g[0], w, v)
        elif spin is not None:
            raise BadInput(
                f"velocity has shape {np.shape(velocity)}, which says how balls spin; leave spin "
                "out, or give the velocities of centres alone."
            )
        return super().state(g, velocity=velocity, t=t, project=project)

    def potential_energy(self, g: Placement) -> Float[Array, ""]:
        if self.gravity is None:
            return jnp.zeros(())
        _, mass = self.parts(self.inertia)
        return -jnp.sum((mass * g[1]) @ self.gravity)

    def differential(self, g: Placement, xi: Coordinates, mu: Coordinates) -> Coordinates:
        return self.kick(g, jnp.zeros(()))

    def kick(self, g: Placement, t: Float[Array, ""]) -> Coordinates:
        if self.gravity is None:
            return jnp.zeros_like(self.inertia)
        _, mass = self.parts(self.inertia)
        pull = mass * jnp.broadcast_to(self.gravity, mass.shape)
        return jnp.concatenate([jnp.zeros_like(pull), pull], axis=1).reshape(-1)

    def total_force(
        self, g: Placement, xi: Coordinates, mu: Coordinates, t: Float[Array, ""]
    ) -> Coordinates:
        acting = self.kick(g, t)
        if self.feedback:
            acting = acting + self.load(g, xi, t)
        if self.drag is not None:
            acting = acting + self.drag.force(g[0], *self.parts(self.momentum(g, xi))).reshape(-1)
        return acting

    def flight(self, g: Placement, mu: Coordinates, h: Float[Array, ""]) -> Flight:
        """Free motion: straight ahead, turning at a constant rate."""
        frames, places = g
        w, v = self.parts(self.mobility * mu)
        frames = jax.vmap(SO3().advance)(frames, jax.vmap(SO3().expm1)(h * w))
        status = NewtonStatus(jnp.asarray(True), jnp.zeros(()), jnp.asarray(0))
        return Flight((frames, places + h * v), jnp.zeros_like(w), w, v, status)

    @property
    def drawing(self) -> Drawing | None:
        """What a picture needs: spheres, and what stands in space."""
        if is_traced(self) or self.radius.ndim != 1:
            return None
        balls = [Ball(r, body=k) for k, r in enumerate(np.asarray(self.radius))]
        seen = picture([(ball, ball) for ball in balls] + [(x, x) for x in self.contact.against])
        return {"shapes": seen.shapes, "planes": seen.planes}


def _count(numbers: dict[str, Array], count: int | None) -> int:
    """Return how many balls there are."""
    for name, x in numbers.items():
        if x.ndim > 1:
            raise BadInput(
                f"{name} has shape {x.shape}; it is one number, or one for each ball: an array "
                "with one axis."
            )
    said = {name: x.shape[0] for name, x in numbers.items() if x.ndim == 1}
    if count is not None:
        said["count"] = require_whole("count", count, 1, MOST_NODES)
    if not said:
        return 1
    if len(set(said.values())) > 1:
        told = ", ".join(f"{name} says {n}" for name, n in said.items())
        raise BadInput(f"how many balls are there? {told}.")
    return require_whole("the number of balls", next(iter(said.values())), 1, MOST_NODES)


def _each(x: Array, like: Float[Array | np.ndarray, " n"]) -> Float[Array, " n"]:
    return jnp.broadcast_to(x, like.shape)


def _inertia(
    radius: Float[Array, " n"], mass: Float[Array, " n"], moment: Float[Array, " n"] | None
) -> tuple[Coordinates, Coordinates]:
    moment = 2 / 5 * mass * radius**2 if moment is None else moment
    rows = jnp.stack([moment] * 3 + [mass] * 3, axis=1).reshape(-1)
    return rows, 1 / rows


def _drag(name: str, value: Float[Array, " n"]) -> Float[Array, " n"]:
    def check(x: np.ndarray) -> None:
        if not np.all(x >= 0):
            raise BadInput(f"{name} = {x.tolist()} must not be negative.")

    require_each(check, value)
    return value


def _slowing(drag: Float[Array, " n"], inertia: Coordinates) -> Float[Array, "n 3"]:
    return jnp.stack([drag] * 3, axis=1) / inertia.reshape(-1, 6)[:, 3:]


def _calming(drag: Float[Array, " n"], inertia: Coordinates) -> Float[Array, "n 3"]:
    return jnp.stack([drag] * 3, axis=1) / inertia.reshape(-1, 6)[:, :3]


def _rows(name: str, value: ArrayLike | None, n: int) -> np.ndarray | Array:
    """Return vectors of all balls."""
    if value is None:
        return np.zeros((n, 3))
    array = float64(name, value)
    if array.shape == (3,):
        return evaluate_in_jax(_each_row, finite64(name, value, (3,)), np.zeros((n, 3)))
    return finite64(name, value, (n, 3))


def _each_row(x: Float[Array, "3"], like: Float[Array | np.ndarray, "n 3"]) -> Float[Array, "n 3"]:
    return jnp.broadcast_to(x, like.shape)


def _in_the_body(
    frames: Float[Array, "n 3 3"], w: Float[Array, "n 3"], v: Float[Array, "n 3"]
) -> Coordinates:
    return jnp.concatenate([jnp.einsum("kji,kj->ki", frames, w), v], axis=1).reshape(-1)
