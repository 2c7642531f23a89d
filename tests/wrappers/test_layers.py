"""Layers stand around each other in one order, whoever wrote them, and what leaves is counted wherever it leaves."""

import numpy as np
import pytest
from channels import buying, private, small
from gymnasium.error import ResetNeeded
from played import begun
from refusals import refusals
from sums_env import SumsEnv

from fedbandit_envs import FederatedEnv, FederatedWrapper
from fedbandit_envs.core.wrapper import find_layer, layers
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.wrappers import ContinualPrivatizer, LaplacePrivatizer
from fedbandit_envs.wrappers.observation import Reveal
from fedbandit_envs.wrappers.privacy.mechanisms.additive import Gaussian
from fedbandit_envs.wrappers.releases import Interleaved, Placebo
from fedbandit_envs.wrappers.transport.channel import Channel


class Pigeons(FederatedWrapper):
    """A stranger's transport: everything that everybody releases flies to everybody, every round."""

    layer = "transport"

    def step_batch(self, action):
        step = self.env.step_batch(action)
        everyone = np.ones(step.reward.shape, np.bool_)
        self.delivered = self.env.release(everyone)
        return step


class LayerlessPigeons(Pigeons):
    layer = None


test_a_wrong_order_is_refused_by_name = refusals(
    lambda stack: stack(),
    (lambda: Placebo(Channel(small())), "Channel, of layer 'transport', inside of Placebo, of layer 'data'"),
    (lambda: Placebo(private(small())), "GaussianPrivatizer, of layer 'noise', inside of Placebo"),
    (lambda: Interleaved(Channel(small()), 2), "Channel, of layer 'transport', inside of Interleaved"),
    (lambda: private(Pigeons(small())), "Pigeons, of layer 'transport', inside of GaussianPrivatizer"),
    (lambda: ContinualPrivatizer(Pigeons(SumsEnv()), 1.0, 0.1), "Pigeons, .* inside of ContinualPrivatizer"),
    (lambda: private(Reveal(small())), "Reveal, of layer 'observation', inside of GaussianPrivatizer"),
    (lambda: Channel(Pigeons(small())), "Pigeons, .* 'transport', inside of Channel, .* at most one"),
    (lambda: Pigeons(Channel(small())), "Channel, of layer 'transport', inside of Pigeons"),
    (lambda: Channel(Reveal(Channel(small()))), "Reveal, of layer 'observation', inside of Channel"),
    (
        lambda: LaplacePrivatizer(private(small()), epsilon_per_release=1.0),
        "GaussianPrivatizer, .* of Laplace",
    ),
    error=ValueError,
)


@pytest.mark.parametrize("layer", [None, "middle", 3])
def test_a_wrapper_that_is_no_layer_is_refused_by_name(layer):
    class Odd(FederatedWrapper):
        pass

    Odd.layer = layer
    with pytest.raises(
        TypeError, match=rf"Odd.layer is {layer!r}; one of 'data', 'noise', 'transport', 'observation'"
    ):
        Odd(small())


def test_a_wrapper_that_says_no_layer_is_refused_even_from_outside():
    """It does not help to skip the base's constructor: the next wrapper looks at all that is inside of it."""

    class Careless(FederatedWrapper):
        def __init__(self, env):
            self.env = env

    with pytest.raises(TypeError, match=r"Careless.layer is None"):
        Channel(Careless(small()))
    with pytest.raises(TypeError, match=r"LayerlessPigeons.layer is None"):
        LayerlessPigeons(small())


@pytest.mark.parametrize("wrap", [Channel, Placebo, Reveal, lambda env: Interleaved(env, 2)])
def test_only_federations_are_wrapped(wrap):
    with pytest.raises(TypeError, match="env is a int; a FederatedEnv is required"):
        wrap(3)


def test_the_right_order_is_found_again():
    env = Reveal(Channel(private(Interleaved(Placebo(small()), 2))))
    assert [type(layer).__name__ for layer in layers(env)] == [
        "Reveal", "Channel", "GaussianPrivatizer", "Interleaved", "Placebo", "ProcurementEnv",
    ]  # fmt: skip
    assert find_layer(env, "noise") is env.env.env
    assert find_layer(env, "transport") is env.env
    assert find_layer(small(), "transport") is None


@pytest.mark.parametrize("final", ["release", "privacy"])
def test_the_door_and_the_claim_cannot_be_overridden(final):
    with pytest.raises(TypeError, match=f"Leaky overrides {final}, which is final; override"):
        type("Leaky", (FederatedWrapper,), {final: lambda self: None, "layer": "data"})
    with pytest.raises(TypeError, match="overrides"):
        type("Leaky", (ProcurementEnv,), {final: lambda self: None})
    with pytest.raises(TypeError, match="Mixed overrides"):
        type("Mixed", (type("Mixin", (), {final: lambda self: None}), ProcurementEnv), {})


