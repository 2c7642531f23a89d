"""Authored messages: who writes them, what leaves, what is counted, and what is refused."""

from functools import partial
from itertools import product, starmap

import gymnasium
import numpy as np
import pytest
from arms_env import ArmsEnv
from authored import ARRAYS, INNER, ONE, Author, Sums, check_stack, with_sums
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from pairs import every_fourth
from refusals import refusals
from registered import PROBLEMS

from fedbandit_envs.arms_v0 import parallel_env as arms
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.core.actions import EntryRequiredError
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.linear_v0 import parallel_env as linear
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.testing import check_policy, check_reporter, check_wrapper
from fedbandit_envs.testing.episodes import Trial, by_agent, random_choices
from fedbandit_envs.wrappers import (
    Byzantine,
    Channel,
    GaussianPrivatizer,
    Interleaved,
    Messages,
    Participation,
    Placebo,
    Quota,
    Server,
)

ENTRY = "fedbandit_envs.wrappers:Messages"
CHANNEL = "fedbandit_envs.wrappers:Channel"


def played(env, rounds=6, seeds=(0, 1), sends=None):
    """Actions, releases (everyone's, each round, if not said otherwise) and observations of a short episode."""
    trial = Trial(lambda: env, seeds, rounds)
    env.reset_batch(seeds)
    for t, action in enumerate(trial.actions):
        step = env.step_batch(action)
        yield action, env.release(trial.everyone if sends is None else sends[t]), step


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize("problem", PROBLEMS)
def test_reporters_around_problems(problem):
    entry = PROBLEMS[problem]
    make = partial(make_federation, next(iter(entry.presets)), **entry.small, num_agents=3)
    check_wrapper(with_sums, make)
    check_reporter(
        Sums, lambda: with_sums(make()), spaces.Dict({"of": spaces.Box(-1.0, 1.0, (1,), np.float64)})
    )


STACKS = {
    "placebo": lambda env: Channel(Placebo(env)),
    "byzantine": lambda env: Channel(Byzantine(env, [0], "sign_flip"), schedule="on_request", loss=0.2),
    "quota": lambda env: Server(Quota(env, 3), schedule="on_request", delay=1),
    "participation": lambda env: Server(Participation(env, "in_turn"), echo=True),
    "interleaved": lambda env: Channel(Interleaved(env, 2), topology="ring", delay=1, duplication=0.2),
}


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize(
    ("author", "checked", "stack"),
    every_fourth(starmap(pytest.param, product(INNER, ["with messages", "without"], STACKS))),
)
def test_stacks_around_messages(stack, author, checked):
    check_stack(STACKS[stack], author, checked)


def test_the_message_written_last_leaves():
    """Against one agent's and one replica's story at a time: the last message since the last release, else zeros."""
    env = Messages(ArmsEnv(), ARRAYS)
    rows = (3, env.max_num_agents)
    generator = np.random.default_rng(0)
    sends = generator.random((20, *rows)) < 0.4
    active = generator.random((21, *rows)) < 0.6
    env.set_active(active[0])
    env.reset_batch([1, 2, 3])
    messages = random_choices(env.single_action_space, rows, 20)
    written = [[None] * rows[1] for _ in range(rows[0])]
    for t, action in enumerate(messages):
        env.set_active(active[t + 1])
        env.step_batch(action)
        # A second release in the same round has nothing left to tell.
        for released, who in ((env.release(sends[t]), sends[t]), (env.release(sends[t]), None)):
            for r, j in np.ndindex(rows):
                if active[t, r, j] and who is not None:
                    written[r][j] = {name: array[r, j] for name, array in action["message"].items()}
                told = written[r][j] if who is not None and who[r, j] else None
                for name in ARRAYS:
                    np.testing.assert_array_equal(released[name][r, j], 0 if told is None else told[name])
                    assert released[name].dtype == np.float64
                if who is not None and who[r, j]:
                    written[r][j] = None


def test_numbers_are_rounded_to_what_is_declared():
    kinds = dict.fromkeys(("float16", "float32", "float64"), "float64")
    kinds |= {"int8": "int64", "uint64": "uint64", "bool": "bool"}
    env = Messages(ArmsEnv(), {kind: {"shape": [4], "dtype": kind} for kind in kinds})
    env.reset_batch([0])
    thirds = ((kind, 1 / 3 if kind[0] == "f" else 1, given) for kind, given in kinds.items())
    numbers = {kind: np.full((1, 3, 4), number, given) for kind, number, given in thirds}
    env.step_batch({"action": np.zeros((1, 3), np.int64), "message": numbers})
    released = env.release(np.ones((1, 3), bool))
    for kind in ("float16", "float32", "float64"):
        assert (released[kind] == float(np.dtype(kind).type(1 / 3))).all()
    assert released["float16"][0, 0, 0] != released["float32"][0, 0, 0] != 1 / 3
    for kind in ("int8", "uint64", "bool"):
        assert (released[kind] == 1).all()
    numbers["uint64"][0, 1, 2] = 2**64 - 5
    with pytest.raises(
        ValueError, match=r"message 'uint64' of agent_1 \(replica 0\), entry 2, is 9223372036854775807"
    ):
        env.step_batch({"action": np.zeros((1, 3), np.int64), "message": numbers})


