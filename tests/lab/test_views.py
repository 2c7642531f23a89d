"""Figures and tables of the lab hold the numbers of what was played, and no text of it becomes markup."""

import re
from dataclasses import replace
from html import unescape
from math import inf, nan

import numpy as np
import pytest

from fedbandit_envs.lab import views
from fedbandit_envs.lab.federation import Choice
from fedbandit_envs.lab.samba import SambaOutcome
from fedbandit_envs.registry.registration import REGISTRY
from fedbandit_envs.samba.messages import Kind, Record

SMALL = ("num_agents=3", "num_arms=4", "dim=2")
(PANEL,) = REGISTRY["FedExposure-v0"].problem.lab_panels


@pytest.fixture(scope="module")
def runs():
    liars = {"attack": {"name": "garbage"}}
    return [
        Choice(
            "FedExposure-v0", "Priv-FairX-weighted", 140, 4, parts=liars, liars=0.34, assignments=SMALL
        ).play(),
        Choice("FedExposure-v0", "FairX-LinUCB", 140, 4, assignments=SMALL).play(),
    ]


def cells(html: str) -> list[list[str]]:
    """Texts of a table's rows."""
    rows = re.findall("<tr><td>(.*?)</td></tr>", html)
    return [[unescape(text) for text in row.split("</td><td>")] for row in rows]


class Drawn:
    """A figure's axes, as they were before they became SVG."""

    def __init__(self, monkeypatch, draw, *arguments):
        monkeypatch.setattr(views, "_svg", lambda figure, description: figure.axes[0])
        self.axes = draw(*arguments)
        self.lines = {line.get_label(): line for line in self.axes.get_lines()}


def test_regret_is_tabulated_with_its_groups(runs):
    rows = cells(views.regret_table(runs))
    regret = runs[0].result.regret[-1]
    assert [row[3] for row in rows] == ["all (3)", "liars (1)", "honest (2)", "all (3)"]
    for row, agents in zip(rows, ([0, 1, 2], [2], [0, 1]), strict=False):
        assert float(row[4]) == pytest.approx(
            np.mean([regret[:, agent].mean() for agent in agents]), rel=1e-3
        )
        low, high = map(float, row[5].split(" .. "))
        assert low < float(row[4]) < high


def test_traffic_is_a_mean_over_agents_and_seeds(runs):
    rows = cells(views.regret_table(runs))
    assert float(rows[0][6]) == pytest.approx(runs[0].result.traffic["messages"].mean(), rel=1e-3)
    assert float(rows[0][7].replace(",", "")) == pytest.approx(
        runs[0].result.traffic["bytes"].mean(), rel=1e-3
    )
    assert rows[-1][6:8] == ["0", "0"]


@pytest.mark.parametrize("log", [True, False])
def test_figures_have_a_line_and_a_band_a_run(runs, log, monkeypatch):
    drawn = Drawn(monkeypatch, views.regret_svg, runs, log)
    assert list(drawn.lines) == ["1: " + runs[0].choice.label, "2: " + runs[1].choice.label]
    for line, run in zip(drawn.lines.values(), runs, strict=True):
        assert line.get_ydata()[-1] == pytest.approx(run.result.regret[-1].mean())
    assert len(drawn.axes.collections) == 2
    assert {drawn.axes.get_xscale(), drawn.axes.get_yscale()} == {"log" if log else "linear"}


def test_a_figure_is_svg_that_says_what_it_is(runs):
    for log in (True, False):
        html = views.regret_svg(runs, log)
        assert html.startswith('<div class="figure" role="img" aria-label="Regret over rounds"><svg')
        assert html.count("<svg") == html.count("</svg>") == 1


def test_two_seeds_have_no_interval():
    few = Choice("FedExposure-v0", "FairX-LinUCB", 5, 2, assignments=SMALL).play()
    assert "<svg" in views.regret_svg([few], True)
    assert cells(views.regret_table([few]))[0][5] == "-"


def test_shares_sum_to_1_and_are_ordered(runs, monkeypatch):
    bars = views.panel_bars(PANEL, runs[0])
    assert list(bars) == ["deserved", "received"]
    for shares in bars.values():
        assert shares.sum() == pytest.approx(1)
    assert (np.diff(bars["deserved"]) <= 0).all()
    rows = cells(views.panel_table(PANEL, runs[0]))
    assert [float(row[1]) for row in rows] == pytest.approx(bars["deserved"], abs=5e-4)
    drawn = Drawn(monkeypatch, views.panel_svg, PANEL, runs[0])
    heights = [bar.get_height() for bar in drawn.axes.patches]
    np.testing.assert_allclose(heights, [*bars["deserved"], *bars["received"]])


def test_claims_are_tabulated_by_adjacency_and_composition(runs):
    own, *others = cells(views.claims_table(runs[0]))
    assert own[:4] == ["2", "0.1", "one-observation", "exact"]
    said = {(row[2], row[3]): row[0] for row in others}
    for claim in runs[0].result.claims:
        assert said.pop((claim.adjacency, claim.composition)) == views.number(claim.epsilon)
    assert said == {}
    assert "unknown" in {row[0] for row in others}
    (silent,) = cells(views.claims_table(runs[1]))
    assert (silent[0], silent[4]) == ("0", "nothing has been released")


def test_claims_without_a_number_say_why(runs):
    result = runs[0].result

    def shown(**changes):
        changed = replace(result, privacy=replace(result.privacy, **changes), claims=[])
        (row,) = cells(views.claims_table(runs[0]._replace(result=changed)))
        return row

    row = shown(epsilon=None, reason="times")
    assert (row[0], row[4]) == ("unknown", "times")
    assert shown(epsilon=inf, reason="released without noise")[0] == "\u221e"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "unknown"), (inf, "\u221e"), (nan, "-"), (0.0, "0"), (12345.6, "12,346"),
     (0.123456, "0.1235")],
)  # fmt: skip
def test_numbers_are_short(value, text):
    assert views.number(value) == text


def test_texts_are_no_markup_and_no_mathematics(runs):
    attack = '<img src=x onerror="alert(1)"> $\\nothing$'
    named = runs[0]._replace(choice=Choice("FedExposure-v0", attack, 140, 4))
    for html in (
        views.regret_table([named]),
        views.table(attack, [{attack: attack}]),
        views.regret_svg([named], True),
    ):
        assert "<img" not in html


def test_of_many_messages_the_first_and_last_are_shown():
    received = [("controller", bytes([Kind.SUMS, 7])) for _ in range(100)]
    outcome = SambaOutcome({}, 0, {"controller": Record(received=received)})
    html = views.sightings_table(outcome, "controller")
    numbers = [int(row[0]) for row in cells(html)]
    assert numbers == [*range(1, views.MOST_SIGHTINGS - 2), 98, 99, 100]
    assert "100 messages, 60 of them left out" in html
