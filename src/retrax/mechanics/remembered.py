"""What a system tells about itself: what to draw of it, and what a file keeps of it."""

from typing import Any, NoReturn

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Symmetries
from retrax.mechanics.system import AbstractGroupSystem, Coordinates, Element
from retrax.numerics.checks import is_traced
from retrax.spaces.base import AbstractHomogeneousSpace

# A picture by its kind, `{"disk": {"radius": 0.7}}`, in numbers, text and lists of them.
Drawing = dict[str, Any]


def told(kind: str, **values: tuple[Any, int]) -> Drawing | None:
    """Describe a picture by its kind and its numbers; each value comes with its rank.

    Return `None` where a value is traced, or has a higher rank because it is that of many systems.
    """
    for value, rank in values.values():
        if is_traced(value) or np.ndim(value) != rank:
            return None
    return {kind: {name: np.asarray(x).tolist() for name, (x, _) in values.items()}}


# The name of a constant matrix, among the numbers, that takes body velocities to momenta.
MASS_MATRIX = "mass matrix"


class RememberedSystem(AbstractGroupSystem):
    """A system whose functions a file could not keep: it can be drawn, but not run.

    `retrax.load` returns it in `run.system` where the system holds functions written by the user.
    Everything that needs those functions raises `BadInput`.

    **Attributes:**

    - `title`: the name of the system.
    - `space`: where it moves.
    - `numbers`: its arrays, by name.
    - `functions`: the functions and classes that are not in the file, by name.
    - `drawing`: what to draw; `None` leaves it to the group.
    - `measured`: the units of its observables, by name.
    - `e3_points_up`: whether up is along e3, or against it.
    - `recipe`: the call of a factory that makes the system, as the JSON of the file; empty without
        one.
    - `trust`: the modules that the recipe needs.
    """

    title: str = eqx.field(static=True)
    space: AbstractHomogeneousSpace
    numbers: dict[str, Any]
    functions: tuple[tuple[str, str], ...] = eqx.field(static=True)
    drawing: Drawing | None = eqx.field(static=True)
    measured: dict[str, str] = eqx.field(static=True)
    e3_points_up: bool = eqx.field(static=True)
    recipe: str = eqx.field(static=True)
    trust: tuple[str, ...] = eqx.field(static=True)

    def __init__(
        self,
        *,
        title: str,
        space: AbstractHomogeneousSpace,
        numbers: dict[str, Any],
        functions: tuple[tuple[str, str], ...] = (),
        drawing: Drawing | None = None,
        measured: dict[str, str] | None = None,
        e3_points_up: bool = True,
        recipe: str = "",
        trust: tuple[str, ...] = (),
    ):
        self.title, self.space, self.numbers, self.functions = title, space, numbers, functions
        self.drawing, self.measured, self.e3_points_up = drawing, measured or {}, e3_points_up
        self.recipe, self.trust = recipe, trust

    def __check_init__(self):
        """Reject parts of other types: they come from a file."""
        pairs = [(self.title, str), (self.space, AbstractHomogeneousSpace), (self.numbers, dict)]
        pairs += [(self.drawing, dict | None), (self.measured, dict), (self.e3_points_up, bool)]
        named = all(len(pair) == 2 for pair in self.functions)
        texts = [text for pair in self.functions for text in pair]
        texts += [*self.numbers, *self.measured, *self.measured.values(), self.recipe, *self.trust]
        if not (named and all(isinstance(x, kind) for x, kind in pairs)):
            raise BadInput("the stored description of the system is damaged.")
        if not all(isinstance(text, str) for text in texts):
            raise BadInput("the stored description of the system is damaged.")

    @property
    def name(self) -> str:
        return self.title

    @property
    def group(self) -> AbstractLieGroup:
        return self.space.group

    @property
    def configuration_space(self) -> AbstractHomogeneousSpace:
        return self.space

    @property
    def force(self) -> None:
        return None

    @property
    def symmetry(self) -> None:
        return None

    @property
    def inertia(self) -> Any:
        """The inertia, where it is an array."""
        return self.numbers.get("inertia")

    def velocities(self, momenta: np.ndarray) -> np.ndarray:
        """Return the body velocities along a run where the mass matrix is a constant, else NaN."""
        matrix = self.numbers.get(MASS_MATRIX)
        if matrix is None or np.shape(matrix) != (self.group.dim, self.group.dim):
            return np.full_like(momenta, np.nan)
        return np.linalg.solve(np.asarray(matrix), momenta.T).T

    def unit_of(self, observable: str) -> str:
        return self.measured.get(observable, "")

    def as_state(self, start: Any) -> NoReturn:
        self._lacks_functions()

    def momentum(self, g: Element, xi: Coordinates) -> Coordinates:
        self._lacks_functions()

    def velocity(self, g: Element, mu: Coordinates) -> Coordinates:
        self._lacks_functions()

    def velocity_at(self, state: State) -> Coordinates:
        self._lacks_functions()

    def differential(self, g: Element, xi: Coordinates, mu: Coordinates) -> Coordinates:
        self._lacks_functions()

    def hamiltonian_energy(self, g: Element, mu: Coordinates) -> Float[Array, ""]:
        self._lacks_functions()

    def symmetries(self) -> Symmetries:
        self._lacks_functions()

    def _lacks_functions(self) -> NoReturn:
        raise BadInput(f"{self.lack()}.")

    def lack(self) -> str:
        """Say what the file does not keep, and how to bring it back."""
        lost = ", ".join(f"{name} = {function}" for name, function in self.functions)
        what = (
            "class and functions" if any(x == "class" for x, _ in self.functions) else "functions"
        )
        kept = f"the file keeps what the {self.title} is made of, but not its {what}"
        recipe = ""
        if self.trust:
            modules = self.trust[0] if len(self.trust) == 1 else list(self.trust)
            recipe = f"rx.load(path, trust={modules!r}) makes it again if the module is yours; or "
        return (
            f"{kept}{f' ({lost})' if lost else ''}: {recipe}give the system yourself, as in "
            "rx.resume(path, system=...) for a checkpoint, or "
            "rx.simulate(system, integrator, run.final, ...) to go on from the end of a run"
        )
