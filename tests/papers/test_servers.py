"""The script on servers that compute: what is counted as sent, and the trigger's threshold."""

import numpy as np
import pytest

from fedbandit_envs.papers.experiment import Plan
from fedbandit_envs.papers.servers import EXPERIMENTS, sent
from fedbandit_envs.randomness.streams import row_seeds

FEDGLB = EXPERIMENTS["fedglb"]


def test_what_is_sent_is_counted_without_headers():
    runs = {run.labels["line"]: run for run in FEDGLB.runs(Plan("regret", FEDGLB.scales["tiny"], "default"))}
    messages, numbers = sent(runs["all shared"].run())
    # In each of 40 rounds five agents tell ten numbers, a reward and half a number (32 bits), and download 110.
    np.testing.assert_array_equal(messages, 2 * 40 * 5)
    np.testing.assert_array_equal(numbers, 40 * 5 * (10 + 1 + 0.5 + 110))
    assert not np.any(sent(runs["alone"].run()))


@pytest.mark.parametrize(
    ("problem", "agents", "noise_sd"), [("FedLinear-v0", 10, 0.5), ("hypercube", 15, 0.3)]
)
def test_linear_bandits_exchange_with_a_server_and_know_their_noise(problem, agents, noise_sd):
    runs = [
        run for run in FEDGLB.runs(Plan("linear", FEDGLB.scales["tiny"])) if run.labels["problem"] == problem
    ]
    for env, policy in (run.build() for run in runs):
        policy.reset(env.policy_spec, row_seeds([0], agents))
        assert policy._noise_sd == noise_sd
    # An upload and a download of every agent, in every round or in some; as many agents as dimensions d.
    (some, few), (every, many) = (sent(run.run()) for run in (runs[1], runs[-1]))
    assert set(every) == {2 * 40 * agents}
    assert set(some) <= set(range(2 * agents, 2 * 40 * agents, 2 * agents))
    for messages, numbers in ((some, few), (every, many)):
        np.testing.assert_array_equal(numbers, messages * (agents**2 + agents))


def test_the_threshold_is_a_multiple_of_the_printed_one():
    runs = FEDGLB.runs(Plan("threshold", FEDGLB.scales["small"], "default"))
    found = {run.labels["factor"]: run.policy_kwargs["threshold"] for run in runs}
    assert found[1.0] == pytest.approx(0.0775, abs=5e-5)
    assert found[10.0] == pytest.approx(10 * found[1.0])
