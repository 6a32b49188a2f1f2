r"""The cotangent lift of $D_s(g, x) = (g\,\tau(-s x),\ g\,\tau((1-s)x))$, piece by piece."""

from typing import NamedTuple

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup
from retrax.groups.retractions import AbstractRetraction
from retrax.mechanics.system import Coordinates, Element
from retrax.numerics.checks import as_float, shown


class LiftedMap(NamedTuple):
    r"""With $a$ the momentum of the start and $b$ that of the end, both carried to the base $g$:

    $$
    \begin{aligned}
    g &= g_0\,\tau^*(s x), & a &= \mathrm{Ad}^*_{\tau^*(s x)}\mu_0                    &&\text{(1)}\\
    \mu &= s\,(d^L\tau^*_{s x})^* a + (1-s)\,(d^R\tau_{(1-s)x})^* b                &&&&\text{(2)}\\
    g_1 &= g\,\tau((1-s)x), & \mu_1 &= \mathrm{Ad}^*_{\tau((1-s)x)} b                 &&\text{(3)}
    \end{aligned}
    $$

    where $\tau^*(x) = \tau(-x)^{-1}$ is $\tau$ itself where $\tau$ is symmetric.

    References: [BarberoLinanMartinDeDiego2023].
    """

    group: AbstractLieGroup
    tau: AbstractRetraction
    s: float

    def base(self, g0: Element, mu0: Coordinates, x: Coordinates) -> tuple[Element, Coordinates]:
        if self.s == 0:
            return g0, mu0
        return self._moved(self.tau.adjoint, g0, mu0, self.s * x)  # (1)

    def momentum(self, x: Coordinates, a: Coordinates, b: Coordinates) -> Coordinates:
        s = self.s
        first = s * self.tau.adjoint.dL_dual(self.group, s * x, a)
        return first + (1 - s) * self.tau.dR_dual(self.group, (1 - s) * x, b)  # (2)

    def end(self, g: Element, b: Coordinates, x: Coordinates) -> tuple[Element, Coordinates]:
        if self.s == 1:
            return g, b
        return self._moved(self.tau, g, b, (1 - self.s) * x)  # (3)

    def _moved(
        self, tau: AbstractRetraction, g: Element, mu: Coordinates, x: Coordinates
    ) -> tuple[Element, Coordinates]:
        forward = tau.minus_identity(self.group, x)
        return self.group.advance(g, forward), mu + self.group.coAdm1(forward, mu)


def require_base_point(s: float) -> float:
    """Refuse a base point that does not lie in the step."""
    place = as_float(s)
    if not 0 <= place <= 1:
        raise BadInput(
            f"s = {shown(s)} is not between 0 and 1: the base point must lie in the step."
        )
    return place
