"""A run, stopped and taken up again, for every kind of integrator and in a new process."""

import warnings

import pytest
import restart_matrix
from restart_matrix import FEW, METHODS, make, matrix, take_up

PAIRS = [(case, name) for case, names in FEW.items() for name in names]
# A method that leaves its group leaves no state from which a new run may start.
NO_NEW_RUN = {"runge-kutta-4"}
# Solvers that start from the stages of the step before: in a new run last bits may differ.
GUESSING = {"collocation-4", "plain-collocation-4"}


@pytest.mark.parametrize("case, name", PAIRS)
def test_twice_n_steps_are_n_steps_and_n_more(case, name, tmp_path):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*keeps data, not code")
        assert make(tmp_path, case, name, "native", netcdf=False) is None
    found = take_up(tmp_path, case, name, "native")
    same_states = found.pop("final")
    assert found == {"resumed": True, "without commits": True}
    assert same_states == (name not in NO_NEW_RUN) or name in GUESSING


def test_every_kind_of_integrator_is_among_them():
    chosen = {type(METHODS[name]) for _, name in PAIRS}
    # On two rods and on bodies that touch, which take long to compile.
    touching = {"RollingVerlet", "RollingDKD", "NonsmoothRattle"}
    assert {type(m).__name__ for m in METHODS.values()} - {c.__name__ for c in chosen} == touching


def test_in_a_new_process_and_on_xla_too(tmp_path, monkeypatch):
    monkeypatch.setattr(restart_matrix, "FEW", {"euler-top": ["kahan"]})
    result = matrix("few", "xla", tmp_path)
    assert (tmp_path / "euler-top" / "kahan-xla" / "half.nc").exists()
    everything = {"resumed": True, "without commits": True, "final": True}
    assert result == {"found": {"euler-top kahan": everything}, "refused": {}}
