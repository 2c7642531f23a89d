"""Tracks: limits on what an entry may send, enforced by wrappers between it and the problem.

Every entry of a private track runs behind the track's own privatizer, whatever it asks for itself, and must keep the
track's epsilon by the accountant's claim afterwards.
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from fedbandit_envs.baselines.baseline import Baseline, WrapperSpec
from fedbandit_envs.core.claim import Adjacency, Claim
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.wrapper import find_layer, layers
from fedbandit_envs.leaderboard.board.suites import Suite, Task
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.wrappers import ContinualPrivatizer, GaussianPrivatizer
from fedbandit_envs.wrappers.privacy.accounting.calibration import equal_shares
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
from fedbandit_envs.wrappers.quota import Quota
from fedbandit_envs.wrappers.reveal import Reveal
from fedbandit_envs.wrappers.transport.channel import Channel
from fedbandit_envs.wrappers.transport.schedule import make_schedule

FEW = 8
"""The most releases of an agent on tracks that limit them."""

_DELTA = 1e-5
_EPSILONS = (0.1, 1.0, 10.0)
_DOUBLING = {"name": "doubling", "start": 1, "stop": None}
# Arguments of the privatizer that a submission may choose; the track sets the others.
_FREE = {"mechanism", "releases"}
# Neighbours that differ in both statistics then cost epsilon once.
_TOGETHER = {"one-quantity": {"pair": "good_and_defective"}}


class TrackError(ValueError):
    """An entry does not keep a track's limits, or no claim can be made about it."""


@dataclass(frozen=True)
class Track:
    """Limits on what an entry may send.

    Attributes:
        name: Name.
        epsilon: Largest privacy loss; 0 for silence, infinity where none is required.
        delta: Delta at which epsilon is claimed.
        adjacency: Adjacency under which it is claimed.
        trust: The trust that the claim may rest on.
        messages: The most releases of an agent in an episode; None for no limit.
        revealed: Whether entries are shown what agents do not know, and do not compete.

    Example:
        >>> Track("private-1", 1.0, 1e-5, "one-observation").private
        True
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
        """Whether releases must have noise."""
        return 0 < self.epsilon < inf

    def wrap(
        self,
        env: FederatedEnv,
        baseline: Baseline,
        noise: int | None,
        changes: Mapping[str, Mapping[str, Any]],
    ) -> FederatedEnv:
        """Returns an environment behind the track's limits and a baseline's wrappers.

        Args:
            env: The environment.
            baseline: The baseline; its privatizer gets the track's epsilon, delta and adjacency.
            noise: Entropy of the noise; None where it may be repeatable.
            changes: Arguments of the wrappers that the entry asks for, by part; the track's take precedence.

        Raises:
            TrackError: The baseline's privatizer cannot be set to an epsilon.
        """
        fixed = self.changes(env, baseline, changes)
        part = privatizer_of(baseline)
        if part is not None and noise is not None:
            fixed[part]["noise_seed"] = noise
        return baseline.wrap(env if self.messages is None else Quota(env, self.messages), fixed)

    def changes(
        self, env: FederatedEnv, baseline: Baseline, asked_for: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, dict[str, Any]]:
        """Returns changes to a baseline's wrappers, by part: what the entry asks for, overruled by the track.

        Args:
            env: The environment.
            baseline: The baseline.
            asked_for: Arguments of the wrappers that the entry asks for, by part.

        Raises:
            TrackError: The baseline's privatizer cannot be set to an epsilon.
        """
        fixed = {part: dict(arguments) for part, arguments in asked_for.items()}
        part = privatizer_of(baseline)
        if part is not None:
            spec = baseline.wrappers[part]
            arguments = {**spec.kwargs, **spec.kwargs_from_env(env), **asked_for.get(part, {})}
            budget = self._budget(spec, arguments, baseline, env) if self.private else {}
            fixed[part] = {**fixed.get(part, {}), **budget}
        return fixed

    def _budget(
        self, spec: WrapperSpec, arguments: Mapping[str, Any], baseline: Baseline, env: FederatedEnv
    ) -> dict[str, Any]:
        """Returns arguments of a privatizer with which all its releases together have the track's epsilon."""
        if _makes(spec, ContinualPrivatizer):
            return {"epsilon": self.epsilon, "delta": self.delta, "adjacency": self.adjacency}
        if not _makes(spec, GaussianPrivatizer):
            raise TrackError(f"no epsilon can be asked of {spec.make} on track {self.name}")
        releases = max(1, _planned(baseline, arguments, env))
        if self.adjacency not in _TOGETHER:
            raise TrackError(f"track {self.name} protects {self.adjacency}, which Gaussian shares do not")
        return {**equal_shares(self.epsilon, self.delta, releases), **_TOGETHER[self.adjacency]}

    def check(self, env: FederatedEnv) -> Claim:
        """Checks that an episode which was played keeps the track's limits.

        Returns:
            The claim about it.

        Raises:
            TrackError: More was spent, or other trust is needed, or nothing can be claimed.
        """
        claim = self.claim(env)
        if self.epsilon == inf:
            return claim
        wrong = ""
        if claim.epsilon is None or claim.epsilon > self.epsilon * (1 + 1e-9):
            reason = claim.reason or "by what was released"
            wrong = f"epsilon is {claim.epsilon}, {reason}; at most {self.epsilon:g}"
        elif claim.trust != self.trust:
            wrong = f"trust is {claim.trust!r}; {self.trust!r}"
        elif self.private and claim.noise == "repeatable":
            wrong = f"noise is {claim.noise!r}; 'secret'"
        if wrong:
            raise TrackError(f"{wrong} is required on track {self.name}")
        return claim

    def claim(self, env: FederatedEnv) -> Claim:
        """Returns the claim about an episode, where there is noise at the track's delta and under its adjacency."""
        noise = find_layer(env, "noise")
        if not isinstance(noise, Privatizer):
            return env.privacy()
        return noise.accountant.epsilon(self.delta, composition="exact", adjacency=self.adjacency)

    def fits(self, baseline: Baseline, task: Task) -> bool:
        """Returns whether a baseline belongs on the track, by its wrappers.

        Silent baselines have no transport. Private ones have noise, and send at times that reveal nothing, so that
        something can be claimed of them. The others send raw data. Baselines that are shown what agents do not know
        belong on the track for them and on no other.
        """
        federation = make_federation(task.env_id, **{**task.env_kwargs, "max_cycles": task.rounds})
        env = replace(self, messages=None).wrap(federation, baseline, None, {})
        reveals = any(isinstance(layer, Reveal) for layer in layers(env))
        if reveals or self.revealed:
            return reveals and self.revealed
        if find_layer(env, "transport") is None:
            return self.epsilon == 0
        env.reset_batch([0])
        noisy = find_layer(env, "noise") is not None and env.privacy().epsilon is not None
        return self.private if noisy else self.epsilon == inf


