"""What all privatizers share: they stand at the one door, randomise what leaves, and keep the accounts."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

import numpy as np
from gymnasium.error import ResetNeeded

from fedbandit_envs.claim import Adjacency, Claim
from fedbandit_envs.federation import Array, Arrays, BatchReset, BatchStep, FederatedEnv, FederatedWrapper
from fedbandit_envs.sensitivity import Sensitivity
from fedbandit_envs.wrappers.privacy.accounting.accountant import Accountant
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.budget import Budget, BudgetExhaustedError
from fedbandit_envs.wrappers.transport.channel import Channel


class Privatizer(FederatedWrapper, ABC):
    """Randomises every release and accounts for it.

    A reset starts a fresh federation: agents, data and accounts are new, so what several episodes over the same
    people's data spend has to be added up by the user. Numbers are floating-point ones; guarantees are those of real
    numbers.
    """

    # The most releases that an agent may have; None for no such limit.
    _releases: int | None

    def __init__(
        self,
        env: FederatedEnv,
        epsilon: float,
        budget: Budget,
        on_exhausted: Literal["raise", "silence"],
    ) -> None:
        """Wraps ``env``; see the mechanisms for the arguments."""
        super().__init__(env)
        inner = env
        while isinstance(inner, FederatedWrapper):
            if isinstance(inner, Privatizer):
                raise ValueError(
                    f"env is already privatized, by {type(inner).__name__}; one privatizer is allowed"
                )
            if isinstance(inner, Channel):
                raise ValueError(
                    "env has a Channel, which sends without noise; the privatizer must be inside it"
                )
            inner = inner.env
        if not epsilon > 0:
            raise ValueError(f"epsilon is {epsilon!r}; a number > 0 (infinity for no noise) is required")
        if on_exhausted not in ("raise", "silence"):
            raise ValueError(f"on_exhausted is {on_exhausted!r}; 'raise' or 'silence' is required")
        self.budget = budget
        self._on_exhausted = on_exhausted

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
        self._prepare(sensitivity, seeds)
        self._accountant = Accountant(len(seeds), self.max_num_agents)
        self._sent = np.zeros((len(seeds), self.max_num_agents), np.int64)
        self._epsilon_spent = np.zeros(self._sent.shape)
        named: Adjacency = next(iter(sensitivity.changes))
        self._measured = named if self.budget.adjacency is None else self.budget.adjacency
        return reset

    def step_batch(self, action: Array) -> BatchStep:
        """Plays one round; see :meth:`FederatedEnv.step_batch`.

        ``info["epsilon_spent"]``, float64 ``(replicas, agents)``, is what was spent until now, measured as
        :attr:`budget` says and infinite where that measure has no answer.
        """
        step = self.env.step_batch(action)
        return step._replace(info={**step.info, "epsilon_spent": self._epsilon_spent})

    def permit(self, senders: Array) -> Array:
        """Says who may send: with ``on_exhausted="silence"`` only those whose budget allows for it."""
        permitted = self.env.permit(senders)
        return permitted & self._can_afford(permitted) if self._on_exhausted == "silence" else permitted

    def release(self, senders: Array) -> Arrays:
        """Lets randomised data leave agents; see :meth:`FederatedEnv.release`.

        Returns:
            Increments as the environment names them, float64, zero for those who did not send.

        Raises:
            BudgetExhaustedError: A sender's budget does not allow for it (``on_exhausted="raise"``). Nothing
                was released, by nobody.
            ValueError: ``senders`` has the wrong shape.
            gymnasium.error.ResetNeeded: ``reset`` has not been called.
        """
        sends = self._checked(senders)
        affordable = self._can_afford(sends)
        if self._on_exhausted == "raise" and not affordable.all():
            replica, agent = (int(i) for i in np.argwhere(~affordable)[0])
            limits = f"{self.budget}, releases={self._releases}"
            raise BudgetExhaustedError(
                f"{self.possible_agents[agent]} (replica {replica}) has spent epsilon "
                f"{self._epsilon_spent[replica, agent]:.4g} in {self._sent[replica, agent]} releases; "
                f"another one is beyond what is allowed: {limits}"
            )
        sends &= affordable
        statistic = self.env.release(sends)
        randomised = self._randomise(statistic, sends, self._sent)
        for event, times in self._plan(sends, self._sent).items():
            self._accountant.record(event, times)
        self._sent += sends
        if sends.any():
            # In place: a channel around this releases after the round's information is made, which holds it.
            self._epsilon_spent[...] = self._spent(self._accountant)
        return {
            name: np.where(sends.reshape(sends.shape + (1,) * (array.ndim - 2)), array, 0.0)
            for name, array in randomised.items()
        }

    def privacy(self) -> Claim:
        """Claims what was spent, measured as :attr:`budget` says; :attr:`accountant` answers the rest."""
        return self.accountant.epsilon(
            self.budget.delta, composition=self.budget.composition, adjacency=self._measured
        )

    @abstractmethod
    def _prepare(self, sensitivity: Sensitivity, seeds: Sequence[int]) -> None:
        """Prepares for an episode of data of this sensitivity.

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
    def _plan(self, sends: Array, index: Array) -> dict[Event, Array]:
        """Says what a release does to the accounts.

        Args:
            sends: Who sends, bool ``(replicas, agents)``.
            index: How often each agent has released before, ``(replicas, agents)``.

        Returns:
            For each event by how much its count changes, bool or integer ``(replicas, agents)``.
        """

    def _checked(self, senders: Array) -> Array:
        sends = np.array(senders, np.bool_)
        if sends.shape != self.accountant.counts.shape[1:]:
            raise ValueError(
                f"senders has shape {sends.shape}; (replicas, agents) = {self._sent.shape} is required"
            )
        return sends

    def _spent(self, accountant: Accountant) -> Array:
        return accountant.epsilon_by_agent(
            self.budget.delta, composition=self.budget.composition, adjacency=self._measured
        )

    def _can_afford(self, senders: Array) -> Array:
        """Says whose budget allows for one more release; those who do not send can afford it."""
        sends = self._checked(senders)
        affordable = np.ones_like(sends) if self._releases is None else self._sent < self._releases
        if np.isfinite(self.budget.epsilon):
            # Sums of equal shares may exceed what was shared out by rounding.
            spent = self._spent(self._accountant.after(self._plan(sends & affordable, self._sent)))
            affordable &= spent <= self.budget.epsilon * (1 + 1e-12)
        return affordable | ~sends
