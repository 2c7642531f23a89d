"""Baselines by name: forms that are derived from their base, lines of comparison, and the import that users write."""

from dataclasses import replace

import pytest

from fedbandit_envs import baselines
from fedbandit_envs.baselines import BASELINES, find_baseline
from fedbandit_envs.baselines.baseline import all_baselines
from fedbandit_envs.baselines.baseline import forms as forms_of
from fedbandit_envs.baselines.comparison_lines import BASELINE_OF, LINES, OURS_TUNED, TRUE_TUNED
from fedbandit_envs.baselines.tuned import TUNED_NAMES, constants
from fedbandit_envs.registry.registration import registered

FAMILIES = list(registered(baselines))


def forms(kind):
    return [pair for family in FAMILIES for pair in getattr(family, kind, {}).items()]


def test_users_import_baselines_from_the_package():
    assert BASELINES is all_baselines()
    assert find_baseline("UCB1") is BASELINES["UCB1"]
    with pytest.raises(AttributeError, match="no attribute 'BASELINE'"):
        _ = baselines.BASELINE


def test_no_two_folders_use_one_name():
    listed = [name for family in FAMILIES for name in forms_of(family)]
    assert sorted([*listed, *TUNED_NAMES.values()]) == sorted(BASELINES.own)


@pytest.mark.parametrize(("of", "name"), forms("PLACEBOS"))
def test_a_placebo_is_its_base_behind_the_wrapper_that_empties_messages(of, name):
    base, placebo = BASELINES[of], BASELINES[name]
    assert (placebo.policy, placebo.policy_kwargs) == (base.policy, base.policy_kwargs)
    written = [part for part in base.wrappers if part == "messages"]
    rest = [part for part in base.wrappers if part != "messages"]
    assert list(placebo.wrappers) == [*written, "placebo", *rest]
    assert {part: placebo.wrappers[part] for part in base.wrappers} == base.wrappers
    assert of in placebo.summary


@pytest.mark.parametrize(("of", "name"), forms("ON_TRUE_DATA"))
def test_on_true_data_it_is_its_base_without_noise(of, name):
    base, true = BASELINES[of], BASELINES[name]
    assert (true.policy, true.policy_kwargs) == (base.policy, base.policy_kwargs)
    assert {**true.wrappers, "privatizer": base.wrappers["privatizer"]} == base.wrappers
    assert "privatizer" not in true.wrappers


@pytest.mark.parametrize(("of", "name"), TUNED_NAMES.items())
def test_tuned_it_is_its_base_with_other_constants(of, name):
    base, tuned = BASELINES[of], BASELINES[name]
    for epsilon in tuned.by_epsilon:
        same = replace(tuned.at(epsilon), summary=base.summary, reference=base.reference, by_epsilon={})
        assert same == base.tuned_by(constants(name, epsilon))


def test_every_line_of_comparison_shows_a_baseline_of_the_problem():
    assert set(BASELINE_OF) == {"arms", "exposure", "linear", "procurement"}
    for names in BASELINE_OF.values():
        assert tuple(names) == (*LINES, TRUE_TUNED)
        assert len({BASELINES[name].federation for name in names.values()}) == 1
        # Like is compared with like: the tuned lines differ by the noise, and by the constants for it.
        noisy, exact = BASELINES[names[OURS_TUNED]], BASELINES[names[TRUE_TUNED]]
        assert (exact.policy, exact.policy_kwargs.keys()) == (noisy.policy, noisy.policy_kwargs.keys())
        assert {**exact.wrappers, "privatizer": noisy.wrappers["privatizer"]} == noisy.wrappers
        assert "privatizer" not in exact.wrappers
