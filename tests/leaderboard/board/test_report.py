"""What the leaderboard's report says: rows, figures as data, the Markdown table and the page's text."""

import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from math import inf, isnan
from pathlib import Path

import numpy as np
import pytest
from board_results import EDITION, EPSILONS, PRIVATE, SALT, claim, federation_pays, result

from fedbandit_envs.leaderboard.board import report as package
from fedbandit_envs.leaderboard.board.records import Withdrawn
from fedbandit_envs.leaderboard.board.report import report
from fedbandit_envs.leaderboard.board.report.figures import (
    exposure,
    front,
    of_group,
    profiles,
    regret_curves,
    what_privacy_buys,
)
from fedbandit_envs.leaderboard.board.report.first_figure import privacy_png
from fedbandit_envs.leaderboard.board.report.pictures import Margins
from fedbandit_envs.leaderboard.board.report.rows import group_of, lines_of, rows_of, spent
from fedbandit_envs.leaderboard.board.result import Edition, Result
from fedbandit_envs.leaderboard.board.suites import SUITES
from fedbandit_envs.leaderboard.reproduction.private_federation import TUNED

ASSETS = Path(package.__file__).parent
SUITE = "arms-quick"
ADJACENCY = SUITES[SUITE].adjacency


def only(results):
    """The rows of results that are all of one group."""
    (rows,) = rows_of(results).values()
    return rows


def named(rows, name, track=None):
    (row,) = [row for row in rows if row.name == name and track in (None, row.result.track)]
    return row


@pytest.fixture(scope="module", params=["procurement-quick", "linear-quick", "exposure-quick", SUITE])
def rows(request):
    return only(federation_pays(request.param))


def test_results_are_as_the_schema_wants_them():
    for one in federation_pays(SUITE):
        one.as_json()


def test_scores_are_against_the_reference_under_the_same_seeds(rows):
    reference = named(rows, SUITES[rows[0].result.suite].reference)
    assert reference.score == (0, 0, 0)
    for row in rows:
        by_hand = [
            1 - np.array(mine.regret[-1]) / np.array(theirs.regret[-1])
            for mine, theirs in zip(row.result.tasks, reference.result.tasks, strict=True)
        ]
        assert row.scores == pytest.approx(np.concatenate(by_hand))
        assert row.score.low <= row.score.value <= row.score.high


def test_ranks_are_those_of_a_track(rows):
    tracks = {row.result.track for row in rows}
    assert len(tracks) == 2 + len(EPSILONS)
    for track in tracks:
        ranked = [row for row in rows if row.result.track == track]
        assert [row.rank for row in ranked] == list(range(1, len(ranked) + 1))
        values = [row.score.value for row in ranked]
        assert values == sorted(values, reverse=True)


def test_comparisons_are_with_tuned_silence(rows):
    tuned = named(rows, lines_of(rows[0].result.suite)[TUNED])
    assert isnan(tuned.better.value)
    for row in rows:
        if row is not tuned:
            assert (row.better.value > 0.5) == (row.over.value > 0) == (row.score.value > tuned.score.value)


def test_without_the_reference_regret_ranks_and_nothing_is_made_up():
    rows = only([result(SUITE, "b", "silent", 0.5), result(SUITE, "a", "silent", 0.7)])
    assert [(row.name, row.rank) for row in rows] == [("b", 1), ("a", 2)]
    assert all(isnan(row.score.value) and isnan(row.better.value) and not row.scores.size for row in rows)
    assert profiles(rows) is None


def test_editions_and_versions_are_not_mixed():
    other = Edition("f" * 12, SALT)
    mine, later = result(SUITE, "a", "silent", 0.5), result(SUITE, "a", "silent", 0.6, edition=other)
    groups = rows_of([mine, later, replace(mine, suite_version=2)])
    assert set(groups) == {(SUITE, 1, EDITION.id), (SUITE, 1, other.id), (SUITE, 2, EDITION.id)}
    assert all(row.rank == 1 for rows in groups.values() for row in rows)
    assert all(group_of(row.result) == group for group, rows in groups.items() for row in rows)


