"""Everything public has wrong calls written for it, and each ends in a sentence."""

import inspect
import subprocess

import pytest

import retrax as rx

from .as_user import run

# Made by retrax, not by its users: results, errors, and what holds them together.
RESULTS = {
    "Fit", "Smoothed", "analysis.ModifiedEnergy", "analysis.Poincare",
    "Trajectory", "PreparedRun", "Plan", "Driven", "systems.CharacteristicPath",
    "analysis.Convergence",
    "analysis.Lyapunov", "analysis.Modes", "analysis.Relations", "analysis.Slope",
    "analysis.Spectrum",
    "Trajectory.of_records", "testing.Problem", "solids.require_rigid_body",
}  # fmt: skip
NAMESPACES = {"": rx, "systems.": rx.systems, "analysis.": rx.analysis, "testing.": rx.testing}
EXAMPLES = 260


def public_names() -> set[str]:
    """Every class and function that a user reaches, and every class method that makes one."""
    found = set()
    for prefix, namespace in NAMESPACES.items():
        for name in dir(namespace):
            value = getattr(namespace, name)
            if name.startswith("_") or inspect.ismodule(value) or not callable(value):
                continue
            if inspect.isclass(value) and issubclass(value, Exception):
                continue
            if inspect.isabstract(value):  # nobody can make one
                continue
            found.add(prefix + name)
            for method, made in vars(value).items() if inspect.isclass(value) else ():
                if isinstance(made, classmethod) and not method.startswith("_"):
                    found.add(f"{prefix}{name}.{method}")
    solids = vars(rx.solids).items()
    own = rx.solids.__name__
    found |= {f"solids.{n}" for n, v in solids if inspect.isfunction(v) and v.__module__ == own}
    return {name for name in found if not name.split(".")[-1].startswith("_")}


@pytest.fixture(scope="module")
def campaign() -> subprocess.CompletedProcess:
    options = ("--list", "--cheap", "--examples", str(EXAMPLES))
    return run("tests.bad_input", *options, timeout=600)


def test_everything_public_has_wrong_calls(campaign):
    missing = public_names() - RESULTS - set(campaign.stdout.split("\n"))
    assert not missing, f"no entry in tests/bad_input for {sorted(missing)}"


def test_wrong_calls_end_in_sentences(campaign):
    assert campaign.returncode == 0, campaign.stdout[-4000:] + campaign.stderr[-2000:]
