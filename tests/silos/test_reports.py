"""Reports say what claims say, for every way in which noise is made, and nothing is left open."""

import json
from functools import partial
from html.parser import HTMLParser

import numpy as np
import pytest
from pairs import every_fourth
from registered import few
from silo_runs import noisy, plan_of

from fedbandit_envs import REGISTRY, arms_v0, linear_v0, wrappers
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.core.wrapper import find_layer
from fedbandit_envs.experiments import RunSpec, simulate
from fedbandit_envs.silos import Silo
from fedbandit_envs.wrappers.privacy.mechanisms.matrix import MatrixMechanism
from fedbandit_envs.wrappers.privacy.report import DELTAS, NOT_COVERED

LAPLACE = {"epsilon": 1.0, "releases": 4}
GAUSSIAN = {**LAPLACE, "delta": 1e-5}
MOMENTS = partial(linear_v0.parallel_env, num_arms=3, dim=2, statistic="moments")
VECTOR_SUM = "VectorSumPrivatizer", {"epsilon": 1.0, "delta": 0.1, "gap": 1}, {"stage": "shuffler"}, MOMENTS


def federation(privatizer, noise, channel=None, make=arms_v0.parallel_env):
    env = make(num_agents=3, max_cycles=8)
    env = getattr(wrappers, privatizer)(env, **noise) if privatizer else env
    return wrappers.Channel(env, **(channel or {}))


@pytest.mark.parametrize(
    "settings",
    [
        (None, {}),
        ("GaussianPrivatizer", {"epsilon_per_release": 1.0}),
        ("GaussianPrivatizer", {**GAUSSIAN, "noise_seed": 2**64}),
        ("GaussianPrivatizer", {"epsilon": np.inf}),
        ("LaplacePrivatizer", {**LAPLACE, "clip": 1.0, "budget": {"adjacency": "agent", "delta": 0.0}}),
        ("RandomizedResponsePrivatizer", LAPLACE),
        ("ContinualPrivatizer", GAUSSIAN),
        pytest.param(VECTOR_SUM, marks=pytest.mark.ci),
        *(
            ("GaussianPrivatizer", GAUSSIAN, {"stage": one})
            for one in ("server", {"name": "aggregator", "honest": 2})
        ),
    ],
    ids=lambda one: f"{one[0]}-{(one[2:] or [''])[0]}",
)
def test_a_report_says_what_the_claims_say(settings):
    env = federation(*settings)
    env.reset_batch([0])
    for _ in range(2):
        env.step_batch(np.zeros((1, 3), np.int64))
    assert_says_what_claims_say(env, bool(settings[0]))


@pytest.mark.parametrize(
    ("settings", "correlated"),
    [
        (("GaussianPrivatizer", GAUSSIAN), False),
        (("ContinualPrivatizer", {**GAUSSIAN, "mechanism": "independent"}), False),
        (("ContinualPrivatizer", {**GAUSSIAN, "clip": 1.0, "budget": {"adjacency": "agent"}}), False),
        *(
            (("ContinualPrivatizer", {**GAUSSIAN, "mechanism": name}), True)
            for name in ("sqrt_toeplitz", "blt", "tree", "honaker")
        ),
        pytest.param(VECTOR_SUM, True, marks=pytest.mark.ci),
    ],
    # A function in the settings would put an address into the name.
    ids=lambda value: f"{value[0]}-{value[1]}" if isinstance(value, tuple) else str(value),
)
def test_noise_of_releases_is_correlated_where_it_is(settings, correlated):
    """Independent noise of a sum of releases has the sum of their variances; that of others has less."""
    env = federation(*settings)
    env.reset_batch([0])
    assert env.privacy_report().fields["mechanism"]["correlated_releases"] is correlated
    assert f"| correlated releases | {'yes' if correlated else 'no'} |" in env.privacy_report().markdown()
    noise = find_layer(env, "noise").mechanism
    if isinstance(noise, MatrixMechanism):
        sums = [noise._noise.variance(z) for z in range(5)]
        assert np.allclose(np.diff(sums), 1.0) is not correlated


def unfilled(value, path=""):
    """Yields where a report has nothing to say."""
    if isinstance(value, dict | list):
        for name, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from unfilled(one, f"{path}.{name}")
    if value is None or value in ("", [], {}):
        yield path


PRIVATE = {
    name: next(env_id for env_id in REGISTRY if one.fits(env_id))
    for name, one in BASELINES.items() if "privatizer" in one.wrappers
}  # fmt: skip


