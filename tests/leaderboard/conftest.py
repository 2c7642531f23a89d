"""Fixtures of the board's tests."""

from functools import lru_cache

import numpy as np
import pytest
from board_results import federation_pays, only
from forked import Nursery
from tiny_board import TINY, played

from fedbandit_envs.experiments.statistics import resampled
from fedbandit_envs.leaderboard import privatizer_attack, scores
from fedbandit_envs.leaderboard.records import EditionSecrets
from fedbandit_envs.leaderboard.result import Edition
from fedbandit_envs.leaderboard.suites import SUITES


@lru_cache(maxsize=8)
def drawn(strata, dtype, resamples):
    picks = resampled(np.frombuffer(strata, dtype), resamples)
    picks.flags.writeable = False
    return picks


@pytest.fixture(scope="module", autouse=True)
def resamples_once():
    """Equal strata have equal resamples: the intervals of a board's rows, a thousand of them, share what is drawn."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            scores, "resampled", lambda strata, count: drawn(strata.tobytes(), strata.dtype.str, count)
        )
        yield


@pytest.fixture(scope="module")
def tiny():
    """The tiny suite among the others, with attacks that see little."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SUITES, "tiny", TINY)
        patch.setattr(privatizer_attack, "_SAMPLES", 100)
        yield TINY


@pytest.fixture(scope="module")
def board(tiny, tmp_path_factory):
    """A folder in which the tiny suite was played, and its files; not to be written to."""
    folder = tmp_path_factory.mktemp("board")
    with pytest.MonkeyPatch.context() as patch:
        # The common random numbers in every run of the tests: some compare it with new random numbers.
        drawn = EditionSecrets(Edition.of("5a" * 16), b"a secret of 32 bytes, for tests.")
        patch.setattr(EditionSecrets, "draw", lambda: drawn)
        return folder, played(folder)


@pytest.fixture(scope="session")
def nursery():
    """Forks children of the sandbox."""
    made = Nursery()
    yield made
    made.close()


@pytest.fixture(params=["forked", pytest.param("started", marks=pytest.mark.ci)])
def children(request, monkeypatch):
    """Children of the sandbox are forks of one interpreter; in continuous integration each is a new one, too."""
    if request.param == "forked":
        place = "fedbandit_envs.leaderboard.sandbox.process.subprocess"
        monkeypatch.setattr(place, request.getfixturevalue("nursery"))
    return request.param


@pytest.fixture(scope="module", params=["procurement-quick", "linear-quick", "exposure-quick", "arms-quick"])
def rows(request):
    """Of results in which federation pays, of one suite after another."""
    return only(federation_pays(request.param))
