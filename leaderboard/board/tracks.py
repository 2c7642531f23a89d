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
        limited = env if self.messages is None else Quota(env, self.messages)
        return baseline.wrap(limited, self.changes(env, baseline, changes, noise))

    def changes(
        self,
        env: FederatedEnv,
        baseline: Baseline,
        asked_for: Mapping[str, Mapping[str, Any]],
        noise: int | None = None,
    ) -> Mapping[str, Mapping[str, Any]]:
        """Returns changes to a baseline's wrappers, by part: what the entry asks for, overruled by the track.

        Args:
            env: The environment.
            baseline: The baseline.
            asked_for: Arguments of the wrappers that the entry asks for, by part.
            noise: Entropy of the noise, for the privatizer; None to leave it as it is.

        Raises:
            TrackError: The baseline's privatizer cannot be set to an epsilon.
        """
        part = privatizer_of(baseline)
        if part is None:
            return asked_for
        own = dict(asked_for.get(part, {}))
        if self.private:
            own |= self._budget(baseline, part, env, asked_for)
        if noise is not None:
            own["noise_seed"] = noise
        return {**asked_for, part: own}

    def _budget(
        self, baseline: Baseline, part: str, env: FederatedEnv, asked_for: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Returns arguments of a privatizer with which all its releases together have the track's epsilon."""
        make = baseline.wrappers[part].make
        if _is(make, ContinualPrivatizer):
            return {"epsilon": self.epsilon, "delta": self.delta, "adjacency": self.adjacency}
        if not _is(make, GaussianPrivatizer):
            raise TrackError(f"no epsilon can be asked of {make} on track {self.name}")
        # As many releases as the transport's schedule has; without one, as the privatizer's argument says.
        schedules = [given.get("schedule") for given in baseline.wrapper_arguments(env).values()]
        planned = (make_schedule(one).count(env.max_cycles) for one in schedules if one is not None)
        releases = next(planned, baseline.wrapper_arguments(env, asked_for)[part].get("releases"))
        if not isinstance(releases, int):
            raise TrackError("a privatizer that shares epsilon out must know how many releases there will be")
        if self.adjacency not in _TOGETHER:
            raise TrackError(f"track {self.name} protects {self.adjacency}, which Gaussian shares do not")
        return {**equal_shares(self.epsilon, self.delta, max(1, releases)), **_TOGETHER[self.adjacency]}

    def check(self, env: FederatedEnv) -> Claim:
        """Checks that an episode which was played keeps the track's limits.

        Returns:
            The claim about it.

        Raises:
            TrackError: More was spent, or other trust is needed, or nothing can be claimed.
        """
        noise = find_layer(env, "noise")
        claim = env.privacy()
        if isinstance(noise, Privatizer):
            claim = noise.accountant.epsilon(self.delta, composition="exact", adjacency=self.adjacency)
        if self.epsilon == inf:
            return claim
        wrong = ""
        if claim.epsilon is None or claim.epsilon > self.epsilon * (1 + 1e-9):
            reason = claim.reason or "by what was released"
            wrong = f"epsilon is {claim.epsilon}, {reason}; at most {self.epsilon:g}"
        elif claim.trust != "local":
            wrong = f"trust is {claim.trust!r}; 'local'"
        elif self.private and claim.noise == "repeatable":
            wrong = f"noise is {claim.noise!r}; 'secret'"
        if wrong:
            raise TrackError(f"{wrong} is required on track {self.name}")
        return claim

    def fits(self, baseline: Baseline, task: Task) -> bool:
        """Returns whether a baseline belongs on the track, by its wrappers.

        Silent baselines have no transport. Private ones have noise, and send at times that reveal nothing, so that
        something can be claimed of them. The others send raw data. Baselines that are shown what agents do not know
        belong on the track for them and on no other.
        """
        env = replace(self, messages=None).wrap(task.federation(), baseline, None, {})
        reveals = any(isinstance(layer, Reveal) for layer in layers(env))
        if reveals or self.revealed:
            return reveals and self.revealed
        if find_layer(env, "transport") is None:
            return self.epsilon == 0
        env.reset_batch([0])
        noisy = find_layer(env, "noise") is not None and env.privacy().epsilon is not None
        return self.private if noisy else self.epsilon == inf

    def submitted(self, settings: Mapping[str, Mapping[str, Any]]) -> dict[str, WrapperSpec]:
        """Returns the wrappers that a submission runs behind.

        Args:
            settings: ``policy``, and where they exist ``channel`` and ``privatizer``: arguments of
                :class:`~fedbandit_envs.wrappers.transport.channel.Channel` and of
                :class:`~fedbandit_envs.wrappers.ContinualPrivatizer` that a submission may choose.

        Raises:
            TrackError: The settings have a part that the track does not have, or an argument that the track sets.
        """
        parts = ["channel"] * (self.epsilon > 0) + ["policy"] + ["privatizer"] * self.private
        if unknown := settings.keys() - {*parts}:
            raise TrackError(
                f"settings have {sorted(unknown)}; on track {self.name} only {parts} are allowed"
            )
        if taken := settings.get("privatizer", {}).keys() - _FREE:
            raise TrackError(
                f"settings of the privatizer have {sorted(taken)}, which are the track's; only {sorted(_FREE)} are "
                "allowed"
            )
        channel = {"schedule": _DOUBLING, **settings.get("channel", {})}
        privatizer = {"epsilon": 1.0, "delta": _DELTA, "releases": channel["schedule"]}
        wrappers = {
            "privatizer": WrapperSpec(ContinualPrivatizer, privatizer),
            "channel": WrapperSpec(Channel, channel),
        }
        return {part: spec for part, spec in wrappers.items() if part in parts}


def privatizer_of(baseline: Baseline) -> str | None:
    """Returns the part of a baseline's wrapper that adds noise; None where there is none."""
    return next((part for part, spec in baseline.wrappers.items() if _is(spec.make, Privatizer)), None)


def _is(make: Any, kind: type) -> bool:
    return inspect.isclass(make) and issubclass(make, kind)


def tracks_of(suite: Suite) -> dict[str, Track]:
    """Returns the tracks of a suite by name; private ones protect the suite's adjacency."""
    sending = [
        Track("non-private", inf, _DELTA, suite.adjacency),
        *(Track(f"private-{epsilon:g}", epsilon, _DELTA, suite.adjacency) for epsilon in _EPSILONS),
    ]
    silent = Track("silent", 0.0, _DELTA, suite.adjacency, messages=0)
    revealed = replace(silent, name="revealed", messages=None, revealed=True)
    few = [replace(track, name=f"{track.name}-few", messages=FEW) for track in sending]
    tracks = [silent, *sending, revealed, *few]
    return {track.name: track for track in tracks}
