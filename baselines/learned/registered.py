"""Registered baselines whose neural networks were trained by `examples/learned`.

The training is described in `docs/learned.md` and `docs/learned-send.md`.
"""

from fedbandit_envs.arms.env import ArmsEnv
from fedbandit_envs.baselines.baseline import Baseline, listed
from fedbandit_envs.baselines.learned.policy import LearnedArms, LearnedLinear, LearnedProcurement
from fedbandit_envs.baselines.learned.sending import LearnedSend
from fedbandit_envs.baselines.linear.registered import BASELINES as LINEAR
from fedbandit_envs.linear.env import LinearEnv
from fedbandit_envs.procurement.env import ProcurementEnv

_PPO = (
    "no communication; a neural network, trained by PPO on 500 rounds, computes the exploration bonus",
    "`examples/learned`, seed 0",
)

BASELINES: dict[str, Baseline] = {
    "PPO-procurement": listed(ProcurementEnv, LearnedProcurement, *_PPO, weights="PPO-procurement"),
    "PPO-arms": listed(ArmsEnv, LearnedArms, *_PPO, weights="PPO-arms"),
    "PPO-linear": listed(LinearEnv, LearnedLinear, *_PPO, weights="PPO-linear"),
    "ES-send": listed(
        LinearEnv,
        LearnedSend,
        "FedUCB-weighted, sending when a neural network decides so by the data, for which no epsilon is claimed",
        "`examples/learned`, seed 1",
        privatizer={"epsilon": 1.0, "delta": 0.1, "releases": 8, "on_exhausted": "silence"},
        channel={"schedule": "on_request"},
        weights="ES-send",
        **LINEAR["FedUCB-weighted"].policy_kwargs,
    ),
}
