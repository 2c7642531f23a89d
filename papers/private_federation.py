"""Whether private federation pays in each of the four problems, in expectation, against agents who send nothing.

A panel has the two tasks of a problem's suite on the leaderboard. Noise is that of the suite's private tracks.
Constants are those of the registered baselines; where they were tuned by epsilon, those for the epsilon played.
"""

from collections.abc import Iterator
from itertools import chain

import numpy as np
from scipy.stats import gmean

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.comparison_lines import (
    BASELINE_OF,
    OURS_TUNED,
    PAPER,
    PLACEBO,
    SILENT,
    TRUE_TUNED,
    TUNED,
)
from fedbandit_envs.experiments import measures
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.leaderboard.suites import SUITES, tracks_of
from fedbandit_envs.papers import stats
from fedbandit_envs.papers.experiment import Experiment, PanelRuns, Plan, Scale, Section

TITLES = {
    "procurement": "Procurement",
    "linear": "Linear contextual bandits",
    "exposure": "Exposure fairness",
    "arms": "Bernoulli arms",
}
"""Titles of the problems, whose names are those of their suites."""

EPSILONS = (0.1, 1.0, 10.0)
FULL = 100_000
"""Rounds of a scale at which suites are played over their full horizon."""
SILENCE = "best silence"
"""The silent line of two that has less regret in the runs played, in the geometric mean over tasks."""
OURS, TRUE = "weighted", "true data"
LINES = {
    TUNED: (TUNED, ()),
    SILENT: (SILENT, ()),
    PAPER: (PAPER, EPSILONS),
    OURS: (OURS_TUNED, EPSILONS),
    PLACEBO: (PLACEBO, EPSILONS[1:2]),
    TRUE: (TRUE_TUNED, ()),
}
"""For each line the baseline, by its name in :data:`.BASELINE_OF`, and the epsilons of its releases."""


def _runs(plan: Plan) -> Iterator[RunSpec]:
    suite = SUITES[plan.panel]
    tracks = tracks_of(suite)
    for task in suite.tasks:
        env, rounds = task.federation(), max(2, task.rounds * plan.scale.rounds // FULL)
        for line, (name, epsilons) in LINES.items():
            baseline = BASELINE_OF[plan.panel][name]
            for epsilon in epsilons or (0.0,):
                track = tracks[f"private-{epsilon:g}" if epsilon else "non-private"]
                yield plan.run(
                    line, task.env_id, baseline, rounds=rounds, env=task.env_kwargs,
                    wrappers=track.changes(env, BASELINES[baseline]),
                    labels={"task": task.id} | ({"epsilon": epsilon} if epsilon else {}),
                )  # fmt: skip


class _Line:
    """Regret of one line at one epsilon in all tasks of a suite.

    Attributes:
        name: Name of the line, with its epsilon where it is played at several.
        baseline: Name of the baseline.
        by_task: Regret of each run at the horizon, for each task.
        whole: The same of all tasks' runs, ``(runs,)``.
        late: The part of it in the second half of the rounds, same shape.
        tasks: Number of each run's task, same shape.
    """

    def __init__(self, runs: PanelRuns) -> None:
        (labels, first), *_ = runs.rows
        self.baseline, epsilon = first.labels["baseline"], labels.get("epsilon")
        self.name = labels["line"] + (f", epsilon {epsilon:g}" if epsilon else "")
        self.by_task = [result.regret.mean(axis=2)[-1] for _, result in runs.rows]
        self.whole = np.concatenate(self.by_task)
        self.late = np.concatenate([result.late for _, result in runs.rows])
        self.tasks = np.repeat(np.arange(len(self.by_task)), self.by_task[0].size)

    def over(self, other: "_Line") -> stats.Ratio:
        """Returns the ratio of expected regrets, the geometric mean over tasks."""
        ratio = measures.ratio_with_interval(self.whole, other.whole, self.tasks)
        return stats.Ratio(*ratio, self.by_task[0].size)

    def cells(self, silence: "_Line", placebo: "_Line", tasks: list[str]) -> stats.Row:
        """Returns the cells of the line's row: regret on each task, and the measures beside the controls."""
        failed = measures.failures(self.late, silence.whole, self.tasks)
        most = measures.most_failures(failed, self.late.size)
        return {
            "line": self.name,
            "baseline": self.baseline,
            **{f"{task} [95 %]": stats.mean_of(own) for task, own in zip(tasks, self.by_task, strict=True)},
            f"/ {SILENCE}": self.over(silence),
            f"/ {PLACEBO}": self.over(placebo),
            "worst tenth": f"{measures.worst_tenth(self.whole, silence.whole, self.tasks):.3g}",
            "failed runs": f"{failed} of {self.late.size} (at most {most:.1%})",
        }


def _report(section: Section, runs: PanelRuns) -> None:
    """Reports regret, its ratios to best silence and to the placebo, and at which epsilons each is below 1."""
    found = {
        line: {at: _Line(runs.where(line=line, epsilon=at or None)) for at in epsilons or (0.0,)}
        for line, (_, epsilons) in LINES.items()
    }
    alone, (placebo,) = (found[TUNED][0.0], found[SILENT][0.0]), found[PLACEBO].values()
    silence = min(alone, key=lambda one: float(gmean([own.mean() for own in one.by_task])))
    ratios = {
        below.name: {line: {at: one.over(below) for at, one in found[line].items()} for line in (OURS, PAPER)}
        for below in (silence, placebo)
    }
    section.table("pays", [
        {
            "regret of": line,
            f"below that of {SILENCE} at epsilon": stats.pays_at(ratios[silence.name][line]),
            "below that of the placebo at epsilon": stats.pays_at(ratios[placebo.name][line]),
        }
        for line in (OURS, PAPER)
    ])  # fmt: skip
    tasks = [task.id.partition("/")[2] for task in SUITES[runs.plan.panel].tasks]
    lines = chain(*(own.values() for own in found.values()))
    section.table("lines", [line.cells(silence, placebo, tasks) for line in lines])
    section.draw(ratios[silence.name])
    for line in (PLACEBO, TRUE):
        (one,) = found[line].values()
        section.draw({line: dict.fromkeys(EPSILONS, one.over(silence).value)})


EXPERIMENTS = {
    "private-federation": Experiment(
        "Private federation: whether it pays",
        "Whether agents who send noisy data have less regret than the best who send nothing; 10 minutes.",
        {"x": "epsilon", "y": f"regret / {SILENCE}'s"},
        {"tiny": Scale(600, 2), "small": Scale(30_000, 20), "paper": Scale(FULL, 100)},
        lambda plan: list(_runs(plan)), _report, TITLES,
    )
}  # fmt: skip
