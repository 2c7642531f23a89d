"""The runs of a paper's experiment, played and found by their labels, and its command."""

from typed import call

from fedbandit_envs.experiments.execute import play
from fedbandit_envs.experiments.store import Store
from fedbandit_envs.papers.experiment import PanelRuns, Plan, Section


def reproduce(*words):
    """Types `fedbandit reproduce` and these words."""
    return call("reproduce", *words, columns=300)


def labelled(runs, **labels):
    """The runs that have all of these labels, as experiments give them."""
    return [run for run in runs if labels.items() <= run.labels.items()]


def played(runs, plan, folder):
    """Plays runs and returns their results as reports get them."""
    play(runs, folder)
    return PanelRuns(plan, [(run.labels, Store(folder).load(run)) for run in runs])


def section_of(experiment, panel, rows):
    """What an experiment reports of a panel for results of the labels given, at the experiment's first scale."""
    plan = Plan(panel, next(iter(experiment.scales.values())), experiment.modes[0])
    section = Section(plan)
    experiment.report(section, PanelRuns(plan, rows))
    return section
