"""A thousand hostile calls and fifty hard runs: none ends wrong, raw or silent."""

import pytest

from .as_user import run
from .hard_runs import METHODS, SITUATIONS, ends


@pytest.mark.campaign
def test_a_thousand_hostile_calls_end_in_sentences_or_sound_numbers():
    """As a user calls: none of the checks of types that tests switch on."""
    ended = run("tests.bad_input.members", timeout=1200)
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]


@pytest.mark.campaign
@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.filterwarnings("ignore:a step near")
def test_a_hard_run_ends_right_or_in_a_sentence(situation, method):
    assert ends(SITUATIONS[situation], method) in ("right", "sentence")
