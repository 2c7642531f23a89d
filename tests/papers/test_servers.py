"""The script on servers that compute: what is counted as sent, and the trigger's threshold."""

import numpy as np
import pytest

from fedbandit_envs.papers.experiment import Plan
from fedbandit_envs.papers.servers import EXPERIMENTS, sent

FEDGLB = EXPERIMENTS["fedglb"]


def test_what_is_sent_is_counted_without_headers():
    runs = {run.labels["line"]: run for run in FEDGLB.runs(Plan("regret", FEDGLB.scales["tiny"], "default"))}
    messages, numbers = sent(runs["all shared"].run())
    # In each of 40 rounds five agents tell ten numbers, a reward and half a number (32 bits), and download 110.
    np.testing.assert_array_equal(messages, 2 * 40 * 5)
    np.testing.assert_array_equal(numbers, 40 * 5 * (10 + 1 + 0.5 + 110))
    messages, numbers = sent(runs["alone"].run())
    assert not messages.any()
    assert not numbers.any()


@pytest.mark.parametrize(
    ("problem", "agents", "dim", "noise_sd"), [("FedLinear-v0", 10, 10, 0.5), ("hypercube", 15, 15, 0.3)]
)
def test_linear_bandits_count_uploads_and_downloads_and_know_their_noise(problem, agents, dim, noise_sd):
    runs = FEDGLB.runs(Plan("linear", FEDGLB.scales["tiny"], "default"))
    own = {run.labels["line"]: run for run in runs if run.labels["problem"] == problem}
    assert {run.policy_kwargs["noise_sd"] for run in own.values()} == {noise_sd}
    found = {line: sent(own[line].run()) for line in ("DisLinUCB", "all shared")}
    # All agents exchange with the server together: in every round, or in some.
    exchanges = {line: messages / (2 * agents) for line, (messages, _) in found.items()}
    assert (exchanges["all shared"] == 40).all()
    assert set(exchanges["DisLinUCB"]) <= set(range(1, 40))
    for messages, numbers in found.values():
        np.testing.assert_array_equal(numbers, messages * (dim**2 + dim))


def test_the_threshold_is_a_multiple_of_the_printed_one():
    runs = FEDGLB.runs(Plan("threshold", FEDGLB.scales["small"], "default"))
    found = {run.labels["factor"]: run.policy_kwargs["threshold"] for run in runs}
    assert found[1.0] == pytest.approx(0.0775, abs=5e-5)
    assert found[10.0] == pytest.approx(10 * found[1.0])
