"""Fixtures of the board's tests."""

import pytest
from tiny_board import TINY, played

from fedbandit_envs.leaderboard.board import audits
from fedbandit_envs.leaderboard.board.suites import SUITES


@pytest.fixture(scope="module")
def tiny():
    """The tiny suite among the others, with attacks that see little."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SUITES, "tiny", TINY)
        patch.setattr(audits, "_SAMPLES", 100)
        yield TINY


@pytest.fixture(scope="module")
def board(tiny, tmp_path_factory):
    """A folder in which the tiny suite was played, and its files; not to be written to."""
    folder = tmp_path_factory.mktemp("board")
    return folder, played(folder)
