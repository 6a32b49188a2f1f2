"""Two strings in rolling contact."""

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from retrax.errors import BadInput, ContactTooFast
from retrax.groups.product import Product
from retrax.groups.translation import Translation
from retrax.mechanics.constraints import VelocityConstraint
from retrax.mechanics.remembered import Drawing, told
from retrax.mechanics.state import Ending, State, bracket
from retrax.mechanics.symmetry import Symmetries
from retrax.mechanics.system import AbstractGroupSystem, ArrayLike, Coordinates, refuse_overrides
from retrax.numerics.bspline import HALF_SUPPORT, bspline
from retrax.numerics.checks import (
    MOST_NODES,
    finite64,
    float64,
    positive64,
    quote,
    require_choice,
    require_finite,
    require_shape,
)
from retrax.numerics.evaluate import as_jax, evaluate, evaluate_in_jax
from retrax.numerics.known import require_each

Nodes = Float[Array, " m"]
Configuration = tuple[Nodes, Nodes, Float[Array, "2"]]
Profile = Callable[[np.ndarray], ArrayLike] | ArrayLike | None

ENDS = ("fixed", "periodic")
DEGREES = (5, 3)
# Fewer segments than this leave no room between a contact and the ends.
_FEWEST = 17
# A subclass must not redefine these: the integrators of the contact have them written out.
_FIXED = (
    "constraint", "differential", "force", "group", "hamiltonian_energy", "momentum", "symmetry",
    "total_force", "vector_field", "velocity",
)  # fmt: skip


