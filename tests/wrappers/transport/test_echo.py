"""Echoes: what agents hear of themselves."""

import numpy as np
import pytest
from channels import NAMES, PRODUCERS, assert_same, private, run_of, small

from fedbandit_envs.core.privacy import variance_of
from fedbandit_envs.wrappers.transport.channel import Channel


@pytest.mark.parametrize("delay", [0, 3])
def test_an_echo_is_what_others_hear_at_once_and_for_free(delay):
    arguments = {"schedule": {"name": "fixed_gap", "gap": 5}, "delay": delay, "loss": 0.3}
    with_echo = run_of(Channel(private(small()), echo=True, **arguments), [0, 1], 20)
    without = run_of(Channel(private(small()), **arguments), [0, 1], 20)
    own = np.arange(4)
    echoes = {}
    told = (*NAMES, *map(variance_of, NAMES))
    for t, (step, plain) in enumerate(zip(with_echo, without, strict=True), start=1):
        assert (step["inbox_mask"][:, own, own] == (t % 5 == 0)).all()
        if t % 5 == 0:
            echoes[t] = {name: step[f"inbox_{name}"][:, own, own].copy() for name in told}
        for name in told:
            heard = plain["inbox_mask"]
            if heard.any():
                np.testing.assert_array_equal(
                    step[f"inbox_{name}"][heard],
                    np.broadcast_to(echoes[t - delay][name][:, np.newaxis], (2, 4, 4, PRODUCERS))[heard],
                )
            step[f"inbox_{name}"][:, own, own] = 0
        step["inbox_mask"][:, own, own] = False
        sent = step.pop("sent")
        assert (sent == (t % 5 == 0)).all()
        np.testing.assert_array_equal(step.pop("inbox_own"), sent & np.eye(4, dtype=bool))
        # But for the echoes, all is as without: inboxes, traffic, budgets.
        assert_same(step, plain)
    assert len(echoes) == 4
