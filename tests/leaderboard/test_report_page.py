"""The report's files: one page that is whole, small and offline, a Markdown table, and a picture."""

import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from board_results import PRIVATE, federation_pays, result

from fedbandit_envs.leaderboard import report as package
from fedbandit_envs.leaderboard.report import report
from fedbandit_envs.leaderboard.report.page import bar
from fedbandit_envs.leaderboard.result import ResultFile
from fedbandit_envs.leaderboard.scores import Estimate

ASSETS = Path(package.__file__).parent
SUITE = "arms-quick"


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
    every = [one for problem in PRIVATE for one in federation_pays(f"{problem}-quick")]
    every.append(result(SUITE, "mine", "silent", 0.4, kind="submission", command=["run", attack, "a b"]))
    withdrawn = [
        {
            "suite": SUITE,
            "track": "silent",
            "entry": f"gone {attack}",
            "file": "gone.json",
            "at": "2026-03-04T05:06:07+00:00",
            "reason": "a|b",
        }
    ]
    assert report(every, out, withdrawn) == ""
    with pytest.MonkeyPatch.context() as patch:
        # One picture is enough; this one stays blank.
        patch.setattr("matplotlib.figure.Figure.draw", lambda figure, renderer: None)
        assert report(every[::-1], out / "again", withdrawn) == ""
    return out, every


def test_page_is_small_whole_and_offline(written):
    out, every = written
    text = (out / "leaderboard.html").read_text(encoding="utf-8")
    fixed = sum(
        file.stat().st_size for file in ASSETS.iterdir() if file.suffix in (".js", ".css", ".html", ".j2")
    )
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


@pytest.mark.usefixtures("blank_pictures")
def test_what_tasks_are_called_cannot_end_a_script(tmp_path):
    (one,) = [one for one in federation_pays(SUITE) if one.entry.name == "UCB1"]
    named_so = replace(one, tasks=[replace(one.tasks[0], task="</script><b>")])
    report([ResultFile.of(named_so.as_json())], tmp_path)
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
    assert {line.count("|") for line in lines} == {11}
    assert text.splitlines()[-1].endswith("| arms-quick | silent | 2026-03-04 | a\\|b |")
    assert "### Track private-0.1" in text
    assert re.search(
        r"\| 1 \| SS-UCB-tuned \| 1.00 \[1.00, 1.00\] \| 0\.\d{3} \[0\.\d{3}, 0\.\d{3}\] \| itself", text
    )
    assert "Tracks on which nothing was run: `revealed`, `non-private-few`" in text
    (ratios,) = re.findall(r"^\| procurement-quick \|.*", text, re.MULTILINE)
    assert re.fullmatch(
        r"\| procurement-quick \| SS-UCB-tuned 1.00 \[1.00, 1.00\] \| .* 0\.\d+ \[0\.\d+, 0\.\d+\] \|", ratios
    )


@pytest.mark.usefixtures("blank_pictures")
def test_what_was_not_run_is_named_where_its_number_would_stand(tmp_path):
    alone = [result(SUITE, "UCB1", "silent", 0.5)]
    report(alone, tmp_path)
    text = (tmp_path / "leaderboard.md").read_text(encoding="utf-8")
    reference, tuned = "uniform-arms was not run", "UCB1-tuned was not run"
    assert f"| 1 | UCB1 | {reference} | {reference} | {reference} | {reference} |" in text
    report([*alone, result(SUITE, "uniform-arms", "silent", 1.0)], tmp_path)
    text = (tmp_path / "leaderboard.md").read_text(encoding="utf-8")
    assert re.search(rf"\| 1 \| UCB1 \| {tuned} \| 0\.\S+ \[\S+ \S+\] \| {tuned} \| {tuned} \|", text)
    for name in ("leaderboard.md", "leaderboard.html"):
        assert tuned in (tmp_path / name).read_text(encoding="utf-8")


def test_bars_are_on_a_logarithmic_scale_with_tuned_silence_in_the_middle():
    assert bar(Estimate(1.0)) == pytest.approx((50, 0.5, 50))
    assert bar(Estimate(0.5, 0.4, 0.7)) == pytest.approx((30.10, 12.15, 34.95), abs=0.01)
    # A half and a quarter are as far apart as a double and a fourfold; what is outside of the scale lies at an end.
    assert bar(Estimate(0.5))[2] - bar(Estimate(0.25))[2] == pytest.approx(
        bar(Estimate(4.0))[2] - bar(Estimate(2.0))[2]
    )
    assert bar(Estimate(0.0, 0.0, 1e9)) == (0, 100, 0)


def test_without_matplotlib_all_but_the_picture_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = report(federation_pays(SUITE)[:2], tmp_path)
    assert said.startswith("leaderboard.png is not drawn: it needs the [report] extra")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["leaderboard.html", "leaderboard.md"]


def test_nothing_to_report(tmp_path):
    with pytest.raises(ValueError, match="results is empty"):
        report([], tmp_path / "out")
    assert not (tmp_path / "out").exists()
