"""Wrappers that lie, each beside an honest one.

The docstring of a liar is a regular expression that the error message must match; ``WRAPPERS`` has its honest twin.
"""

from functools import partial

import numpy as np
from arms_env import Arm

from fedbandit_envs.basics.arrays import Buffers
from fedbandit_envs.core.wrapper import FederatedWrapper, layers
from fedbandit_envs.wrappers import Channel, GaussianPrivatizer, Quota


class Nothing(FederatedWrapper):
    layer = "observation"


class OfData(FederatedWrapper):
    layer = "data"


class ClaimsWithoutNoise(GaussianPrivatizer):
    """release has no '.*_noise_variance', but privacy\\(\\) is finite"""

    def __init__(self, env):
        super().__init__(env, noise_multiplier=9.0)
        self.single_release_space = env.single_release_space

    def reset_batch(self, seeds):
        reset = super().reset_batch(seeds)
        self.single_release_space = self.env.single_release_space
        return reset

    def _release(self, sends):
        released = super()._release(sends)
        return {name: released[name] for name in self.single_release_space}


class ClaimsNothing(FederatedWrapper):
    """An honest one: its noise, which it adds to nothing, is in no books."""

    layer = "noise"


class SendsByTheClock(Channel):
    """An honest one: sends in every other round only, and drops other releases."""

    def _when(self):
        return np.full(self._everyone.shape, self._round % 2 == 0)

    def _send(self, statistic, senders):
        if (senders & self._when()).any():
            super()._send(statistic, senders & self._when())


class SendsWhenItWins(SendsByTheClock):
    r"""though releases hold no data: by the times at which something happens"""

    def _when(self):
        return list(layers(self))[-1]._reward > 0


class SaysThatItSendsWhenItWins(SendsWhenItWins):
    def reset_batch(self, seeds):
        reset = super().reset_batch(seeds)
        self._ledger.unclaimable_reason = "agents send when they have won"
        return reset


class TakesWithoutTheLedger(Channel):
    """releases data of agents that allowed_senders inside of it does not allow"""

    def _arrive(self):
        taken = self.env._release(self._everyone)
        others = self._everyone[:, :, np.newaxis] & ~np.eye(self.max_num_agents, dtype=bool)
        self._deliver(taken, self._everyone, others)
        self._book(self._everyone.astype(np.int64))


class DeliversToItself(Channel):
    """contains the agent's own data, and there is no 'sent'"""

    def _send(self, statistic, senders):
        super()._send(statistic, senders)
        self._deliver(statistic, senders, senders[:, np.newaxis] & np.eye(self.max_num_agents, dtype=bool))


class ReleasesMore(Nothing):
    """outside and inside of ReleasesMore, release"""

    def _release(self, sends):
        return {name: 2 * array for name, array in self.env._release(sends).items()}


class UnderstatesSensitivity(Nothing):
    """outside and inside of UnderstatesSensitivity, sensitivity"""

    def sensitivity(self):
        told = self.env.sensitivity()
        return told._replace(scale={name: array / 10 for name, array in told.scale.items()})


class HalvesRegret(Nothing):
    r"""outside and inside of HalvesRegret, info\['regret'\]"""

    def step_batch(self, action):
        step = self.env.step_batch(action)
        return step._replace(info={**step.info, **Buffers({"regret": step.info["regret"] / 2}).views})


class QuotaThatDoesNotBind(Quota):
    """releases data of agents that allowed_senders inside of it does not allow"""

    def allowed_senders(self, senders):
        return np.asarray(senders, bool) & (self._left > 0)


class ReleasesWhatIsNotAllowed(OfData):
    """and for all whom allowed_senders leaves out"""

    def allowed_senders(self, senders):
        return np.zeros_like(self.env.allowed_senders(senders))

    def _release(self, sends):
        return self.env._release(np.ones_like(sends))


class SendsForTheSilent(OfData):
    """allowed_senders lets agents send that do not want to"""

    def allowed_senders(self, senders):
        return np.ones_like(self.env.allowed_senders(senders))


class Taps(OfData):
    def _release(self, sends):
        self.raw = self.env._release(sends)
        return self.raw


class ShowsWhatIsTapped(Nothing):
    """shows agents the data of another agent in round \\d\\['observation'\\]\\['inbox_.* hold no data"""

    def step_batch(self, action):
        step = self.env.step_batch(action)
        raw = next(level.raw for level in layers(self) if isinstance(level, Taps))
        mask = step.observation["inbox_mask"][..., np.newaxis]
        shown = {f"inbox_{name}": np.where(mask, array[:, np.newaxis], 0.0) for name, array in raw.items()}
        return step._replace(observation={**step.observation, **Buffers(shown).views})


class FollowsTheBest(Arm):
    def to_action(self, choice, observation):
        return np.where(
            choice == 0, observation["total_pulls"].sum(axis=1).argmax(axis=-1)[:, np.newaxis], choice
        )


class TranslatesByOthers(OfData):
    """the first agent's action, beside others, is"""

    def __init__(self, env):
        super().__init__(env)
        self.action_formats = {**env.action_formats, "follow": FollowsTheBest(4)}


def seldom(channel):
    return partial(channel, schedule={"name": "fixed_gap", "gap": 50})


def noisy(env):
    return Channel(GaussianPrivatizer(env, noise_multiplier=3.0), schedule="every_round")


WRAPPERS = {
    ShowsWhatIsTapped: (
        lambda env: ShowsWhatIsTapped(noisy(Taps(env))),
        lambda env: Nothing(noisy(Taps(env))),
    ),
    TranslatesByOthers: (TranslatesByOthers, Nothing),
    ClaimsWithoutNoise: (ClaimsWithoutNoise, ClaimsNothing),
    SendsWhenItWins: (SendsWhenItWins, SaysThatItSendsWhenItWins),
    TakesWithoutTheLedger: (seldom(TakesWithoutTheLedger), seldom(Channel)),
    DeliversToItself: (DeliversToItself, partial(Channel, echo=True)),
    ReleasesMore: (ReleasesMore, Nothing),
    UnderstatesSensitivity: (UnderstatesSensitivity, Nothing),
    HalvesRegret: (HalvesRegret, Nothing),
    QuotaThatDoesNotBind: (partial(QuotaThatDoesNotBind, releases=20), partial(Quota, releases=20)),
    ReleasesWhatIsNotAllowed: (ReleasesWhatIsNotAllowed, partial(Quota, releases=20)),
    SendsForTheSilent: (SendsForTheSilent, SendsByTheClock),
}
