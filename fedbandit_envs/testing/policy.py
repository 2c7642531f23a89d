"""Conformance checks of policies."""

from collections.abc import Callable
from typing import Any

from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.testing.assertions import require_same, taken
from fedbandit_envs.testing.episodes import SEEDS, Make, Trial, copied, require_in_space
from fedbandit_envs.views.peers import Peer

HORIZON = 120
"""Number of rounds that a policy plays."""


def check_policy(make_policy: Callable[[], Peer], make_env: Make) -> None:
    """Checks that each row of a policy's actions follows from that row's observations and seeds alone.

    The protocol is :class:`fedbandit_envs.baselines.policy.Policy`. One episode is played; its observations are then
    given to the policy again, after another reset and agent by agent.

    Args:
        make_policy: A function that makes the policy: the class ``MyPolicy`` itself, or a function that adds arguments.
        make_env: A function that makes the federation that the policy plays, with the wrappers that it needs. It should
            be small; each call must make a new one.

    Raises:
        AssertionError: A requirement does not hold; the message has what was found, what is required and where to
            correct it.
    """
    trial = Trial(make_env, rounds=HORIZON)
    env = trial.env
    spec, seeds = env.policy_spec, row_seeds(SEEDS, env.max_num_agents)
    policy, alone = make_policy(), make_policy()
    observations, actions = [], []
    observation = env.reset_batch(SEEDS).observation
    policy.reset(spec, seeds)
    for _ in range(HORIZON):
        observations.append(_kept(observation))
        action = _act(policy, observation)
        require_in_space("action", action, env.single_action_space, trial.rows, any_width=True)
        actions.append(copied(action))
        observation = env.step_batch(action).observation

    def require_same_actions(what: str, repeated_by: Peer, rows: tuple[slice, slice], required: str) -> None:
        repeated_by.reset(spec, seeds[rows])
        require_same(
            f"of {what}, the action in round",
            [copied(_act(repeated_by, taken(observation, rows))) for observation in observations],
            [taken(action, rows) for action in actions],
            f"equality is required: {required}",
        )

    all_rows = slice(None), slice(None)
    require_same_actions(
        "an episode and its repetition by a fresh policy, on copies of the observations",
        make_policy(),
        all_rows,
        "draw from the seeds given to reset only, and copy what is to be kept of an observation, which holds until "
        "the next round",
    )
    require_same_actions(
        "an episode and its repetition after reset", policy, all_rows, "let reset forget everything"
    )
    replicas, agents = seeds.shape
    for r, j in ((0, 0), (1, agents // 2), (replicas - 1, agents - 1)):
        require_same_actions(
            f"agent {j} of replica {r}, alone and among the others",
            alone,
            (slice(r, r + 1), slice(j, j + 1)),
            "a row may depend on the same row of observations and seeds alone",
        )


def _act(policy: Peer, observation: Any) -> Any:
    try:
        return policy.act(observation)
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise AssertionError(
            f"act writes into its observation ({error}); observations are the environment's: copy what is to change"
        ) from error


def _kept(observation: Any) -> Any:
    """Returns read-only copies of observations."""
    kept = copied(observation)
    for array in kept.values():
        array.flags.writeable = False
    return kept