def everything_claimed(env, private) -> list[float | None]:
    """Epsilon at every level at which one can ask, and in the information."""
    claims = [layer.privacy().epsilon for layer in layers(env)]
    claims += [
        private.accountant.epsilon(1e-5, composition=composition).epsilon
        for composition in ("basic", "zcdp", "exact", "parallel")
    ]
    return claims


def test_a_release_by_hand_inside_of_the_noise_is_seen_at_every_level():
    inner = private(small())
    env = begun(Channel(inner, schedule={"name": "fixed_gap", "gap": 3}), [0, 1])
    for _ in range(3):
        info = env.step_batch(buying(env, 2)).info
    honest = env.privacy()
    assert 0 < honest.epsilon < np.inf
    senders = np.zeros((2, 4), np.bool_)
    senders[1, 2] = True
    env.unwrapped.release(senders)
    assert everything_claimed(env, inner) == [np.inf] * 7
    # Only the agent whose data it was has lost its privacy.
    info = env.step_batch(buying(env, 2)).info
    np.testing.assert_array_equal(info["epsilon_spent"] == np.inf, senders)
    env.reset_batch([0, 1])
    assert env.privacy().epsilon == 0.0


def test_a_reset_beneath_the_noise_is_seen():
    inner = private(small())
    env = begun(Channel(inner))
    env.step_batch(buying(env))
    env.unwrapped.reset_batch([0])
    claim = inner.accountant.epsilon(1e-5)
    assert claim.epsilon == np.inf
    assert "reset without its privatizer" in claim.reason


def test_books_that_forget_a_release_are_seen(monkeypatch):
    honest = Gaussian.events
    monkeypatch.setattr(
        Gaussian, "events", lambda self, sends, index: {} if index.any() else honest(self, sends, index)
    )
    inner = private(small())
    env = begun(Channel(inner, schedule="every_round"))
    env.step_batch(buying(env))
    assert env.privacy().epsilon < np.inf
    env.step_batch(buying(env))
    assert everything_claimed(env, inner) == [np.inf] * 7
    assert "more has been released than is in the books" in env.privacy().reason


def test_what_a_data_layer_takes_has_not_left():
    env = begun(Interleaved(small(), 2))
    for _ in range(5):
        env.step_batch(buying(env))
    assert [layer.privacy().epsilon for layer in layers(env)] == [0.0, 0.0]
    env.release(np.ones((1, 4), np.bool_))
    assert [layer.privacy().epsilon for layer in layers(env)] == [np.inf, np.inf]


@pytest.mark.parametrize("make", [small, SumsEnv])
def test_without_noise_it_is_all_or_nothing_at_every_level(make):
    env: FederatedEnv = Channel(make(), schedule={"name": "fixed_gap", "gap": 2})
    env.reset_batch([0])
    action = buying(env) if make is small else np.zeros((1, 2), np.int64)
    env.step_batch(action)
    assert [layer.privacy().epsilon for layer in layers(env)] == [0.0, 0.0]
    env.step_batch(action)
    assert [layer.privacy().epsilon for layer in layers(env)] == [np.inf, np.inf]
    assert env.privacy().noise == "none"


@pytest.mark.parametrize("schedule", ["on_request", "synchronise"])
def test_where_agents_choose_when_to_send_nothing_is_claimed_at_any_level(schedule):
    """Once sent or not: that nobody has asked tells of raw data as well."""
    inner = private(small())
    env = begun(Channel(inner, schedule=schedule))
    for send in (False, True):
        info = env.step_batch({"action": buying(env), "send": np.full((1, 4), send)}).info
        assert everything_claimed(env, inner) == [None] * 7
        assert "times may depend on raw local data" in env.privacy().reason
        info = env.step_batch({"action": buying(env), "send": np.zeros((1, 4), bool)}).info
        assert (info["epsilon_spent"] == np.inf).all()
    assert env.privacy().as_json()["epsilon"] is None


@pytest.mark.parametrize(
    ("wrap", "play"),
    [
        (private, lambda env: env.release(np.ones((1, env.max_num_agents), np.bool_))),
        (private, lambda env: env.step_batch(buying(env, 1))),
        (Channel, lambda env: env.step_batch(buying(env, 1))),
        (lambda env: Channel(private(env)), lambda env: env.step_batch(buying(env, 1))),
    ],
)
def test_what_was_wrapped_in_mid_episode_asks_for_a_reset(wrap, play):
    """Its own state is made at reset."""
    inner = begun(small())
    inner.step_batch(buying(inner, 1))
    env = wrap(inner)
    with pytest.raises(ResetNeeded, match="call reset first"):
        play(env)
    env.reset_batch([0])
    play(env)
