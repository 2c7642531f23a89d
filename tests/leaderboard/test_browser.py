"""Clicks through the report's page in headless Chromium, and reads how fast it was there.

It needs Chromium and its driver (Debian: ``chromium`` and ``chromium-driver``) and the ``browser`` extra.
"""

from importlib.resources import files
from itertools import groupby

import chromium
import pytest
from board_results import claim, federation_pays, result
from chromium import until

from fedbandit_envs.leaderboard.report import report
from fedbandit_envs.leaderboard.suites import SUITES

pytestmark = pytest.mark.ci
"""Ordinary runs read the page as text."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = chromium.start(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    out = tmp_path_factory.mktemp("report")
    # One suite in full, of another a few rows.
    results = [*federation_pays("exposure-quick"), *federation_pays("arms-quick")[:4]]
    attack = "<img src=x onerror=alert(1)>"
    results.append(result("arms-quick", "Mine", "silent", 0.4, kind="submission", command=["submit", attack]))
    unknown = [claim(None, SUITES["arms-quick"].adjacency)]
    results.append(result("arms-quick", "nobody-knows", "non-private", 0.2, unknown, 7.0))
    opened = result("arms-quick", "Open", "silent", 0.001)
    report([*results, opened], out, open_results={opened.digest})
    return (out / "leaderboard.html").as_uri()


@pytest.fixture
def page(browser, url):
    """The page, loaded anew; nothing may have gone wrong when the test is over, nor anything been fetched."""
    browser.get_log("performance")
    browser.get("about:blank")
    browser.get(url)
    yield browser
    assert browser.get_log("browser") == []
    asked = [line["message"] for line in browser.get_log("performance")]
    assert not [message for message in asked if "requestWillBeSent" in message and '"url":"http' in message]


def run(page, script, *arguments):
    return page.execute_script(script, *arguments)


def column(page, number):
    """Texts of a column's visible cells; where a cell says its value, that value."""
    return run(
        page,
        "return [...document.querySelectorAll('#ranking tbody tr:not([hidden]):not([data-open])')].map(row => {"
        "  const cell = row.children[arguments[0]]; return cell.dataset.value ?? cell.textContent })",
        number,
    )


def violations(page):
    """What axe-core finds, where: every rule that it has, all of the page."""
    page.execute_script(files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    found = page.execute_async_script(
        "const done = arguments[0];"
        "axe.run(document).then(result => done(result.violations), error => done(String(error)))"
    )
    return [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found]


def test_the_browser_s_own_clock_says_when_the_page_can_be_used(page, capsys):
    """Measured and printed, not held to a limit: other work on the machine is in it."""
    until(page, "return document.querySelector('.plot').dataset.drawn")
    usable, loaded, heap = run(
        page,
        "const [all] = performance.getEntriesByType('navigation');"
        "return [all.domInteractive, all.loadEventEnd, performance.memory.usedJSHeapSize]",
    )
    assert 0 < usable <= loaded
    drawn = run(page, "return performance.getEntriesByName('first figure')[0].startTime")
    assert drawn > 0
    with capsys.disabled():
        print(
            f"\npage: rows and filters after {usable / 1000:.2f} s, loaded after {loaded / 1000:.2f} s, first figure "
            f"after {drawn / 1000:.2f} s, heap {heap / 2**20:.0f} MiB"
        )


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (375, "dark")])
def test_axe_finds_nothing(page, theme, width):
    pytest.importorskip("axe_core_python", reason="axe-core is not installed: the extra 'browser' has it")
    page.set_window_size(max(width, 500), 1000)
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    try:
        if theme == "dark":
            run(page, "document.getElementById('theme').click()")
        assert run(page, "return document.documentElement.dataset.theme") == theme
        until(page, "return document.querySelector('.plot').dataset.drawn")
        run(page, "document.querySelectorAll('details.row')[0].open = true")
        run(page, "document.querySelectorAll('details.words')[0].open = true")
        until(page, "return document.querySelector('.numbers table')")
        assert violations(page) == []
        # What matters first is in sight without scrolling: an entry's regret beside that of tuned silence.
        right = (
            "return document.querySelector('#ranking tbody td:nth-child(5)').getBoundingClientRect().right"
        )
        assert run(page, right) <= width
        # Only tables scroll sideways.
        assert run(page, "return document.documentElement.scrollWidth") <= width
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        page.set_window_size(1280, 1000)


def test_follows_the_reader_s_colours(page):
    def background():
        return run(page, "return getComputedStyle(document.body).backgroundColor")

    def curve_ink():
        return run(page, "return document.querySelector('.plot .xtick text').style.fill")

    until(page, "return document.querySelector('.plot').dataset.drawn")
    before = background(), curve_ink()
    page.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    )
    try:
        until(page, "return document.documentElement.dataset.theme === 'dark'")
        dark = background(), curve_ink()
        assert dark[0] != before[0]
        assert dark[1] != before[1]
        assert run(page, "return document.getElementById('theme').getAttribute('aria-pressed')") == "true"
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_every_figure_is_drawn_when_it_comes_into_sight(page):
    count = run(page, "return document.querySelectorAll('.plot').length")
    # 2 tasks of 2 suites: curves and two fronts each, a profile a suite; in one suite shares and what privacy buys.
    assert count == 2 * 2 * 3 + 2 + 2 * 2
    assert run(page, "return document.querySelectorAll('.plot[data-drawn]').length") < count
    for place in page.find_elements("css selector", ".plot"):
        run(page, "arguments[0].scrollIntoView()", place)
        until(page, "return arguments[0].dataset.drawn", place)
        assert run(page, "return arguments[0].querySelectorAll('.scatterlayer .trace').length", place) >= 2
    levels = run(
        page,
        "return [...document.querySelectorAll('.plot')[0].querySelectorAll('.legendtext')].map(one => one.textContent)",
    )
    assert {text.split(":")[0] for text in levels} >= {
        "untuned silence",
        "tuned silence",
        "placebo",
        "true data",
    }


