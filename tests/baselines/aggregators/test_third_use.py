"""Arms with Gaussian rewards, which no problem of this package has: their sums are aggregated by the same classes."""

import numpy as np
import pytest

from fedbandit_envs.baselines.aggregators import InboxSpec, make_aggregator
from fedbandit_envs.baselines.aggregators.precision import GRAM, NOISE, gram_arrays, gram_inbox
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.wrappers import Channel

SENDERS, ARMS, PULLS = 9, 4, 50
MEANS = np.array([-2.0, 0.0, 1.0, 5.0])
SHAPES = {"pulls": (ARMS,), "sums": (ARMS,), "squares": (ARMS,)}


def gaussian_sums(seed):
    """Counts, sums and sums of squares of the rewards of each sender's arms, ``(1, 1, senders, arms)``."""
    rewards = np.random.default_rng(seed).normal(MEANS, 1.0, (SENDERS, PULLS, ARMS))
    sums = {"sums": rewards.sum(axis=1), "squares": np.square(rewards).sum(axis=1)}
    return {name: array[np.newaxis, np.newaxis] for name, array in sums.items()}


@pytest.mark.parametrize("spec", [
    "sum",
    {"name": "trimmed_mean", "share": 0.25},
    {"name": "median_of_means", "groups": 5},
    {"name": "trimmed_senders", "share": 0.25},
], ids=str)  # fmt: skip
def test_sums_of_gaussian_rewards_are_aggregated_by_name(spec):
    """Over two rounds, the second of which only some send in; one of nine lies, which only the sum believes."""
    aggregate = make_aggregator(spec).start(InboxSpec((1, 1), SENDERS, SHAPES))
    for round_ in range(2):
        mask = np.ones((1, 1, SENDERS), np.bool_)
        mask[..., 3] = round_ == 0
        told = gaussian_sums(round_)
        told["sums"][..., 8, :] = 1e6
        told["pulls"] = np.full((1, 1, SENDERS, ARMS), float(PULLS))
        aggregate.add({"inbox_mask": mask, **{f"inbox_{name}": array for name, array in told.items()}})
    pulls, sums, squares = (aggregate.totals[name][0, 0] for name in SHAPES)
    if spec == "sum":
        np.testing.assert_array_equal(pulls, PULLS * (2 * SENDERS - 1))
        assert (sums > 1e6).all()
        return
    mean = sums / pulls
    # Robust aggregates stand for alike senders; the one that missed a round is the reason for the tolerance.
    np.testing.assert_allclose(mean, MEANS, atol=0.3)
    np.testing.assert_allclose(squares / pulls, 1 + np.square(MEANS), rtol=0.25)


def test_moments_of_gaussian_arms_are_weighed_by_their_noise():
    """The count, the sum and the sum of squares of an arm are [1; y][1; y]^T summed: a Gram matrix of dimension 1."""
    spec = Channel(parallel_env(num_agents=SENDERS)).policy_spec
    inbox = gram_inbox(spec, (1, 1))._replace(shapes={GRAM: (ARMS, 2, 2), NOISE: (ARMS, 2)})
    aggregate = make_aggregator({"name": "precision", "reward_variance": 1.0}).start(inbox)
    told = gaussian_sums(0)
    moments = np.empty((1, 1, SENDERS, ARMS, 2, 2))
    moments[..., 0, 0] = PULLS
    moments[..., 0, 1] = moments[..., 1, 0] = told["sums"]
    moments[..., 1, 1] = told["squares"]
    variance = np.zeros_like(moments)
    variance[..., 0, 0] = variance[..., 1, 1] = 10.0
    aggregate.add(
        gram_arrays(
            {
                "inbox_mask": np.ones((1, 1, SENDERS), np.bool_),
                f"inbox_{GRAM}": moments,
                f"inbox_{NOISE}": variance,
            }
        )
    )
    worth = aggregate.totals[GRAM][0, 0]
    pulls, noise = SENDERS * PULLS, SENDERS * 10.0
    np.testing.assert_allclose(worth[:, 0, 0], pulls**2 / (pulls + noise))
    np.testing.assert_allclose(worth[:, 0, 1] / worth[:, 0, 0], told["sums"].sum(axis=2)[0, 0] / pulls)
