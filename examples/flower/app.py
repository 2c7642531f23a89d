"""Four silos choose among films whose ratings only they see; a server adds up their noisy counts."""

import numpy as np

from fedbandit_envs.silos import Silo, SiloPlan
from fedbandit_envs.silos.flower import client_app, server_app

FROM_ONE = {"name": "doubling", "start": 1, "stop": None}
MEANS = np.linspace(0.2, 0.8, 5)

plan = SiloPlan(
    baseline="fedbandit_envs.baselines.arms:UCB1",
    env_id="FedArms-v0",
    rounds=8,
    env_kwargs={"num_agents": 4, "num_arms": len(MEANS)},
    stack=[
        ["GaussianPrivatizer", {"epsilon": 1.0, "delta": 1e-5, "releases": FROM_ONE}],
        ["Server", {"schedule": FROM_ONE, "echo": False}],
    ],
)


def play(silo: Silo) -> None:
    """Plays one round: a person rates the film that is shown."""
    arm = silo.act({}) if silo.pending is None else silo.pending
    rng = np.random.default_rng([silo.agent, silo.round])
    silo.observe(arm, rng.random() < MEANS[arm])


server = server_app(plan, patience=60.0, least=3)
client = client_app(plan, play)