def privatizer_of(baseline: Baseline) -> str | None:
    """Returns the part of a baseline's wrapper that adds noise; None where there is none."""
    return next((part for part, spec in baseline.wrappers.items() if _makes(spec, Privatizer)), None)


def _makes(spec: WrapperSpec, kind: type) -> bool:
    return inspect.isclass(spec.make) and issubclass(spec.make, kind)


def _planned(baseline: Baseline, arguments: Mapping[str, Any], env: FederatedEnv) -> int:
    """Returns the number of an agent's releases: as the transport's schedule has it, or the privatizer's argument."""
    for spec in baseline.wrappers.values():
        schedule = {**spec.kwargs, **spec.kwargs_from_env(env)}.get("schedule")
        count = None if schedule is None else getattr(make_schedule(schedule), "count", None)
        if count is not None:
            return int(count(env.max_cycles))
    releases = arguments.get("releases")
    if not isinstance(releases, int):
        raise TrackError("a privatizer that shares epsilon out must know how many releases there will be")
    return releases


def submitted(settings: Mapping[str, Mapping[str, Any]], track: Track) -> dict[str, WrapperSpec]:
    """Returns the wrappers that a submission runs behind on a track.

    Args:
        settings: ``policy``, and where they exist ``channel`` and ``privatizer``: arguments of
            :class:`~fedbandit_envs.wrappers.transport.channel.Channel` and of
            :class:`~fedbandit_envs.wrappers.ContinualPrivatizer` that a submission may choose.
        track: The track.

    Raises:
        TrackError: The settings have a part that the track does not have, or an argument that the track sets.
    """
    parts = ["channel"] * (track.epsilon > 0) + ["policy"] + ["privatizer"] * track.private
    if unknown := settings.keys() - {*parts}:
        raise TrackError(f"settings have {sorted(unknown)}; on track {track.name} only {parts} are allowed")
    if taken := settings.get("privatizer", {}).keys() - _FREE:
        raise TrackError(
            f"settings of the privatizer have {sorted(taken)}, which are the track's; only {sorted(_FREE)} are allowed"
        )
    channel = {"schedule": _DOUBLING, **settings.get("channel", {})}
    privatizer = {"epsilon": 1.0, "delta": _DELTA, "releases": channel["schedule"]}
    wrappers = {
        "privatizer": WrapperSpec(ContinualPrivatizer, privatizer),
        "channel": WrapperSpec(Channel, channel),
    }
    return {part: spec for part, spec in wrappers.items() if part in parts}


def tracks_of(suite: Suite) -> dict[str, Track]:
    """Returns the tracks of a suite by name; private ones protect the suite's adjacency."""
    adjacency = suite.adjacency
    sending = [
        Track("non-private", inf, _DELTA, adjacency),
        *(Track(f"private-{epsilon:g}", epsilon, _DELTA, adjacency) for epsilon in _EPSILONS),
    ]
    tracks = [
        Track("silent", 0.0, _DELTA, adjacency, messages=0),
        *sending,
        Track("revealed", 0.0, _DELTA, adjacency, revealed=True),
        *(replace(track, name=f"{track.name}-few", messages=FEW) for track in sending),
    ]
    return {track.name: track for track in tracks}