def test_all_entries_are_drawn_on_demand(page):
    button = until(page, "return document.querySelector('button.more')")
    place = run(page, "return arguments[0].previousElementSibling", button)
    run(page, "arguments[0].scrollIntoView()", place)
    until(page, "return arguments[0].dataset.drawn", place)

    def drawn():
        return run(page, "return arguments[0].querySelectorAll('.legend .traces').length", place)

    few = drawn()
    button.click()
    until(page, "return arguments[0].querySelectorAll('.legend .traces').length > arguments[1]", place, few)
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    until(page, "return arguments[0].querySelectorAll('.legend .traces').length === arguments[1]", place, few)


def test_numbers_of_a_figure_are_a_table(page):
    words = page.find_element("css selector", "details.words")
    words.find_element("css selector", "summary").click()
    until(page, "return arguments[0].querySelector('tbody tr')", words)
    heads = [cell.text for cell in words.find_elements("css selector", "thead th")]
    assert heads == ["Curve", "epsilon claimed (log)", "regret per agent (log)", "Lower end", "Upper end"]
    # Four lines and two private baselines at three epsilons.
    assert len(words.find_elements("css selector", "tbody tr")) == 4 + 2 * 3
    assert "tuned silence" in words.find_element("css selector", "p").text


@pytest.mark.parametrize("name", ["Score", "Epsilon claimed", "Rank", "Bytes"])
def test_heads_sort_numbers_by_keyboard(page, name):
    from selenium.webdriver.common.keys import Keys

    heads = page.find_elements("css selector", "#ranking thead th")
    (place,) = [i for i, head in enumerate(heads) if head.text == name]
    button = heads[place].find_element("css selector", "button")
    before = column(page, 1)
    seen = set()
    for _ in range(2):
        button.send_keys(Keys.ENTER)
        order = heads[place].get_attribute("aria-sort")
        seen.add(order)
        cells = column(page, place)
        values = [float(cell.replace("Infinity", "inf")) for cell in cells if cell]
        assert values == sorted(values, reverse=order == "descending")
        # An open row stays last, though its score is the best.
        assert run(page, "return document.querySelector('#ranking tbody').lastChild.dataset.name") == "open"
        # What is not known comes last, either way round.
        assert "" not in cells[: len(values)]
        assert [head.get_attribute("aria-sort") for head in heads].count("none") == len(heads) - 1
    assert seen == {"ascending", "descending"}
    assert sorted(column(page, 1)) == sorted(before)
    if name == "Epsilon claimed":
        assert cells[-1] == ""


def test_heads_sort_texts(page):
    head = page.find_elements("css selector", "#ranking thead th")[3]
    head.find_element("css selector", "button").click()
    tracks = column(page, 3)
    assert tracks == sorted(tracks)
    head.find_element("css selector", "button").click()
    assert column(page, 3) == sorted(tracks, reverse=True)
    # Rows of a track keep their order otherwise.
    assert all(len(list(rows)) > 1 for _, rows in groupby(column(page, 3)))


def test_filters_change_rows_and_say_so(page):
    from selenium.webdriver.support.ui import Select

    def status():
        return page.find_element("id", "count").text

    everything = len(column(page, 1)) + 1
    assert status() == f"{everything} of {everything} rows"
    Select(page.find_element("id", "filter-suite")).select_by_visible_text("exposure-quick")
    assert set(column(page, 2)) == {"exposure-quick"}
    shown = len(column(page, 1))
    assert shown < everything
    assert status() == f"{shown} of {everything} rows"
    hidden = run(page, "return [...document.querySelectorAll('figure')].filter(one => one.hidden).length")
    assert hidden > 0
    Select(page.find_element("id", "filter-track")).select_by_visible_text("private-1")
    assert set(column(page, 3)) == {"private-1"}
    page.find_element("id", "filter-name").send_keys("WEIGHTED-PL")
    assert column(page, 1) == ["Priv-FairX-weighted-placebo"]
    page.find_element("css selector", "#filters button[type=reset]").click()
    until(page, "return document.querySelectorAll('#ranking tbody tr[hidden]').length === 0")
    assert status() == f"{everything} of {everything} rows"
    Select(page.find_element("id", "filter-kind")).select_by_visible_text("submission")
    assert [name.split()[0] for name in column(page, 1)] == ["Mine"]


def test_entry_leads_to_its_command(page):
    page.find_element("link text", "Mine").click()
    # The browser says that the address has changed in a task of its own, after the click.
    row = until(page, "return document.querySelector('details.row[open]')")
    assert row.find_element("css selector", "code").text == "submit '<img src=x onerror=alert(1)>'"
    assert run(page, "return document.activeElement === arguments[0].firstElementChild", row)
    button = row.find_element("css selector", "button.copy")
    button.click()
    until(page, "return ['Copied', 'Selected'].includes(arguments[0].textContent)", button)


def test_first_stop_of_the_keyboard_skips_to_the_ranking(page):
    from selenium.webdriver.common.keys import Keys

    page.find_element("css selector", "body").send_keys(Keys.TAB)
    focused = page.switch_to.active_element
    assert focused.text == "Skip to the ranking"
    focused.send_keys(Keys.ENTER)
    until(page, "return document.activeElement.id === 'ranking-title'")
