"""Baselines with learned weights, which `examples/learned` trains; see `docs/learned.md` and `docs/learned-send.md`."""

from collections.abc import Callable

from fedbandit_envs.arms.env import ArmsEnv
from fedbandit_envs.baselines.baseline import Baseline, WrapperSpec
from fedbandit_envs.baselines.learned.policy import LearnedArms, LearnedLinear, LearnedProcurement
from fedbandit_envs.baselines.learned.sending import LearnedSend
from fedbandit_envs.baselines.linear.registered import BASELINES as LINEAR
from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.linear.env import LinearEnv
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.wrappers import ContinualPrivatizer
from fedbandit_envs.wrappers.transport.channel import Channel


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
    "PPO-linear": _learned("PPO-linear", LinearEnv, LearnedLinear),
    "ES-send": Baseline(
        "FedUCB-weighted, sending where a rule learned at a price of messages says so: nothing claimed of times",
        "`examples/learned`, seed 1",
        LinearEnv,
        LearnedSend,
        {"weights": "ES-send", **LINEAR["FedUCB-weighted"].policy_kwargs},
        {
            "privatizer": WrapperSpec(
                ContinualPrivatizer, {"epsilon": 1.0, "delta": 0.1, "releases": 8, "on_exhausted": "silence"}
            ),
            "channel": WrapperSpec(Channel, {"schedule": "on_request"}),
        },
    ),
}
