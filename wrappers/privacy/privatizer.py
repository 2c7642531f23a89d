"""The wrapper that randomises releases by a mechanism and keeps accounts of them."""

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
from fedbandit_envs.randomness.streams import Entropy, is_secret, noise_streams
from fedbandit_envs.wrappers.privacy.accounting.accountant import Accountant
from fedbandit_envs.wrappers.privacy.budget import Budget, BudgetExhaustedError, GivenBudget
from fedbandit_envs.wrappers.privacy.mechanisms.mechanism import Mechanism

OnExhausted = Literal["raise", "silence"]


class Privatizer(FederatedWrapper):
    """Randomises every release by a mechanism and accounts for it.

    A reset starts a fresh federation: agents, data and accounts are new, so what several episodes over the same
    people's data spend has to be added up by the user. Numbers are floating-point ones; guarantees are those of real
    numbers.

    Noise follows from the episode's seed unless ``noise_seed`` is given. Runs then repeat, and whoever knows or finds
    that seed can draw the noise again: the claim's noise is ``repeatable``. With a ``noise_seed`` of 64 bits or more,
    which nobody else must know, it is ``secret``; such a seed is for one run only. A copy (``copy``, ``pickle``) has
    the seed and draws the same noise, in this and all later episodes: from then on both say ``repeatable`` for good.

    Releases also carry the variance of their noise: beside each array ``name`` stands ``{name}_noise_variance``, of its
    shape (:mod:`fedbandit_envs.core.noise_variance`). The size of noise depends on what is public to the claims:
    sensitivities (in procurement capacities, which are no agent's secret there) and the number of releases so far.

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
        mechanism: Randomises releases; a copy of the one given.
        budget: How spending is measured and limited.
    """

    layer = "noise"
    # A mechanism is an object: there are no keyword arguments as JSON has them to try this with.
    examples: ClassVar[Sequence[Mapping[str, Any]]] = ()

    def __init__(
        self,
        env: FederatedEnv,
        mechanism: Mechanism | str | Mapping[str, Any],
        budget: GivenBudget = None,
        on_exhausted: OnExhausted = "raise",
        noise_seed: Entropy | None = None,
    ) -> None:
        """Wraps ``env``.

        Args:
            env: The environment, not yet privatized.
            mechanism: Randomises what leaves; copied, so that the same one may be given to several privatizers. Or its
                name in :data:`~fedbandit_envs.wrappers.privacy.mechanisms.registry.MECHANISMS` or ``"module:Class"``,
                with arguments in a mapping: ``{"name": "laplace", "epsilon": 1.0}``.
            budget: How spending is measured and limited, a :class:`Budget` or its arguments.
                By default the promises for single values are added up (``basic``) under the first adjacency
                that the environment names, without a limit.
            on_exhausted: Whether a release that would exceed the budget is an error or does not happen
                silently (:meth:`allowed_senders` then leaves the agent out).
            noise_seed: Entropy of its own for the noise, a non-negative integer of any size or several; None lets it
                follow from the episode's seed.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: An argument is out of its range, or ``env`` is already privatized.
        """
        super().__init__(env)
        require_choice("on_exhausted", on_exhausted, ("raise", "silence"))
        require_seeds("noise_seed", noise_seed)
        self.budget = Budget.of(budget)
        # Named, since every mechanism's module imports this one.
        known = resolve("fedbandit_envs.wrappers.privacy.mechanisms.registry:MECHANISMS")
        self.mechanism: Mechanism = deepcopy(make("mechanism", mechanism, known, Mechanism))
        self.mechanism.prepare(env)
        self.single_release_space = self.mechanism.release_space(env.single_release_space)
        self._on_exhausted = on_exhausted
        self._noise_seed = noise_seed
        self._episodes = 0
        self._copied = False

    def __getstate__(self) -> dict[str, Any]:
        """Returns what a copy is made of. From here on the noise of both is repeatable: they draw the same."""
        self._lose_secrecy()
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Makes a copy, of an accountant that was perhaps copied before the noise was known to be repeatable."""
        self.__dict__.update(state)
        self._lose_secrecy()

    def _lose_secrecy(self) -> None:
        self._copied = True
        if "_accountant" in self.__dict__:
            self._accountant._noise = "repeatable"

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
            ValueError: The mechanism cannot randomise the environment's statistic.
        """
        reset = self.env.reset_batch(seeds)
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
        self._episodes += 1
        # Whether the mechanism is one for this statistic comes first: the budget's adjacency may be the mechanism's.
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
        self._accountant = Accountant(*rows, self._ledger, self._height, adjacencies, noise)
        self._sent = np.zeros(rows, np.int64)
        self._shown = Buffers({"epsilon_spent": np.zeros(rows)})
        self._epsilon_spent = self._shown.arrays["epsilon_spent"]
        self._measured_at = -1
        self._ledger.claim_fn = self._claim
        return reset._replace(info={**reset.info, **self._shown.views})

    def step_batch(self, action: Array) -> BatchStep:
        """Plays one round; see :meth:`FederatedEnv.step_batch`.

        ``info["epsilon_spent"]``, float64 ``(replicas, agents)``, is what was spent until now, measured by the
        rules of :attr:`budget` and infinite where that measure has no answer.
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
        """Returns randomised data: increments as the environment names them, float64, and their noise's variance.

        Raises:
            BudgetExhaustedError: A sender's budget does not allow for it (``on_exhausted="raise"``). Nothing
                was released, by nobody.
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
            # Now, since a transport around this releases after the round's information is made, which shows it. The
            # ledger counts this release after it.
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
        """Returns the claim about what was spent, measured by the rules of :attr:`budget`."""
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
            # Sums of equal shares may exceed what was shared out by rounding.
            events = self.mechanism.events(sends & affordable, self._sent)
            spent = accountant.after(events).epsilon_by_agent(**self._measured)
            affordable &= spent <= self.budget.epsilon * (1 + 1e-12)
        return affordable | ~sends
