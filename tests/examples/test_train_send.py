"""The training of when to send, at toy scale: where it starts, that it repeats, and what counts."""

import sys
from pathlib import Path

import numpy as np
import pytest

from fedbandit_envs.baselines import BASELINES


@pytest.fixture(autouse=True)
def examples(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples" / "learned"))
    yield
    for name in ("score", "score_send", "train_send"):
        sys.modules.pop(name, None)


TOY = {"horizon": 16, "num_agents": 3, "num_arms": 4, "dim": 2}


def test_training_repeats():
    from train_send import train

    one, again, other = (
        train(seed, generations=2, pairs=2, instances=2, **TOY).values() for seed in (0, 0, 1)
    )
    assert all(np.array_equal(*layers) for layers in zip(one, again, strict=True))
    assert any(not np.array_equal(*layers) for layers in zip(one, other, strict=True))


def test_it_starts_at_doubling():
    from train_send import doubling, learner, play, rule_of

    weights = doubling(np.random.default_rng(0))
    schedule = {"name": "doubling", "start": 2, "stop": None}
    # Noise for as many releases, so that the same is heard.
    learned, _ = play(learner(rule_of(weights[np.newaxis])), "on_request", 4, range(3), **TOY)
    fixed, claim = play(BASELINES["FedUCB-weighted"].make_policy(), schedule, schedule, range(3), **TOY)
    np.testing.assert_array_equal(learned.messages, fixed.messages)
    np.testing.assert_array_equal(learned.regret, fixed.regret)
    assert claim.epsilon == pytest.approx(1.0)


def test_a_step_goes_where_it_is_cheaper(monkeypatch):
    """Costs that rise with the first weight alone: it falls, and by more than any other weight moves."""
    import train_send

    class Played:
        messages = np.zeros((1, 1))

    def play(policy, schedule, releases, seeds, horizon, **federation):
        Played.cost = np.tile(policy._rule[0][:, 0, 0], 2)
        return Played, None

    monkeypatch.setattr(train_send, "play", play)
    monkeypatch.setattr(train_send, "costs", lambda played: played.cost)
    start = train_send.doubling(np.random.default_rng(0))
    end = train_send.train(0, generations=1, pairs=200, instances=2)
    moved = np.concatenate([layer.ravel() for layer in end.values()]) - start
    assert moved[0] < 0
    assert np.abs(moved[1:]).max() < 0.5 * -moved[0]


def test_cost_is_regret_and_the_price_of_messages():
    from train_send import PRICE, costs, play

    played, claim = play(BASELINES["FedUCB-weighted"].make_policy(), "synchronise", 2, range(2), **TOY)
    expected = played.regret[-1].mean(axis=1) + PRICE * played.messages[-1].mean(axis=1)
    np.testing.assert_allclose(costs(played), expected, rtol=1e-12)
    assert claim.epsilon is None


def test_the_table_compares_all(monkeypatch, capsys, tmp_path):
    import score_send
    from train_send import doubling, rule_of

    path = tmp_path / "one.npz"
    np.savez(path, **rule_of(doubling(np.random.default_rng(0))[np.newaxis]))
    play = score_send.play
    monkeypatch.setattr(score_send, "play", lambda *arguments: play(*arguments, **TOY))
    monkeypatch.setattr(sys, "argv", ["score_send", "--rules", str(path), str(path), "--instances", "2"])
    score_send.main()
    table = capsys.readouterr().out
    for name in (*score_send.FIXED, *(f"determinant, D {name}" for name in score_send.THRESHOLDS), "one"):
        assert f"| {name} | " in table
    rows = [row for row in table.splitlines() if row.startswith("| determinant")]
    assert rows
    assert all(row.endswith("| none |") for row in rows)
