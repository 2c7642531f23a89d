"""What policies and reporters are given: the description of an environment, and features of an agent's history.

Features are bounded numbers, as input of a neural network. Raw counts are no such input: they grow without bound.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.inbox import add_received
from fedbandit_envs.core.privacy import COVARIANCE, variance_of


class ActionFormat(Protocol):
    """An action format: another action space for learning agents, and a translation into the environment's actions.

    Attributes:
        space: The space of one agent's choices.
    """

    space: spaces.Space

    def to_action(self, choice: Any, observation: Mapping[str, Array]) -> Any:
        """Translates choices into the environment's actions.

        Args:
            choice: Elements of ``space`` with leading axes ``(replicas, agents)``; a mapping of them for a ``Dict``.
            observation: The observations of the same agents, same leading axes.

        Returns:
            Actions of the environment, same leading axes; a mapping where its action space is a ``Dict``.
        """


class PolicySpec(NamedTuple):
    """The description of an environment that a policy is given before an episode.

    Attributes:
        observation: One agent's observation space; batches add the leading axes ``(replicas, agents)``.
        action: One agent's action space; batches add the same axes.
        horizon: Number of rounds of an episode.
        release: Space of one agent's release; for noisy releases it bounds the variances of the noise.
        agents: Number of agents in the federation.
        public: Further public constants of the problem by name; the environment's page lists them.
        action_formats: The available action formats by name, the environment's own first.
        features: Class that computes features of an agent's history; None where the problem has none.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> spec = make_federation("FedArms-v0", num_agents=4, num_arms=3).policy_spec
        >>> spec.agents, spec.horizon, spec.action, list(spec.action_formats)
        (4, 1000, Discrete(3), ['arm', 'values'])
    """

    observation: spaces.Dict
    action: spaces.Space
    horizon: int
    release: spaces.Dict
    agents: int
    public: Mapping[str, Any]
    action_formats: Mapping[str, ActionFormat]
    features: "type[Features] | None"

    @property
    def own_action(self) -> spaces.Space:
        """One agent's action space without entries beside the action, such as ``message`` and ``send``."""
        action = self.action
        return action["action"] if isinstance(action, spaces.Dict) else action

    @property
    def chooses_sending(self) -> bool:
        """Whether agents choose when to send: actions have the entry ``send``."""
        return isinstance(self.action, spaces.Dict) and "send" in self.action.spaces


@runtime_checkable
class Policy(Protocol):
    """The interface of policies, which choose the actions of all agents in all replicas of a federation at once.

    Arrays have the leading axes ``(replicas, agents)``, and row (r, j) is that of agent j in replica r. The action of
    row (r, j) depends only on row (r, j) of the observations since ``reset`` and on the seed of that row. This is what
    makes a policy federated: agents learn about each other through their own observations only.
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets everything and prepares for an episode.

        Args:
            spec: Public description of the environment: spaces of one agent, horizon, number of agents.
            seeds: One seed for each agent of each replica, uint64 ``(replicas, agents)``.

        Raises:
            UnfitError: The policy needs something that this environment does not have.
        """

    def act(self, observation: Arrays) -> Any:
        """Chooses one action for each agent of each replica.

        Args:
            observation: Arrays by name with leading axes ``(replicas, agents)``. They are read-only views of the
                environment's buffers, which the environment overwrites in its next step.

        Returns:
            Actions with leading axes ``(replicas, agents)``; the policy may reuse the array in its next call.
        """


