"""A mechanism as a system on its group."""

from collections.abc import Callable, Mapping
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup, Coordinates, Element
from retrax.mechanics.contact import AbstractContacts
from retrax.mechanics.functions import Function, Moving, require_energy
from retrax.mechanics.mechanical import AbstractMechanicalSystem, Inertia
from retrax.mechanics.remembered import Drawing
from retrax.mechanics.shape import Shape, shapes_of
from retrax.mechanics.state import Ending, State
from retrax.mechanics.symmetry import Generators, Symmetries
from retrax.mechanics.system import Derivative
from retrax.mechanisms.along import band_of
from retrax.mechanisms.assembly import assemble
from retrax.mechanisms.body import GROUND, Body
from retrax.mechanisms.drawing import drawing
from retrax.mechanisms.elements import Acting, energy_of, pull_of
from retrax.mechanisms.joined import Joints
from retrax.mechanisms.limits import ending, require_within, within
from retrax.mechanisms.loads import motion_of
from retrax.mechanisms.motions import find_motions, momenta
from retrax.mechanisms.pose import Pose
from retrax.mechanisms.rank import freedoms, redundant
from retrax.mechanisms.reactions import admissible, apply_transpose, reacting
from retrax.numerics.checks import ArrayLike, quote
from retrax.numerics.evaluate import evaluate
from retrax.numerics.meant import explain_keywords
from retrax.numerics.small_matrices import solve


