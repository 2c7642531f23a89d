"""Clicks through the page of regret in headless Chromium, which knows no host."""

from pathlib import Path

import chromium
import pytest
from chromium import until

from fedbandit_envs.leaderboard.lab.page import numbers
from fedbandit_envs.leaderboard.lab.page.page import page as page_of

KEPT = numbers.read(Path(__file__).parents[3] / "docs" / "lab.json")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = chromium.start(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    path = tmp_path_factory.mktemp("lab") / "lab-page.html"
    path.write_text(page_of(KEPT), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(browser, url):
    """The page, loaded anew; nothing may have gone wrong when the test is over, nor anything been asked for."""
    chromium.asked_elsewhere(browser)
    browser.get("about:blank")
    browser.get(url)
    until(browser, "return document.querySelector('#plot .scatterlayer .trace')")
    yield browser
    assert chromium.complaints(browser) == []
    assert chromium.asked_elsewhere(browser) == []


def choose(page, name: str, text: str) -> None:
    from selenium.webdriver.support.ui import Select

    Select(page.find_element("id", name)).select_by_visible_text(text)


def rows(page) -> dict[str, list[str]]:
    """Cells of the table by the name of the curve, in words of the page."""
    found = page.execute_script(
        "return [...document.querySelectorAll('#numbers tbody tr')].map(row =>"
        " [...row.children].map(cell => cell.firstChild.textContent))"
    )
    return {row[0]: row[1:] for row in found}


def last(problem: str, algorithm: str, epsilon, schedule) -> float:
    for one in KEPT["problems"][problem]["curves"]:
        if (one["algorithm"], one["epsilon"], one["schedule"]) == (algorithm, epsilon, schedule):
            return one["mean"][-1]
    raise AssertionError((algorithm, epsilon, schedule))


def disabled(page) -> set[str]:
    return set(
        page.execute_script("return [...document.querySelectorAll('select:disabled')].map(one => one.id)")
    )


def number(text: str) -> float:
    return float(text.replace(",", ""))


def test_begins_with_algorithms_beside_silence(page):
    shown = rows(page)
    assert set(shown) == {
        "SS-UCB", "SS-UCB-tuned", "FCB", "P-FCB-weighted-true", "P-FCB", "P-FCB-weighted", "P-FCB-weighted-placebo"
    }  # fmt: skip
    assert number(shown["P-FCB-weighted"][0]) == last("procurement", "P-FCB-weighted", 1.0, "powers of two")
    assert [shown[name][2] for name in ("SS-UCB", "FCB", "P-FCB")] == ["0", "\u221e", "1"]
    assert disabled(page) == {"algorithm"}
    legend = page.execute_script(
        "return [...document.querySelectorAll('#plot .legendtext')].map(one => one.textContent)"
    )
    assert {text.removesuffix(" (silent)") for text in legend} == set(shown)


@pytest.mark.parametrize("problem", KEPT["problems"])
def test_every_epsilon_of_every_problem(page, problem):
    place = list(KEPT["problems"]).index(problem)
    titles = page.execute_script(
        "return [...document.querySelectorAll('#problem option')].map(one => one.text)"
    )
    choose(page, "problem", titles[place])
    choose(page, "compare", "epsilons")
    choose(page, "schedule", "every 100 rounds")
    algorithm = page.find_element("id", "algorithm").get_attribute("value")
    shown = rows(page)
    for epsilon in (0.1, 1, 10):
        assert number(shown[f"epsilon {epsilon}"][0]) == last(problem, algorithm, epsilon, "every 100 rounds")
    assert len(shown) == 3 + 2
    assert disabled(page) == {"epsilon"}
    words = page.find_element("id", "words").text
    assert f"{min(number(row[0]) for row in shown.values()):g}" in words.replace(",", "")


def test_schedules_and_what_has_no_epsilon(page):
    choose(page, "compare", "schedules")
    choose(page, "algorithm", "FCB")
    assert disabled(page) == {"schedule", "epsilon"}
    shown = rows(page)
    for schedule in ("powers of two", "powers of two from 256", "every 100 rounds", "every round"):
        assert number(shown[schedule][0]) == last("procurement", "FCB", None, schedule)
    choose(page, "algorithm", "P-FCB")
    choose(page, "epsilon", "10")
    assert number(rows(page)["every round"][0]) == last("procurement", "P-FCB", 10.0, "every round")
    # Of epsilons only what is private can be compared: so another algorithm takes the place of true data's.
    choose(page, "algorithm", "FCB")
    choose(page, "compare", "epsilons")
    assert page.find_element("id", "algorithm").get_attribute("value") == "P-FCB-weighted"


def test_a_problem_of_other_algorithms_keeps_the_rest(page):
    choose(page, "epsilon", "0.1")
    choose(page, "schedule", "every round")
    choose(page, "problem", "Bernoulli arms")
    assert number(rows(page)["Priv-UCB1"][0]) == last("arms", "Priv-UCB1", 0.1, "every round")


def test_axes_can_be_linear(page):
    def kind():
        return page.execute_script("return document.getElementById('plot').layout.yaxis.type")

    assert kind() == "log"
    choose(page, "axes", "linear")
    assert kind() == "linear"


def test_follows_the_reader_s_colours_and_fits_a_phone(page):
    def look():
        return page.execute_script(
            "return [getComputedStyle(document.body).backgroundColor,"
            " document.querySelector('#plot .xtick text').style.fill]"
        )

    light = look()
    page.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    )
    chromium.narrow(page, 390)
    try:
        until(page, "return document.documentElement.dataset.theme === 'dark'")
        assert all(dark != before for dark, before in zip(look(), light, strict=True))
        # The figure follows the page's width a moment later.
        until(page, "return document.documentElement.scrollWidth <= 390")
        axe = pytest.importorskip(
            "axe_core_python", reason="axe-core is not installed: the extra 'browser' has it"
        )
        page.execute_script((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
        found = page.execute_async_script(
            "const done = arguments[0];"
            "axe.run(document).then(result => done(result.violations), error => done(String(error)))"
        )
        assert [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found] == []
    finally:
        chromium.widen(page)
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
