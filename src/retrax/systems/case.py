"""What `retrax run` runs: a system with a start, a step and a number of steps."""

from collections.abc import Callable
from dataclasses import dataclass

from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.systems.driven_examples import DrivenExample

Example = tuple[AbstractGroupSystem, State, float, int]


@dataclass(frozen=True)
class Case:
    """A system with a start, a step and a number of steps worth looking at.

    **Attributes:**

    - `name`: its name on the command line.
    - `description`: one line that `retrax list` prints.
    - `make`: a function that returns (system, state, h, steps).
    - `integrator`: the name of the integrator that runs it by default.
    - `length`: h and steps again, known without making the system, which takes a while.
    - `driven`: for a plant with inputs, a function that returns it with what drives it; `make` is
        the same without inputs.
    """

    name: str
    description: str
    make: Callable[[], Example]
    integrator: str = "lie-verlet"
    length: tuple[float, int] | None = None
    driven: Callable[[], DrivenExample] | None = None


def driven_case(
    name: str,
    description: str,
    driven: Callable[[], DrivenExample],
    length: tuple[float, int],
    integrator: str = "lie-verlet",
) -> Case:
    """Return a case with inputs."""

    def make() -> Example:
        plant, _, state, h, steps = driven()
        return plant.system, state, h, steps

    return Case(name, description, make, integrator, length, driven)
