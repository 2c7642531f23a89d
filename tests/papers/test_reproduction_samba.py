"""SAMBA's Figure 8, and noise beside encryption: tiny tables, cells against runs, verdicts on made-up runs."""

from types import SimpleNamespace

import numpy as np
import pytest
from pages import check_paper
from paper_runs import reproduce, section_of
from samba_runs import means_of, plain
from typed import assert_explained

from fedbandit_envs.papers import samba
from fedbandit_envs.papers.catalogue import experiments
from fedbandit_envs.papers.experiment import Measurement, Scale
from fedbandit_envs.samba import messages
from fedbandit_envs.samba.owners import Algorithm

TINY = {
    "samba-fig8a": Scale(220, 2, {"share": (0.5, 1.0)}),
    "samba-fig8b": Scale(10, 2, {"arms": (4, 9)}),
    "samba-fig8c": Scale(220, 2, {"share": (0.5, 1.0)}),
    "samba-fig8d": Scale(30, 2, {"arms": (3, 9)}),
    "samba-privacy": Scale(10, 2, {"arms": (4,), "epsilon": (0.5, 8.0)}),
}


@pytest.mark.parametrize(("name", "panel"), [
    pytest.param("samba-fig8a", "jester", marks=pytest.mark.ci),
    ("samba-fig8b", "movielens"),
    pytest.param("samba-fig8c", "all", marks=pytest.mark.ci),
    pytest.param("samba-fig8d", "jester", marks=pytest.mark.ci),
    ("samba-privacy", "all"),
])  # fmt: skip
def test_every_experiment_of_samba_writes_its_tables(tmp_path, monkeypatch, name, panel):
    pytest.importorskip("phe")
    pytest.importorskip("cryptography")
    monkeypatch.setattr(messages, "KEY_BITS", 512)
    monkeypatch.setitem(experiments(), name, experiments()[name]._replace(scales={"small": TINY[name]}))
    panels = ["movielens", "jester"] if panel == "all" else [panel]
    ran = reproduce(name, "--out", tmp_path, "--panel", panel)
    assert ran.exit_code == 0, ran.output
    stem = f"{name}-small" + (f"-{panel}" if panel != "all" else "")
    parts, rows = check_paper(tmp_path, "samba", stem)
    assert {row["panel"] for row in rows} == set(panels)
    page = "".join(parts.values())
    if name in ("samba-fig8a", "samba-fig8b"):
        assert page.count(f"reward of runs without encryption | {6 * 2 * 2} of {6 * 2 * 2} |") == len(panels)
    assert "nan" not in page
    if name == "samba-privacy":
        assert page.count("| earned the same as without encryption |") == 2
        for words in ("one-observation", "| cryptography |", "| local |"):
            assert words in page


@pytest.mark.parametrize("algorithm", samba.ALGORITHMS)
def test_a_cell_earns_what_runs_of_its_seeds_do_at_every_budget(algorithm):
    parameters = samba.PARAMETERS["movielens"].get(algorithm, {})
    settings = {"algorithm": algorithm, "ratings": "movielens", "arms": 6, "budget": 120, "plain": True}
    arguments = {**settings, "parameters": parameters, "noted": (6, 50, 120)}
    cell = Measurement(samba.select, arguments, range(3, 10), 5, 1.0)
    result = cell.join([shard.play() for shard in cell.split()])
    assert result.noted == [6, 50, 120]
    for place in range(7):
        for budget, rewards in zip(result.noted, result.rewards.T, strict=True):
            alone, _ = plain(Algorithm(algorithm, parameters), means_of("movielens", 6), budget, 3 + place)
            assert rewards[place] == alone.reward
        assert result.reward[place] == alone.reward
        np.testing.assert_array_equal(result.pulls[place], alone.pulls)
        gaps = max(means_of("movielens", 6)) - np.array(means_of("movielens", 6))
        assert result.regret[place] == pytest.approx(sum(gaps * alone.pulls))
    assert result.spent.shape == (7,)
    assert result.cpu_seconds >= result.spent.sum() > 0


def test_too_few_rounds_for_all_owners_are_refused(tmp_path):
    for name in ("samba-fig8c", "samba-fig8a", "samba-fig8b", "samba-fig8d"):
        if name != "samba-fig8c":
            pytest.importorskip("phe")
        assert_explained(reproduce(name, "--out", tmp_path, "--rounds", 99), "rounds is 99")
    assert list(tmp_path.iterdir()) == []


