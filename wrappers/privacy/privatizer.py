"""The wrapper that adds noise to releases by a mechanism and counts their privacy loss."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium.error import ResetNeeded

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_choice, require_seeds
from fedbandit_envs.basics.config import make
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.buffers import Buffers
from fedbandit_envs.core.claim import Claim
from fedbandit_envs.core.federated_env import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.core.wrapper import FederatedWrapper
from fedbandit_envs.randomness.streams import Entropy, is_secret, noise_names, noise_streams
from fedbandit_envs.wrappers.privacy.accounting.accountant import Accountant
from fedbandit_envs.wrappers.privacy.budget import Budget, BudgetExhaustedError, GivenBudget
from fedbandit_envs.wrappers.privacy.clip import Clip
from fedbandit_envs.wrappers.privacy.mechanisms.mechanism import Mechanism

OnExhausted = Literal["raise", "silence"]


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
    same shape (:mod:`fedbandit_envs.core.noise_variance`). The variance depends only on quantities that claims treat as
    public: sensitivities (in procurement they follow from capacities, which are public there) and the number of
    releases so far.

    Example:
        >>> from fedbandit_envs.procurement_v0 import parallel_env
        >>> from fedbandit_envs.wrappers.privacy.mechanisms.laplace import Laplace
        >>> from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
        >>> env = Privatizer(parallel_env(num_agents=2), Laplace(epsilon=1.0, releases=5))
        >>> _ = env.reset(seed=0)
        >>> _ = env.release([[True, True]])
        >>> round(env.privacy().epsilon, 6)  # twice 1/5: quantity and outcome change together
        0.4

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
                :data:`~fedbandit_envs.wrappers.privacy.mechanisms.registry.MECHANISMS` or ``"module:Class"``, or a
                mapping of this name and arguments: ``{"name": "laplace", "epsilon": 1.0}``.
            budget: How the epsilon that agents have spent is measured and limited: a :class:`Budget` or a mapping of
                its arguments. By default the epsilons of all releases are added up (composition ``basic``) under the
                environment's first adjacency, without a limit.
            on_exhausted: What happens to a release that would exceed the budget: ``"raise"`` raises an error,
                ``"silence"`` lets the agent not send (:meth:`allowed_senders` leaves it out).
            noise_seed: Seed of the noise: a non-negative integer of any size, or a sequence of them. None derives the
                noise from the episode's seed.
            clip: The largest Euclidean norm C of a release, of all its numbers together, > 0. Larger releases are
                scaled down to it before noise is added (:class:`~fedbandit_envs.wrappers.privacy.clip.Clip`), and the
                noise is in proportion to C instead of the environment's sensitivities. Claims can then be made under
                the adjacency ``agent``. None clips nothing.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: An argument is out of its range, ``env`` is already privatized, or the mechanism cannot
                randomise clipped releases.
        """
        super().__init__(env if clip is None else Clip(env, clip))
        require_choice("on_exhausted", on_exhausted, ("raise", "silence"))
        require_seeds("noise_seed", noise_seed)
        self.budget = Budget.of(budget)
        # The registry is imported here by its name and not at the top of this file: it imports the mechanisms' modules,
        # which import this one.
        known = resolve("fedbandit_envs.wrappers.privacy.mechanisms.registry:MECHANISMS")
        self.mechanism: Mechanism = deepcopy(make("mechanism", mechanism, known, Mechanism))
        if clip is not None and not self.mechanism.takes_clip:
            raise ValueError(
                f"clip is {clip!r} and mechanism a {type(self.mechanism).__name__}, which does not randomise clipped "
                "releases (Mechanism.takes_clip); None is required"
            )
        self.mechanism.prepare(self.env)
        self.single_release_space = self.mechanism.release_space(env.single_release_space)
        self._on_exhausted = on_exhausted
        self._noise_seed = noise_seed
        self._episodes = 0
        self._copied = False

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state for a copy; from here on claims say that noise is repeatable, since both draw the same."""
        self._lose_secrecy()
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restores a copy, whose claims say that noise is repeatable.

        The accountant needs this again: it may have been copied before the original's claims became ``repeatable``.
        """
        self.__dict__.update(state)
        self._lose_secrecy()

    def _lose_secrecy(self) -> None:
        self._copied = True
        if "_accountant" in self.__dict__:
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

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode for each seed, with new noise and without recorded releases.

        Raises:
            ValueError: The mechanism cannot randomise the environment's statistic.
        """
        ended = self._accountant.unrecorded() if hasattr(self, "_accountant") else None
        reset = self.env.reset_batch(seeds)
        if ended is not None:
            self._accountant.close(ended)
        sensitivity = self.env.sensitivity()
        for name, array in sensitivity.scale.items():
            if not (np.isfinite(array).all() and (array >= 0).all() and array.any()):
                raise ValueError(
                    f"sensitivity of {name!r} lies between {array.min()} and {array.max()}; finite "
                    "numbers >= 0 that are not all 0 are required"
                )
        streams = noise_streams(
            [int(seed) for seed in seeds], self.max_num_agents, self._noise_seed, self._episodes
        )
        drawn = noise_names([int(seed) for seed in seeds], self._noise_seed, self._episodes)
        self._episodes += 1
        # The mechanism is started before the budget's adjacency is checked: an unsuitable statistic should be the
        # error, and not the adjacency, which may have been chosen by the mechanism's privatizer.
        self.mechanism.start(
            sensitivity, self.env.max_cycles, [generator for replica in streams for generator in replica]
        )
        self.single_release_space = self.mechanism.release_space(self.env.single_release_space)
        adjacencies = tuple(sensitivity.changes)
        adjacency = adjacencies[0] if self.budget.adjacency is None else self.budget.adjacency
        require_choice("budget adjacency", adjacency, adjacencies)
        self._measured: dict[str, Any] = {
            "delta": self.budget.delta,
            "composition": self.budget.composition,
            "adjacency": adjacency,
        }
        rows = (len(seeds), self.max_num_agents)
        noise = "secret" if is_secret(self._noise_seed) and not self._copied else "repeatable"
        self._accountant = Accountant(*rows, self._ledger, self._height, adjacencies, noise, drawn)
        self._sent = np.zeros(rows, np.int64)
        self._shown = Buffers({"epsilon_spent": np.zeros(rows)})
        self._epsilon_spent = self._shown.arrays["epsilon_spent"]
        self._measured_at = -1
        self._ledger.claim_fn = self._claim
        return reset._replace(info={**reset.info, **self._shown.views})

    def step_batch(self, action: Array) -> BatchStep:
        """Plays one round; see :meth:`FederatedEnv.step_batch`.

        ``info["epsilon_spent"]``, float64 ``(replicas, agents)``, is the epsilon of each agent's releases so far,
        measured as :attr:`budget` says; it is infinite where that composition gives none.
        """
        step = self.env.step_batch(action)
        if self._measured_at != self._ledger.num_releases:
            self._measure()
            self._measured_at = self._ledger.num_releases
        return step._replace(info={**step.info, **self._shown.views})

    def allowed_senders(self, senders: Array) -> Array:
        """Returns which of the senders may send: with ``on_exhausted="silence"``, those with enough budget left."""
        allowed = self.env.allowed_senders(senders)
        return allowed & self._can_afford(allowed) if self._on_exhausted == "silence" else allowed

    def _release(self, sends: Array) -> Arrays:
        """Returns the environment's release with noise, float64 arrays by name, and the variances of the noise.

        Raises:
            BudgetExhaustedError: The release would exceed a sender's budget (with ``on_exhausted="raise"``); then no
                agent has released anything.
        """
        if self._on_exhausted == "raise" and not (affordable := self._can_afford(sends)).all():
            replica, agent = (int(i) for i in np.argwhere(~affordable)[0])
            raise BudgetExhaustedError(
                f"{self.possible_agents[agent]} (replica {replica}) has spent epsilon "
                f"{self._epsilon_spent[replica, agent]:.4g} in {self._sent[replica, agent]} releases; "
                f"another one is beyond what is allowed: {self.budget}, releases={self.mechanism.max_releases}"
            )
        statistic = self.env._release(sends)
        randomised = self.mechanism.randomise(statistic, sends, self._sent)
        for event, times in self.mechanism.events(sends, self._sent).items():
            self._accountant.record(event, times)
        self._sent += sends
        if sends.any():
            # Epsilon is measured now: a transport outside of this wrapper releases after step_batch has made the
            # round's information, which shows the buffer of `epsilon_spent`. The ledger counts this release only after
            # this method returns, hence + 1.
            self._measure()
            self._measured_at = self._ledger.num_releases + 1
        if sends.all():
            return {name: array.astype(np.float64) for name, array in randomised.items()}
        return {
            name: np.where(sends.reshape(sends.shape + (1,) * (array.ndim - 2)), array, 0.0)
            for name, array in randomised.items()
        }

    def _measure(self) -> None:
        self._epsilon_spent[...] = self._accountant.epsilon_by_agent(**self._measured)

    def _claim(self) -> Claim:
        """Returns the privacy claim for the releases so far, measured as :attr:`budget` says."""
        return self.accountant.epsilon(**self._measured)

    def _can_afford(self, senders: Array) -> Array:
        """Returns whether each agent can afford its release, bool ``(replicas, agents)``; true if it does not send.

        Raises:
            gymnasium.error.ResetNeeded: ``reset`` has not been called, on the privatizer itself.
        """
        accountant, sends = self.accountant, np.asarray(senders, np.bool_)
        most = self.mechanism.max_releases
        affordable = np.ones_like(sends) if most is None else self._sent < most
        if np.isfinite(self.budget.epsilon):
            # The comparison below has a tolerance, since rounding may let the sum of equal shares exceed the budget.
            events = self.mechanism.events(sends & affordable, self._sent)
            spent = accountant.after(events).epsilon_by_agent(**self._measured)
            affordable &= spent <= self.budget.epsilon * (1 + 1e-12)
        return affordable | ~sends
