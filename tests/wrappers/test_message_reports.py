"""Reporters: answers to questions within a round, arrays that only reports contain, and rules that are broken."""

import pickle

import numpy as np
import pytest
from arms_env import ArmsEnv
from authored import ONE, SUMS, Author, Sums, with_sums
from gymnasium import spaces
from played import begun

from fedbandit_envs.testing import check_reporter
from fedbandit_envs.wrappers import Byzantine, GaussianPrivatizer, Messages, Server
from fedbandit_envs.wrappers.transport.server_policy import Ask
from fedbandit_envs.wrappers.transport.transport import HEADER_BYTES


def test_reporters_answer_questions_within_a_round():
    """A question holds for one release; without one, reports tell what the agent has seen; nothing else moves."""
    env = begun(Byzantine(with_sums(ArmsEnv()), [2], {"name": "scaled", "scale": 2.0}), [0, 1])
    everyone, nobody = np.ones((2, 3), bool), np.zeros((2, 3), bool)
    env.step_batch(np.zeros((2, 3), np.int64))
    silent = env.release(everyone)["sums"]
    hidden = env.hidden()["mean"].copy()
    question = np.arange(6.0).reshape(2, 3, 1) * 100
    env.env.ask({"of": question})
    assert not env.release(nobody)["sums"].any()
    told = env.release(np.array([[True, False, False], [True, True, False]]))["sums"]
    np.testing.assert_array_equal(told[:, 0], silent[:, 0] + question[:, 0])
    np.testing.assert_array_equal(told[1, 1], silent[1, 1] + question[1, 1])
    assert not told[0, 1].any()
    np.testing.assert_array_equal(env.release(everyone)["sums"][:, :2], silent[:, :2])
    np.testing.assert_array_equal(env.hidden()["mean"], hidden)
    writes = Messages(ArmsEnv(), ONE)
    with pytest.raises(ValueError, match="reporter is None"):
        writes.ask({"of": question})


class Broken(Sums):
    """Reports what is not finite for one agent."""

    def report(self, question):
        told = super().report(question)
        told["sums"][1, 2, 0] = np.nan
        return told


def test_bad_reports_are_refused_before_anything_leaves():
    env = begun(Messages(ArmsEnv(), SUMS, {"name": f"{__name__}:Broken"}), [0, 1])
    with pytest.raises(ValueError, match=r"message 'sums' of agent_2 \(replica 1\), entry 0, is nan"):
        env.release(np.ones((2, 3), bool))
    assert env.privacy().epsilon == 0
    assert env.single_action_space == ArmsEnv().single_action_space
    assert list(env.action_formats) == ["arm"]
    for bad, error in ((Author(), TypeError), (3, TypeError), (Sums, TypeError), ("often", ValueError)):
        with pytest.raises(error, match="reporter"):
            Messages(ArmsEnv(), SUMS, bad)


def test_a_reporter_serves_several_federations():
    reporter = Sums()
    first, second = (begun(Messages(ArmsEnv(), SUMS, reporter)) for _ in range(2))
    first.step_batch(np.zeros((1, 3), np.int64))
    everyone = np.ones((1, 3), bool)
    again = pickle.loads(pickle.dumps(first))
    assert (first.release(everyone)["sums"] != second.release(everyone)["sums"]).all()
    np.testing.assert_array_equal(again.release(everyone)["sums"], first.release(everyone)["sums"])


class Mixing(Sums):
    """a row may depend on the same row"""

    def observe(self, observation):
        super().observe(observation)
        self.sums = self.sums + self.sums.sum()


class Remembering(Sums):
    """let reset forget everything"""

    past = 0

    def reset(self, spec, seeds):
        super().reset(spec, seeds)
        self.luck = self.luck + self.past

    def observe(self, observation):
        super().observe(observation)
        self.past += 1


class Incremental(Sums):
    """report must not change later reports"""

    def report(self, question):
        told = super().report(None)
        self.luck = self.luck + 1
        return told


class Keeping(Sums):
    """copy what is to be kept of what is seen"""

    def reset(self, spec, seeds):
        super().reset(spec, seeds)
        self.seen = []

    def observe(self, observation):
        super().observe(observation)
        self.seen.append(observation["total_pulls"])
        self.sums = self.sums + sum(array.sum(axis=-1) for array in self.seen)


class Writing(Sums):
    """destination is read-only"""

    def observe(self, observation):
        observation["total_pulls"][...] = 0


