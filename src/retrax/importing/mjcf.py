"""Read a model that MuJoCo has compiled: bodies, joints, equalities, actuators."""

import numpy as np

from retrax.importing.actuators import actuators
from retrax.importing.compiled import Model, Names
from retrax.importing.equalities import equalities
from retrax.importing.flags import Off
from retrax.importing.geoms import shapes_of
from retrax.importing.placement import Placement, from_quaternion
from retrax.importing.robot import Edge, Freedom, FreedomKind, Link, Robot
from retrax.importing.solid import Solid
from retrax.mechanisms.frames import Limits

# By the numbers of mjtJoint.
_KINDS: tuple[FreedomKind, ...] = ("free", "ball", "slide", "hinge")


def read_model(model: Model, name: str, off: Off) -> Robot:
    """Return what a compiled model describes, drawn at its `qpos0`, without what is `off`."""
    names = Names(model)
    links = {names.body(0): Link(names.body(0), None, shapes_of(model, 0))}
    edges = []
    for i in range(1, model.nbody):
        links[names.body(i)] = Link(names.body(i), _solid(model, i), shapes_of(model, i))
        first, count = int(model.body_jntadr[i]), int(model.body_jntnum[i])
        origin = Placement(from_quaternion(model.body_quat[i]), np.array(model.body_pos[i]))
        freedoms = tuple(_freedom(model, names, j, off) for j in range(first, first + count))
        parent = names.body(int(model.body_parentid[i]))
        edges.append(Edge(parent, names.body(i), origin, freedoms))
    unread = _list_unsupported(model, names, off)
    loops, couplings = ([], []) if off.equality else equalities(model, names, unread)
    drives, edges = actuators(model, names, edges, off, unread)
    limits = {} if off.limit else _limits(model, names)
    return Robot(name, links, edges, loops, couplings, drives, limits, unread)


def _solid(model: Model, i: int) -> Solid | None:
    mass = float(model.body_mass[i])
    if mass == 0 and not np.any(model.body_inertia[i]):
        return None
    R = from_quaternion(model.body_iquat[i])
    return Solid(mass, np.array(model.body_ipos[i]), R @ np.diag(model.body_inertia[i]) @ R.T)


def _freedom(model: Model, names: Names, j: int, off: Off) -> Freedom:
    kind = _KINDS[int(model.jnt_type[j])]
    dof, q = int(model.jnt_dofadr[j]), int(model.jnt_qposadr[j])
    rest = float(model.qpos_spring[q] - model.qpos0[q]) if kind in ("hinge", "slide") else 0.0
    return Freedom(
        kind,
        names.joint(j),
        np.array(model.jnt_pos[j]),
        np.array(model.jnt_axis[j]),
        0.0 if off.damper else float(model.dof_damping[dof]),
        0.0 if off.spring else float(model.jnt_stiffness[j]),
        rest,
        float(model.dof_armature[dof]),
    )


def _limits(model: Model, names: Names) -> dict[str, Limits]:
    found = {}
    for j in range(model.njnt):
        if model.jnt_limited[j] and _KINDS[int(model.jnt_type[j])] in ("hinge", "slide"):
            zero = model.qpos0[model.jnt_qposadr[j]]
            low, high = (float(x) for x in model.jnt_range[j] - zero)
            found[names.joint(j)] = Limits(low, high)
    return found


def _list_unsupported(model: Model, names: Names, off: Off) -> list[str]:
    """Name what acts in a model and not in a mechanism."""
    notes = []
    touching = np.asarray(model.geom_contype) | model.geom_conaffinity
    rough = [names.joint(int(model.dof_jntid[v])) for v in np.flatnonzero(model.dof_frictionloss)]
    counts = {
        "contacts of geoms": 0 if off.contact else int(np.count_nonzero(touching)),
        "pairs of geoms in contact": 0 if off.contact else model.npair,
        "tendons": model.ntendon,
        "flexes": getattr(model, "nflex", 0),
        "plugins": model.nplugin,
        "mocap bodies, which stay where they are drawn": model.nmocap,
        "bodies whose gravity is compensated": 0
        if off.gravity or off.passive
        else int(np.count_nonzero(model.body_gravcomp)),
        "joints whose actuators are bounded together": 0
        if off.actuation
        else int(np.count_nonzero(model.jnt_actfrclimited)),
    }
    notes += [f"{what} ({count})" for what, count in counts.items() if count]
    if rough and not off.frictionloss:
        notes.append(f"dry friction of {', '.join(dict.fromkeys(rough))}")
    for field, idle in (("jnt_stiffnesspoly", off.spring), ("dof_dampingpoly", off.damper)):
        if not idle and np.any(getattr(model, field, 0)):
            notes.append(f"{field}: springs or dampers that are not linear")
    if (model.opt.density or model.opt.viscosity) and not off.passive:
        notes.append("the fluid around the bodies (density, viscosity)")
    balls = [
        j
        for j in range(model.njnt)
        if _KINDS[int(model.jnt_type[j])] == "ball" and model.jnt_limited[j]
    ]
    if balls and not off.limit:
        notes.append(f"limits of the ball joints {', '.join(map(names.joint, balls))}")
    return notes
