"""Policies with small trained neural networks, which compute exploration bonuses or decide when agents send.

The networks need no deep-learning library, and reading their files runs no code in them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedbandit_envs.baselines.linear.feducb import FedUCB
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.compiled import allocating_kernel
from fedbandit_envs.basics.tables import require_file
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.linear.ridge import rank_one

HIDDEN = -1
"""A placeholder in the shapes given to :func:`checked_layers`, for the number of hidden units."""


def read_layers(path: str | Path) -> dict[str, Array]:
    """Returns the arrays of a ``.npz`` file by name; pickled objects in it are refused.

    Args:
        path: Path of the file, or the name of a network that comes with the package.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file holds something other than arrays of numbers and text.
    """
    packaged = Path(__file__).parent / f"{path}.npz"
    file = packaged if packaged.exists() else require_file("weights", path)
    with np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)


def checked_layers(
    layers: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]], stacked: bool = False
) -> list[Array]:
    """Returns a network's weights as float64 arrays, in the order of ``shapes``, after checking shapes and numbers.

    Args:
        layers: Arrays by name, among them ``last``, the weights of the hidden units for the output.
        shapes: Required shapes by name, where :data:`HIDDEN` is a placeholder for the length of ``last``.
        stacked: Whether the arrays may be those of several networks, with the same leading axes in all arrays.

    Raises:
        ValueError: An array is missing, has another shape, or has numbers that are not finite.
    """
    missing = [name for name in shapes if name not in layers]
    if missing:
        raise ValueError(f"layers has {sorted(layers)}; {missing} are required too")
    *lead, hidden = np.shape(layers["last"])
    for name, sizes in shapes.items():
        shape = (*(lead if stacked else ()), *(hidden if size == HIDDEN else size for size in sizes))
        if np.shape(layers[name]) != shape:
            raise ValueError(f"layer {name!r} has shape {np.shape(layers[name])}; {shape} is required")
        if not np.isfinite(layers[name]).all():
            raise ValueError(f"layer {name!r} has numbers that are not finite")
    return [np.array(layers[name], np.float64) for name in shapes]


LAYERS = ("own", "pooled", "shared", "first_bias", "middle", "middle_bias", "last", "last_bias")
"""Names of a network's arrays of weights and biases, in the order of ``_forward``'s arguments.

