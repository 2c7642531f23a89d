"""Table of the page on digits."""

from fedbandit_envs.papers.classification.experiments import ALONE
from fedbandit_envs.papers.reproduction.comparison import final_regret, ratio
from fedbandit_envs.papers.reproduction.experiment import PanelRuns
from fedbandit_envs.papers.reproduction.page import Table

MEANINGS = {
    "random": "guesses",
    "alone": "LinUCB on own answers",
    "alone, a regression for each arm": "the same with a constant radius",
    "all shared": "LinUCB on the answers of all agents, sent without noise in every round",
    "FedUCB-min": "noisy sums, sent in rounds 1, 2, 4 ..., added up",
    "FedUCB-weighted": "the same, weighted by their precision",
    "placebo": "FedUCB-weighted on noise alone",
}
"""What each line does, by the first part of its name."""


def wrong_answers(runs: PanelRuns) -> Table:
    """Yields a table with a line for each algorithm: wrong answers per agent, also over those of agents alone."""
    for line, result in runs.by("line").items():
        yield {
            "algorithm": line,
            "what it does": MEANINGS[line.partition(", eps")[0]],
            "wrong answers (± 95 %)": final_regret(result),
            "/ alone": "1" if line == ALONE else ratio(result, runs[ALONE]),
        }
