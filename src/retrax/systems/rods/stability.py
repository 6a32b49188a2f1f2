r"""How long a step may be: neither waves nor damping may grow.

A mode of frequency $\omega$ whose stresses are damped with the time $\beta$ obeys
$\ddot x = -\omega^2x - \beta\omega^2\dot x$. `LieVerlet` damps it twice a step by the explicit
midpoint rule over $h/2$; the integrators of two rods damp it in both of their kicks, by a factor
$k = 1 - \tfrac12\beta\omega^2h$ each. The steps do not grow while

$$
\begin{aligned}
h &< \frac2\omega, \quad h < \frac4{\beta\omega^2}                         &&\text{(1) one rod}\\
(\omega h)^2\,\frac{1 + k}{1 + k^2} &< 4, \quad h < \frac4{\beta\omega^2}  &&\text{(2) two rods}
\end{aligned}
$$

for the fastest mode: (2) without damping is $h < 2/\omega$ again.
"""

_HALVINGS = 50


def longest_step(highest: float, damping: float, split: bool) -> tuple[float, str]:
    """The bound on steps by (1), with `split`, or by (2); and what bounds them, in words."""
    waves = 2 / highest
    if damping == 0:
        return waves, "its fastest wave"
    viscous = 4 / (damping * highest**2)
    longest = min(waves, viscous)
    if not split:
        low = 0.0
        for _ in range(_HALVINGS):
            middle = (low + longest) / 2
            k = 1 - damping * highest**2 * middle / 2
            if (highest * middle) ** 2 * (1 + k) < 4 * (1 + k * k):
                low = middle
            else:
                longest = middle
    if viscous < waves:
        return longest, f"its explicit damping, h < 4/(beta omega^2) with beta = {damping:g} s"
    return longest, "its fastest wave"
