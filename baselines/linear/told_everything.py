"""The wrappers of agents that tell a server every observation."""

from fedbandit_envs.baselines.baseline import WrapperSpec
from fedbandit_envs.baselines.linear.telling import observations
from fedbandit_envs.wrappers import Messages, Server


def told_everything(policy: str) -> dict[str, WrapperSpec]:
    """Returns the wrappers in which agents tell a server policy every observation, and it answers in every round."""
    reporter = {"reporter": "fedbandit_envs.baselines.linear:TellingReporter"}
    every_round = {"schedule": "every_round", "answers": "every_round", "policy": policy}
    messages = WrapperSpec(Messages, reporter, observations)
    return {"messages": messages, "server": WrapperSpec(Server, every_round)}