def made_up(algorithm, arms, budget, *, encrypted, **roles):
    """The labels and result of a run of twenty seeds that has taken these CPU seconds."""
    roles = roles or {"plain": 1.0}
    seconds = np.tile([float(value) for value in roles.values()], (20, 1))
    return {"line": algorithm, "arms": arms, "budget": budget, "plain": not encrypted}, SimpleNamespace(
        reward=np.arange(20), roles=list(roles), seconds=seconds, spent=seconds.sum(axis=1)
    )


def times(seconds):
    """The verdicts of Figure 8 (a) where encrypted runs take as long as said, those in the open one second."""
    rows = [
        made_up(
            name, 100, budget, encrypted=encrypted, **({"comp": seconds(name, budget)} if encrypted else {})
        )
        for name in samba.ALGORITHMS
        for budget in (1_000, 2_000, 4_000)
        for encrypted in (False, True)
    ]
    return section_of(samba.EXPERIMENTS["samba-fig8a"], "jester", rows).tables["verdicts"]


def test_verdicts_on_time_follow_from_the_times():
    slower = {"pursuit": 2.0, "thompson": 1.1, "epsilon-greedy": 0.9}
    found = times(lambda name, budget: slower.get(name, 1.0) * budget / 1_000)
    assert "least R^2 | 1.0000 |" in found
    assert "at most 10 | 1 to 8 | holds |" in found
    assert "| 2.000 [2.000, 2.000] | 2 lies within the interval |" in found
    assert "| Thompson is the slowest | fixed epsilon, " in found
    assert ", Thompson | holds |\n| fixed epsilon is the fastest |" in found
    assert found.count(", Thompson | holds |") == 2
    found = times(lambda name, budget: {"softmax": 1.2, **slower}.get(name, 1.0) * budget / 1_000)
    assert "Thompson, Softmax | does **not** hold |\n| fixed epsilon is the fastest |" in found
    found = times(lambda name, budget: (budget / 1_000) ** 3)
    assert "at most 10 | 1 to 64 | does **not** hold |" in found
    assert "| 2 does **not** lie within the interval |" in found


def shares(comp, owners, controller, customer):
    roles = {"comp": comp, "controller": controller, "customer": customer}
    roles |= {f"owner-{i}": seconds for i, seconds in enumerate(owners)}
    rows = [
        made_up(name, arms, 500, encrypted=True, **roles) for name in samba.ALGORITHMS for arms in (2, 20)
    ]
    return section_of(samba.EXPERIMENTS["samba-fig8d"], "jester", rows).tables["verdicts"]


def test_verdicts_on_shares_follow_from_the_shares():
    found = shares(10.0, (2.0, 2.2), 2.1, 0.1)
    assert "any other node | - | holds |" in found
    assert "at K = 2 | 1.00 to 1.00 | 1 lies within 6 of 6 intervals |" in found
    assert "largest owner / smallest, at most | 1.10 |" in found
    assert "| Controller / an owner | 1.00 to 1.00 |" in found
    assert "share, at most | 0.61% |" in found
    found = shares(2.0, (2.0, 2.6), 4.6, 1.0)
    assert "any other node | - | does **not** hold |" in found
    assert "largest owner / smallest, at most | 1.30 |" in found
    assert "| Controller / an owner | 2.00 to 2.00 |" in found


def test_the_published_runs_stand_beside_ours_at_their_own_size():
    rows = []
    for name, (mean, sd) in samba.PUBLISHED.items():
        rewards = np.array([[mean - sd], [mean + sd]]) * (1.2 if name == "ucb" else 1)
        result = SimpleNamespace(
            noted=[100_000], rewards=rewards, pulls=np.full((2, 2), 50_000), means=[0.5, 0.5]
        )
        rows.append(({"line": name}, result))
    tables = section_of(samba.EXPERIMENTS["samba-fig8c"], "movielens", rows).tables
    assert tables["published"].count("| agrees |") == 5
    assert "| **differs**, by +20.0% |" in tables["published"]
    # 1e5 fair coins: half the root.
    assert "| 75 | 158 |" in tables["deviations"]
