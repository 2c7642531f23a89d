"""Tracks: what an entry may let out, enforced by wrappers that stand between it and the problem.

Every entry of a track runs behind the track's own privatizer, whatever it asks for itself, and is held to the claim
that the accountant makes afterwards.
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from fedbandit_envs.baselines.baseline import Baseline, Wrapping
from fedbandit_envs.claim import Adjacency, Claim
from fedbandit_envs.federation import FederatedEnv
from fedbandit_envs.leaderboard.board.suites import Suite, Task
from fedbandit_envs.registration import make_federation
from fedbandit_envs.wrapper import find_layer, layers
from fedbandit_envs.wrappers.privacy.accounting.claimed import equal_shares
from fedbandit_envs.wrappers.privacy.continual import ContinualPrivatizer
from fedbandit_envs.wrappers.privacy.gaussian import GaussianPrivatizer
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
from fedbandit_envs.wrappers.quota import Quota
from fedbandit_envs.wrappers.reveal import Reveal
from fedbandit_envs.wrappers.transport.channel import Channel
from fedbandit_envs.wrappers.transport.schedule import make_schedule

FEW = 8
"""The most releases of an agent on tracks with a limit."""

_DELTA = 1e-5
_EPSILONS = (0.1, 1.0, 10.0)
_DOUBLING = {"name": "doubling", "start": 1, "stop": None}
# Of a submission's privatizer; the rest is the track's.
_FREE = {"mechanism", "releases"}
# What a sharing privatizer needs for neighbours that differ in both statistics to cost the promise once.
_TOGETHER = {"one-quantity": {"pair": "good_and_defective"}}


class TrackError(ValueError):
    """An entry does not keep, or cannot be held to, what its track demands."""


@dataclass(frozen=True)
class Track:
    """What an entry may let out.

    Attributes:
        name: Name.
        epsilon: The most that may be spent; 0 for silence, infinity where nothing is demanded.
        delta: At which it is claimed.
        adjacency: Under which.
        trust: Whom one may have to trust for it.
        messages: The most releases of an agent in an episode; None for no limit.
        revealed: Whether entries are shown what agents do not know: no competitors, but lines to compare with.
    """

    name: str
    epsilon: float
    delta: float
    adjacency: Adjacency
    trust: str = "local"
    messages: int | None = None
    revealed: bool = False

    @property
    def private(self) -> bool:
        """Whether what leaves must have noise."""
        return 0 < self.epsilon < inf

    def wrap(
        self,
        env: FederatedEnv,
        baseline: Baseline,
        noise: int | None,
        changes: Mapping[str, Mapping[str, Any]],
    ) -> FederatedEnv:
        """Puts the track's limits and a baseline's wrappers around an environment.

        Args:
            env: The environment.
            baseline: Its privatizer gets the track's epsilon, delta and adjacency.
            noise: What the noise of a privatizer follows from; None where it may repeat.
            changes: Arguments of the wrappers that the entry asks for, by part; the track's come after them.

        Raises:
            TrackError: There is a privatizer that no epsilon can be asked of.
        """
        fixed = self.changes(env, baseline, changes)
        if noise is not None:
            for part in privatizers(baseline):
                fixed[part]["noise_seed"] = noise
        return baseline.wrap(env if self.messages is None else Quota(env, self.messages), fixed)

    def changes(
        self, env: FederatedEnv, baseline: Baseline, asked_for: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, dict[str, Any]]:
        """Returns changes to a baseline's wrappers, by part: what the entry asks for, and after it the track's.

        Args:
            env: The environment.
            baseline: Whose wrappers.
            asked_for: What the entry asks for, by part.

        Raises:
            TrackError: There is a privatizer that no epsilon can be asked of.
        """
        fixed = {part: dict(arguments) for part, arguments in asked_for.items()}
        for part, wrapping in privatizers(baseline).items():
            said = {**wrapping.kwargs, **wrapping.fitted(env), **asked_for.get(part, {})}
            fixed.setdefault(part, {}).update(
                self._asked(wrapping, said, baseline, env) if self.private else {}
            )
        return fixed

    def _asked(
        self, wrapping: Wrapping, said: Mapping[str, Any], baseline: Baseline, env: FederatedEnv
    ) -> dict[str, Any]:
        """Returns arguments of a privatizer with which all its releases together keep the track's promise."""
        if _makes(wrapping, ContinualPrivatizer):
            return {"epsilon": self.epsilon, "delta": self.delta, "adjacency": self.adjacency}
        if _makes(wrapping, GaussianPrivatizer):
            releases = max(1, _planned(baseline, said, env))
            together = _TOGETHER.get(self.adjacency)
            if together is None:
                raise TrackError(f"track {self.name} protects {self.adjacency}, which Gaussian shares do not")
            return {**equal_shares(self.epsilon, self.delta, releases), **together}
        raise TrackError(f"no epsilon can be asked of {wrapping.make} on track {self.name}")

    def check(self, env: FederatedEnv) -> Claim:
        """Holds an episode that was played to what the track demands.

        Returns:
            What is claimed of it.

        Raises:
            TrackError: More was spent, or other trust is needed, or nothing can be claimed.
        """
        claim = self.claim(env)
        if self.epsilon == inf:
            return claim
        wrong = (
            f"epsilon is {claim.epsilon}, {claim.reason or 'by what was released'}; at most {self.epsilon:g}"
            if claim.epsilon is None or claim.epsilon > self.epsilon * (1 + 1e-9)
            else f"trust is {claim.trust!r}; {self.trust!r}"
            if claim.trust != self.trust
            else f"noise is {claim.noise!r}; 'secret'"
            if self.private and claim.noise == "repeatable"
            else ""
        )
        if wrong:
            raise TrackError(f"{wrong} is required on track {self.name}")
        return claim

    def claim(self, env: FederatedEnv) -> Claim:
        """Claims what an episode has spent, at the track's delta and under its adjacency where there is noise."""
        noise = find_layer(env, "noise")
        if not isinstance(noise, Privatizer):
            return env.privacy()
        return noise.accountant.epsilon(self.delta, composition="exact", adjacency=self.adjacency)

    def fits(self, baseline: Baseline, task: Task) -> bool:
        """Says whether a baseline belongs on the track, by the wrappers that it has.

        Silent ones have no transport; private ones have noise and rounds of sending that nothing tells of, so that
        something can be claimed of them; the others let raw data out. Those that are shown what agents do not know
        belong where that is allowed and nowhere else.
        """
        env = replace(self, messages=None).wrap(
            make_federation(task.env_id, **_brief(task)), baseline, None, {}
        )
        if any(isinstance(layer, Reveal) for layer in layers(env)) or self.revealed:
            return self.revealed and any(isinstance(layer, Reveal) for layer in layers(env))
        if find_layer(env, "transport") is None:
            return self.epsilon == 0
        env.reset_batch([0])
        noisy = find_layer(env, "noise") is not None and env.privacy().epsilon is not None
        return self.private if noisy else self.epsilon == inf