Matrices have the shape (inputs, outputs).
"""


@allocating_kernel
def _forward(
    each, once, own, pooled, shared, first_bias, middle, middle_bias, last, last_bias, output
):  # fmt: skip
    """Writes the network's output for every item of every row; a row is an agent of a replica.

    Args:
        each: Features of the items, ``(rows, items, inputs)``.
        once: Features of the row as a whole, ``(rows, shared inputs)``.
        own: Weights of the first layer for an item's own features, ``(inputs, hidden)``.
        pooled: Weights of the first layer for the means of features over all items, same shape.
        shared: Weights of the first layer for the features of the row, ``(shared inputs, hidden)``.
        first_bias: Biases of the first layer, ``(hidden,)``.
        middle: Weights of the second layer, ``(hidden, hidden)``.
        middle_bias: Biases of the second layer, ``(hidden,)``.
        last: Weights of the output, ``(hidden,)``.
        last_bias: Bias of the output, ``(1,)``.
        output: Receives the outputs, ``(rows, items)``.
    """
    rows, items, inputs = each.shape
    hidden = last.shape[0]
    common, first, second = np.empty(hidden), np.empty(hidden), np.empty(hidden)
    for r in range(rows):
        common[:] = first_bias
        for k in range(inputs):
            mean = 0.0
            for i in range(items):
                mean += each[r, i, k]
            mean /= items
            for h in range(hidden):
                common[h] += mean * pooled[k, h]
        for k in range(once.shape[1]):
            for h in range(hidden):
                common[h] += once[r, k] * shared[k, h]
        for i in range(items):
            for h in range(hidden):
                first[h], second[h] = common[h], middle_bias[h]
            for k in range(inputs):
                for h in range(hidden):
                    first[h] += each[r, i, k] * own[k, h]
            for g in range(hidden):
                if first[g] > 0.0:
                    for h in range(hidden):
                        second[h] += first[g] * middle[g, h]
            value = last_bias[0]
            for h in range(hidden):
                value += max(second[h], 0.0) * last[h]
            output[r, i] = value


class ItemNetwork:
    """A network that computes one number for each item, an arm or a producer, from features of all items.

    Two hidden layers of rectified linear units are applied to each item's features, the means of the features over all
    items, and features that belong to the agent and not to an item. The output is equivariant: a permutation of the
    items permutes it (Zaheer et al., Deep Sets, NeurIPS 2017).

    Attributes:
        each: Names of the features of an item, see :class:`~fedbandit_envs.core.policy_spec.Features`.
        once: Names of the features that belong to the agent as a whole.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs.baselines.learned import ItemNetwork
        >>> shapes = {"own": (1, 2), "pooled": (1, 2), "shared": (1, 2), "first_bias": (2,), "middle": (2, 2)}
        >>> shapes |= {"middle_bias": (2,), "last": (2,), "last_bias": (1,)}
        >>> network = ItemNetwork(("estimate",), ("left",), {name: np.ones(shape) for name, shape in shapes.items()})
        >>> network(np.zeros((3, 1), np.float32), np.zeros(1, np.float32))
        array([7., 7., 7.])
    """

    def __init__(self, each: tuple[str, ...], once: tuple[str, ...], layers: Mapping[str, Array]) -> None:
        """Makes a network from its weights.

        Args:
            each: Names of the features of an item.
            once: Names of the features that belong to the agent as a whole.
            layers: Arrays of weights and biases, by the names in :data:`LAYERS`.

        Raises:
            ValueError: An array is missing or of a wrong shape, or a number is not finite.
        """
        inputs = {"own": len(each), "pooled": len(each), "shared": len(once), "middle": HIDDEN}
        shapes = {name: (inputs[name], HIDDEN) if name in inputs else (HIDDEN,) for name in LAYERS}
        self.each = each
        self.once = once
        self._layers = checked_layers(layers, {**shapes, "last_bias": (1,)})

    @classmethod
    def load(cls, path: str | Path) -> "ItemNetwork":
        """Reads a network that :meth:`save` wrote; no code in the file is executed.

        Args:
            path: Path of the file, or the name of a network that comes with the package.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file does not hold a network.
        """
        layers = read_layers(path)
        each, once = (tuple(map(str, layers.pop(key, ()))) for key in ("each_names", "once_names"))
        return cls(each, once, layers)

    def save(self, path: str | Path) -> None:
        """Writes the network to a ``.npz`` file of float32 arrays, which :meth:`load` reads."""
        arrays: dict[str, Any] = {"each_names": np.array(self.each), "once_names": np.array(self.once)}
        arrays |= {name: layer.astype(np.float32) for name, layer in zip(LAYERS, self._layers, strict=True)}
        np.savez(path, **arrays)

    def __call__(self, each: Array, once: Array) -> Array:
        """Returns one number for each item; an agent's numbers depend on the features of that agent alone.

        Args:
            each: Features of the items, float32 ``(..., items, len(self.each))``.
            once: Features that belong to the agents as a whole, float32 ``(..., len(self.once))``.

        Returns:
            The network's outputs, float64 ``(..., items)``.
        """
        output = np.empty(each.shape[:-1])
        items, inputs = each.shape[-2:]
        _forward(
            np.ascontiguousarray(each, np.float64).reshape(-1, items, inputs),
            np.ascontiguousarray(once, np.float64).reshape(-1, once.shape[-1]),
            *self._layers,
            output.reshape(-1, items),
        )
        return output


PPO = (
    "a neural network, trained by PPO on 500 rounds, computes the exploration bonus",
    "`examples/learned`, seed 0",
)
"""Summary and reference of the baselines whose networks were trained with ``docs/learned.md``."""


class LearnedIndex:
    r"""An index policy whose exploration bonus a network computes for each item, an arm or a producer.

    Item $i$ has the index

    $$\frac{1 + e_i}{2} + 2 \, g(z_i) \, d_i$$

    where $e_i$ is its estimated value in $[-1, 1]$, $d_i$ the uncertainty of the estimate, which is the feature
    ``doubt`` (in linear problems ``width``), $z_i$ all of its features, and $g$ the network. The policy plays the
    action that would be best if the indices were the true values: it pulls the arms with the largest ones, or procures
    by Greedy SSA (Deva et al. 2021), for which indices are clipped to [0, 1]. With a network whose output is always 0
    it does not explore. Only the agent's own data are used, also where agents receive those of others.

    The packaged networks were trained at a horizon of 500 rounds; the share of rounds left is one of their features.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.learned import LearnedIndex
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = LearnedIndex("PPO-arms")
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def __init__(self, weights: str | Path | ItemNetwork) -> None:
        """Sets the network.

        Args:
            weights: A network, the path of its ``.npz`` file, or the name of a packaged one: ``"PPO-procurement"``,
                ``"PPO-arms"`` or ``"PPO-linear"``.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file holds no network, or one of other features.
        """
        self._network = weights if isinstance(weights, ItemNetwork) else ItemNetwork.load(weights)
        each = self._network.each
        if each[:2] not in (("estimate", "doubt"), ("estimate", "width")):
            raise ValueError(f"weights takes {each}; 'estimate' and 'doubt' or 'width' are required first")

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all observations; see :meth:`Policy.reset`.

        Raises:
            UnfitError: The environment has no features, or no action format that takes indices; or the network uses
                features that the environment does not have.
        """
        name = next((name for name in ("index", "values") if name in spec.action_formats), None)
        if spec.features is None or name is None:
            raise UnfitError(
                f"formats are {[*spec.action_formats]}; 'index' or 'values', and features, are required"
            )
        self._format = spec.action_formats[name]
        self._bounds = (0.0, 1.0) if name == "index" else (-np.inf, np.inf)
        self._features = spec.features(spec)
        network, there = self._network, self._features
        if not (set(network.each) <= set(there.each) and set(network.once) <= set(there.shared)):
            wanted = network.each, network.once
            raise UnfitError(f"the network takes the features {wanted}; there are {there.each, there.shared}")
        self._each = [there.each.index(name) for name in network.each]
        self._once = [there.shared.index(name) for name in network.once]
        self._features.reset((seeds.shape[0], seeds.shape[1]))

    def act(self, observation: Arrays) -> Array:
        """Returns the action that would be best if the indices were the true values; see :meth:`Policy.act`."""
        seen = self._features.see(observation)
        split = self._features.items * len(self._features.each)
        each = seen[..., :split].reshape(*seen.shape[:2], self._features.items, -1)[..., self._each]
        estimate, doubt = each[..., 0].astype(np.float64), each[..., 1]
        bonus = 2.0 * self._network(each, seen[..., split:][..., self._once]) * doubt
        return self._format.to_action(np.clip((1.0 + estimate) / 2.0 + bonus, *self._bounds), observation)


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

RULE_LAYERS = ("first", "first_bias", "last", "last_bias")
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


class LearnedSend(FedUCB):
    """FedUCB in which a small network decides, from an agent's own data, when the agent asks to send.

    The network has one hidden layer of tanh units, and the agent asks to send where its output is positive.
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

    def __init__(self, weights: str | Path | Mapping[str, Array], **constants: Any) -> None:
        """Sets the rule and FedUCB's constants.

        Args:
            weights: A rule: arrays of weights and biases by the names in :data:`RULE_LAYERS`; or the path of their
                ``.npz`` file, or the name of a packaged one, such as ``"ES-send"``. With one more leading axis the
                arrays are those of several rules: replica r uses the rule with the index r modulo their number, so
                that training can evaluate many rules side by side.
            **constants: Keyword arguments of :class:`FedUCB`.

        Raises:
            TypeError: A constant is unknown or has the wrong type.
            FileNotFoundError: There is no such file.
            ValueError: An array is missing or of a wrong shape, or a number is not finite or out of its range.
        """
        super().__init__(**constants)
        layers = weights if isinstance(weights, Mapping) else read_layers(weights)
        shapes = zip(RULE_LAYERS, ((len(FEATURES), HIDDEN), (HIDDEN,), (HIDDEN,), (1,)), strict=True)
        rule = checked_layers(layers, dict(shapes), stacked=True)
        self._rule = rule if rule[-1].ndim > 1 else [array[np.newaxis] for array in rule]

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets own and received data and the times of messages; see :meth:`Policy.reset`.

        Raises:
            UnfitError: Agents of this environment do not choose when to send, or several estimators are used in turn.
        """
        super().reset(spec, seeds)
        if not self._asks or self._estimators > 1:
            raise UnfitError(
                "a rule says when to send; a Channel 'on_request', with one statistic, is required"
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
            self._unsent, self._last_sent, self._times_sent, *self._rule, self._shown, self._send,
        )  # fmt: skip