class Wide(Sums):
    """shape of a report"""

    def report(self, question):
        return {"sums": np.zeros((*self.sums.shape, 3))}


class MixingAnswers(Sums):
    """a row may depend on the same row"""

    def report(self, question):
        told = super().report(question)
        return told if question is None else {"sums": told["sums"] + question["of"].sum()}


@pytest.mark.parametrize(
    "reporter",
    [Mixing, Remembering, Incremental, Keeping, Writing, Wide, MixingAnswers],
    ids=lambda kind: kind.__name__,
)
def test_reporters_that_break_the_rules_are_caught(reporter):
    question = spaces.Dict({"of": spaces.Box(-1.0, 1.0, (1,), np.float64)})
    with pytest.raises((AssertionError, ValueError), match=reporter.__doc__):
        check_reporter(reporter, lambda: Messages(ArmsEnv(), SUMS), question)


# Arrays that only reports contain


class Both:
    """Writes two arrays of ones, whatever it is asked."""

    def reset(self, spec, seeds):
        self.rows = seeds.shape

    def observe(self, observation):
        pass

    def report(self, question):
        return {"told": np.ones((*self.rows, 3)), "asked": np.ones((*self.rows, 2)).astype(np.float32)}


class OneQuestion:
    """A server policy that asks once a round, and keeps what it gets."""

    downloads = {"nothing": {"shape": [], "dtype": "bool"}}  # noqa: RUF012 - never written to

    def reset(self, spec, seeds):
        self.got, self.waits = [], False

    def answer(self, uploads, mask):
        self.got.append({name: array.copy() for name, array in uploads.items()})
        self.waits = not self.waits
        return (
            Ask({"of": np.zeros((mask.shape[0], 1))})
            if self.waits
            else {"nothing": np.zeros(len(mask), bool)}
        )


ASKED = {"told": {"shape": [3]}, "asked": {"shape": [2], "dtype": "float32", "asked": True}}


@pytest.mark.parametrize("clip", [None, 5.0])
def test_asked_arrays_are_in_reports_alone_and_nothing_else_is(clip):
    env = Messages(ArmsEnv(num_agents=2), ASKED, Both())
    if clip:
        env = GaussianPrivatizer(env, noise_multiplier=1e-9, releases=20, clip=clip)
    env = begun(Server(env, "every_round", policy=OneQuestion()))
    for _ in range(3):
        env.step_batch(np.zeros((1, 2), np.int64))
    upload, report = env._policy.got[:2]
    np.testing.assert_allclose(upload["told"], 1.0, atol=1e-6)
    np.testing.assert_allclose(upload["asked"], 0.0, atol=1e-6)
    np.testing.assert_allclose(report["told"], 0.0, atol=1e-6)
    np.testing.assert_allclose(report["asked"], 1.0, atol=1e-6)
    # With noise an upload announces a variance for each number.
    sizes = {"upload": 3 * 8, "question": 8, "report": 2 * 4, "answer": 1}
    if clip:
        sizes["upload"], sizes["report"] = 3 * 8 + 3 * 8, 2 * 4 + 2 * 8
    assert env.traffic["messages"].tolist() == [[12, 12]]
    assert env.traffic["bytes"].tolist() == [[12 * HEADER_BYTES + 3 * sum(sizes.values())] * 2]


def test_without_asked_arrays_reports_are_as_large_as_uploads():
    plain = {name: {key: value for key, value in of.items() if key != "asked"} for name, of in ASKED.items()}
    env = begun(Server(Messages(ArmsEnv(num_agents=2), plain, Both()), "every_round", policy=OneQuestion()))
    env.step_batch(np.zeros((1, 2), np.int64))
    upload, report = env._policy.got
    for name in plain:
        np.testing.assert_array_equal(upload[name], 1.0)
        np.testing.assert_array_equal(report[name], 1.0)
    assert env.traffic["bytes"].tolist() == [[4 * HEADER_BYTES + 2 * (3 * 8 + 2 * 4) + 8 + 1] * 2]


def test_what_is_asked_needs_somebody_who_replies():
    with pytest.raises(ValueError, match=r"reporter is None; one is required to fill \['asked'\]"):
        Messages(ArmsEnv(), ASKED)
    with pytest.raises(TypeError, match=r"arrays\['x'\] is .*asked is 1; True or False"):
        Messages(ArmsEnv(), {"x": {"shape": [1], "asked": 1}}, Both())
