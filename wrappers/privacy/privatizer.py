"""The wrapper that adds noise to releases by a mechanism and counts their privacy loss; its budget and its clip."""

import os
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args
from weakref import WeakSet

import numpy as np
from gymnasium.error import ResetNeeded

from fedbandit_envs.basics.arrays import Array, Arrays, Buffers, zeros
from fedbandit_envs.basics.checks import (
    require_choice,
    require_epsilon,
    require_number,
    require_seeds,
    require_size,
)
from fedbandit_envs.basics.entry_points import make
from fedbandit_envs.core.federated_env import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.core.privacy import AGENT, Adjacency, Claim, Composition, Sensitivity, independent
from fedbandit_envs.core.wrapper import FederatedWrapper, layers
from fedbandit_envs.randomness.streams import Entropy, is_secret, noise_names, noise_streams
from fedbandit_envs.wrappers.privacy.accounting.event import Accountant, Event
from fedbandit_envs.wrappers.privacy.mechanisms import MECHANISMS
from fedbandit_envs.wrappers.privacy.mechanisms.additive import Mechanism
from fedbandit_envs.wrappers.privacy.stage_claims import Shares, stage_claims
from fedbandit_envs.wrappers.transport.schedule import Combined, Stage


class BudgetExhaustedError(RuntimeError):
    """Raised when a release would exceed an agent's privacy budget; the release then does not happen for any agent."""


@dataclass(frozen=True)
class Budget:
    """A privacy budget: how the epsilon that an agent has spent is measured, and the most that it may spend.

    Example:
        >>> from fedbandit_envs.procurement_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import GaussianPrivatizer
        >>> from fedbandit_envs.wrappers.privacy.privatizer import Budget
        >>> budget = Budget(epsilon=2.0, delta=1e-5, composition="exact")
        >>> env = GaussianPrivatizer(parallel_env(), epsilon_per_release=0.9, budget=budget)

    Attributes:
        epsilon: The most that any agent may spend in an episode, > 0; with infinity spending is measured, not limited.
        delta: The delta at which epsilon is measured, in [0, 1). None takes that of the mechanism
            (:attr:`.Mechanism.total_delta`), and where it has none the sum of the deltas of all releases; a finite
            ``epsilon`` needs a number.
        composition: How releases are composed; see :mod:`fedbandit_envs.wrappers.privacy.accounting.event`. None takes
            ``exact`` for a mechanism with a delta of all releases, and ``basic`` for others.
        adjacency: The neighbouring histories that are protected, one that the environment names; None for that of the
            mechanism, or the environment's first.
    """

    epsilon: float = np.inf
    delta: float | None = None
    composition: Composition | None = None
    adjacency: Adjacency | None = None

    def __post_init__(self) -> None:
        """Checks the attributes.

        Raises:
            TypeError: ``epsilon`` or ``delta`` is no number.
            ValueError: An attribute is out of its range, or ``epsilon`` is finite and ``delta`` None.
        """
        require_epsilon(self.epsilon, "budget epsilon")
        if self.delta is not None:
            require_number("budget delta", self.delta, 0, 1, open_above=True)
        if self.delta is None and np.isfinite(self.epsilon):
            raise ValueError("budget delta is None; a number in [0, 1) is required where epsilon is limited")
        require_choice("budget composition", self.composition, (None, *get_args(Composition)))


GivenBudget = Budget | Mapping[str, Any] | None
"""A budget, or a mapping of its arguments; None takes their defaults."""


