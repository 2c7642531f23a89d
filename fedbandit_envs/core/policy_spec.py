"""The description of an environment that policies are given before an episode, and the interface of reporters."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays

if TYPE_CHECKING:
    from fedbandit_envs.core.features import Features


class ActionFormat(Protocol):
    """An action format: another action space for learning agents, and a translation into the environment's actions.

    Attributes:
        space: The space of one agent's choices.
    """

    space: spaces.Space[Any]

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
    action: spaces.Space[Any]
    horizon: int
    release: spaces.Dict
    agents: int
    public: Mapping[str, Any]
    action_formats: Mapping[str, ActionFormat]
    features: "type[Features] | None"

    @property
    def own_action(self) -> spaces.Space[Any]:
        """One agent's action space without entries beside the action, such as ``message`` and ``send``."""
        action = self.action
        return action["action"] if isinstance(action, spaces.Dict) else action

    @property
    def chooses_sending(self) -> bool:
        """Whether agents choose when to send: actions have the entry ``send``."""
        return isinstance(self.action, spaces.Dict) and "send" in self.action.spaces


@runtime_checkable
class Reporter(Protocol):
    """The interface of reporters, which write the messages of all agents in place of their policy.

    A reporter is on the agents' side of a federation. It works row by row like a
    :class:`~fedbandit_envs.baselines.policy.Policy`: arrays have the leading axes ``(replicas, agents)``, and row
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
