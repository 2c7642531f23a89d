"""The lab's application, run without a browser: its cells, with menus and buttons as a user might leave them."""

from functools import cache
from math import inf
from types import SimpleNamespace

import pytest

marimo = pytest.importorskip("marimo", reason="marimo is not installed: the extra 'lab' has it")

# The application imports marimo, without which its tests are left out above.
from fedbandit_envs.lab import federation, views  # noqa: E402
from fedbandit_envs.lab.app import app  # noqa: E402
from fedbandit_envs.samba.owners import RULES  # noqa: E402

ELEMENTS = (
    "clear", "encrypt", "faults", "log", "numbers", "parts", "problem", "run", "settings", "tab",
)  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def one_example():
    """The example is the same whenever it is played."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(federation, "example", cache(federation.example))
        yield


@cache
def begun():
    """The application as it begins: what it shows, and what its cells define; not to be changed."""
    return app.run()


def untouched():
    """The first cell's elements with the values that they have at first."""
    _, first = begun()
    return {name: SimpleNamespace(value=first[name].value, elements={}) for name in ELEMENTS}


def played(*, draws=True, **values):
    """Texts of what the application shows, where the first cell's elements have these values.

    Regret is drawn when cells run the last time, and where ``draws`` says so.
    """
    shown = []
    state = {"outcomes": [], "refusal": ""}

    def keep(name):
        def setter(value):
            state[name] = value(state[name]) if callable(value) else value

        return lambda: state[name], setter

    elements = untouched()
    for name, value in values.items():
        elements[name].value = {**elements[name].value, **value} if isinstance(value, dict) else value
    for name in state:
        elements[name], elements[f"set_{name}"] = keep(name)
    for last in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            if not (last and draws):
                patch.setattr(views, "regret_svg", lambda outcomes, log: "")
            outputs, _ = app.run(defs=elements)
        # The setter of a state runs the cells that show it once more.
        elements["run"].value = elements["clear"].value = False
        shown.append(" ".join(one.text for one in outputs if hasattr(one, "text")))
    return shown[-1], state


def test_it_begins_with_all_its_menus():
    outputs, defined = begun()
    assert defined["problem"].value in defined["problem"].options
    assert set(defined["parts"].value) == {"schedule", "topology", "participation", "attack"}
    text = " ".join(one.text for one in outputs if hasattr(one, "text"))
    assert list(defined["settings"].elements["algorithm"].options) == list(RULES)
    assert set(defined["settings"].elements["ratings"].options) == {"movielens", "jester"}
    for label in (
        "Problem",
        "Baseline",
        "Rounds",
        "Epsilon",
        "Share of liars",
        "Schedule",
        "Topology",
        "Run",
    ):
        assert label in text


def test_it_opens_on_an_example_which_a_run_replaces():
    text, state = played()
    assert not state["outcomes"]
    assert "<svg" in text
    assert "2: UCB1-weighted-true" in text
    assert "3: UCB1-weighted" in text
    text, _ = played(problem="FedArms-v0", numbers={"rounds": 20, "seeds": 3}, run=True)
    assert "An example" not in text
    assert "2: " not in text


def test_the_example_is_what_its_caption_says():
    silent, true, noisy = federation.example()
    assert [one.result.privacy.epsilon for one in (silent, true)] == [0, inf]
    assert noisy.result.privacy.epsilon == pytest.approx(1)
    assert noisy.result.regret.shape[2] == 10


def test_a_run_shows_regret_privacy_and_traffic():
    text, state = played(problem="FedArms-v0", numbers={"rounds": 20, "seeds": 3, "epsilon": 2.0}, run=True)
    (outcome,) = state["outcomes"]
    assert outcome.choice.epsilon == 2.0
    assert "Regret and traffic at the last round" in text
    assert "Privacy of the agent that has spent most" in text
    assert "<svg" in text


def test_menus_reach_the_run():
    _, state = played(
        draws=False, problem="FedArms-v0", parts={"schedule": "fixed_gap", "attack": "sign_flip"}, run=True,
        numbers={"rounds": 200, "seeds": 3, "liars": 0.5}, faults={"loss": 0.1},
    )  # fmt: skip
    (outcome,) = state["outcomes"]
    assert outcome.choice.parts == {
        "schedule": {"name": "fixed_gap", "gap": 100},
        "attack": {"name": "sign_flip"},
    }
    assert len(outcome.result.groups["liars"]) == 5
    # A complete graph of ten agents, in rounds 100 and 200.
    assert (outcome.result.traffic["messages"] == 18).all()


def test_a_problem_s_panel_is_shown():
    text, _ = played(problem="FedExposure-v0", numbers={"rounds": 20, "seeds": 3}, run=True)
    assert "Shares of pulls in the last run" in text


def test_what_does_not_fit_is_a_sentence_and_goes_with_the_next_run():
    text, state = played(draws=False, problem="FedArms-v0", numbers={"rounds": None}, run=True)
    assert "role=&#x27;alert&#x27;" in text
    assert state["refusal"].startswith("rounds is None")
    assert not state["outcomes"]


def test_clear_forgets_runs():
    _, state = played(draws=False, clear=True)
    assert state == {"outcomes": [], "refusal": ""}


def test_samba_shows_the_reward_and_what_the_customer_saw():
    pytest.importorskip("phe", reason="the extra 'secure' is not installed")
    from fedbandit_envs.samba import ciphers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ciphers, "KEY_BITS", 512)
        elements = untouched()
        elements["settings"].value = {**elements["settings"].value, "arms": 3, "budget": 20}
        elements["encrypt"].value, elements["tab"].value = True, "SAMBA"
        for name in ("outcomes", "refusal"):
            elements[name], elements[f"set_{name}"] = (lambda: None), (lambda value: None)
        outputs, defined = app.run(defs=elements)
    assert defined["encrypted"].result["cumulative_reward"] == defined["encrypted"].open_reward
    text = " ".join(one.text for one in outputs if hasattr(one, "text"))
    assert "What customer saw" in text
    assert "the same" in text