class Clip(FederatedWrapper):
    """A wrapper that scales releases down to a Euclidean norm of at most C, directly inside of a privatizer.

    A privatizer with ``clip=C`` puts it around the environment; alone it gives no privacy, since it adds no noise. The
    norm is that of all numbers in a release together. What is cut off is lost. Releases within the bound stay as they
    are, to the bit.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import Clip
        >>> env = Clip(parallel_env(num_agents=2), clip=3.0)
        >>> _ = env.reset_batch([0])
        >>> for _ in range(10):
        ...     step = env.step_batch(np.zeros((1, 2), np.int64))
        >>> released = env.release(np.array([[True, False]]))
        >>> norm = np.sqrt(sum(np.sum(array[0, 0] ** 2) for array in released.values()))
        >>> round(float(norm), 6), step.info["clipped_releases"].tolist()
        (3.0, [[1, 0]])
    """

    layer = "data"
    # Empty, so that the registry of wrappers skips this class: only privatizers use it.
    examples = ()

    def __init__(self, env: FederatedEnv, clip: float) -> None:
        """Wraps ``env``.

        Args:
            env: The environment, without a privatizer.
            clip: The largest norm of a release, a number in [1e-60, 1e60].

        Raises:
            TypeError: ``clip`` is no number.
            ValueError: It is out of its range.
        """
        super().__init__(env)
        self._clip = require_size("clip", clip)

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode for each seed; see :meth:`FederatedEnv.reset_batch`."""
        reset = self.env.reset_batch(seeds)
        self._shown = Buffers({"clipped_releases": self._ledger.clipped_releases})
        return reset._replace(info={**reset.info, **self._shown.views})

    def step_batch(self, action: Any) -> BatchStep:
        """Plays one round; see :meth:`FederatedEnv.step_batch`.

        ``info["clipped_releases"]``, int64 ``(replicas, agents)``, counts the releases after this round that were
        scaled down. It depends on raw data and is for the agent itself; nobody else may see it.
        """
        step = self.env.step_batch(action)
        self._ledger.clipped_releases.fill(0)
        return step._replace(info={**step.info, **self._shown.views})

    def _release(self, sends: Array) -> Arrays:
        return self._ledger.clipped(self.env._release(sends), sends, self._clip)

    def sensitivity(self) -> Sensitivity:
        """Returns the sensitivity of clipped releases, see :meth:`.Sensitivity.clipped`.

        Every released number has the scale C, the clip. Another history of an agent, however different, moves each of
        its releases by a Euclidean norm of at most 2 C; that is the adjacency ``agent``.
        """
        return self.env.sensitivity().clipped(self._clip)


OnExhausted = Literal["raise", "silence"]

_ORIGINALS: WeakSet["Privatizer"] = WeakSet()


# Another process is about to have copies of all privatizers, so that their noise becomes repeatable.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=lambda: [original.__getstate__() for original in list(_ORIGINALS)])


class Privatizer(FederatedWrapper):
    """A wrapper that adds noise to every release by a mechanism and records the release's privacy loss.

    A reset starts a new federation: its agents, data and privacy accounts are new. If several episodes use the data of
    the same people, users have to add up the episodes' :attr:`accountant` objects. Guarantees are proven for real
    numbers, while noise is computed in floating-point arithmetic.

    Unless ``noise_seed`` is given, the noise follows from the episode's seed. Then runs can be repeated, and whoever
    knows or guesses that seed can draw the noise again: the claim's ``noise`` is ``repeatable``. With a ``noise_seed``
    of 64 bits or more, which nobody else may know, it is ``secret``; such a seed must be used for one run only. A copy
    of the privatizer (``copy``, ``pickle``) has the seed as well and draws the same noise in this and all later
    episodes. So after copying, the claims of both are ``repeatable`` for good.

    Releases also contain the variance of their noise: for each array ``name`` an array ``{name}_noise_variance`` of the
    same shape (:func:`fedbandit_envs.core.privacy.variance_of`). The variance depends only on quantities that claims
    treat as public: sensitivities (in procurement they follow from capacities, which are public there) and the number
    of releases so far.

    If the transport around it has a stage (:mod:`fedbandit_envs.wrappers.transport.schedule`), the privatizer makes the
    noise of that stage, whose scale is the same for all agents. For an ``aggregator`` each agent adds its share of one
    noise, if such noises add up (:attr:`.Event.adds_up`, as Gaussian ones do), and the mechanism's arguments are about
    a sum of ``honest`` shares; an epsilon of all releases of independent noise is met by the shares alone that a fellow
    agent does not know. Other noise is not shared. For a ``server`` agents release without noise, and the
    mechanism adds one noise to their sum. Then the accounts are those of each agent's own share, or of the server's
    noise. Budgets and ``epsilon_spent`` are measured for a fellow agent as the observer, of sums with as few shares as
    the stage lets pass (for correlated noise under the adjacency ``agent``: with the agent's own share alone, since any
    other agent may be absent once); under a shuffler for everybody.

    Example:
        >>> from fedbandit_envs.procurement_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import Privatizer
        >>> from fedbandit_envs.wrappers.privacy.mechanisms.additive import Laplace
        >>> env = Privatizer(parallel_env(num_agents=2), Laplace(epsilon=1.0, releases=5))
        >>> _ = env.reset(seed=0)
        >>> _ = env.release([[True, True]])
        >>> round(env.privacy().epsilon, 6)
        0.2

    Attributes:
        mechanism: The mechanism that adds the noise; a copy of the argument.
        budget: How the epsilon that agents have spent is measured, and how much they may spend.
    """

    layer = "noise"
    # Empty, so that tests and the registry of wrappers skip this class and use its subclasses, such as
    # GaussianPrivatizer, which need no mechanism as an argument.
    examples: ClassVar[Sequence[Mapping[str, Any]]] = ()
    _accountant: Accountant

    def __init__(
        self,
        env: FederatedEnv,
        mechanism: Mechanism | str | Mapping[str, Any],
        budget: GivenBudget = None,
        on_exhausted: OnExhausted = "raise",
        noise_seed: Entropy | None = None,
        clip: float | None = None,
    ) -> None:
        """Wraps ``env``.

        Args:
            env: The environment, not yet privatized.
            mechanism: The mechanism that adds noise to releases. It is copied, so that one object may be given to
                several privatizers. Instead of an object, its name in
                :data:`~fedbandit_envs.wrappers.privacy.mechanisms.MECHANISMS` or ``"module:Class"``, or a
                mapping of this name and arguments: ``{"name": "laplace", "epsilon": 1.0, "releases": 5}``.
            budget: How the epsilon that agents have spent is measured and limited: a :class:`Budget` or a mapping of
                its arguments. By default it is measured as the mechanism's own epsilon is, without a limit.
            on_exhausted: What happens to a release that would exceed the budget: ``"raise"`` raises an error,
                ``"silence"`` lets the agent not send (:meth:`allowed_senders` leaves it out).
            noise_seed: Seed of the noise: a non-negative integer of any size, or a sequence of them. None derives the
                noise from the episode's seed.
            clip: The largest Euclidean norm C of a release, > 0 (:class:`Clip`), to which the noise is then in
                proportion instead of the environment's sensitivities. Claims can then be made under the adjacency
                ``agent``. None clips nothing.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: An argument is out of its range, ``env`` is already privatized, or the mechanism cannot
                randomise clipped releases.
        """
        super().__init__(env if clip is None else Clip(env, clip))
        require_choice("on_exhausted", on_exhausted, ("raise", "silence"))
        require_seeds("noise_seed", noise_seed)
        self.budget = budget if isinstance(budget, Budget) else Budget(**(budget or {}))
        self.mechanism: Mechanism = deepcopy(make("mechanism", mechanism, MECHANISMS, Mechanism))
        if not self.mechanism.takes_clip and any(isinstance(level, Clip) for level in layers(self.env)):
            raise ValueError(
                f"clip is {clip!r} or env has Clip, and mechanism is a {type(self.mechanism).__name__}, which does not "
                "randomise clipped releases (Mechanism.takes_clip); None, and no Clip, is required"
            )
        if self.mechanism.adjacency is None and not self.env.message_bits:
            self.mechanism.adjacency = self.budget.adjacency
        self.mechanism.prepare(self.env)
        self.single_release_space = self.mechanism.release_space(env.single_release_space)
        self._on_exhausted = on_exhausted
        self._noise_seed = noise_seed
        self._episodes = 0
        self._copied = False
        _ORIGINALS.add(self)
        self._stage: Stage | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state for a copy; from here on claims say that noise is repeatable, since both draw the same."""
        self.__setstate__(self.__dict__)
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restores a copy, whose claims say that noise is repeatable.

        So must those of its accountant, which may have been copied before the original's claims became ``repeatable``.
        """
        self.__dict__.update(state)
        self._copied = True
        if "_accountant" in state:
            self._accountant._noise = "repeatable"

    @property
    def accountant(self) -> Accountant:
        """The accountant of this episode, which returns epsilon by any composition and adjacency.

        Raises:
            gymnasium.error.ResetNeeded: ``reset`` has not been called.
        """
        if not hasattr(self, "_accountant"):
            raise ResetNeeded("a privatizer keeps accounts from its first reset on; call reset first")
        return self._accountant

    def reset_batch(self, seeds: Sequence[int], stage: Stage | None = None) -> BatchReset:
        """Starts one episode for each seed, with new noise and without recorded releases.

        Args:
            seeds: The seeds of the episodes.
            stage: The stage of the transport around this wrapper, which passes it in; None for no stage. In an episode
                with a stage the transport passes each synchronisation to :meth:`synchronise`.

        Raises:
            ValueError: The mechanism cannot randomise the environment's statistic.
        """
        ended = self._accountant.unrecorded() if hasattr(self, "_accountant") else None
        reset = self.env.reset_batch(seeds)
        if ended is not None:
            self._accountant.close(ended)
            # If the rest of the reset fails, nothing can be released on the books of the last episode.
            del self._accountant
        sensitivity = self.env.sensitivity()
        for name, array in sensitivity.scale.items():
            if not (np.isfinite(array).all() and (array >= 0).all() and array.any()):
                authored = " (authored message without a clip)" if self.env.message_bits else ""
                raise ValueError(
                    f"sensitivity of {name!r} lies between {array.min()} and {array.max()}{authored}; finite "
                    "numbers >= 0 that are not all 0 are required"
                )
        self._stage, self._shares_each = stage, 1
        central = stage is not None and stage.trust == "server"
        rows, own_seeds = (len(seeds), self.max_num_agents), [int(seed) for seed in seeds]
        streams = noise_streams(own_seeds, 1 if central else rows[1], self._noise_seed, self._episodes)
        drawn = noise_names(own_seeds, self._noise_seed, self._episodes)
        self._episodes += 1
        # The mechanism is started before the budget's adjacency is checked: an unsuitable statistic should be the
        # error, and not the adjacency, which may have been chosen by the mechanism's privatizer.
        generators = [generator for replica in streams for generator in replica]
        own = sensitivity if stage is None else stage.common(sensitivity)
        self.mechanism.start(own, self.max_cycles, generators)
        # Correlated noise of agents that do not send is kept here until they send again, so that the variances which
        # releases announce still add up to the variance of the sum of releases.
        self._kept = dict[str, Array]()
        if stage is not None:
            self._shares = Shares(rows)
        if stage is not None and stage.trust == "aggregator":
            first = self.mechanism.events(np.ones(rows, np.bool_), np.zeros(rows, np.int64))
            if all(event.adds_up for event in first):
                self._shares_each = stage.honest
                if self.mechanism.total_delta is not None and not self.mechanism.correlated:
                    # The epsilon of all releases is met against a fellow agent, who knows shares, at least its own.
                    self._shares_each = max(stage.honest - 1 - stage.colluders, 1)
                self.mechanism.start_share(own, self.max_cycles, generators, self._shares_each)
        self.single_release_space = self.mechanism.release_space(self.env.single_release_space)
        self._correlated = self.mechanism.correlated or not independent(self.single_release_space)
        self._measured, as_agent = self.measured(sensitivity)
        noise = "secret" if is_secret(self._noise_seed) and not self._copied else "repeatable"
        self._accountant: Accountant = Accountant(
            *rows, self._ledger, self._height, tuple(sensitivity.changes), noise, drawn, as_agent
        )
        self._accountant.trust = "server" if central else "local"
        # How often each agent has released before; with a stage, how often any agent of its replica has.
        self._index = np.zeros(rows, np.int64)
        self._shown = Buffers({"epsilon_spent": np.zeros(rows)})
        self._epsilon_spent = self._shown.arrays["epsilon_spent"]
        self._measured_at = -1
        self._ledger.noise = self
        return reset._replace(info={**reset.info, **self._shown.views})

    def measured(self, sensitivity: Sensitivity) -> tuple[dict[str, Any], dict[Adjacency, str]]:
        """Returns how epsilon is measured, and which adjacencies are measured as ``agent``, for an accountant.

        Args:
            sensitivity: The sensitivity of releases without noise.

        Returns:
            Delta, composition and adjacency, as :meth:`.Accountant.epsilon` takes them; and reasons by adjacency.

        Raises:
            ValueError: The environment does not name the adjacency.
        """
        adjacencies = tuple(sensitivity.changes)
        adjacency = self.budget.adjacency or self.mechanism.adjacency or adjacencies[0]
        why = "one event may change all later rounds" if self.stateful else ""
        if self.env.message_bits:
            why = "authored messages: what an event changes in them is unknown"
        as_agent = dict.fromkeys(self.unwrapped.sensitivity().changes, why) if why else {}
        require_choice("budget adjacency", adjacency, (*adjacencies, *as_agent))
        delta = self.mechanism.total_delta
        return {
            "delta": delta if self.budget.delta is None else self.budget.delta,
            "composition": self.budget.composition or ("basic" if delta is None else "exact"),
            "adjacency": adjacency,
        }, as_agent

    def step_batch(self, action: Array) -> BatchStep:
        """Plays one round; see :meth:`FederatedEnv.step_batch`.

        ``info["epsilon_spent"]``, float64 ``(replicas, agents)``, is the epsilon of each agent's releases so far,
        measured as :attr:`budget` says; it is infinite where that composition gives none.
        """
        observation, reward, truncated, info = self.env.step_batch(action)
        self.mechanism.observe(observation)
        if self._measured_at != self._ledger.num_releases:
            self._epsilon_spent[...] = self._spent(self._accountant)
            self._measured_at = self._ledger.num_releases
        return BatchStep(observation, reward, truncated, {**info, **self._shown.views})

    def allowed_senders(self, senders: Array) -> Array:
        """Returns which of the senders may send: with ``on_exhausted="silence"``, those with enough budget left."""
        allowed = self.env.allowed_senders(senders)
        return allowed & ~self._exhausted(allowed) if self._on_exhausted == "silence" else allowed

    def _release(self, sends: Array) -> Arrays:
        """Returns the environment's release with noise, float64 arrays by name, and the variances of the noise.

        Raises:
            BudgetExhaustedError: The release would exceed a sender's budget (with ``on_exhausted="raise"``); then no
                agent has released anything.
        """
        if self._on_exhausted == "raise" and np.count_nonzero(exhausted := self._exhausted(sends)):
            replica, agent = (int(i) for i in np.argwhere(exhausted)[0])
            raise BudgetExhaustedError(
                f"releases is {self.mechanism.max_releases} and the budget {self.budget}; "
                f"{self.possible_agents[agent]} (replica {replica}) has spent epsilon "
                f"{self._epsilon_spent[replica, agent]:.4g} in {self._index[replica, agent]} releases, and another one "
                "is beyond that; a plan of all releases, such as the channel's schedule, a larger budget, or "
                "on_exhausted='silence' is required"
            )
        statistic = self.env._release(sends)
        counted = sends
        if self._stage is not None and self._correlated:
            counted = np.repeat(sends.any(axis=1, keepdims=True), sends.shape[1], axis=1)
            self._accountant.absent += counted & ~sends
        if self._stage is not None and self._stage.trust == "server":
            randomised = {**zeros(self.single_release_space, sends.shape), **statistic}
        else:
            randomised = self.mechanism.randomise(statistic, counted, self._index)
            if counted is not sends:
                absent = counted & ~sends
                for name, array in randomised.items():
                    kept = self._kept.setdefault(name, np.zeros(array.shape))
                    array[sends] += kept[sends]
                    kept[sends] = 0.0
                    kept[absent] += array[absent]
        for event, times in self._events(counted).items():
            self._accountant.record(event, times)
        if self._stage is None:
            self._index += sends.astype(np.int64)
        else:
            self._shares.times += sends.any(axis=1)
            self._index[...] = self._shares.times[:, np.newaxis]
        if senders := np.count_nonzero(sends):
            # Epsilon is measured now: a transport outside of this wrapper releases after step_batch has made the
            # round's information, which shows the buffer of `epsilon_spent`. The ledger counts this release only after
            # this method returns, hence + 1.
            self._epsilon_spent[...] = self._spent(self._accountant)
            self._measured_at = self._ledger.num_releases + 1
        for array in () if senders == sends.size else randomised.values():
            array[~sends] = 0.0
        return randomised

    def _events(self, sends: Array) -> dict[Event, Array]:
        """Returns the events of each agent's own noise in its next release, where the mechanism's are of a whole."""
        events = self.mechanism.events(sends, self._index)
        if self._shares_each == 1:
            return events
        return {event.rescaled(self._shares_each): times for event, times in events.items()}

    def synchronise(self, combined: Combined, senders: Array) -> Arrays:
        """Counts a synchronisation, and returns the sums that leave the stage, to which a server adds its noise.

        The transport calls it once after each release.

        Args:
            combined: What leaves the stage.
            senders: Which agents have released data for it, bool ``(replicas, agents)``.
        """
        synchronised = np.any(senders, axis=1)
        self._shares.pass_on(synchronised, combined)
        if self._stage is None or self._stage.trust != "server":
            return combined.total
        sums = {name: combined.total[name][:, np.newaxis] for name in self.env.single_release_space}
        index = (self._shares.times - 1)[:, np.newaxis]
        noisy = self.mechanism.randomise(sums, synchronised[:, np.newaxis], index)
        return {name: array[:, 0] for name, array in noisy.items()}

    def _spent(self, accounts: Accountant) -> Array:
        """Returns the epsilon of each agent, measured as :attr:`budget` says, ``(replicas, agents)``."""
        if self._shares_each > 1 and self._stage is not None:
            unknown = max(self._stage.honest - 1 - self._stage.colluders, 1)
            if self._correlated and accounts.covering(self._measured["adjacency"]) == AGENT:
                # Shares of agents that are absent from a single sum do not count, and any other agent may be.
                unknown = 1
            accounts = accounts.rescaled(np.array(1 / unknown))
        return accounts.epsilon_by_agent(**self._measured)

    def claims(self, **asked: Any) -> list[Claim]:
        """Returns the privacy claims for the releases so far against every observer, those that trust least first.

        Without a stage in the transport it is one claim, which holds against everybody. With a stage there is one for
        each observer; see :meth:`.FederatedEnv.privacy_claims`.

        Args:
            **asked: Delta, composition and adjacency of the claims, as :meth:`.Accountant.epsilon` takes them, if they
                are not those of :attr:`budget`.

        Raises:
            gymnasium.error.ResetNeeded: ``reset`` has not been called.
            ValueError: A name is unknown, or delta is out of its range.
        """
        accounts = self.accountant
        asked = {**self._measured, **asked}
        if self._stage is None:
            return [accounts.epsilon(**asked)]
        return stage_claims(self._stage, accounts, self._shares, self._correlated, **asked)

    def _exhausted(self, senders: Array) -> Array:
        """Returns which of the senders cannot afford their release, bool ``(replicas, agents)``.

        Raises:
            gymnasium.error.ResetNeeded: ``reset`` has not been called, on the privatizer itself.
        """
        accountant, sends = self.accountant, np.asarray(senders, np.bool_)
        most = self.mechanism.max_releases
        exhausted = np.zeros(sends.shape, np.bool_) if most is None else sends & (self._index >= most)
        if self.budget.epsilon < np.inf:
            # The comparison below has a tolerance, since rounding may let the sum of equal shares exceed the budget.
            spent = self._spent(accountant.after(self._events(sends & ~exhausted)))
            exhausted |= sends & ((spent > self.budget.epsilon * (1 + 1e-12)) | accountant.unrecorded()[0])
        return exhausted