def _brief(task: Task) -> dict[str, Any]:
    return {**task.env_kwargs, "max_cycles": task.rounds}


def privatizers(baseline: Baseline) -> dict[str, Wrapping]:
    """Returns those of a baseline's wrappers that add noise, by part: one at most."""
    return {part: wrapping for part, wrapping in baseline.wrappers.items() if _makes(wrapping, Privatizer)}


def _makes(wrapping: Wrapping, kind: type) -> bool:
    return inspect.isclass(wrapping.make) and issubclass(wrapping.make, kind)


def _planned(baseline: Baseline, said: Mapping[str, Any], env: FederatedEnv) -> int:
    """Returns how often an agent will release: as often as the transport's schedule says, or the privatizer allows."""
    for wrapping in baseline.wrappers.values():
        schedule = {**wrapping.kwargs, **wrapping.fitted(env)}.get("schedule")
        if schedule is not None:
            count = getattr(make_schedule(schedule), "count", None)
            if count is not None:
                return int(count(env.max_cycles))
    releases = said.get("releases")
    if not isinstance(releases, int):
        raise TrackError("a privatizer that shares epsilon out must know how many releases there will be")
    return releases


def submitted(settings: Mapping[str, Mapping[str, Any]], track: Track) -> dict[str, Wrapping]:
    """Returns the wrappers that a submission runs behind on a track.

    Args:
        settings: ``policy``, and where they exist ``channel`` and ``privatizer``: arguments of
            :class:`~fedbandit_envs.wrappers.transport.channel.Channel` and of
            :class:`~fedbandit_envs.wrappers.privacy.continual.ContinualPrivatizer` that a submission may choose.
        track: Its track.

    Raises:
        TrackError: The settings have something that is the track's, or that does not exist there.
    """
    open_parts = (
        {"policy"} | ({"channel"} if track.epsilon else set()) | ({"privatizer"} if track.private else set())
    )
    if unknown := settings.keys() - open_parts:
        raise TrackError(
            f"settings have {sorted(unknown)}; on track {track.name} only {sorted(open_parts)} are allowed"
        )
    if taken := settings.get("privatizer", {}).keys() - _FREE:
        raise TrackError(
            f"settings of the privatizer have {sorted(taken)}, which are the track's; only {sorted(_FREE)} are allowed"
        )
    channel = {"schedule": _DOUBLING, **settings.get("channel", {})}
    privatizer = {"epsilon": 1.0, "delta": _DELTA, "releases": channel["schedule"]}
    return {
        **({"privatizer": Wrapping(ContinualPrivatizer, privatizer)} if track.private else {}),
        **({"channel": Wrapping(Channel, channel)} if track.epsilon else {}),
    }


def tracks_of(suite: Suite) -> dict[str, Track]:
    """Returns the tracks of a suite by name; it says under which adjacency private ones protect."""
    adjacency = suite.adjacency
    free = [
        Track("silent", 0.0, _DELTA, adjacency),
        Track("non-private", inf, _DELTA, adjacency),
        *(Track(f"private-{epsilon:g}", epsilon, _DELTA, adjacency) for epsilon in _EPSILONS),
        Track("revealed", 0.0, _DELTA, adjacency, revealed=True),
    ]
    limited = [replace(track, name=f"{track.name}-few", messages=FEW) for track in free if track.epsilon]
    silent = replace(free[0], messages=0)
    return {track.name: track for track in (silent, *free[1:], *limited)}