@pytest.mark.parametrize(
    ("name", "bad", "error", "message"),
    [
        ("model", np.nan, ValueError, r"message 'model' of agent_1 \(replica 1\), entry \[1, 2\], is nan"),
        ("model", 1e39, ValueError, "message 'model' of agent_1 .* is 1e.39"),
        ("age", 2**15, ValueError, r"is 32768; an integer in \[-32768, 32767\]"),
        ("age", 0.5, ValueError, "message 'age' of agent_1 .* is 0.5; an integer"),
        ("age", 2.0, TypeError, "message 'age' has dtype float64; an integer dtype is required"),
        ("votes", 2, ValueError, r"message 'votes' of agent_1 \(replica 1\), entry 4, is 2"),
    ],
)
def test_bad_messages_are_refused_before_anything_changes(name, bad, error, message):
    env, twin = Messages(ArmsEnv(), ARRAYS), Messages(ArmsEnv(), ARRAYS)
    good = random_choices(env.single_action_space, (2, 3), 2)
    wrong = good[1]["message"][name].astype(np.float64 if isinstance(bad, float) else np.int64)
    wrong[(1, 1, *(size - 1 for size in wrong.shape[2:]))] = bad
    for each in (env, twin):
        each.reset_batch([0, 1])
        each.step_batch(good[0])
    with pytest.raises(error, match=message):
        env.step_batch({"action": good[1]["action"], "message": {**good[1]["message"], name: wrong}})
    # An action that the problem refuses leaves no message behind.
    with pytest.raises(ValueError, match="action of agent_0"):
        env.step_batch({"action": good[1]["action"] - 99, "message": good[1]["message"]})
    everyone = np.ones((2, 3), bool)
    told = twin.release(everyone)
    for part, same in env.release(everyone).items():
        np.testing.assert_array_equal(same, told[part])
    np.testing.assert_array_equal(env.hidden()["mean"], twin.hidden()["mean"])


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        ({"action": 0}, EntryRequiredError, r"of \['action'\]; a mapping of \['action', 'message'\]"),
        ({"action": 0, "message": {}}, ValueError, r"message is \[\]; a mapping of \['gradient'\]"),
        ({"action": 0, "message": 3}, ValueError, "message is 3; a mapping of"),
        (
            {"action": 0, "message": {"gradient": [0, 1]}},
            TypeError,
            r"message 'gradient' is \[0, 1\]; a numpy array",
        ),
        ({"action": 0, "message": {"gradient": np.zeros((1, 2, 2))}}, ValueError, r"has shape \(1, 2, 2\)"),
    ],
)
def test_actions_without_a_message_are_named(action, error, message):
    env = Messages(ArmsEnv(), ONE)
    with pytest.raises(ResetNeeded):
        env.step_batch(action)
    env.reset_batch([0])
    with pytest.raises(error, match=message):
        env.step_batch(action)


test_bad_declarations_are_named = refusals(
    lambda arrays: Messages(ArmsEnv(), arrays),
    ({}, TypeError, "arrays is {}; a mapping of names"),
    ({"mask": {"shape": [1]}}, ValueError, "arrays has the name 'mask'"),
    ({"x_noise_variance": {"shape": [1]}}, ValueError, "arrays has the name 'x_noise_variance'"),
    ({"x": {"shape": [1], "low": 0}}, TypeError, r"arrays\['x'\] is .*'low'"),
    ({"x": 3}, TypeError, r"arrays\['x'\] is 3; a mapping of 'shape' and 'dtype' is required"),
    ({"x": {"shape": [1], "dtype": "flot"}}, TypeError, r"arrays\['x'\] is .*'flot'"),
    ({"x": {"shape": [2, 0]}}, ValueError, r"arrays\['x'\] is .*shape\[1\] is 0"),
    ({"x": {"shape": [1], "dtype": "complex64"}}, ValueError, r"arrays\['x'\] is .*complex64"),
)


