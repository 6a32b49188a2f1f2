"""The equalities of a MuJoCo model: loops that are closed, and joints that follow others."""

import numpy as np

from retrax.importing.compiled import Model, Names
from retrax.importing.placement import Placement, from_quaternion
from retrax.importing.robot import Coupling, Edge, Freedom

# By the numbers of mjtEq.
_CONNECT, _WELD, _JOINT = 0, 1, 2
# By the number of mjtObj for bodies.
_BODY = 1


def equalities(model: Model, names: Names, unread: list[str]) -> tuple[list[Edge], list[Coupling]]:
    """Return the loops and the couplings of a model; what is neither goes to `unread`."""
    loops, couplings = [], []
    for k in range(model.neq):
        name = model.equality(k).name or f"equality {k + 1}"
        kind, one, two = (int(v[k]) for v in (model.eq_type, model.eq_obj1id, model.eq_obj2id))
        data = np.array(model.eq_data[k], dtype=float)
        if not model.eq_active0[k]:
            unread.append(f"the equality {name!r}, which is not active")
        elif kind in (_CONNECT, _WELD) and int(model.eq_objtype[k]) != _BODY:
            unread.append(f"the equality {name!r}, which is between sites")
        elif kind == _CONNECT:
            ball = Freedom("ball", name, data[3:6], np.eye(3)[2])
            origin = Placement(np.eye(3), data[:3] - data[3:6])
            loops.append(Edge(names.body(one), names.body(two), origin, (ball,)))
        elif kind == _WELD:
            R = from_quaternion(data[6:10])
            origin = Placement(R, data[3:6] - R @ data[:3])
            loops.append(Edge(names.body(one), names.body(two), origin, ()))
        elif kind == _JOINT and two >= 0:
            coefficients = tuple(float(c) for c in np.trim_zeros(data[:5], "b"))
            couplings.append(Coupling(names.joint(one), names.joint(two), coefficients or (0.0,)))
        else:
            unread.append(f"the equality {name!r}")
    return loops, couplings
