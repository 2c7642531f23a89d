"""Reports say what claims say, for every way in which noise is made, and nothing is left open."""

import json
from functools import partial
from html.parser import HTMLParser

import numpy as np
import pytest
from silo_runs import noisy, plan_of

from fedbandit_envs import arms_v0, linear_v0, wrappers
from fedbandit_envs.silos import Silo
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
    report, claims = env.privacy_report(regret=2.5), env.privacy_claims()
    fields = json.loads(json.dumps(report.fields, allow_nan=False))
    assert (fields["schema"]["version"], fields["measured"]) == (1, {"regret": 2.5})
    assert len(fields["guarantees"]) == len(claims)
    for told, claim in zip(fields["guarantees"], claims, strict=True):
        assert claim.as_json().items() <= told.items()
        assert all(told[name] for name in ("against", "trusting", "composition_means"))
        curve = [np.inf if one["epsilon"] == "infinity" else one["epsilon"] for one in told["curve"]]
        if claim.epsilon is not None and settings[0]:
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
    if settings[0]:
        again = fields["if_it_goes_on"]
        more = again["epsilon_if_all_is_done_once_more"]
        assert more == "infinity" or more > 0
        assert 0 <= again["delta_if_all_is_done_once_more"] < 1
    assert f"Noise is {claims[0].noise}: " in text.split("##")[0]
    assert len(fields["subject"]["layers"]) > 1


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