@runtime_checkable
class Reporter(Protocol):
    """The interface of reporters, which write the messages of all agents in place of their policy.

    A reporter is on the agents' side of a federation. It works row by row like a
    :class:`Policy`: arrays have the leading axes ``(replicas, agents)``, and row
    (r, j) of a report depends only on row (r, j) of the observations since ``reset``, of the question and of the seeds.
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets everything and prepares for an episode.

        Args:
            spec: Public description of the environment; ``spec.release`` has the names and shapes of a report's arrays.
            seeds: One seed for each agent of each replica, uint64 ``(replicas, agents)``.
        """

    def observe(self, observation: Arrays) -> None:
        """Takes the agents' own observations: the first ones, and those after each round.

        Args:
            observation: Arrays by name with leading axes ``(replicas, agents)``: read-only views of buffers, which the
                next round overwrites.
        """

    def report(self, question: Arrays | None) -> Mapping[str, Array]:
        """Returns a message for each agent, by the names of ``spec.release``, leading axes ``(replicas, agents)``.

        It is called for all rows when any agent sends, possibly several times between two observations, or never. So
        it must not change what later reports are.

        Args:
            question: What a server asks each agent, arrays by name with leading axes ``(replicas, agents)``; None for a
                release that answers no question.
        """


class Features(ABC):
    """Maps an agent's observations so far to a flat vector of numbers in [-1, 1].

    The vector consists of the features of each item (a producer or an arm), one item after another, and then of the
    features that exist only once. Where agents receive messages, items also have features computed from the sum of all
    messages received.

    The features of agent j in replica r depend on this agent's observations so far and on nothing else. Each problem
    has its own subclass, which is the problem's attribute ``features``.

    Attributes:
        each: Names of the features of one item, in order.
        shared: Names of the features that exist once, in order; if ``time_left`` is the last, it is written by this
            class: 1 before the first round, falling to -1 after the last.
        items: Number of items.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> env = make_federation("FedArms-v0", num_agents=2, num_arms=3)
        >>> features = env.features(env.policy_spec)
        >>> features.each, features.shared
        (('estimate', 'doubt'), ('time_left',))
        >>> features.reset((1, 2))
        >>> features.see(env.reset_batch([7]).observation).shape
        (1, 2, 7)
    """

    each: tuple[str, ...]
    shared: tuple[str, ...] = ("time_left",)
    items: int

    def __init__(self, spec: PolicySpec, received: Mapping[str, tuple[int, ...]] = {}) -> None:
        """Takes what is needed of the environment; subclasses take ``spec`` alone, and set ``each`` and ``items``.

        Args:
            spec: The environment's description for policies.
            received: Shapes of the arrays of messages that are summed, by name; see :class:`InboxTotals`.
        """
        self._horizon = spec.horizon
        self._inbox = InboxTotals(spec, received)

    @property
    def space(self) -> spaces.Box:
        """The space of one agent's features, float32 ``(items * len(each) + len(shared),)``."""
        return spaces.Box(-1.0, 1.0, (self.items * len(self.each) + len(self.shared),), np.float32)

    def reset(self, rows: tuple[int, int]) -> None:
        """Starts an episode with an empty history.

        Args:
            rows: ``(replicas, agents)`` of the episode.
        """
        self._features = np.zeros((*rows, *self.space.shape), np.float32)
        self._inbox.reset(rows)

    def see(self, observation: Arrays) -> Array:
        """Adds one round's observations to the history; to be called once a round, the first observation included.

        Args:
            observation: Arrays by name, leading axes ``(replicas, agents)``.

        Returns:
            The features after this round, float32 ``(replicas, agents, size)``, a copy.
        """
        if self._inbox.exists and observation["inbox_mask"].any():
            self._inbox.add(observation)
        split = self.items * len(self.each)
        each = self._features[..., :split].reshape(*self._features.shape[:2], self.items, len(self.each))
        self._write(observation, each, self._features[..., split:])
        if self.shared[-1:] == ("time_left",):
            self._features[..., -1] = 1.0 - 2.0 * observation["round"][..., 0] / self._horizon
        return self._features.copy()

    @abstractmethod
    def _write(self, observation: Arrays, each: Array, shared: Array) -> None:
        """Writes the features, but for ``time_left``.

        Args:
            observation: Arrays by name, leading axes ``(replicas, agents)``.
            each: Output: the items' features, ``(replicas, agents, items, len(each))``.
            shared: Output: the features that exist once, ``(replicas, agents, len(shared))``.
        """


