"""Figures and tables of the lab hold the numbers of what was played, and no text of it becomes markup."""

import json
import re
from dataclasses import replace
from html import unescape
from math import inf, nan

import numpy as np
import pytest

from fedbandit_envs.leaderboard.lab import views
from fedbandit_envs.leaderboard.lab.federation import Choice, outcome_of
from fedbandit_envs.leaderboard.lab.samba import SambaOutcome
from fedbandit_envs.wrappers.secure.message import Kind
from fedbandit_envs.wrappers.secure.transcript import Received, Transcript

SMALL = ("FedExposure-v0", {"num_agents": 3, "num_arms": 4, "dim": 2})


@pytest.fixture(scope="module")
def runs():
    private = Choice(SMALL, ("Priv-FairX-weighted", {}), 140, 4, attack=("garbage", {}), liars=0.34)
    return [
        outcome_of(private),
        outcome_of(replace(private, policy=("FairX-LinUCB", {}), attack=("none", {}))),
    ]


def cells(html: str) -> list[list[str]]:
    """Texts of a table's rows."""
    rows = re.findall("<tr><td>(.*?)</td></tr>", html)
    return [[unescape(text) for text in row.split("</td><td>")] for row in rows]


def test_regret_is_tabulated_with_its_groups(runs):
    rows = cells(views.regret_table(runs))
    regret = runs[0].simulation.regret[-1]
    assert [row[3] for row in rows] == ["all (3)", "liars (1)", "honest (2)", "all (3)"]
    for row, agents in zip(rows, ([0, 1, 2], [2], [0, 1]), strict=False):
        assert float(row[4]) == pytest.approx(
            np.mean([regret[:, agent].mean() for agent in agents]), rel=1e-3
        )
        low, high = map(float, row[5].split(" .. "))
        assert low < float(row[4]) < high


def test_figures_have_a_line_and_a_band_a_run(runs):
    for log in (True, False):
        figure = views.regret_figure(runs, log)
        lines = [trace for trace in figure["data"] if "name" in trace]
        assert [trace["name"] for trace in lines] == [
            "1: " + runs[0].choice.label,
            "2: " + runs[1].choice.label,
        ]
        assert lines[0]["y"][-1] == pytest.approx(runs[0].simulation.regret[-1].mean())
        assert len(figure["data"]) == 6
        assert figure["layout"]["yaxis"]["type"] == ("log" if log else "linear")
    # The second is silent.
    assert len([trace for trace in views.messages_figure(runs, True)["data"] if "name" in trace]) == 1


def test_a_logarithmic_band_stays_above_0(runs):
    wide = replace(runs[0], simulation=replace(runs[0].simulation, regret=runs[0].simulation.regret.copy()))
    wide.simulation.regret[:, 0] *= 50
    low = views.regret_figure([wide], True)["data"][0]["y"]
    assert min(low) > 0
    assert min(views.regret_figure([wide], False)["data"][0]["y"]) < 0


def test_two_seeds_have_no_band():
    few = outcome_of(Choice(SMALL, ("FairX-LinUCB", {}), 5, 2))
    assert len(views.regret_figure([few], True)["data"]) == 1
    assert cells(views.regret_table([few]))[0][5] == "-"


def test_shares_sum_to_1_and_are_ordered(runs):
    deserved, got = views.shares(runs[0])
    assert deserved.sum() == pytest.approx(1)
    assert got.sum() == pytest.approx(1)
    assert (np.diff(deserved) <= 0).all()
    rows = cells(views.shares_table(runs[0]))
    assert [float(row[1]) for row in rows] == pytest.approx(deserved, abs=5e-4)
    assert views.shares_figure(runs[0])["data"][1]["y"] == pytest.approx(got)


def test_a_problem_without_merit_has_no_shares():
    arms = outcome_of(Choice(("FedArms-v0", {"num_agents": 2}), ("UCB1", {}), 3, 3))
    assert views.shares_figure(arms) is None
    assert views.shares_table(arms) is None


def test_spending_is_said_by_adjacency_and_composition(runs):
    rows = cells(views.spending_table(runs[0]))
    said = {(row[0], row[1]): row[2] for row in rows}
    for claim in runs[0].claims:
        assert said.pop((claim["adjacency"], claim["composition"])) == views.number(claim["epsilon"])
    assert said == {}
    assert "unknown" in {row[2] for row in rows}
    assert views.said_of_privacy(runs[0]).startswith(
        "Epsilon 2 at delta 0.1, under one-observation, by exact"
    )
    (silent,) = cells(views.spending_table(runs[1]))
    assert (silent[2], silent[6]) == ("0", "nothing has been released")


def test_claims_without_a_number_say_why(runs):
    unknown = replace(runs[0].claim, epsilon=None, reason="times")
    assert views.said_of_privacy(replace(runs[0], claim=unknown)).startswith("Nothing can be claimed")
    open_ = replace(runs[0].claim, epsilon=inf, reason="released without noise")
    assert "\u221e" in views.said_of_privacy(replace(runs[0], claim=open_))
    assert cells(views.spending_table(replace(runs[0], claims=[], claim=open_)))[0][2] == "\u221e"


def test_traffic_is_a_mean_over_agents_and_seeds(runs):
    rows = cells(views.traffic_table(runs))
    assert float(rows[0][1]) == pytest.approx(runs[0].traffic["messages"].mean())
    assert rows[1][1:] == ["0", "0"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "unknown"), (inf, "\u221e"), (nan, "-"), (0.0, "0"), (12345.6, "12,346"), (0.123456, "0.1235")],
)
def test_numbers_are_short(value, text):
    assert views.number(value) == text


def test_texts_are_no_markup(runs):
    attack = '<img src=x onerror="alert(1)">'
    named = replace(runs[0], choice=replace(runs[0].choice, policy=(attack, {})))
    figure = views.drawn(views.regret_figure([named], True), attack)
    for html in (views.regret_table([named]), views.table(attack, [attack], [[attack]]), figure):
        assert "<img" not in html
    inside = re.search('figure="(.*?)"', figure).group(1)
    assert json.loads(unescape(inside)) == views.regret_figure([named], True)


def test_of_many_messages_the_first_and_last_are_shown():
    received = [Received("controller", bytes([Kind.SUMS, 7])) for _ in range(100)]
    outcome = SambaOutcome({}, 0, {"controller": Transcript(received, [])})
    html = views.sightings_table(outcome, "controller")
    numbers = [int(row[0]) for row in cells(html)]
    assert numbers == [*range(1, views.MOST_SIGHTINGS - 2), 98, 99, 100]
    assert "100 messages, 60 of them left out" in html