class MechanismSystem(AbstractMechanicalSystem):
    r"""Rigid bodies with joints. Make one with `Mechanism.system()`.

    The configuration is a rotation and a centre of mass for each body; velocities are the angular
    velocity in body axes and the velocity of the centre in space axes, so that the kinetic energy
    has no mixed terms,

    $$ T = \sum_i\tfrac12\Omega_i\cdot J_i\Omega_i + \tfrac12m_i|v_i|^2. \tag{1} $$

    **Attributes:** `group`: `Power(Product(SO3, Translation(3)), n)`, or of `SO2` and
    `Translation(2)`; `mass`, `inertia`: of each body; `gravity`; `constraint`: joints and wheels;
    `contact`: what must not overlap and joints that stop, or `None`; `springs`; `potential`: the
    user's, or `None`; `force`: of dampers and the user's, or `None`; `reference`: the configuration
    as it was drawn; `names`, `shapes`: of the bodies.
    """

    group: AbstractLieGroup
    mass: Float[Array, " n"]
    inertia: Float[Array, "n turns turns"]
    gravity: Float[Array, " d"]
    constraint: Joints | None
    contact: AbstractContacts | None
    springs: tuple[Acting, ...]
    potential: Function | None
    force: Function | None
    reference: Element
    names: tuple[str, ...] = eqx.field(static=True)
    shapes: tuple[tuple[Shape, ...], ...] = eqx.field(static=True)

    symmetry: ClassVar[Generators | None] = None
    driven_as: ClassVar[str] = (
        "mechanism.plant(), after mechanism.add(rx.Motor(joint)) for each input, in place of "
        f"mechanism.system(); or {AbstractMechanicalSystem.driven_as}"
    )

    def __init__(
        self,
        *,
        group: AbstractLieGroup,
        mass: Float[Array, " n"],
        inertia: Float[Array, "n turns turns"],
        gravity: Float[Array, " d"],
        constraint: Joints | None,
        springs: tuple[Acting, ...],
        potential: Function | None,
        force: Function | None,
        reference: Element,
        names: tuple[str, ...],
        shapes: tuple[tuple[Shape, ...], ...],
        contact: AbstractContacts | None = None,
    ):
        self.group, self.mass, self.inertia, self.gravity = group, mass, inertia, gravity
        self.constraint, self.springs = constraint, springs
        self.potential, self.force = potential, force
        self.reference, self.names, self.shapes = reference, names, shapes
        self.contact = None if contact is None else contact.on(self)

    def __check_init__(self):
        words = isinstance(self.names, tuple) and all(isinstance(x, str) for x in self.names)
        if not words or len({*self.names}) != len(self.names) or len(self.names) != len(self.mass):
            raise BadInput(f"names = {quote(self.names)} must be different words, one a body.")
        if self.shapes != tuple(shapes_of("shapes", x) for x in self.shapes):
            raise BadInput(f"shapes = {quote(self.shapes)} must be shapes of rx.draw, by body.")

    @property
    def name(self) -> str:
        joints = 0 if self.constraint is None else len(self.constraint.names)
        counts = [(len(self.names), "body", "bodies"), (joints, "joint", "joints")]
        told = [f"{n} {one if n == 1 else many}" for n, one, many in counts if n]
        return f"mechanism of {' and '.join(told)}"

    @property
    def drawing(self) -> Drawing | None:
        """What pictures show: bodies with their shapes, joints, wheels."""
        return drawing(self)

    @property
    def e3_points_up(self) -> bool:
        """Whether the axis that gravity is nearest to points up."""
        gravity = np.asarray(self.gravity)
        axis = 1 if len(gravity) == 2 else int(np.argmax(np.abs(gravity)))
        return bool(gravity[axis] <= 0)

    @property
    def invariant_inertia(self) -> bool:
        return True

    @property
    def free(self) -> bool:
        return False

    @property
    def moving(self) -> bool:
        return isinstance(self.potential, Moving)

    def at_time(self, t: Float[Array, ""]) -> "MechanismSystem":
        moving = self.potential
        return self._with_fields(potential=moving.at(t)) if isinstance(moving, Moving) else self

    def energy_rate(
        self, g: Element, xi: Coordinates, mu: Coordinates, t: Float[Array, ""]
    ) -> Float[Array, ""]:
        return jax.grad(lambda t: self.at_time(t).potential_energy(g))(t)

    def split(self, xi: Coordinates) -> tuple[Float[Array, "n turns"], Float[Array, "n d"]]:
        """Return the parts of a velocity or momentum that turn and that travel, a row a body."""
        each = xi.reshape(len(self.names), -1)
        turns = self.inertia.shape[1]
        return each[:, :turns], each[:, turns:]

    def inertia_at(self, g: Element) -> Inertia:
        one = jnp.eye(self.gravity.shape[0])
        pairs = [(self.inertia[i], self.mass[i] * one) for i in range(len(self.names))]
        return jax.scipy.linalg.block_diag(*(block for pair in pairs for block in pair))

    def momentum(self, g: Element, xi: Coordinates) -> Coordinates:
        turns, travels = self.split(xi)
        spin = jnp.einsum("nij,nj->ni", self.inertia, turns)
        return jnp.concatenate([spin, self.mass[:, None] * travels], axis=1).reshape(-1)  # (1)

    def velocity(self, g: Element, mu: Coordinates) -> Coordinates:
        turns, travels = self.split(mu)
        spin = jax.vmap(solve)(self.inertia, turns)
        return jnp.concatenate([spin, travels / self.mass[:, None]], axis=1).reshape(-1)

    def potential_energy(self, g: Element) -> Float[Array, ""]:
        height = -jnp.sum(self.mass * (g[1] @ self.gravity)) + energy_of(self.springs, g)
        return height if self.potential is None else height + jnp.asarray(self.potential(g))

    def differential(self, g: Element, xi: Coordinates, mu: Coordinates) -> Coordinates:
        turns, _ = self.split(xi)
        weight = self.mass[:, None] * self.gravity[None]
        force = jnp.concatenate([jnp.zeros_like(turns), weight], axis=1)
        if self.springs:
            force = force + pull_of(self.springs, g, xi.reshape(len(self.names), -1))
        if self.potential is None:
            return force.reshape(-1)
        potential = self.potential
        slope = jax.grad(lambda k: jnp.asarray(potential(k)))(g)
        return force.reshape(-1) - self.group.cotangent(g, slope)

    def check_energy(self, state: State) -> None:
        if self.potential is not None:
            energy = evaluate(type(self).potential_energy, self.at_time(state.t), state.g)
            require_energy("potential", energy)

    def check_state(self, state: State) -> None:
        super().check_state(state)
        require_within(self, state.g)

    def lasts(self, state: State) -> Bool[Array, ""] | None:
        return within(self, state.g)

    def ending(self, step: Callable[[float], State], h: float) -> Ending | None:
        return ending(self, step, h)

    def verlet_step(self) -> type:
        from retrax.mechanisms.banded_rattle import JointedLong
        from retrax.mechanisms.sparse_rattle import Jointed

        return Jointed if band_of(self) is None else JointedLong

    def vector_field(self, g: Element, mu: Coordinates, t: Float[Array, ""]) -> Derivative:
        joints = band_of(self)
        if joints is None:
            return super().vector_field(g, mu, t)
        return reacting(self, joints, g, mu, t)[0]

    def multipliers(self, state: State) -> Float[Array, " k"]:
        joints = band_of(self)
        if joints is None:
            return super().multipliers(state)
        return reacting(self, joints, state.g, state.momentum, state.t)[1]

    def reaction(self, state: State) -> Coordinates:
        joints = band_of(self)
        if joints is None:
            return super().reaction(state)
        return apply_transpose(self, joints, state.g, self.multipliers(state))

    def project_momentum(self, g: Element, mu: Coordinates, t: Float[Array, ""]) -> Coordinates:
        joints = band_of(self)
        if joints is None:
            return super().project_momentum(g, mu, t)
        return admissible(self, joints, g, mu)

    def symmetries(self) -> Symmetries:
        """Return the rigid motions of the whole and the turns of single bodies that are kept."""
        return find_motions(self)

    def momenta_of(self, symmetries: Symmetries, state: State) -> dict[str, Float[Array, ""]]:
        return momenta(self, symmetries, state)

    def observables(self, state: State) -> dict[str, Float[Array, "..."]]:
        """Return the coordinates of joints and their rates, by name; angles between -pi and pi."""
        found: dict[str, Float[Array, ...]] = {}
        if self.constraint is None:
            return found
        xi = self.velocity_at(state)
        for joint in self.constraint.connections:
            if joint.coordinates:
                values, rates = motion_of(joint, state.g, xi)
                for k, word in enumerate(joint.words):
                    found[f"{word} of {joint.name}"] = values[k]
                    found[f"rate of {word} of {joint.name}"] = rates[k]
        return found

    def unit_of(self, observable: str) -> str:
        kinds = {"angle": "rad", "position": "m"}
        words = observable.removeprefix("rate of ").split(" ", 2)
        return kinds.get(words[0], "") + ("/s" if observable.startswith("rate of ") else "")

    def index(self, body: Body | str) -> int:
        """Return the number of a body, `GROUND` for the ground."""
        name = body.name if isinstance(body, Body) else body
        if name == "ground":
            return GROUND
        if name not in self.names:
            known = ", ".join(map(repr, self.names))
            raise BadInput(f"there is no body {name!r}: this mechanism has {known}.")
        return self.names.index(name)

    def pose(self, state: State, body: Body | str) -> Pose:
        """Return where a body is in a state: its rotation and its centre of mass.

        Of states stacked along time, as `run.states`, these are stacked too.
        """
        k = self.index(body)
        if k == GROUND:
            raise BadInput("the ground does not move: its pose is the identity at the origin.")
        R, x = state.g
        return Pose(R[..., k, :, :], x[..., k, :])

    @explain_keywords
    def assemble(
        self,
        joints: Mapping[str, ArrayLike] | None = None,
        joint_rates: Mapping[str, ArrayLike] | None = None,
        velocities: Mapping[Body | str, ArrayLike] | None = None,
        project: bool = False,
        t: float = 0.0,
    ) -> State:
        """Put the mechanism together, starting from where it was drawn, and return its state.

        What is not asked for moves as little as the joints allow; velocities that are not asked
        for are those of least kinetic energy.

        **Arguments:**

        - `joints`: the angle (rad) or position (m) of joints, by name; of a joint with several
            coordinates all of them, in the order of its docstring, and of a Screw its angle. A
            state holds no turns: an angle is taken modulo a whole turn, but of a Screw. With a
            TorsionSpring there all turns count, and what winds it too far is rejected.
        - `joint_rates`: the same for their rates.
        - `velocities`: of bodies, by name or as `Mechanism.body` returned them: the angular
            velocity in body axes and the velocity of the centre of mass in space axes, one after
            the other.
        - `project`: whether rates and velocities that the joints do not allow are replaced by the
            nearest ones that they allow.
        - `t`: the time of the state.

        **Raises:** `BadInput` where joints do not come together, with the worst of them and by how
        much it stays open; where what was asked for cannot be had.
        """
        return assemble(self, joints or {}, joint_rates or {}, velocities or {}, project, t)

    def redundant(self, state: State) -> tuple[str, ...]:
        """Return the names of joints and wheels that ask for what others before them ask already.

        Forces are shared out among such joints in one of many ways: the smallest.
        """
        return redundant(self, state)

    def freedoms(self, state: State) -> int:
        """Return how many independent velocities the joints and wheels leave in a state."""
        return freedoms(self, state)
