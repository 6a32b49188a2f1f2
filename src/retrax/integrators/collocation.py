"""Collocation on a group or a homogeneous space: any nodes, any order."""

from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.integrators.base import AbstractIntegrator, Refusal, StepInfo, shorter_step
from retrax.integrators.collocation_step import lie_step
from retrax.integrators.forms import FORMS, check_form, flow_of
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics import nodes as node_families
from retrax.numerics.checks import require_choice, require_flag


class Collocation(AbstractIntegrator):
    r"""Collocation in the algebra: $y(t) = \exp(u(t))\cdot y_0$, $u$ a polynomial of degree $s$.

    The polynomial satisfies $\dot u = \mathrm{dexp}^{-1}\xi$, with the exact inverse tangent map,
    at the nodes (`collocation_step.lie_step`), so the order is that of the nodes and the points
    stay on the group or space. Configurations and momenta are collocated together.

    Not symplectic, for any nodes: the chart moves with the point. The energy of a mechanical system
    drifts linearly, as $h^{2s+1}$ for Gauss' nodes. With `centred` the chart is at the middle of
    the step, and symmetric nodes make a symmetric step, whose energy does not drift where the
    motion is regular. For long times use `GalerkinVariational`.

    **Arguments:**

    - `nodes`: `gauss(s)`, `radau(s)`, `lobatto(s)`, ... or a list of numbers from 0 to 1.
    - `centred`: whether the chart is at the middle of the step rather than at its start.
    - `form`: the variables of a mechanical system. `"body"`: $(g, \mu)$. `"spatial"`: $g$ and the
        spatial momentum; the momenta of all symmetries of space are kept to round-off. `"se3"`: a
        body on $SO(3)$ with a vertical symmetry, moved by $SE(3)$; the vertical momentum is kept.

    References: [MuntheKaas1999]; [IserlesMuntheKaasNorsettZanna2000];
    [HairerLubichWanner2006] II.1 and IV.8.
    """

    nodes: node_families.Nodes = eqx.field(static=True)
    centred: bool = eqx.field(static=True)
    form: str = eqx.field(static=True)
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)
    needs_momentum: ClassVar[bool] = False

    def __init__(
        self,
        nodes: node_families.Nodes | Sequence[float] | Any,
        centred: bool = False,
        form: str = "body",
    ):
        self.nodes = node_families.nodes(nodes)
        self.centred = require_flag("centred", centred)
        self.form, self.order = require_choice("form", form, FORMS), self.nodes.order
        if self.order < 1:
            raise BadInput(f"nodes = {self.nodes!r} make a method of order 0, which is none.")
        midpoint = self.nodes.stages == 1 and self.nodes.symmetric
        symmetric = midpoint or (self.centred and self.nodes.symmetric)
        exact = set() if form == "body" else {"spatial momentum"}
        self.preserves = frozenset({"group"} | ({"symmetric"} if symmetric else set()) | exact)

    def __repr__(self) -> str:
        form = "" if self.form == "body" else f", form={self.form!r}"
        return f"Collocation({self.nodes!r}{', centred=True' if self.centred else ''}{form})"

    def check(self, system: AbstractGroupSystem) -> None:
        check_form(repr(self), self.form, system)

    def refusal(self, system: Any, state: State, h: float, moved: float) -> Refusal:
        return chart_refusal(h, moved)

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        flow = flow_of(system, state, self.form)
        end = lie_step(flow, state.t, h, self.nodes, self.centred)
        return State(*flow.end(end.y), state.t + h), end.info


def chart_refusal(h: float, moved: float) -> Refusal:
    """What to say of a step with a stage outside the chart."""
    return Refusal(
        "left the chart of the exponential map",
        f"A stage turns by 2 pi or more, where the tangent map cannot be inverted (the step moves "
        f"by |u| = {moved:.3g}).",
        shorter_step(h, moved),
    )
