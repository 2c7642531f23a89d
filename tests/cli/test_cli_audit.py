"""``fedbandit audit``: honest mechanisms stand, broken ones are refuted, bad input is explained.

Seeds are fixed; over other seeds an honest attack would raise a false alarm in one of 10,000.
"""

import json

import pytest
from typed import assert_explained
from typed import call as typed

from fedbandit_envs.wrappers.privacy.audits import TARGETS
from fedbandit_envs.wrappers.privacy.mechanisms.additive import Laplace


def call(*words):
    return typed("audit", *words)


@pytest.mark.parametrize(
    "samples", [pytest.param(300, marks=pytest.mark.ci), pytest.param(1000, marks=pytest.mark.slow)]
)
def test_all_mechanisms_stand(samples):
    """A tenth of the noise is refuted by 300 samples as by 1,000; of a third of it 1,000 find twice as much as 300."""
    result = call("all", "--samples", samples, "--json")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["audits"]
    assert [row["mechanism"] for row in rows] == [name for name, m in TARGETS.items() for _ in m.attacks]
    assert all(row["holds"] for row in rows)


def test_a_broken_mechanism_is_refuted(monkeypatch):
    result = call("laplace", "--samples", 1000, "--releases", 1)
    assert result.exit_code == 0
    assert result.stdout.count("yes") == len(TARGETS["laplace"].attacks)
    honest = Laplace.start

    def broken(self, s, *rest):
        return honest(self, s._replace(scale={name: a / 3 for name, a in s.scale.items()}), *rest)

    monkeypatch.setattr(Laplace, "start", broken)
    result = call("laplace", "--samples", 1000, "--releases", 1)
    assert result.exit_code == 1
    assert "REFUTED" in result.stdout


@pytest.mark.parametrize(("words", "message"), [
    (("lapras",), "mechanism is 'lapras'; one of 'all', 'gaussian'"),
    (("laplace", "--epsilon", 0), "epsilon is 0.0"),
    (("gaussian", "--delta", 0, "--samples", 10), "delta is 0.0"),
    (("laplace", "--samples", 0), "samples is 0"),
])  # fmt: skip
def test_bad_words_are_explained(words, message):
    assert_explained(call(*words), message)