class StringsInContact(AbstractGroupSystem):
    r"""Strings $u(x,t)$ and $v(y,t)$ that touch without slip at $x = s_1(t)$ and $y = s_2(t)$.

    $$
    \begin{aligned}
    u_{tt} &= c^2u_{xx} - \lambda\,\delta_{s_1}, \qquad
    v_{tt} = c^2v_{yy} + F\lambda\,\delta_{s_2},                                   &&\text{(1)}\\
    \langle u_t\rangle(s_1) &= F\,\langle v_t\rangle(s_2)                          &&\text{(2)}\\
    \dot s_1 &= G_1\langle u_t\rangle(s_1), \qquad
    \dot s_2 = G_2\langle v_t\rangle(s_2)                                           &&\text{(3)}
    \end{aligned}
    $$

    At a moving contact $u_t$ jumps; $\langle\cdot\rangle$ is the mean of both sides, and with it,
    and only with it, energy is conserved. On a lattice of $n$ segments of length $d = l/n$ the
    deltas are $\alpha_i(s_1)/d$ and $\beta_i(s_2)/d$, B-splines of the distance from node $i$,

    $$
    \begin{aligned}
    H &= \tfrac d2\textstyle\sum_i(\dot u_i^2 + \dot v_i^2) + V(u) + V(v), \qquad
    V(u) = \tfrac{c^2}{2d}\sum_i(u_{i+1} - u_i)^2                                   &&\text{(4)}\\
    \alpha\cdot\dot u &= F\,\beta\cdot\dot v                                           &&\text{(5)}
    \end{aligned}
    $$

    with the reaction $\lambda\,(-\alpha, F\beta)$ that (5) calls for. The contacts carry no
    momentum: their velocities are functions of the others. At fixed ends the bump has odd images.
    The configuration is $(u, v, (s_1, s_2))$ on the nodes that move.

    The model holds while $|\dot s_i| < c$. If $u$ solves it so does $Au$ with $G_i/A$.

    **Arguments:**

    - `F`: the ratio of velocities in (2), not 0.
    - `G`: the pair $(G_1, G_2)$, or one number for both (s).
    - `n`: segments of each string.
    - `c`, `length`: wave speed and length $l$, both of each string.
    - `ends`: `"fixed"` or `"periodic"`.
    - `degree`: of the bump, 5; or 3, with two continuous derivatives instead of four.
    - `width`: the spacing of the bump's knots in segments.

    **Invariants:** energy; $G_2s_1 - FG_1s_2$; with periodic ends $d\sum(F\dot u_i + \dot v_i)$.

    References: [GayBalmazPutkaradze2012] (the model).
    """

    F: Float[Array, ""]
    G: Float[Array, "2"]
    c: Float[Array, ""]
    length: Float[Array, ""]
    nodes: Nodes
    group: Product
    n: int = eqx.field(static=True)
    ends: str = eqx.field(static=True)
    degree: int = eqx.field(static=True)
    width: int = eqx.field(static=True)

    force: ClassVar[None] = None
    symmetry: ClassVar[None] = None
    quadratic: ClassVar[bool] = True
    regular: ClassVar[bool] = False  # the contacts follow the strings, without inertia

    def __init__(
        self,
        F: ArrayLike = 1.0,
        G: ArrayLike = 0.8,
        n: int = 128,
        *,
        c: ArrayLike = 1.0,
        length: ArrayLike = 2 * np.pi,
        ends: str = "fixed",
        degree: int = 5,
        width: int = 1,
    ):
        self.n, self.ends, self.degree, self.width = _lattice(n, ends, degree, width)
        self.F, self.G = finite64("F", F), _couplings(G)
        self.c, self.length = positive64("c", c), positive64("length", length)
        require_each(_require_gear, self.F, fine=lambda F: F != 0)
        first = 1 if ends == "fixed" else 0
        self.nodes = evaluate_in_jax(
            lambda x: x / n * np.arange(first, n, dtype=float), self.length
        )
        moving = n - first
        self.group = Product(Translation(moving), Translation(moving), Translation(2))

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        refuse_overrides(cls, _FIXED, "write a system of your own on the same group")

    @classmethod
    def paper(cls) -> tuple["StringsInContact", State, float, int]:
        """Return Fig. 2 of the paper with parameters of our own, for it states none."""
        system = cls(F=1.0, G=0.8, n=128)
        return system, system.at((2.0, 2.6), u=np.sin), float(system.length) / system.n / 2, 2560

    @property
    def name(self) -> str:
        return "pair of strings in contact"

    @property
    def drawing(self) -> Drawing | None:
        """What a picture needs: the length, and whether the ends are fixed."""
        return told("strings", length=(self.length, 0), ends=(self.ends, 0))

    @property
    def spacing(self) -> Float[Array, ""]:
        """The length $d$ of a segment."""
        return self.length / self.n

    @property
    def constraint(self) -> VelocityConstraint:
        """The constraint (5) on the velocities."""
        return VelocityConstraint(_Contact(self))

    def weights(self, s: Float[Array, ""]) -> Nodes:
        r"""Return the bump $\alpha_i(s)$ at every node that moves."""
        knot, length = self.width * self.spacing, self.length
        if self.ends == "periodic":
            away = self.nodes - s
            return (
                bspline((away - length * jnp.floor(away / length + 0.5)) / knot, self.degree)
                / self.width
            )
        reflected = jnp.minimum(self.nodes + s, 2 * length - self.nodes - s)
        direct = bspline((self.nodes - s) / knot, self.degree)
        return (direct - bspline(reflected / knot, self.degree)) / self.width

    def pull(self, u: Nodes) -> Nodes:
        r"""Return $c^2u_{xx}$ on the lattice."""
        left, right = self._beyond(u)
        before, after = jnp.concatenate([left, u[:-1]]), jnp.concatenate([u[1:], right])
        return (self.c / self.spacing) ** 2 * (before - 2 * u + after)

    def stretching(self, u: Nodes) -> Float[Array, ""]:
        r"""Return the potential energy $V(u)$ of (4)."""
        left, right = self._beyond(u)
        chain = jnp.concatenate([left, u, right] if self.ends == "fixed" else [left, u])
        steps = chain[1:] - chain[:-1]
        return self.c**2 / (2 * self.spacing) * jnp.sum(steps * steps)

    def _beyond(self, u: Nodes) -> tuple[Float[Array, "1"], Float[Array, "1"]]:
        """Return the values before the first and behind the last node that moves."""
        if self.ends == "fixed":
            return jnp.zeros(1), jnp.zeros(1)
        return u[-1:], u[:1]

    def rates(self, mu: Coordinates) -> tuple[Nodes, Nodes]:
        r"""Return $\dot u$ and $\dot v$ at the nodes."""
        m = self.nodes.shape[0]
        return mu[:m] / self.spacing, mu[m : 2 * m] / self.spacing

    def momentum(self, g: Configuration, xi: Coordinates) -> Coordinates:
        return jnp.concatenate([self.spacing * xi[:-2], jnp.zeros(2)])

    def velocity(self, g: Configuration, mu: Coordinates) -> Coordinates:
        u_t, v_t = self.rates(mu)
        first, second = self.weights(g[2][0]) @ u_t, self.weights(g[2][1]) @ v_t
        return jnp.concatenate([u_t, v_t, self.G * jnp.stack([first, second])])  # (3)

    def lasts(self, state: State) -> Bool[Array, ""]:
        """Return whether both contacts are slower than the waves."""
        return jnp.max(jnp.abs(self.velocity(state.g, state.momentum)[-2:])) < self.c

    def ending(self, step: Callable[[float], State], h: float) -> Ending | None:
        return _outrun(self, step, h)

    def differential(self, g: Configuration, xi: Coordinates, mu: Coordinates) -> Coordinates:
        u, v, _ = g
        return jnp.concatenate(
            [self.spacing * self.pull(u), self.spacing * self.pull(v), jnp.zeros(2)]
        )

    def hamiltonian_energy(self, g: Configuration, mu: Coordinates) -> Float[Array, ""]:
        u_t, v_t = self.rates(mu)
        kinetic = self.spacing / 2 * (u_t @ u_t + v_t @ v_t)
        return kinetic + self.stretching(g[0]) + self.stretching(g[1])  # (4)

    def at(
        self,
        s: ArrayLike,
        u: Profile = None,
        v: Profile = None,
        u_t: Profile = None,
        v_t: Profile = None,
        *,
        project: bool = False,
    ) -> State:
        """Return the state with contacts at `s` = (s1, s2); profiles are functions, values or None.

        Velocities that break (5) are rejected, or with `project` replaced by the nearest ones.
        """
        places = finite64("s", s, (2,))
        if self.ends == "fixed":
            require_each(_require_inside, places, self.length)
        g = (self._profile("u", u), self._profile("v", v), places)
        if u_t is None and v_t is None:  # rest breaks no constraint
            return State(g=g, momentum=float64("momentum", np.zeros(self.group.dim)))
        rates = [self._profile("u_t", u_t), self._profile("v_t", v_t), jnp.zeros(2)]
        return self.state(g, velocity=jnp.concatenate(rates), project=project)

    def _profile(self, name: str, given: Profile) -> Nodes:
        value = given(np.asarray(self.nodes)) if callable(given) else given
        array = float64(name, np.zeros(self.nodes.shape) if value is None else value)
        require_shape(name, array, self.nodes.shape)
        require_finite(name, array)
        return array

    def harmonic(self, g: Configuration, k: int = 1) -> Float[Array, ""]:
        r"""Return $\hat u_k = \frac2l\int_0^l u\,\sin(2\pi kx/l)\,dx$: a sine of $k$ waves."""
        wave = jnp.sin(2 * jnp.pi * k / self.length * self.nodes)
        return 2 / self.n * (wave @ g[0])

    def symmetries(self) -> Symmetries:
        """Return no symmetry: `further_invariants` has those of periodic strings."""
        return Symmetries(np.zeros((0, self.group.dim)), np.zeros((0, self.group.dim)))

    def further_invariants(self, state: State) -> dict[str, Float[Array, ""]]:
        s, (u_t, v_t) = state.g[2], self.rates(state.momentum)
        paths = {"G2 s1 - F G1 s2": self.G[1] * s[0] - self.F * self.G[0] * s[1]}
        if self.ends == "fixed":
            return paths
        return {**paths, "F p1 + p2": self.spacing * (self.F * jnp.sum(u_t) + jnp.sum(v_t))}


