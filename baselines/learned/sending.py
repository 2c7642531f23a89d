"""FedUCB with a trained network that decides when agents send, learned at a price for each message."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedbandit_envs.baselines.learned.network import HIDDEN, checked_layers, read_layers
from fedbandit_envs.baselines.linear.feducb import FedUCB
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.compiled import allocating_kernel
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.linear.ridge import rank_one

FEATURES = ("unsent", "ratio", "gap", "quiet", "left", "sent")
"""Names of the inputs of the network that decides whether an agent sends, before a round is played.

| feature | meaning |
|---|---|
| `unsent` | ln(0.01 + u) / 3, with u the sum of ln(1 + x^T V^-1 x) over pulls not sent yet, and the coming one |
| `ratio` | log2(coming round / round of the last message) / 4; round 1 stands for no message |
| `gap` | log2(rounds since the last message) / log2(horizon) |
| `quiet` | log2(1 + rounds since something was received) / log2(horizon) |
| `left` | share of the horizon left after the coming round |
| `sent` | log2(1 + number of messages) / 4 |

A single hidden unit can express a doubling schedule (a threshold on `ratio`), a fixed gap (a threshold on `gap`), and
nearly the determinant trigger (a threshold on `unsent` plus `quiet`), which multiplies new information by the time
since the last synchronisation.
"""

LAYERS = ("first", "first_bias", "last", "last_bias")
"""Names of a rule's weights, of shapes ``(inputs, hidden)``, ``(hidden,)``, ``(hidden,)`` and ``(1,)``."""


@allocating_kernel
def _decide(
    active, round_, contexts, arm, inverse, waited, horizon, unsent, last_sent, times_sent,
    first, first_bias, last, last_bias, seen, send,
):  # fmt: skip
    """Marks the agents that ask to send, for which the network's output is positive, and updates its inputs.

    Args:
        active: Agents that act, bool ``(replicas, agents, 1)``; the others do not ask.
        round_: Number of rounds played, ``(replicas, agents, 1)``.
        contexts: Contexts of all arms, ``(replicas, agents, arms, dim)``.
        arm: Arms about to be pulled, ``(replicas, agents)``.
        inverse: V^-1, the inverse regularised Gram matrix, ``(replicas, agents, 1, dim, dim)``.
        waited: Number of rounds since the agent last received a message, ``(replicas, agents)``.
        horizon: Number of rounds of the episode.
        unsent: Sum of ln(1 + x^T V^-1 x) over pulls that were not sent yet, ``(replicas, agents)``; updated.
        last_sent: The last round in which the agent asked to send, 0 for none, same shape; updated.
        times_sent: Number of rounds in which the agent has asked to send, same shape; updated.
        first: Weights of the hidden layers of all rules, ``(rules, inputs, hidden)``; replica r uses the rule with the
            index r modulo the number of rules.
        first_bias: Biases of the hidden layers, ``(rules, hidden)``.
        last: Weights of the outputs, ``(rules, hidden)``.
        last_bias: Biases of the outputs, ``(rules, 1)``.
        seen: Receives the network's inputs, ``(replicas, agents, inputs)``.
        send: Receives the marks, bool ``(replicas, agents)``.
    """
    rules, inputs, hidden = first.shape
    dim = contexts.shape[3]
    product = np.empty(dim)
    length = np.log2(max(horizon, 2))
    for r in range(arm.shape[0]):
        n = r % rules
        for j in range(arm.shape[1]):
            send[r, j] = False
            if not active[r, j, 0]:
                continue
            matrix = inverse[r, j, 0].copy()
            unsent[r, j] += np.log1p(rank_one(matrix, contexts[r, j, arm[r, j]], product))
            coming = round_[r, j, 0] + 1
            row = seen[r, j]
            row[0] = np.log(0.01 + unsent[r, j]) / 3.0
            row[1] = np.log2(coming / max(last_sent[r, j], 1)) / 4.0
            row[2] = np.log2(coming - last_sent[r, j]) / length
            row[3] = np.log2(1.0 + waited[r, j]) / length
            row[4] = (horizon - coming) / horizon
            row[5] = np.log2(1.0 + times_sent[r, j]) / 4.0
            output = last_bias[n, 0]
            for h in range(hidden):
                unit = first_bias[n, h]
                for k in range(inputs):
                    unit += row[k] * first[n, k, h]
                output += np.tanh(unit) * last[n, h]
            if output > 0.0:
                send[r, j] = True
                unsent[r, j] = 0.0
                last_sent[r, j] = coming
                times_sent[r, j] += 1


