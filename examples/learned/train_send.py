"""Trains a rule of when to send, by an evolution strategy: what it costs is regret and the price of messages.

    python examples/learned/train_send.py --seed 0 --out ES-send.npz

Agents of a small FedLinear (five agents, 20 arms, 5 dimensions) pull as FedUCB-weighted does, for 500 rounds behind the
noise of epsilon 1; only when they send is learned. A generation draws instances anew and plays them with pairs of
opposite changes of the weights (antithetic, so that their difference says which way is cheaper), and what counts is
ranks (Salimans et al., arXiv 1703.03864; Wierstra et al., JMLR 2014). The result depends on the seed alone.

The cost is that of `LearningReward` with a price on messages, but for the randomness of rewards: in a simulation regret
is known, and its sum is what rewards lack in expectation.
"""

import argparse
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.learned import FEATURES, RULE_LAYERS, LearnedSend
from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.experiments import RunResult
from fedbandit_envs.experiments.result import play_started
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.wrappers import ContinualPrivatizer
from fedbandit_envs.wrappers.transport.channel import Channel

HORIZON = 500
PRICE = 0.05
"""Of a message, in units of reward: a release to four others costs 0.2."""
RELEASES = 8
"""Most releases of an agent that chooses when: noise is made for so many, and later requests are not granted."""
SMALL = {"num_agents": 5, "num_arms": 20, "dim": 5}
FIRST_SEED = 1_000_000
"""Instances of training are those of seeds from here on; rules are compared on seeds far below."""
HIDDEN = 3


def play(
    policy: Policy, schedule: Any, releases: Any, seeds: Any, horizon: int = HORIZON, **federation: Any
) -> tuple[RunResult, Any]:
    """Plays a policy behind noise and a channel.

    Args:
        policy: Plays every agent.
        schedule: The channel's.
        releases: For which noise is made, see :class:`ContinualPrivatizer`.
        seeds: One a replica.
        horizon: Rounds.
        **federation: In place of :data:`SMALL`.

    Returns:
        Regret and messages, and what is claimed of privacy.
    """
    env = make_federation("FedLinear-v0", max_cycles=horizon, **{**SMALL, **federation})
    private = ContinualPrivatizer(env, epsilon=1.0, delta=0.1, releases=releases, on_exhausted="silence")
    channel = Channel(private, schedule=schedule)
    # Several rules meet the same seeds, which `simulate` refuses.
    result = play_started(channel, policy, seeds, channel.reset_batch(seeds), lambda played: None)
    return result, channel.privacy()


def costs(simulation: RunResult) -> Array:
    """Returns regret and the price of messages, a mean over agents, float64 ``(replicas,)``."""
    assert simulation.messages is not None
    return (simulation.regret[-1] + PRICE * simulation.messages[-1]).mean(axis=-1)


def rule_of(weights: Array) -> dict[str, Array]:
    """Makes rules of flat weights, float64 ``(rules, number)``."""
    shapes = dict(zip(RULE_LAYERS, ((len(FEATURES), HIDDEN), (HIDDEN,), (HIDDEN,), (1,)), strict=True))
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes.values()])
    parts = np.split(weights, ends[:-1], axis=1)
    return {
        name: part.reshape(len(weights), *shape)
        for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }


def doubling(generator: np.random.Generator) -> Array:
    """Returns first weights, ``(number,)``: one unit is doubling, and the others do not count yet.

    From a rule that does not know of times, the way down leads to silence: who sends in the first rounds pays for
    nothing.
    """
    first = generator.normal(size=(len(FEATURES), HIDDEN))
    first[:, 0] = 0.0
    first[FEATURES.index("ratio"), 0] = 4.0
    first_bias, last = np.zeros(HIDDEN), np.zeros(HIDDEN)
    # Twice the round last sent in is a ratio of 1/4.
    first_bias[0], last[0] = -0.99, 1.0
    return np.concatenate([first.ravel(), first_bias, last, np.zeros(1)])


def learner(rule: Path | dict[str, Array]) -> LearnedSend:
    """Makes the policy that sends by a rule and does all else as FedUCB-weighted."""
    return LearnedSend(rule, **BASELINES["FedUCB-weighted"].policy_kwargs)


def ranked(cost: Array) -> Array:
    """Returns what each of several is worth by its rank: from 1/2 for the cheapest to -1/2."""
    worth = np.empty(cost.size)
    worth[np.argsort(cost, kind="stable")] = np.linspace(0.5, -0.5, cost.size)
    return worth


def train(
    seed: int, generations: int = 18, pairs: int = 12, instances: int = 12, horizon: int = HORIZON,
    width: float = 0.2, step: float = 0.025, **federation: Any,
) -> dict[str, Array]:  # fmt: skip
    """Learns a rule.

    Args:
        seed: Of first weights, changes and instances.
        generations: Steps.
        pairs: Of opposite changes in a generation.
        instances: That a generation plays with each of them.
        horizon: Rounds.
        width: Standard deviation of a change.
        step: Length of a generation's step, for each weight in the mean, before momentum; it falls to a tenth.
        **federation: In place of :data:`SMALL`.
    """
    generator = np.random.default_rng(seed)
    weights = doubling(generator)
    number = weights.size
    momentum = np.zeros(number)
    start = process_time()
    for generation in range(generations):
        half = generator.normal(size=(pairs, number))
        changes = np.concatenate([half, -half])
        seeds = generator.integers(FIRST_SEED, 2**31, instances)
        rules = learner(rule_of(weights + width * changes))
        played, _ = play(
            rules, "on_request", RELEASES, np.repeat(seeds, len(changes)).tolist(), horizon, **federation
        )
        assert played.messages is not None
        cost = costs(played).reshape(instances, len(changes)).mean(axis=0)
        slope = ranked(cost) @ changes
        momentum = 0.7 * momentum + slope / (np.sqrt(np.mean(slope**2)) + 1e-12)
        left = 1 - generation / generations
        weights = weights + step * max(left, 0.1) * momentum
        sent, spent = played.messages[-1].mean(), process_time() - start
        print(f"{generation}: cost {cost.mean():.2f}, messages {sent:.1f}, {spent:.0f} CPU s", flush=True)
    return rule_of(weights[np.newaxis])


def main() -> None:
    """Reads the command line, trains, and writes the rule."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    rule = train(arguments.seed)
    np.savez(arguments.out, **{name: layer[0].astype(np.float32) for name, layer in rule.items()})


if __name__ == "__main__":
    main()
