"""The leaderboard's baselines that weigh messages spend their budgets as the page `private-budget` recommends."""

import re
from pathlib import Path

import pytest

from fedbandit_envs.baselines.comparison_lines import BASELINE_OF, OURS
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.leaderboard.suites import SUITES
from fedbandit_envs.leaderboard.tracks import tracks_of
from fedbandit_envs.papers.private_budget.experiments import EXPERIMENTS, PROBLEMS
from fedbandit_envs.wrappers.transport.schedule import make_schedule

PAGE = Path(__file__).parents[2] / "docs" / "reproductions" / "private-budget-small.md"
T = 100_000


def recommended(problem: str) -> tuple[str, set[str]]:
    """Returns the name of the recommended candidate of a problem, and of those that are not told apart from it."""
    (experiment,) = EXPERIMENTS.values()
    part = PAGE.read_text().split(f"## {experiment.panels[problem]}\n")[1].split("\n## ")[0]
    best = re.search(r"^\* Recommended: \*\*(.*?)\*\*", part, re.MULTILINE)[1]
    others = re.search(r"^\* Not told apart from it .*?\): (.*)\.$", part, re.MULTILINE)[1]
    return best, {re.sub(r" \([^()]*\)$", "", one) for one in others.split("; ")} - {"none"}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_weighted_baselines_release_in_recommended_rounds(problem):
    suite, baseline = SUITES[problem], BASELINES[BASELINE_OF[problem][OURS]]
    env = suite.tasks[0].federation()
    given = baseline.wrapper_arguments(env, tracks_of(suite)["private-1"].changes(env, baseline, {}))
    best, others = recommended(problem)
    assert {best, *others} <= {*PROBLEMS[problem].candidates}

    def sent(spec):
        schedule = make_schedule(spec)
        return [1 << power for power in range(T.bit_length()) if schedule.sends(1 << power)]

    same = {
        name
        for name, candidate in PROBLEMS[problem].candidates.items()
        if candidate.when["name"] == "doubling"
        and sent(candidate.schedule(T)) == sent(given["channel"]["schedule"])
    }
    assert same & {best, *others}
    if problem == "procurement":
        # Here the recommended candidate differs from others of the same rounds in its shares and its pair of counts.
        assert best in same
        ours, theirs = given["privatizer"], PROBLEMS[problem].candidates[best].privatizer(T)
        assert {**ours, "epsilon": None} == theirs
        assert ours["pair"] == "good_and_defective"
