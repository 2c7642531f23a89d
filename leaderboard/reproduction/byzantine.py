"""What liars do to federated regret: which runs the page needs."""

from fedbandit_envs.leaderboard.reproduction.comparison import about_intervals
from fedbandit_envs.leaderboard.reproduction.experiment import Plan, Scale
from fedbandit_envs.leaderboard.run import Settings
from fedbandit_envs.leaderboard.sweep.runs import Run

SILENT = "LinUCB"
PLAIN = "FedUCB-nonprivate"
TRIMMED = "FedUCB-trimmed"
BY_NUMBER = "FedUCB-trimmed-mean"
NONPRIVATE = {
    SILENT: "silent",
    PLAIN: "true data, added up",
    TRIMMED: "true data, without the two in five senders furthest from the median",
    BY_NUMBER: "true data, each number without a quarter of the senders at either end",
}
PRIVATE = {
    SILENT: "silent",
    "FedUCB-min": "noisy data, added up",
    "FedUCB-min-trimmed": "noisy data, without the two in five senders furthest from the median",
}

PANELS = {
    "garbage": "Garbage, true data",
    "sign_flip": "Sign flip, true data",
    "garbage-private": "Garbage, private, epsilon = 1",
    "sign_flip-private": "Sign flip, private, epsilon = 1",
}
_LIARS = {"liars": (0.0, 0.1, 0.2, 0.3, 0.4)}
SCALES = {"small": Scale(10_000, 5, _LIARS), "paper": Scale(100_000, 20, _LIARS)}

DELTA = 0.1
_LIE = "fedbandit_envs.wrappers.byzantine:Byzantine"


def describe(scale: Scale, mode: str) -> str:
    """Describes what all runs have in common."""
    return (
        f"T = {scale.rounds:,}, {scale.trials} trials, each with a theta* of its own; 10 agents, 20 arms a round, "
        "d = 5, a gap of 0.1; messages in rounds 1, 2, 4 and so on. Liars (`Byzantine`) tell all others the same: "
        "random numbers 1000 times as large as the honest ones (garbage), or the honest ones negated (sign flip). "
        f"Regret is that of the honest agents. {about_intervals(scale.trials, 'trials')} No paper's experiment: bounds "
        "and the scale `paper` are ours as well."
    )


def baselines(panel: str) -> dict[str, str]:
    """Returns what is compared in a panel, and what it does, by name."""
    return PRIVATE if panel.endswith("-private") else NONPRIVATE


def run_name(baseline: str, share: float) -> str:
    """Names the run of a baseline with a share of liars."""
    return f"{baseline} {share:g}"


def byzantine(plan: Plan) -> dict[str, Run]:
    """Honest agents' regret at T against the share of liars."""
    attack = plan.panel.removesuffix("-private")
    env_kwargs = {"num_agents": 10, "dim": 5, "num_arms": 20, "gap": 0.1}
    return {
        run_name(name, share): Run(
            Settings(
                name, "FedLinear-v0", plan.scale.rounds, plan.scale.trials, env_kwargs=env_kwargs,
                stack=[(_LIE, {"agents": share, "attack": attack})],
            ),
            delta=DELTA,
        )
        for name in baselines(plan.panel)
        for share in plan.scale.sweeps["liars"]
    }  # fmt: skip
