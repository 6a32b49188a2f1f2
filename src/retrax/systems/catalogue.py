"""The one list of cases: what `retrax run` runs and the examples show."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from retrax.systems import settings
from retrax.systems.body_on_sphere import BodyOnSphere
from retrax.systems.continuous_qr import ContinuousQR
from retrax.systems.euler_top import EulerTop
from retrax.systems.heavy_body import Pendulum3D
from retrax.systems.heavy_top_orbit import HeavyTopOrbit
from retrax.systems.kuramoto import Kuramoto
from retrax.systems.settings import Setting
from retrax.systems.strings.string_pendulum import StringPendulum
from retrax.systems.strings.strings_in_contact import StringsInContact
from retrax.systems.subspace_flow import SubspaceFlow
from retrax.systems.suslov import Suslov
from retrax.systems.toda import Toda


@dataclass(frozen=True)
class Case:
    """A system with a start, a step and a length worth looking at.

    **Attributes:**

    - `name`: what it is called on the command line.
    - `description`: one line about it.
    - `make`: a function that returns (system, state, h, steps).
    - `integrator`: the name of the integrator that is used unless another one is asked for.
    - `length`: h and steps again, to be read without making the system, which takes a while.
    """

    name: str
    description: str
    make: Callable[[], Setting]
    integrator: str = "lie-verlet"
    length: tuple[float, int] | None = None


_CONSTRAINED = "lagrange-d-alembert"
_ON_SPACES = "rkmk-5"

CASES: dict[str, Case] = {
    case.name: case
    for case in (
        Case(
            "free-rigid-body",
            "a free rigid body with moments 1, 2, 3",
            settings.free_rigid_body,
            length=(0.05, 20_000),
        ),
        Case(
            "heavy-top",
            "an asymmetric heavy top, spinning, precessing, nutating",
            settings.heavy_top,
            length=(0.005, 20_000),
        ),
        Case(
            "pendulum3d",
            "the 3D pendulum of the pseudospectral paper",
            Pendulum3D.paper,
            length=(0.05, 600),
        ),
        Case(
            "string-pendulum",
            "a body on an elastic string",
            StringPendulum.paper,
            length=(1e-4, 50_000),
        ),
        Case(
            "suslov",
            "Suslov's problem with a full inertia",
            settings.suslov,
            _CONSTRAINED,
            length=(0.01, 2_000),
        ),
        Case(
            "suslov-paper",
            "Fig. 1 of the nonholonomic paper",
            Suslov.paper,
            _CONSTRAINED,
            length=(0.01, 180_000),
        ),
        Case(
            "kharlamova",
            "Suslov's problem with a weight",
            Suslov.kharlamova,
            _CONSTRAINED,
            length=(0.02, 20_000),
        ),
        Case(
            "chaplygin-sleigh",
            "a sleigh on a skate",
            settings.chaplygin_sleigh,
            _CONSTRAINED,
            length=(0.01, 1_000),
        ),
        Case(
            "rolling-disk",
            "a disk that rolls upright",
            settings.rolling_disk,
            _CONSTRAINED,
            length=(0.01, 2_000),
        ),
        Case(
            "veselova",
            "a body that does not turn about the vertical",
            settings.veselova,
            _CONSTRAINED,
            length=(0.02, 20_000),
        ),
        Case(
            "chaplygin-ball",
            "a balanced ball, rolling",
            settings.chaplygin_ball,
            _CONSTRAINED,
            length=(0.02, 5_000),
        ),
        Case(
            "turntable",
            "a homogeneous ball on a turntable",
            settings.turntable,
            _CONSTRAINED,
            length=(0.02, 3_000),
        ),
        Case("blade", "a blade in space", settings.blade, _CONSTRAINED, (0.01, 5_000)),
        Case(
            "euler-top",
            "the momenta of a free body, by Kahan's method",
            EulerTop.paper,
            "kahan",
            length=(0.1, 10_000),
        ),
        Case(
            "predator-prey",
            "two species, by Kahan's method",
            settings.predator_prey,
            "kahan",
            length=(0.1, 10_000),
        ),
        Case(
            "gyrostat",
            "a body with a rotor inside",
            settings.gyrostat,
            "kahan",
            length=(0.05, 10_000),
        ),
        Case("clebsch", "a body in an ideal fluid", settings.clebsch_body, "kahan", (0.05, 10_000)),
        Case("henon-heiles", "a star in a galaxy", settings.galaxy, "kahan", (0.1, 10_000)),
        Case(
            "body-on-sphere",
            "a free body on S^2",
            BodyOnSphere.example,
            _ON_SPACES,
            length=(0.05, 2_000),
        ),
        Case(
            "kuramoto",
            "coupled oscillators on a torus",
            Kuramoto.example,
            _ON_SPACES,
            length=(0.05, 2_000),
        ),
        Case(
            "continuous-qr",
            "the frame of a linear flow",
            ContinuousQR.example,
            _ON_SPACES,
            length=(0.02, 2_000),
        ),
        Case(
            "subspace-flow",
            "a plane carried by a flow",
            SubspaceFlow.example,
            _ON_SPACES,
            length=(0.02, 1_000),
        ),
        Case(
            "toda",
            "the Toda lattice, eigenvalues kept",
            Toda.example,
            _ON_SPACES,
            length=(0.02, 1_000),
        ),
        Case(
            "heavy-top-orbit",
            "a heavy top on T*SO(3)/S^1",
            HeavyTopOrbit.example,
            _ON_SPACES,
            length=(0.005, 20_000),
        ),
        Case("rod", "an elastic rod, thrown", settings.rod, length=(0.004, 5_000)),
        Case(
            "rods-in-contact",
            "two rods that roll",
            settings.rods_in_contact,
            "rolling-verlet",
            (0.02, 5_000),
        ),
        Case(
            "strings-in-contact",
            "two strings that roll on each other",
            StringsInContact.paper,
            "contact-dkd",
            (2 * math.pi / 256, 2_560),
        ),
    )
}
