"""How much Byzantine agents (liars) raise the regret of honest agents; the experiment is from no paper."""

from fedbandit_envs.papers.experiment import Experiment, PanelRuns, Plan, Runs, Scale, Section
from fedbandit_envs.papers.stats import each, final_regret, over

SILENT = "LinUCB"
MEANINGS = {
    SILENT: "silent",
    "FedUCB-nonprivate": "true data, added up",
    "FedUCB-trimmed": "true data, without the two in five senders furthest from the median",
    "FedUCB-trimmed-mean": "true data, each number without a quarter of the senders at either end",
    "FedUCB-min": "noisy data, added up",
    "FedUCB-min-trimmed": "noisy data, without the two in five senders furthest from the median",
}
"""A description of each baseline compared, by name."""
SHARE, BOUND = 0.2, 1.3
"""With this share of liars honest agents should have at most this multiple of their regret without liars."""


def _runs(plan: Plan) -> Runs:
    """Returns the runs of a panel: each of its baselines with each share of liars, under the panel's attack."""
    attack, _, private = plan.panel.partition("-")
    names = ("FedUCB-min", "FedUCB-min-trimmed") if private else tuple(MEANINGS)[1:4]
    return [
        plan.run(
            name, "FedLinear-v0", env={"num_agents": 10, "dim": 5, "num_arms": 20, "gap": 0.1},
            stack=[("Byzantine", {"agents": share, "attack": attack})], delta=0.1, labels={"liars": share},
        )
        for name in (SILENT, *names)
        for share in (0.0, 0.1, 0.2, 0.3, 0.4)
    ]  # fmt: skip


def _report(section: Section, runs: PanelRuns) -> None:
    """Reports whether honest agents keep the bound, and their regret by the share of liars."""
    honest = each(runs.lines("liars"), lambda result: result.of("honest"))
    regrets = each(honest, final_regret)
    grown = {line: over(own, own[0.0]) for line, own in honest.items()}
    beside = {line: over(own, honest[SILENT]) for line, own in honest.items()}
    section.table("bounds", [
        {
            "algorithm": line,
            "holds?": grown[line][SHARE].at_most(BOUND),
            "regret / regret without liars": grown[line][SHARE],
            "regret / regret of silence": beside[line][SHARE],
        }
        for line in honest
        if line != SILENT
    ])  # fmt: skip
    head = "honest agents' regret at T [95 %]"
    section.table("regret", [
        {head: line, "what it does": MEANINGS[line]} | {f"{x:.0%} liars": y for x, y in own.items()}
        for line, own in regrets.items()
    ])  # fmt: skip
    section.draw(regrets)
    section.record(grown, "{} / without liars")
    section.record(beside, "{} / silent")


EXPERIMENTS = {
    "byzantine": Experiment(
        "Liars: honest agents' regret against their share",
        "How much more regret honest agents have if others lie; 3 minutes.",
        {"x": "share of liars", "y": "honest agents' regret at T", "xscale": "linear"},
        {"small": Scale(10_000, 20), "paper": Scale(100_000, 20)},
        _runs, _report,
        {
            "garbage": "Garbage, true data",
            "sign_flip": "Sign flip, true data",
            "garbage-private": "Garbage, private, epsilon = 1",
            "sign_flip-private": "Sign flip, private, epsilon = 1",
        },
    )
}  # fmt: skip