class _Contact(eqx.Module):
    r"""The row $(-\alpha, F\beta, 0, 0)$ of the constraint; its multiplier is $\lambda$ of (1)."""

    strings: StringsInContact

    def __call__(self, g: Configuration) -> Float[Array, "1 dim"]:
        strings, s = self.strings, g[2]
        parts = [-strings.weights(s[0]), strings.F * strings.weights(s[1]), jnp.zeros(2)]
        return jnp.concatenate(parts)[None]


def _couplings(G: object) -> Float[Array, "2"]:
    """Return the pair (G1, G2); one number stands for both."""
    array = float64("G", G)
    both = evaluate_in_jax(lambda x: jnp.stack([x, x]), array) if array.ndim == 0 else array
    return finite64("G", both, (2,))


def _lattice(n: object, ends: object, degree: object, width: object) -> tuple[int, str, int, int]:
    """Return segments, ends and bump; reject them unless they fit together."""
    kind, order = require_choice("ends", ends, ENDS), require_choice("degree", degree, DEGREES)
    if type(n) is not int or not _FEWEST <= n <= MOST_NODES:
        raise BadInput(
            f"n = {quote(n)} segments must be a whole number of at least {_FEWEST}, and at most "
            f"{MOST_NODES}."
        )
    widest = max(1, n // (4 * HALF_SUPPORT[order]))
    if type(width) is not int or not 1 <= width <= widest:
        raise BadInput(
            f"width = {quote(width)} segments between knots must be a whole number from 1 to "
            f"{widest} for n = {n}: a wider bump does not fit the string."
        )
    return n, kind, order, width


def _require_gear(F: np.ndarray) -> None:
    if float(F) == 0:
        raise BadInput("F = 0 leaves the first string's contact at rest: F must not be 0.")


def _require_inside(places: np.ndarray, length: np.ndarray) -> None:
    if not np.all((places > 0) & (places < length)):
        raise BadInput(
            f"s = {places.tolist()} must lie between the fixed ends 0 and {float(length):g}."
        )


def _outrun(system: StringsInContact, step: Callable[[float], State], h: float) -> Ending | None:
    """Return where a contact reaches the speed of waves within a step of size `h`, if it does."""

    def lasts(state: State) -> bool:
        return bool(evaluate(StringsInContact.lasts, system, state))

    if lasts(step(h)):
        return None
    first, _ = bracket(lambda size: lasts(step(size)), h)
    state = jax.tree.map(as_jax, step(first))
    s, speeds = state.g[2], evaluate(StringsInContact.velocity_at, system, state)[-2:]
    return Ending(
        "moved a contact faster than the waves",
        f"The contacts are at s = ({float(s[0]):.4g}, {float(s[1]):.4g}) with speeds "
        f"({speeds[0]:.3g}, {speeds[1]:.3g}), but the model holds only below c = "
        f"{float(system.c):g}: take a smaller G or amplitude, so that G max|u_t|/c is smaller.",
        ContactTooFast,
        state,
    )
