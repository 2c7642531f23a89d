"""The page on learning agents gives the regret that its controls have now: tuning changes that of tuned silence."""

import re
import sys
from pathlib import Path

import pytest

from fedbandit_envs import make_federation
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.experiments import simulate
from fedbandit_envs.experiments.measures import mean_with_interval

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "learning.md").read_text()
# Read as text: to import the example takes PyTorch.
CONTROLS = re.findall(
    r'"(Fed\w+)": Recipe\(.*\("([\w-]+)", "([\w-]+)"\)',
    (ROOT / "examples" / "sb3_recipes.py").read_text().replace("-v0", ""),
)
FAILS = dict(re.findall(r"^\| (arms|linear|exposure), .*?tuned silence ([\d.]+), random", PAGE, re.MULTILINE))


def regret(env_id, name, first_seed=0):
    """Regret of each seed, as the example evaluates it."""
    federation = make_federation(f"{env_id}-v0", max_cycles=200)
    seeds = range(first_seed, first_seed + 20)
    return simulate(federation, BASELINES[name].make_policy(), seeds).regret[-1].mean(axis=1)


def as_printed(value, printed):
    """The value with as many decimals as what the page prints."""
    return f"{value:,.{len(printed.partition('.')[2])}f}"


def test_every_recipe_is_in_the_table():
    assert len(CONTROLS) == 5
    assert len(FAILS) == 3


@pytest.mark.parametrize(("env_id", "at_random", "silent"), CONTROLS)
def test_controls_have_the_regret_of_the_table(env_id, at_random, silent):
    (row,) = re.findall(rf"^\|.*`{env_id}-v0` \|.*$", PAGE, re.MULTILINE)
    for name, cell in zip((at_random, silent), row.split("|")[2:4], strict=True):
        printed = re.findall(r"\d[\d,.]*\d", cell)
        values = mean_with_interval(regret(env_id, name))
        assert [as_printed(*pair) for pair in zip(values, printed, strict=True)] == printed, name


@pytest.mark.parametrize("problem", FAILS)
def test_silence_has_the_regret_of_what_fails(problem):
    env_id, silent = next((env_id, name) for env_id, _, name in CONTROLS if problem in env_id.lower())
    assert as_printed(regret(env_id, silent, 1_000_000).mean(), FAILS[problem]) == FAILS[problem]


@pytest.mark.ci
def test_the_block_prints_what_the_page_says(monkeypatch, capsys):
    pytest.importorskip("stable_baselines3")
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "path", [*sys.path])
    block, printed = re.findall(
        r"^```python\n(import sys.*?)^```\n```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL
    )[0]
    exec(block, {})
    assert capsys.readouterr().out == printed