def test_results_that_cannot_be_compared_are_refused():
    mine, other = result(SUITE, "a", "silent", 0.5), result(SUITE, "b", "silent", 0.5)
    seeds = replace(other, tasks=[replace(task, seeds=task.seeds[::-1]) for task in other.tasks])
    with pytest.raises(ValueError, match=r"'b' and 'a' of arms-quick .* same seeds"):
        rows_of([mine, seeds])
    with pytest.raises(ValueError, match="same seeds"):
        rows_of([mine, replace(other, tasks=other.tasks[:1])])
    with pytest.raises(ValueError, match="the baseline 'a' twice on track 'silent'"):
        rows_of([mine, mine])
    # A submission may be called as a baseline is, and does not stand for it.
    rows_of([mine, result(SUITE, "a", "silent", 0.5, kind="submission")])


def test_submission_cannot_be_the_reference():
    (row,) = only([result(SUITE, SUITES[SUITE].reference, "silent", 0.5, kind="submission")])
    assert isnan(row.score.value)


@pytest.mark.parametrize(
    ("claims", "sent", "epsilon"),
    [
        ([], 0, 0.0),
        ([], 3, inf),
        ([claim(1.0, ADJACENCY)], 3, 1.0),
        ([claim("infinity", ADJACENCY)], 3, inf),
        ([claim(None, ADJACENCY)], 3, None),
        # The strongest of what holds; under the suite's adjacency, if anything is claimed under that.
        ([claim(2.0, ADJACENCY), claim(1.5, ADJACENCY, composition="zcdp")], 3, 1.5),
        ([claim("infinity", ADJACENCY), claim(1.5, ADJACENCY, composition="basic")], 3, 1.5),
        ([claim(2.0, ADJACENCY), claim(0.1, "one-outcome")], 3, 2.0),
        ([claim(0.1, "one-outcome")], 3, 0.1),
    ],
)
def test_what_was_spent(claims, sent, epsilon):
    (task, _) = result(SUITE, "a", "any", 0.5, claims, sent).tasks
    found = spent(task, ADJACENCY).epsilon
    assert isnan(found) if epsilon is None else found == epsilon


def test_row_spends_what_its_worst_task_does():
    one = result(SUITE, "a", "any", 0.5, [claim(1.0, ADJACENCY)], 3)
    unknown = replace(one.tasks[0], claims=[claim(None, ADJACENCY)])
    nothing = replace(one.tasks[0], claims=[claim("infinity", ADJACENCY)])
    for tasks, worst in (([one.tasks[0], nothing], inf), ([nothing, unknown], None)):
        (row,) = only([replace(one, tasks=tasks)])
        assert isnan(row.spent.epsilon) if worst is None else row.spent.epsilon == worst


def test_which_privacy_buys_what_has_every_private_baseline_and_all_lines(rows):
    for number in range(2):
        picture = what_privacy_buys(rows, number)
        lines = lines_of(rows[0].result.suite)
        levels = {c.name: c.y for c in picture.curves if c.form == "level"}
        assert set(levels) == {f"{line}: {name}" for line, name in lines.items()}
        silence = named(rows, lines[TUNED]).result.tasks[number].regret[-1]
        assert levels[f"{TUNED}: {lines[TUNED]}"] == pytest.approx([np.mean(silence)] * 2, rel=1e-3)
        drawn = [c for c in picture.curves if c.form == "line"]
        assert len(drawn) == 2
        for one in drawn:
            assert one.x == list(EPSILONS)
            assert one.y == sorted(one.y, reverse=True)
        assert f"{min(drawn[0].y):.4g}" in picture.words


def test_limited_messages_have_a_curve_of_their_own():
    private = [claim(1.0, ADJACENCY)]
    rows = only(
        [
            result(SUITE, "UCB1-weighted", track, level, private, 3)
            for track, level in (("private-1", 0.3), ("private-1-few", 0.4))
        ]
    )
    picture = what_privacy_buys(rows, 0)
    assert [c.name for c in picture.curves] == ["UCB1-weighted", "UCB1-weighted (few messages)"]


def test_first_figure_as_a_picture(tmp_path, monkeypatch):
    drawn = {}
    monkeypatch.setattr(
        "fedbandit_envs.leaderboard.board.report.first_figure._draw",
        lambda panels, path: drawn.update(panels),
    )
    groups = rows_of([*federation_pays("exposure-quick"), *federation_pays(SUITE)])
    assert privacy_png(groups, tmp_path / "figure.png")
    for rows, curves in zip(groups.values(), drawn.values(), strict=True):
        assert list(curves) == [*lines_of(SUITE), "paper's form", "weighted"]
        weighted = curves["weighted"]
        assert list(weighted.x) == list(EPSILONS)
        name = PRIVATE[rows[0].result.suite.removesuffix("-quick")][1]
        own = [named(rows, name, f"private-{epsilon:g}").result.tasks[0].regret[-1] for epsilon in EPSILONS]
        assert weighted.y == pytest.approx(np.mean(own, axis=1), rel=1e-3)
        assert all(
            low < y < high for low, y, high in zip(weighted.low, weighted.y, weighted.high, strict=True)
        )


