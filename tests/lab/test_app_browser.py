"""Plays in the lab in headless Chromium: nothing but this machine is there, and none of it asks for more."""

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import chromium
import pytest
from chromium import until

from fedbandit_envs.lab import federation
from fedbandit_envs.lab.federation import Choice
from fedbandit_envs.lab.views import number
from fedbandit_envs.registry.registration import REGISTRY

pytest.importorskip("marimo", reason="marimo is not installed: the extra 'lab' has it")

pytestmark = pytest.mark.ci
"""Ordinary runs try the lab without a browser."""

WATCHED = """
import sys

def watch(event, arguments):
    if event == "socket.connect" and arguments[1][0] not in ("127.0.0.1", "::1"):
        print("OUTSIDE", arguments[1], file=sys.stderr, flush=True)
    elif event == "socket.getaddrinfo" and arguments[0] not in (None, "127.0.0.1", "localhost"):
        print("OUTSIDE", arguments[0], file=sys.stderr, flush=True)

sys.addaudithook(watch)
from fedbandit_envs.cli import app
app()
"""

# What is in the page lies in shadows, which queries do not enter.
INSIDE = """
const inside = (root, found = []) => {
  for (const one of root.querySelectorAll("*")) { found.push(one); if (one.shadowRoot) inside(one.shadowRoot, found); }
  return found;
};
const labelled = (text) => {
  const label = inside(document).find((one) => one.tagName === "LABEL" && one.textContent.trim() === text);
  return label && label.getRootNode().getElementById(label.htmlFor);
};
const button = (text) => inside(document).find((one) => one.tagName === "BUTTON" && one.textContent.trim() === text);
"""
EXAMPLE = ["1: UCB1-tuned", "2: UCB1-weighted-true", "3: UCB1-weighted"]
ALERT = "inside(document).find((one) => one.getAttribute('role') === 'alert')"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The lab's process and address."""
    err = tmp_path_factory.mktemp("served") / "err"
    with err.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", WATCHED, "lab", "--no-browser"],
            stdout=subprocess.PIPE, stderr=errors, text=True, env={**os.environ, "HOME": str(err.parent)},
        )  # fmt: skip
        try:
            line = process.stdout.readline()
            assert "http://127.0.0.1:" in line, err.read_text()
            yield re.search(r"http\S+", line).group()
            assert "OUTSIDE" not in err.read_text()
            assert "Traceback" not in err.read_text()
        finally:
            process.send_signal(signal.SIGINT)
            try:
                # Whoever looks at it does not keep it from ending.
                assert process.wait(30) == 0
            finally:
                process.kill()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = chromium.start(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture
def lab(browser, served):
    """The lab, opened anew; nothing may have gone wrong when the test is over, nor been asked for elsewhere."""
    browser.get("about:blank")
    chromium.asked_elsewhere(browser)
    browser.get(served)
    until(browser, f"{INSIDE} return labelled('Baseline') && button('Run')")
    yield browser
    assert chromium.complaints(browser) == []
    assert chromium.asked_elsewhere(browser) == []


def choose(lab, label: str, text: str) -> None:
    """Chooses from a menu, as soon as it offers that."""
    until(
        lab,
        f"""{INSIDE}
        const menu = labelled(arguments[0]);
        const option = menu && [...menu.options].find((one) => one.text.trim() === arguments[1]);
        if (!option) return false;
        Object.getOwnPropertyDescriptor(HTMLSelectElement.prototype, "value").set.call(menu, option.value);
        menu.dispatchEvent(new Event("change", {{bubbles: true}}));
        return true;""",
        label,
        text,
    )


def options(lab, label: str) -> list[str]:
    return until(
        lab, f"{INSIDE} const menu = labelled(arguments[0]); return menu && [...menu.options].map(o => o.text.trim())",
        label,
    )  # fmt: skip


def say(lab, label: str, text: str) -> None:
    """Types into a field."""
    from selenium.webdriver.common.keys import Keys

    field = until(lab, f"{INSIDE} return labelled(arguments[0])", label)
    field.send_keys(Keys.END, *[Keys.BACKSPACE] * 10, text, Keys.TAB)


def press(lab, text: str) -> None:
    found = until(lab, f"{INSIDE} return button(arguments[0])", text)
    # The page scrolls within an element of its own.
    lab.execute_script("arguments[0].scrollIntoView({block: 'center'})", found)
    found.click()


def rows(lab, caption: str, count: int) -> list[list[str]]:
    """Cells of a table, once it has so many rows."""
    return until(
        lab,
        """
        const tables = [...document.querySelectorAll("table")];
        const table = tables.find((one) => one.caption?.textContent.startsWith(arguments[0]));
        const found = table && [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent));
        return found && found.length === arguments[1] && found""",
        caption,
        count,
    )


def refusal(lab) -> str:
    return until(lab, f"{INSIDE} return {ALERT}?.textContent")


def test_a_run_shows_its_regret_and_its_privacy(lab):
    choose(lab, "Problem", "FedArms-v0")
    choose(lab, "Baseline", "Priv-UCB1")
    say(lab, "Rounds", "40")
    press(lab, "Run")
    ((name, problem, rounds, agents, regret, _, messages, *_),) = rows(lab, "Regret and traffic", 1)
    played = Choice("FedArms-v0", "Priv-UCB1", 40, 5).play()
    assert (name, problem, rounds, agents) == ("1: Priv-UCB1", "FedArms-v0", "40", "all (10)")
    assert regret == number(float(played.result.regret[-1].mean()))
    own, *claims = rows(lab, "Privacy of the agent that has spent most", 1 + len(played.result.claims))
    assert own[0] == number(played.result.privacy.epsilon)
    assert [claim[0] for claim in claims] == [number(claim.epsilon) for claim in played.result.claims]
    # In rounds 1, 2, 4, 8, 16 and 32 each sends to nine others.
    assert messages == "54"
    until(lab, "return document.querySelectorAll('.figure svg path').length >= 2")
    # Another baseline: the same without noise beside it.
    choose(lab, "Baseline", "Fed-UCB1")
    press(lab, "Run")
    both = rows(lab, "Regret and traffic", 2)
    assert both[0][4] == regret
    open_ = Choice("FedArms-v0", "Fed-UCB1", 40, 5).play()
    assert both[1][4] == number(float(open_.result.regret[-1].mean()))
    assert rows(lab, "Privacy of the agent that has spent most", 1)[0][0] == "\u221e"
    press(lab, "Clear")
    # As it was when it was opened.
    assert [row[0] for row in rows(lab, "Regret and traffic", 3)] == EXAMPLE


def test_it_opens_on_an_example(lab):
    assert [row[0] for row in rows(lab, "Regret and traffic", 3)] == EXAMPLE
    until(lab, "return document.querySelectorAll('.figure svg path').length >= 3")


@pytest.mark.slow
def test_shares_are_shown_where_arms_have_merit(lab):
    choose(lab, "Problem", "FedExposure-v0")
    choose(lab, "Baseline", "deserved-shares")
    say(lab, "Rounds", "30")
    until(
        lab, f"{INSIDE} return inside(document).find((one) => one.getAttribute('role') === 'switch')"
    ).click()
    press(lab, "Run")
    shares = [float(row[1]) for row in rows(lab, "Shares of pulls", 10)]
    assert sum(shares) == pytest.approx(1, abs=0.01)
    assert shares[0] > 1.5 * shares[-1], "the arms have stayed"


@pytest.mark.slow
def test_what_does_not_fit_is_a_sentence(lab):
    choose(lab, "Problem", "FedArms-v0")
    choose(lab, "Baseline", "Fed-UCB1")
    choose(lab, "Schedule", "on_request")
    say(lab, "Rounds", "10")
    press(lab, "Run")
    assert "choose when to send" in refusal(lab)
    # And what was wrong can be put right.
    choose(lab, "Schedule", "every_round")
    say(lab, "Rounds", "")
    press(lab, "Run")
    until(lab, f"{INSIDE} return {ALERT}?.textContent.startsWith('rounds is')")
    say(lab, "Rounds", "10")
    press(lab, "Run")
    rows(lab, "Regret and traffic", 1)
    until(lab, f"{INSIDE} return !{ALERT}")


@pytest.mark.slow
def test_menus_follow_the_problem(lab):
    assert options(lab, "Problem") == list(REGISTRY)
    choose(lab, "Problem", "FedLinear-v0")
    until(
        lab, f"{INSIDE} return [...labelled('Baseline').options].some((one) => one.text.trim() === 'LinUCB')"
    )
    assert options(lab, "Baseline") == federation.baselines("FedLinear-v0")
    assert options(lab, "Attack") == [federation.AS_REGISTERED, *federation.PARTS["attack"]]


def test_samba_shows_what_each_role_saw(lab):
    pytest.importorskip("phe", reason="the extra 'secure' is not installed")
    press(lab, "SAMBA")
    until(lab, f"{INSIDE} return labelled('Algorithm')")
    choose(lab, "Algorithm", "reinforcement-comparison")
    press(lab, "Run")
    assert "needs other owners' data" in refusal(lab)
    choose(lab, "Algorithm", "ucb")
    say(lab, "Arms, an owner each", "3")
    say(lab, "Budget, rounds", "20")
    press(lab, "Run")
    run = dict(rows(lab, "The run", 14))
    reward = run["cumulative reward, encrypted"]
    assert run["cumulative reward, without encryption"] == f"{reward} (the same)"
    assert {f"CPU seconds of {role}" for role in ("customer", "comp", "owners", "controller")} <= run.keys()
    ((_, sender, *_, read, _),) = rows(lab, "What customer saw", 1)
    assert (sender, read) == ("controller", f"the cumulative reward, {reward}")
    choose(lab, "Role", "comp")
    assert rows(lab, "What comp saw", 18)[1][4].startswith("masked, in an order of this round")


def test_fits_a_phone(lab):
    chromium.narrow(lab, 390)
    try:
        say(lab, "Rounds", "20")
        press(lab, "Run")
        rows(lab, "Regret and traffic", 1)
        until(lab, "return document.querySelector('.figure svg')")
        until(lab, "return document.querySelector('.figure svg').getBoundingClientRect().right <= 390")
        assert lab.execute_script("return document.documentElement.scrollWidth") <= 390
    finally:
        chromium.widen(lab)


@pytest.mark.parametrize(
    ("headers", "token", "status"),
    [({}, False, 401), ({"Host": "elsewhere.example"}, True, 400), ({}, True, 200)],
)
def test_only_this_machine_with_the_token_is_answered(served, headers, token, status):
    address = served if token else served.partition("?")[0] + "api/status"
    request = urllib.request.Request(address, headers=headers)
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    try:
        with opener.open(request) as answer:
            found = answer.status
            assert "connect-src 'self'" in answer.headers["content-security-policy"]
    except urllib.error.HTTPError as error:
        found = error.code
    assert found == status
