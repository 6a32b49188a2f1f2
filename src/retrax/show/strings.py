"""The bodies on a string in a picture: boxes where they hang."""

from typing import Any

import numpy as np

from retrax.show.bodies import Body, solid_box
from retrax.trajectory.trajectory import Trajectory


def string_bodies(run: Trajectory, told: dict[str, Any]) -> list[Body]:
    """The bodies on a string, each a box about its centre of mass, in metres."""
    r, *turns = (np.asarray(leaf) for leaf in run.g)
    first = 3 * r.shape[1]
    found = []
    rows = zip(told["string"], turns, told["arms"], strict=True)
    for k, (node, R, arm) in enumerate(rows):
        found.append(
            Body(
                "body" if len(turns) == 1 else f"body {k + 1}",
                R,
                r[:, node - 1] + R @ np.array(arm),
                np.arange(first + 3 * k, first + 3 * k + 3),
                solid_box(told["masses"][k], np.array(told["inertia"][k]))[0],
            )
        )
    return found