def test_no_private_baseline_no_figure(tmp_path):
    assert not privacy_png(rows_of([result(SUITE, "UCB1", "silent", 0.5)]), tmp_path / "figure.png")
    assert not any(tmp_path.iterdir())
    assert what_privacy_buys(only([result(SUITE, "UCB1", "silent", 0.5)]), 0) is None


def test_front_by_brute_force(rows):
    for cost in ("epsilon", "bytes"):
        picture = front(rows, 0, cost)
        costs = [row.spent_by_task[0].epsilon if cost == "epsilon" else row.traffic("bytes") for row in rows]
        regrets = [np.mean(row.result.tasks[0].regret[-1]) for row in rows]
        places = list(zip(regrets, costs, strict=True))
        on = {
            i for i, mine in enumerate(places)
            if not any(a <= mine[0] and b <= mine[1] and (a, b) != mine for a, b in places)
        }  # fmt: skip
        steps, *points = picture.curves
        assert steps.form == "front"
        assert steps.y == [
            pytest.approx(regrets[i], rel=1e-3) for i in sorted(on, key=lambda i: (costs[i], regrets[i]))
        ]
        assert steps.y == sorted(steps.y, reverse=True)
        beaten = [c for c in points if c.name == "beaten"]
        assert len(points) - len(beaten) == len(on)
        assert sum(len(c.texts) for c in points) == len(rows)


def test_front_leaves_out_unknown_and_those_who_see_what_agents_do_not_know():
    rows = only(
        [
            result(SUITE, "a", "private-1", 0.5, [claim(None, ADJACENCY)], 3),
            result(SUITE, "b", "silent", 0.6),
            result(SUITE, "c", "revealed", 0.001),
        ]
    )
    picture = front(rows, 0, "epsilon")
    assert [c.name for c in picture.curves] == ["front", "b"]
    assert "1 whose epsilon is not known" in picture.caption


def test_margins_put_zero_and_infinity_beside_the_scale():
    margins = Margins([0.0, 0.1, 10.0, inf])
    assert margins.place(0.0) < 0.1 < margins.place(1.0) < 10 < margins.place(inf) < inf
    assert [text for _, text in margins.ticks("nothing", "all")] == ["nothing", "all"]
    assert Margins([0.0]).place(0.0) > 0


def test_exposure_shows_shares_beside_deserved_ones():
    rows = only(federation_pays("exposure-quick"))
    picture = exposure(rows, 0)
    *entries, deserved = picture.curves
    assert deserved.name == "deserved"
    assert sum(deserved.y) == pytest.approx(1, abs=1e-3)
    assert deserved.y == sorted(deserved.y, reverse=True)
    # Who pulls at random gives all arms alike.
    (random,) = [c for c in entries if c.name == "equal-shares"]
    assert random.y == pytest.approx([0.2] * 5, abs=1e-3)
    assert exposure(only(federation_pays(SUITE)), 0) is None


def test_curves_can_be_drawn_on_logarithms(rows):
    suite = rows[0].result.suite
    nothing = result(suite, "sees-all", "revealed", 0.0)
    for picture in of_group(only([*(row.result for row in rows), nothing])):
        assert "sees-all" not in [one.name for one in picture.curves if picture.y.log]
        for one in picture.curves:
            if picture.y.log:
                assert all(value is None or value > 0 for value in [*one.y, *(one.low or [])])
            if picture.x.log:
                assert all(0 < place < inf for place in one.x)
    assert regret_curves(rows, 0).curves[0].x[-1] == rows[0].result.tasks[0].rounds[-1]