@pytest.mark.parametrize("inside", [Placebo, partial(Byzantine, agents=[0]), partial(Messages, arrays=ONE)])
def test_releases_are_replaced_first(inside):
    with pytest.raises(ValueError, match=r"which changes releases; .* outside of Messages"):
        Messages(inside(ArmsEnv()), ONE)
    Messages(Participation(ArmsEnv()), ONE)


# Header, and bits as declared: 16 of int16; 6 of 32 bits; 5. Statistics of 2 x 4 counts, and variances, keep 8 bytes.
@pytest.mark.parametrize(
    ("make", "size"),
    [
        (lambda: Messages(ArmsEnv(), ARRAYS), 16 + (16 + 6 * 32 + 5 + 7) // 8),
        (lambda: Messages(ArmsEnv(), {"bit": {"shape": [8], "dtype": "bool"}}), 17),
        (lambda: Messages(ArmsEnv(), {"bit": {"shape": [9], "dtype": "bool"}}), 18),
        (lambda: Byzantine(Interleaved(Messages(ArmsEnv(), {"bit": {"shape": [], "dtype": "bool"}}), 3)), 17),
        (lambda: Messages(ArmsEnv(), {"x": {"shape": [3]}}), 16 + 24),
        (ArmsEnv, 16 + 8 * 8),
        (lambda: GaussianPrivatizer(ArmsEnv(), epsilon_per_release=0.9), 16 + 8 * 16),
    ],
)
def test_bytes_are_counted_as_declared(make, size):
    for transport in (Channel, Server):
        env = transport(make())
        for _, _, step in played(env, 2, sends=np.zeros((2, 2, 3), bool)):
            assert step.info["messages"].any()
            np.testing.assert_array_equal(step.info["bytes"], size * step.info["messages"])
        np.testing.assert_array_equal(env.traffic["bytes"], size * env.traffic["messages"])


def test_inboxes_carry_messages():
    env = Channel(Messages(ArmsEnv(), ARRAYS))
    inboxes = {name for name in env.single_observation_space if name.startswith("inbox_")}
    assert inboxes == {"inbox_mask", *(f"inbox_{name}" for name in ARRAYS)}
    assert sorted(env.policy_spec.release) == sorted(ARRAYS)
    for action, _, step in played(env, 3, sends=np.zeros((3, 2, 3), bool)):
        for name, array in action["message"].items():
            for receiver in range(3):
                others = np.arange(3) != receiver
                np.testing.assert_array_equal(step.observation["inbox_mask"][:, receiver], [others] * 2)
                received = step.observation[f"inbox_{name}"][:, receiver]
                np.testing.assert_array_equal(received[:, others], array[:, others])


def test_placebo_byzantine_quota_participation():
    env = Messages(ArmsEnv(), ONE)
    for action, released, _ in played(env):
        np.testing.assert_array_equal(released["gradient"], action["message"]["gradient"])
    for _, released, _ in played(Placebo(Messages(ArmsEnv(), ONE))):
        assert not released["gradient"].any()
    lying = Byzantine(Messages(ArmsEnv(), ONE), [1], {"name": "scaled", "scale": -3})
    for action, released, _ in played(lying):
        honest = action["message"]["gradient"] * np.array([1.0, -3.0, 1.0])[:, np.newaxis]
        np.testing.assert_allclose(released["gradient"], honest, rtol=1e-9, atol=1e-9)
    for t, (action, released, _) in enumerate(played(Quota(Messages(ArmsEnv(), ONE), 2))):
        np.testing.assert_array_equal(released["gradient"], action["message"]["gradient"] if t < 2 else 0)
    for outer in (True, False):
        wrap = partial(Participation, law="in_turn")
        env = wrap(Messages(ArmsEnv(), ONE)) if outer else Messages(wrap(ArmsEnv()), ONE)
        for t, (action, released, _) in enumerate(played(env)):
            acts = np.arange(3) == t % 3
            expected = np.where(acts[:, np.newaxis], action["message"]["gradient"], 0.0)
            np.testing.assert_array_equal(released["gradient"], expected)


@pytest.mark.parametrize("schedule", ["every_round", "on_request"])
def test_policies_write_messages(schedule):
    def make():
        return Channel(Messages(arms(num_agents=3, num_arms=4), ONE), schedule=schedule)

    check_policy(Author, make)
    env = make()
    entries = ["action", "message"] + ["send"] * (schedule == "on_request")
    assert list(env.single_action_space) == entries
    assert env.policy_spec.own_action == spaces.Discrete(4)


@pytest.mark.parametrize("schedule", ["every_round", "on_request"])
def test_all_apis_take_messages(schedule):
    """PettingZoo, Gymnasium and its vectors tell the same as the batch API."""
    stack = [[ENTRY, {"arrays": ONE}], [CHANNEL, {"schedule": schedule, "echo": True}]]
    settings = {"num_agents": 3, "num_arms": 4, "max_cycles": 5}
    env, keyed = (Channel(Messages(arms(**settings), ONE), schedule=schedule, echo=True) for _ in range(2))
    single = gymnasium.make("FedArms-v0", stack=stack, peers=Author(), **settings)
    vector = gymnasium.make_vec(
        "FedArms-v0", 2, vectorization_mode="vector_entry_point", stack=stack, peers=Author(), **settings
    )
    keyed.reset(seed=4)
    single.reset(seed=4)
    vector.reset(seed=4)
    author = Author()
    author.reset(env.policy_spec, None)
    observation = env.reset_batch([4, 5]).observation
    for _ in range(4):
        action = author.act(observation)
        first = by_agent(env, action)
        in_vector = {name: part for name, part in action.items() if name != "message"}
        in_vector = {name: part[:, 0] for name, part in in_vector.items()}
        in_vector["message"] = {"gradient": action["message"]["gradient"][:, 0]}
        observation = env.step_batch(action).observation
        shown = keyed.step(first)[0]
        alone, vectors = single.step(first["agent_0"])[0], vector.step(in_vector)[0]
        assert observation["inbox_gradient"].any()
        np.testing.assert_array_equal(observation["inbox_gradient"][0, 0], shown["agent_0"]["inbox_gradient"])
        np.testing.assert_array_equal(observation["inbox_gradient"][0, 0], alone["inbox_gradient"])
        np.testing.assert_array_equal(observation["inbox_gradient"][:, 0], vectors["inbox_gradient"])


@pytest.mark.parametrize("schedule", ["every_round", "on_request"])
def test_flat_formats_say_what_dicts_say(schedule):
    env = Channel(Messages(linear(num_agents=2, dim=2), ARRAYS), schedule=schedule)
    asks = schedule == "on_request"
    flat = env.action_formats["parameter_and_message" + "_and_send" * asks]
    # Two of the parameter; then, by name, 1 of age, 6 of the model, 5 votes.
    assert flat.space.shape == (2 + 1 + 6 + 5 + asks,)
    np.testing.assert_array_equal(flat.space.low[2:14], [-(2**15)] + [-1] * 6 + [0] * 5)
    np.testing.assert_array_equal(flat.space.high[2:14], [2**15 - 1] + [1] * 11)
    seen = env.reset_batch([0]).observation
    numbers = [0.5, -1, 2.6, *np.arange(6) / 8, 0.6, 0.5, 0, 1, 0.4] + [1] * asks
    choice = np.tile(np.float32(numbers), (1, 2, 1))
    choice[0, 1, 2] = 1e9
    action = flat.to_action(choice, seen)
    found = {name: array[0].tolist() for name, array in action["message"].items()}
    assert found["age"] == [3, 2**15 - 1]
    assert found["votes"] == [[1, 0, 0, 1, 0]] * 2
    np.testing.assert_array_equal(found["model"], [np.arange(6).reshape(2, 3) / 8] * 2)
    parts = {"action": choice[..., :2], "message": None} | ({"send": None} if asks else {})
    own = env.action_formats["parameter"].to_action(parts, seen)
    np.testing.assert_array_equal(action["action"], own["action"])
    assert ("send" in action) == asks
    env.step_batch(action)
    choice[0, 1, 5] = np.nan
    with pytest.raises(ValueError, match=r"choice\[0, 1, 5\] is nan"):
        flat.to_action(choice, seen)


@pytest.mark.parametrize("schedule", ["every_round", "on_request"])
def test_baselines_that_write_nothing_are_told(schedule):
    stack = [[ENTRY, {"arrays": ONE}], [CHANNEL, {"schedule": schedule}]]
    silent = "fedbandit_envs.baselines.procurement:SSUCB"
    lacking = "'message'" + ", 'send'" * (schedule == "on_request")
    with pytest.raises(EntryRequiredError, match=rf"; a mapping of \['action', {lacking}\] is required"):
        RunSpec(silent, "FedProcurement-v0", 5, 1, stack=stack).run()
    # Those that pool statistics do not get as far.
    with pytest.raises(UnfitError, match=r"messages contain \['gradient'\]; \['pulls', 'successes'\] is"):
        RunSpec("fedbandit_envs.baselines.arms:UCB1", "FedArms-v0", 5, 1, stack=stack).run()
    env = gymnasium.make("FedProcurement-v0", stack=stack, num_agents=3, peers=silent)
    env.reset(seed=0)
    with pytest.raises(EntryRequiredError, match=r"; a mapping of .*'message'"):
        env.step({**env.action_space.sample()})
