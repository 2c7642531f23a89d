"""What all privatizers share: they stand at the one door, randomise what leaves, and keep the accounts."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal

import numpy as np
from gymnasium.error import ResetNeeded

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.buffers import Buffers
from fedbandit_envs.checks import require_choice, require_seeds
from fedbandit_envs.claim import Claim
from fedbandit_envs.federation import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.sensitivity import Sensitivity
from fedbandit_envs.streams import Entropy, is_secret, noise_streams
from fedbandit_envs.wrapper import FederatedWrapper
from fedbandit_envs.wrappers.privacy.accounting.accountant import Accountant, Stand
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.announcement import with_variances
from fedbandit_envs.wrappers.privacy.budget import Budget, BudgetExhaustedError


class Privatizer(FederatedWrapper):
    """Randomises every release and accounts for it.

    A reset starts a fresh federation: agents, data and accounts are new, so what several episodes over the same
    people's data spend has to be added up by the user. Numbers are floating-point ones; guarantees are those of real
    numbers.

    Noise follows from the episode's seed unless ``noise_seed`` is given. Runs then repeat, and whoever knows or finds
    that seed can draw the noise again: the claim says ``repeatable``. With a ``noise_seed`` of 64 bits or more that
    nobody else knows it says ``secret``; such a seed is for one run only.

    Releases also say how noisy they are: beside each array ``name`` stands ``{name}_noise_variance``, of its shape, see
    :mod:`fedbandit_envs.wrappers.privacy.announcement`. Noise goes by what is public to the claims: scales (in
    procurement capacities, which are no agent's secret there) and the number of releases so far.
    """

    layer = "noise"

    # The most releases that an agent may have; None for no such limit.
    _releases: int | None

    def __init__(
        self,
        env: FederatedEnv,
        epsilon: float,
        budget: Budget,
        on_exhausted: Literal["raise", "silence"],
        noise_seed: Entropy | None,
    ) -> None:
        """Wraps ``env``.

        Args:
            env: The environment, not yet privatized.
            epsilon: Of the mechanism, > 0; infinity adds no noise.
            budget: How spending is measured and limited.
            on_exhausted: Whether a release that would exceed the budget is an error or does not happen silently.
            noise_seed: Entropy of its own for the noise; None lets it follow from the episode's seed.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: An argument is out of its range, or ``env`` is already privatized.
        """
        super().__init__(env)
        self.single_release_space = with_variances(env.single_release_space)
        if not epsilon > 0:
            raise ValueError(f"epsilon is {epsilon!r}; a number > 0 (infinity for no noise) is required")
        require_choice("on_exhausted", on_exhausted, ("raise", "silence"))
        require_seeds("noise_seed", noise_seed)
        self.budget = budget
        self._on_exhausted = on_exhausted
        self._noise_seed = noise_seed
        self._episodes = 0

    @property
    def accountant(self) -> Accountant:
        """The accounts of this episode, open to any composition and adjacency.

        Raises:
            gymnasium.error.ResetNeeded: ``reset`` has not been called.
        """
        if not hasattr(self, "_accountant"):
            raise ResetNeeded("a privatizer keeps accounts from the first reset on")
        return self._accountant

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode a seed, with fresh noise and empty accounts.

        Raises:
            ValueError: The environment's statistic cannot be privatized in this way.
        """
        reset = self.env.reset_batch(seeds)
        sensitivity = self.env.sensitivity()
        for name, array in sensitivity.scale.items():
            if not (np.isfinite(array).all() and (array >= 0).all() and array.any()):
                raise ValueError(
                    f"sensitivity of {name!r} lies between {array.min()} and {array.max()}; finite "
                    "numbers >= 0 that are not all 0 are required"
                )
        adjacencies = tuple(sensitivity.changes)
        self._generators = noise_streams(
            [int(seed) for seed in seeds], self.max_num_agents, self._noise_seed, self._episodes
        )
        self._episodes += 1
        # Whether the mechanism is one for this statistic comes first: the budget's adjacency may be the mechanism's.
        self._prepare(sensitivity)
        self._measured = adjacencies[0] if self.budget.adjacency is None else self.budget.adjacency
        require_choice("budget adjacency", self._measured, adjacencies)
        rows = (len(seeds), self.max_num_agents)
        stand = Stand(self._door, self._height, adjacencies, self._door.episode or 0)
        noise = "secret" if is_secret(self._noise_seed) else "repeatable"
        self._accountant = Accountant(*rows, stand, noise=noise)
        self._sent = np.zeros(rows, np.int64)
        self._told = Buffers({"epsilon_spent": np.zeros(rows)})
        self._epsilon_spent = self._told.arrays["epsilon_spent"]
        self._measured_at = -1
        self._door.guard = self._claim
        return reset._replace(info={**reset.info, **self._told.views})

    def step_batch(self, action: Array) -> BatchStep:
        """Plays one round; see :meth:`FederatedEnv.step_batch`.

        ``info["epsilon_spent"]``, float64 ``(replicas, agents)``, is what was spent until now, measured as
        :attr:`budget` says and infinite where that measure has no answer.
        """
        step = self.env.step_batch(action)
        if self._measured_at != self._door.opened:
            self._measure()
        return step._replace(info={**step.info, **self._told.views})

    def permit(self, senders: Array) -> Array:
        """Says who may send: with ``on_exhausted="silence"`` only those whose budget allows for it."""
        permitted = self.env.permit(senders)
        return permitted & self._can_afford(permitted) if self._on_exhausted == "silence" else permitted

    def _release(self, sends: Array) -> Arrays:
        """Lets randomised data out: increments as the environment names them, float64, and how noisy they are.

        Raises:
            BudgetExhaustedError: A sender's budget does not allow for it (``on_exhausted="raise"``). Nothing
                was released, by nobody.
        """
        if self._on_exhausted == "raise":
            self._refuse_exhausted(self._can_afford(sends))
        statistic = self.env._release(sends)
        randomised = {
            **self._randomise(statistic, sends, self._sent),
            **self._announce(statistic, sends, self._sent),
        }
        for event, times in self._plan(sends, self._sent).items():
            self._accountant.record(event, times)
        self._sent += sends
        if sends.any():
            # Now, since a transport around this releases after the round's information is made, which shows it.
            self._measure()
            self._measured_at = self._door.opened + 1
        if sends.all():
            return {name: array.astype(np.float64) for name, array in randomised.items()}
        return {
            name: np.where(sends.reshape(sends.shape + (1,) * (array.ndim - 2)), array, 0.0)
            for name, array in randomised.items()
        }

    def _refuse_exhausted(self, affordable: Array) -> None:
        if affordable.all():
            return
        replica, agent = (int(i) for i in np.argwhere(~affordable)[0])
        raise BudgetExhaustedError(
            f"{self.possible_agents[agent]} (replica {replica}) has spent epsilon "
            f"{self._epsilon_spent[replica, agent]:.4g} in {self._sent[replica, agent]} releases; "
            f"another one is beyond what is allowed: {self.budget}, releases={self._releases}"
        )

    def _measure(self) -> None:
        self._epsilon_spent[...] = self._spent(self._accountant)
        self._measured_at = self._door.opened

    def _claim(self) -> Claim:
        """Claims what was spent, measured as :attr:`budget` says; :attr:`accountant` answers the rest."""
        return self.accountant.epsilon(
            self.budget.delta, composition=self.budget.composition, adjacency=self._measured
        )

    @abstractmethod
    def _prepare(self, sensitivity: Sensitivity) -> None:
        """Prepares for an episode of data of this sensitivity; noise comes from ``_generators[replica][agent]``.

        Raises:
            ValueError: The mechanism cannot privatize a statistic of these names and sensitivities.
        """

    @abstractmethod
    def _randomise(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        """Randomises a release.

        Args:
            statistic: What the environment released.
            sends: Who sends, bool ``(replicas, agents)``; results of others are not used.
            index: How often each agent has released before, ``(replicas, agents)``.
        """

    @abstractmethod
    def _announce(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        """Says how noisy a release is.

        Args:
            statistic: What the environment released; nothing may be told of it but what leaves exactly.
            sends: Who sends, bool ``(replicas, agents)``; results of others are not used.
            index: How often each agent has released before, ``(replicas, agents)``.

        Returns:
            For each array, by the name of :func:`~fedbandit_envs.wrappers.privacy.announcement.variance_of`, by how
            much the variance of the noise on the agent's sums grows; its shape, float64.
        """

    @abstractmethod
    def _plan(self, sends: Array, index: Array) -> dict[Event, Array]:
        """Says what a release does to the accounts.

        Args:
            sends: Who sends, bool ``(replicas, agents)``.
            index: How often each agent has released before, ``(replicas, agents)``.

        Returns:
            For each event by how much its count changes, bool or integer ``(replicas, agents)``.
        """

    def _spent(self, accountant: Accountant) -> Array:
        return accountant.epsilon_by_agent(
            self.budget.delta, composition=self.budget.composition, adjacency=self._measured
        )

    def _can_afford(self, senders: Array) -> Array:
        """Says whose budget allows for one more release; those who do not send can afford it."""
        sends = np.asarray(senders, np.bool_)
        affordable = np.ones_like(sends) if self._releases is None else self._sent < self._releases
        if np.isfinite(self.budget.epsilon):
            # Sums of equal shares may exceed what was shared out by rounding.
            spent = self._spent(self._accountant.after(self._plan(sends & affordable, self._sent)))
            affordable &= spent <= self.budget.epsilon * (1 + 1e-12)
        return affordable | ~sends