class SendingRule:
    """A rule that decides when an agent sends: a network with one hidden layer of tanh units on :data:`FEATURES`.

    An agent asks to send where the output is positive. The object may hold several rules, and replica r uses the rule
    with the index r modulo their number, so that training can evaluate many rules side by side.

    Attributes:
        layers: Arrays of weights and biases in the order of :data:`LAYERS`, whose first axis goes over rules.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs.baselines.learned import SendingRule
        >>> shapes = {"first": (6, 2), "first_bias": (2,), "last": (2,), "last_bias": (1,)}
        >>> rule = SendingRule({name: np.zeros(shape) for name, shape in shapes.items()})
        >>> [layer.shape for layer in rule.layers]
        [(1, 6, 2), (1, 2), (1, 2), (1, 1)]
    """

    def __init__(self, layers: Mapping[str, Array]) -> None:
        """Makes a rule, or several rules, from weights.

        Args:
            layers: Arrays of weights and biases, by the names in :data:`LAYERS`; for several rules with one more
                leading axis.

        Raises:
            ValueError: An array is missing or of a wrong shape, or a number is not finite.
        """
        shapes = zip(LAYERS, ((len(FEATURES), HIDDEN), (HIDDEN,), (HIDDEN,), (1,)), strict=True)
        arrays = checked_layers(layers, dict(shapes), stacked=True)
        # A single rule gets a leading axis of length 1, so that arrays always have an axis over rules.
        self.layers = arrays if arrays[-1].ndim > 1 else [array[np.newaxis] for array in arrays]

    @classmethod
    def load(cls, path: str | Path) -> "SendingRule":
        """Reads a rule that :meth:`save` wrote; no code in the file is executed.

        Args:
            path: Path of the file, or the name of a rule that comes with the package.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file does not hold a rule.
        """
        return cls(read_layers(path))

    def save(self, path: str | Path) -> None:
        """Writes the rule to a ``.npz`` file of float32 arrays; of several rules only the first is written."""
        layers: dict[str, Any] = {
            name: layer[0].astype(np.float32) for name, layer in zip(LAYERS, self.layers, strict=True)
        }
        np.savez(path, **layers)


class LearnedSend(FedUCB):
    """FedUCB in which a small network decides, from an agent's own data, when the agent asks to send.

    The network replaces only FedUCB's trigger (Algorithm 1, line 12), and needs a channel whose schedule lets agents
    ask. The times of messages depend on exact data, so that no privacy is claimed for them.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import linear_v0
        >>> from fedbandit_envs.baselines.learned import LearnedSend
        >>> from fedbandit_envs.wrappers import Channel
        >>> env = linear_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> env = Channel(env, schedule="on_request")
        >>> policy = LearnedSend("ES-send", beta_scale=0.3)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation)["send"].shape
        (1, 3)
    """

    def __init__(self, weights: str | Path | SendingRule, **constants: Any) -> None:
        """Sets the rule and FedUCB's constants.

        Args:
            weights: A rule, the path of its ``.npz`` file, or the name of a packaged one, such as ``"ES-send"``.
            **constants: Keyword arguments of :class:`FedUCB`.

        Raises:
            TypeError: A constant is unknown or has the wrong type.
            FileNotFoundError: There is no such file.
            ValueError: The file holds no rule, or a constant is out of its range.
        """
        super().__init__(**constants)
        self._rule = weights if isinstance(weights, SendingRule) else SendingRule.load(weights)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets own and received data and the times of messages; see :meth:`Policy.reset`.

        Raises:
            UnfitError: Agents of this environment do not choose when to send, or several estimators are used in turn.
        """
        super().reset(spec, seeds)
        if not self._asks or self._estimators > 1:
            raise UnfitError(
                "a learned rule says when to send; a Channel whose schedule asks agents, such as 'on_request', and "
                "messages of one statistic are required"
            )
        rows = seeds.shape
        self._horizon = int(spec.horizon)
        self._unsent = np.zeros(rows)
        self._last_sent, self._times_sent = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        self._shown = np.zeros((*rows, len(FEATURES)))

    def _wants(self, observation: Arrays, arm: Array) -> None:
        _decide(
            observation.get("active", self._everyone), observation["round"], observation["contexts"], arm,
            self._ridges.inverse, self._waited, self._horizon,
            self._unsent, self._last_sent, self._times_sent, *self._rule.layers, self._shown, self._send,
        )  # fmt: skip
