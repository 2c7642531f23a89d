"""A suite that is played in no time."""

from fedbandit_envs.leaderboard.suites import Suite, Task

SIZE = {"num_agents": 2, "num_arms": 4, "dim": 2}
TINY = Suite("tiny", (Task("tiny/band", "FedLinear-v0", 16, 8, SIZE),), "random-arm", "one-observation")
