"""The runs of many bodies as one xarray dataset."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from retrax.engine.progress import FAILURE, INTERVAL
from retrax.errors import BadInput
from retrax.mechanics.actuated import Actuated
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import quote, require_instance
from retrax.numerics.evaluate import as_jax
from retrax.trajectory.dataset import Variable, configuration_variables, identifier
from retrax.trajectory.observe import observe

if TYPE_CHECKING:
    import xarray as xr

MEMBERS_FORMAT = "retrax-ensemble"
REASONS = ("none", "not_converged", "left_chart", "not_finite")


def members_dataset(
    states: State,
    interval: np.ndarray,
    failure: np.ndarray,
    behind: np.ndarray,
    attributes: dict[str, Any],
    inputs: Callable[[State], np.ndarray] | None = None,
) -> "xr.Dataset":
    """Collect states (time, member, ...), statistics (time, row, member), failures by member.

    `behind` is the number of steps behind each saved state; `inputs` tells what drives states.
    """
    import xarray as xr

    failures = _failures(failure)
    _blank(states, interval, behind, failures["failed_step"][1])
    both = ("time", "member")
    variables: dict[str, Any] = configuration_variables(
        states.g, both, attributes["provenance_group"]
    )
    variables["momentum"] = ((*both, "body"), states.momentum, {"long_name": "body momentum"})
    if inputs is not None:
        about = {"long_name": "inputs from here on"}
        variables["inputs"] = ((*both, "input"), inputs(states), about)
    for row, name in enumerate(INTERVAL):
        long_name = f"Newton {name} since the last saved state"
        variables[name] = (both, interval[:, row], {"long_name": long_name})
    variables["increment"][2]["long_name"] = "largest |h xi| since the last saved state"
    times = states.t[:, 0]
    if np.any(states.t != times[:, None]):
        variables["t"] = (both, states.t, {"units": "s", "long_name": "time of the member"})
    return xr.Dataset(
        variables | failures,
        coords={
            "time": ("time", times, {"units": "s", "long_name": "time"}),
            "member": ("member", np.arange(failure.shape[1])),
        },
        attrs={"format": MEMBERS_FORMAT, **attributes},
    )


def _failures(failure: np.ndarray) -> dict[str, Variable]:
    """Say where and why members failed."""
    row = dict(zip(FAILURE, failure, strict=True))
    (failed,) = np.nonzero(~np.isnan(row["step"]))
    members = failure.shape[1]
    failed_step, reason = np.full(members, -1, np.int64), np.zeros(members, np.int8)
    failed_step[failed] = row["step"][failed] + 1
    diverged, left = row["converged"][failed] == 0, row["in_chart"][failed] == 0
    reason[failed] = np.where(diverged, 1, np.where(left, 2, 3))
    one = ("member",)
    return {
        "failed_step": (
            one,
            failed_step,
            {"long_name": "number of the step that failed, -1 where none did"},
        ),
        "failure": (
            one,
            reason,
            {
                "long_name": "why it failed",
                "flag_values": np.arange(len(REASONS), dtype=np.int8),
                "flag_meanings": " ".join(REASONS),
            },
        ),
        "failure_residual": (
            one,
            np.array(row["residual"]),
            {"long_name": "relative residual there"},
        ),
        "failure_increment": (one, np.array(row["increment"]), {"long_name": "|h xi| there"}),
    }


def _blank(
    states: State, interval: np.ndarray, behind: np.ndarray, failed_step: np.ndarray
) -> None:
    """Put NaN for everything that a failed member has not reached."""
    for member in np.nonzero(failed_step > 0)[0]:
        lost = behind >= failed_step[member]
        for leaf in jax.tree.leaves((states.g, states.momentum)):
            leaf[lost, member] = np.nan
        interval[lost, :, member] = np.nan


def observe_members(system: AbstractGroupSystem | Actuated, runs: "xr.Dataset") -> "xr.Dataset":
    """Add velocity, invariants and group defect to the dataset of `ensemble`.

    **Arguments:** `system`: the one system of all members, or one for each along the first axis of
    its arrays; `runs`: what `ensemble` returned.
    """
    if isinstance(system, Actuated):
        system = system.system
    require_instance("system", system, AbstractGroupSystem, "a retrax system")
    if getattr(runs, "attrs", {}).get("format") != MEMBERS_FORMAT:
        raise BadInput(f"runs = {quote(runs)} is not a dataset that ensemble returned.")
    records, members = runs.sizes["time"], runs.sizes["member"]
    g = [
        runs[name].values
        for name in runs.data_vars
        if runs[name].attrs.get("kind") == "configuration"
    ]
    like = system.configuration_space.layout()
    shapes = [leaf.shape for leaf in jax.tree.leaves(like)]
    if [part.shape[2:] for part in g] != shapes:
        raise BadInput(
            f"runs has configurations of shapes {[part.shape[2:] for part in g]}, but those of the "
            f"{system.name} have {shapes}: it is of another system."
        )
    tree = jax.tree.unflatten(jax.tree.structure(like), g)
    g, momentum = jax.tree.map(
        lambda x: as_jax(np.reshape(x, (records * members, *x.shape[2:]))),
        (tree, runs["momentum"].values),
    )
    t = runs["t"].values if "t" in runs else np.repeat(runs["time"].values[:, None], members, 1)
    states = State(g, momentum, as_jax(t.ravel()))
    shared = runs.attrs.get("shared_system", 1)
    owner = None if shared else np.tile(np.arange(members), records)
    seen = observe(system, states, owner=owner)
    both = ("time", "member")

    def shape(x):
        return x.reshape(records, members, *x.shape[1:])

    added: dict[str, Any] = {
        identifier(name): (both, shape(x), {"long_name": name, "kind": "invariant"})
        for name, x in seen.invariants.items()
    }
    if seen.energy is not None and "energy" not in added:
        added["energy"] = (both, shape(seen.energy), {"long_name": "energy", "units": "J"})
    added["velocity"] = ((*both, "body"), shape(seen.velocity), {"long_name": "body velocity"})
    added["group_defect"] = (both, shape(seen.defect), {"long_name": "distance from the group"})
    return runs.assign(added)