class Page(HTMLParser):
    """Collects tags with their attributes, ids, and scripts' texts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.scripts = [], [], []
        self._script = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self._script = True
            self.scripts.append("")

    def handle_endtag(self, tag):
        if tag == "script":
            self._script = False

    def handle_data(self, data):
        if self._script:
            self.scripts[-1] += data
        else:
            self.texts.append(data)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    out = tmp_path_factory.mktemp("report") / "new"
    attack = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    every = [one for suite in SUITES if suite.endswith("-quick") for one in federation_pays(suite)]
    every.append(result(SUITE, "mine", "silent", 0.4, kind="submission", command=["run", attack, "a b"]))
    withdrawn = [
        Withdrawn(SUITE, "silent", f"gone {attack}", "gone.json", "2026-03-04T05:06:07+00:00", "a|b")
    ]
    assert report(every, out, withdrawn) == ""
    assert report(every[::-1], out / "again", withdrawn) == ""
    return out, every


def test_page_is_small_whole_and_offline(written):
    out, every = written
    text = (out / "leaderboard.html").read_text(encoding="utf-8")
    fixed = sum(file.stat().st_size for file in ASSETS.iterdir() if file.suffix in (".js", ".css", ".html"))
    a_row = (len(text.encode()) - fixed) / len(every)
    # All baselines in all quick and full suites: about 360 rows.
    assert fixed + 360 * a_row < 2_800_000
    page = Page(text)
    assert not [tag for tag, attrs in page.tags if tag in ("link", "img", "iframe") or "src" in attrs]
    (policy,) = [a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for _, attrs in page.tags:
        for name in ("aria-labelledby", "aria-describedby"):
            assert set(attrs.get(name, "").split()) <= set(ids)
        if attrs.get("href", "").startswith("#"):
            assert attrs["href"][1:] in ids
    # Who was withdrawn is no row, but listed, with the reason.
    assert "a|b" in page.texts
    assert any(text.startswith("gone </script>") for text in page.texts)
    assert sum(tag == "tr" and "data-suite" in attrs for tag, attrs in page.tags) == len(every)
    pictures = json.loads(page.scripts[0])
    assert {p["id"] for p in pictures} == {a["data-picture"] for _, a in page.tags if "data-picture" in a}
    # The page begins with what nobody has published.
    first = [attrs["id"] for tag, attrs in page.tags if tag == "figure"]
    assert all(one.startswith("figure-buys-") for one in first[: 2 * 4])


def test_what_entries_say_cannot_become_markup(written):
    out, _ = written
    page = Page((out / "leaderboard.html").read_text(encoding="utf-8"))
    assert len(page.scripts) == 3
    assert not any(tag == "img" for tag, _ in page.tags)
    assert "run '</script><script>alert(1)</script><img src=x onerror=alert(2)>' 'a b'" in page.texts


def test_what_tasks_are_called_cannot_end_a_script(tmp_path):
    (one,) = [one for one in federation_pays(SUITE) if one.entry.name == "UCB1"]
    named_so = replace(one, tasks=[replace(one.tasks[0], task="</script><b>")])
    report([Result.of(named_so.as_json())], tmp_path)
    page = Page((tmp_path / "leaderboard.html").read_text(encoding="utf-8"))
    assert len(page.scripts) == 3
    assert json.loads(page.scripts[0])[0]["title"].endswith("</script><b>")
    assert not any(tag == "b" and not attrs for tag, attrs in page.tags)


def test_same_results_make_the_same_files(written):
    out, _ = written
    assert (out / "leaderboard.png").stat().st_size > 10_000
    for name in ("leaderboard.html", "leaderboard.md"):
        assert (out / name).read_bytes() == (out / "again" / name).read_bytes()


def test_markdown_table(written):
    out, every = written
    text = (out / "leaderboard.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if re.match(r"\| \d", line)]
    assert len(lines) == len(every)
    assert {line.count("|") for line in lines} == {10}
    assert text.splitlines()[-1].endswith("| arms-quick | silent | 2026-03-04 | a\\|b |")
    assert "### Track private-0.1" in text
    assert re.search(r"\| 1 \| SS-UCB-tuned \| 0\.\d{3} \[0\.\d{3}, 0\.\d{3}\] \|", text)


def test_without_matplotlib_all_but_the_picture_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = report(federation_pays(SUITE)[:2], tmp_path)
    assert said.startswith("leaderboard.png is not drawn: it needs the [report] extra")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["leaderboard.html", "leaderboard.md"]


def test_nothing_to_report(tmp_path):
    with pytest.raises(ValueError, match="results is empty"):
        report([], tmp_path / "out")
    assert not (tmp_path / "out").exists()