def highest(space: spaces.Space) -> float:
    """Returns the largest upper bound of any entry of a ``Box``.

    Raises:
        TypeError: The space is no ``Box``.
    """
    if not isinstance(space, spaces.Box):
        raise TypeError(f"space is {space}; a Box is required")
    return float(space.high.max())


def laplace(good: Array, of: Array) -> tuple[Array, Array]:
    """Returns Laplace's estimate of a success probability, and how uncertain it is, both in [-1, 1].

    Args:
        good: Numbers of successes.
        of: Numbers of trials, same shape.

    Returns:
        The estimate 2 p - 1 with p = (good + 1) / (of + 2), and the uncertainty 1 / sqrt(of + 1).
    """
    return 2.0 * (good + 1.0) / (of + 2.0) - 1.0, 1.0 / np.sqrt(of + 1.0)


class InboxTotals:
    """Sums of some arrays over all messages that each agent has received so far; zero where there are no messages.

    Where a channel returns an agent's own messages to it (``echo``), these are left out. The downloads of a server with
    ``echo`` contain the agent's own data, which are then included.

    Attributes:
        exists: Whether agents receive messages in this environment.
        totals: The sums by name, float64 ``(replicas, agents, *shape)``; 0 for arrays that no message contains.
    """

    def __init__(self, spec: PolicySpec, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Chooses the arrays to sum.

        Args:
            spec: The environment's description for policies.
            shapes: Shape of each array by the name under which it is released; an array that is released in several
                slots is summed over these as well.
        """
        self._shapes = dict(shapes)
        self.exists = "inbox_mask" in spec.observation.spaces

    def reset(self, rows: tuple[int, int]) -> None:
        """Sets all sums to 0 for an episode of ``(replicas, agents)`` rows."""
        self.totals = {name: np.zeros((*rows, *shape)) for name, shape in self._shapes.items()}

    def add(self, observation: Arrays) -> None:
        """Adds the messages of one round's observation."""
        mask = observation["inbox_mask"]
        if "inbox_own" in observation:
            mask = mask & ~observation["inbox_own"]
        told = {name: total for name, total in self.totals.items() if f"inbox_{name}" in observation}
        add_received(observation, told, mask)


def count_names(of: str, good: str) -> tuple[str, ...]:
    """Returns the names of the arrays that :func:`judged` needs of messages.

    Args:
        of: Name of the array that counts trials.
        good: Name of the array that counts successes.
    """
    return good, of, variance_of(good), variance_of(of), COVARIANCE


def judged(good: Array, of: Array, of_good: Array, of_all: Array, of_both: Array) -> tuple[Array, Array]:
    """Returns estimates of success probabilities, and how uncertain they are, from all counts received so far.

    Both are those of :func:`~.policy_spec.laplace`. Noisy counts are first replaced by a smaller number of exact
    outcomes whose mean is equally certain. For ``of`` noisy trials, with variance v_of of the noise in the trials,
    variance v_good of the noise in the successes and covariance v_both, that number is of (of / 4) / (v + of / 4),
    where v = v_good - 2 p v_both + p^2 v_of, p = good / of, and 1 / 4 is the largest variance of one outcome.

    Args:
        good: Sums of received successes.
        of: Sums of received trials.
        of_good: Variance of the noise in ``good``.
        of_all: Variance of the noise in ``of``.
        of_both: Covariance of the two.
    """
    of = np.maximum(of, 0.0)
    share = np.clip(good / np.maximum(of, 1e-9), 0.0, 1.0)
    noise = np.maximum(of_good - 2.0 * share * of_both + share * share * of_all, 0.0)
    worth = of * (of / np.maximum(of + 4.0 * noise, 1e-9))
    return laplace(worth * share, worth)
