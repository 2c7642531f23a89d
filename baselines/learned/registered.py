"""Learned policies: what `examples/learned/train.py` makes at seed 0, see `docs/learned.md`."""

from collections.abc import Callable

from fedbandit_envs.arms.env import ArmsEnv
from fedbandit_envs.baselines.baseline import Baseline
from fedbandit_envs.baselines.learned.policy import LearnedArms, LearnedProcurement
from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.federation import FederatedEnv
from fedbandit_envs.procurement.env import ProcurementEnv


def _learned(name: str, federation: type[FederatedEnv], policy: Callable[..., Policy]) -> Baseline:
    return Baseline(
        "silent: a bonus learned by PPO, over 500 rounds",
        "`examples/learned`, seed 0",
        federation,
        policy,
        {"weights": name},
    )


BASELINES: dict[str, Baseline] = {
    "PPO-procurement": _learned("PPO-procurement", ProcurementEnv, LearnedProcurement),
    "PPO-arms": _learned("PPO-arms", ArmsEnv, LearnedArms),
}