@pytest.mark.parametrize("name", every_fourth(PRIVATE))
def test_reports_of_private_baselines_leave_no_field_open(name, monkeypatch):
    # How large a shuffler's noise must be is searched for long.
    monkeypatch.setattr("fedbandit_envs.baselines.linear.registered.largest_loss", lambda *arguments: 0.1)
    spec = RunSpec(name, PRIVATE[name], 300, 1, env_kwargs=few(PRIVATE[name]))
    env, policy = spec.build()
    simulate(env, policy, spec.all_seeds)
    fields = assert_says_what_claims_say(env)
    for told in fields["guarantees"]:
        left = {*unfilled(told)} - {".reason"}
        # What is not known has a reason, and no curve.
        assert not left or (told["epsilon"] is None and told["reason"]), left
    rest = {*unfilled({**fields, "guarantees": 1})}
    inapplicable = {
        ".mechanism.events": fields["mechanism"]["releases_made"] == 0,
        ".if_it_goes_on.epsilon_if_all_is_done_once_more": fields["guarantees"][0]["epsilon"] is None,
    }
    assert all(inapplicable.get(path) for path in rest), rest
    assert {"mechanism", "noise", "not_covered", "if_it_goes_on", "protected"} <= fields.keys()


def assert_says_what_claims_say(env, noisy=True):
    report, claims = env.privacy_report(regret=np.float64(2.5)), env.privacy_claims()
    fields = json.loads(json.dumps(report.fields, allow_nan=False))
    assert (fields["schema"]["version"], fields["measured"]) == (1, {"regret": 2.5})
    assert len(fields["guarantees"]) == len(claims)
    assert env.privacy() in claims
    for told, claim in zip(fields["guarantees"], claims, strict=True):
        assert claim.as_json().items() <= told.items()
        assert all(told[name] for name in ("against", "trusting", "composition_means"))
        curve = [np.inf if one["epsilon"] == "infinity" else one["epsilon"] for one in told["curve"]]
        if claim.epsilon is not None and noisy:
            assert [one["delta"] for one in told["curve"]] == list(DELTAS)
            assert f"{np.exp(claim.epsilon):.3g} times as likely" in told["means"] or claim.epsilon == np.inf
            assert curve == sorted(curve)
            # Exact composition gives no more than what is claimed, at the delta that is claimed.
            if claim.delta in DELTAS:
                assert curve[DELTAS.index(claim.delta)] <= claim.epsilon
    # Written down, an epsilon is rounded up; and nothing that is said is lost in other forms.
    text, page = report.markdown(), report.html()
    for one in NOT_COVERED:
        assert one in text
        assert one.replace("'", "&#x27;") in page
    for claim in claims:
        if claim.epsilon and np.isfinite(claim.epsilon):
            written = text.split("| epsilon | ")[1 + claims.index(claim)].split(" ")[0]
            assert claim.epsilon <= float(written) <= claim.epsilon * (1 + 2e-5)
    assert "| version | 1 |" in text
    HTMLParser().feed(page)
    assert f"Noise is {claims[0].noise}: " in text.split("##")[0]
    assert len(fields["subject"]["layers"]) > 1
    if noisy:
        again = fields["if_it_goes_on"]
        more = again["epsilon_if_all_is_done_once_more"]
        assert more in (None, "infinity") or more >= (claims[0].epsilon or 0)
        assert 0 <= again["delta_if_all_is_done_once_more"] < 1
    return fields


def test_a_silo_reports_what_it_has_spent(tmp_path):
    plan = plan_of("arms", 2, baseline="fedbandit_envs.baselines.arms:UCB1", stack=noisy())
    with Silo(plan, 0, tmp_path / "0.db") as silo:
        assert silo.report().fields["guarantees"][0]["epsilon"] == 0.0
        silo.observe(silo.act({}), 1)
        silo.release()
        fields = silo.report(audited_epsilon=0.1).fields
        assert fields["guarantees"][0]["epsilon"] == silo.privacy().epsilon
        assert fields["noise"]["kind"] == "secret"
        assert "grid of 2^-22" in fields["mechanism"]["sampling"]
        made = fields["mechanism"]
        assert (made["releases_made"], made["releases_planned"]) == (1, 2)
        # An observation moves from one arm to another: norm 2.
        loss = made["events"][0]["loss_if_one_number_changes_by_its_scale"]
        assert made["mu_of_gaussian_dp"] == pytest.approx(2 * loss, rel=1e-5)
