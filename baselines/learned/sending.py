"""FedUCB whose agents learned when a message is worth its price."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.baselines.learned.layers import require_names, require_shapes
from fedbandit_envs.baselines.learned.policy import packaged
from fedbandit_envs.baselines.linear.feducb import FedUCB
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.compiled import kernel
from fedbandit_envs.linear.ridge import rank_one
from fedbandit_envs.spaces import Spaces

FEATURES = ("unsent", "ratio", "gap", "unheard", "left", "sent")
"""What the rule is shown of a row, before a round is played.

| feature | meaning |
|---|---|
| `unsent` | ln(0.01 + u) / 3, where u sums up ln(1 + x^T V^-1 x) over unsent pulls, the coming one too |
| `ratio` | log2(coming round / round last sent in) / 4; at first as if it had been round 1 |
| `gap` | log2(rounds since then) / log2(horizon) |
| `unheard` | log2(1 + rounds since something was heard) / log2(horizon) |
| `left` | share of the horizon left after the coming round |
| `sent` | log2(1 + times sent) / 4 |

Doubling is a threshold on `ratio`, a fixed gap one on `gap`, and much like the determinant trigger, which multiplies
what is new by the time since then, is one on a sum of `unsent` and `unheard`: all within reach of a single unit.
"""

LAYERS = ("first", "first_bias", "last", "last_bias")
"""Names of a rule's arrays: ``(inputs, hidden)``, ``(hidden,)``, ``(hidden,)`` and ``(1,)``."""


@kernel
def _decide(
    active, round_, contexts, arm, inverse, waited, horizon, unsent, last_sent, times_sent,
    first, first_bias, last, last_bias, seen, send,
):  # fmt: skip
    """Asks to send where the network's output is positive, and keeps what it needs to know of that.

    Args:
        active: Who acts, bool ``(replicas, agents, 1)``; nobody else asks.
        round_: Rounds played, ``(replicas, agents, 1)``.
        contexts: ``(replicas, agents, arms, dim)``.
        arm: What is about to be pulled, ``(replicas, agents)``.
        inverse: V^-1, ``(replicas, agents, 1, dim, dim)``.
        waited: Rounds since something was heard, ``(replicas, agents)``.
        horizon: Rounds of the episode.
        unsent: Information in pulls that were not sent, ``(replicas, agents)``; updated, as are the next two.
        last_sent: The round last asked in, 0 for none.
        times_sent: How often was asked.
        first: Rules by number, of which replicas take one after another, ``(rules, inputs, hidden)``.
        first_bias: ``(rules, hidden)``.
        last: ``(rules, hidden)``.
        last_bias: ``(rules, 1)``.
        seen: Receives features, ``(replicas, agents, inputs)``.
        send: Receives the answers, bool ``(replicas, agents)``.
    """
    rules, inputs, hidden = first.shape
    dim = contexts.shape[3]
    matrix, product = np.empty((dim, dim)), np.empty(dim)
    length = np.log2(max(horizon, 2))
    for r in range(arm.shape[0]):
        n = r % rules
        for j in range(arm.shape[1]):
            send[r, j] = False
            if not active[r, j, 0]:
                continue
            matrix[...] = inverse[r, j, 0]
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
    """One hidden layer of tanh units on :data:`FEATURES`; its sign says whether to ask. Or several such rules."""

    def __init__(self, layers: Mapping[str, Array]) -> None:
        """Puts a rule together.

        Args:
            layers: Arrays by the names :data:`LAYERS`; with one more leading axis where there are several rules, of
                which replicas take one after another: so a training plays many rules side by side.

        Raises:
            ValueError: An array is missing or of a wrong shape, or a number is not finite.
        """
        require_names(layers, LAYERS)
        *rules, hidden = np.shape(layers["last"])
        shapes = {
            "first": (*rules, len(FEATURES), hidden),
            "first_bias": (*rules, hidden),
            "last": (*rules, hidden),
            "last_bias": (*rules, 1),
        }
        require_shapes(layers, shapes)
        # A single rule is several, of which there is one.
        several = (-1,) if rules else (1,)
        self.layers = [
            np.array(layers[name], np.float64).reshape(*several, *shapes[name][len(rules) :])
            for name in LAYERS
        ]

    @classmethod
    def load(cls, path: str | Path) -> "SendingRule":
        """Reads a rule that :meth:`save` wrote; nothing in the file is ever executed.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: It does not hold a rule.
        """
        with np.load(path, allow_pickle=False) as arrays:
            return cls({name: arrays[name] for name in LAYERS if name in arrays})

    def save(self, path: str | Path) -> None:
        """Writes the rule, the first if there are several, as a ``.npz`` file of float32 arrays."""
        layers: dict[str, Any] = {
            name: layer[0].astype(np.float32) for name, layer in zip(LAYERS, self.layers, strict=True)
        }
        np.savez(path, **layers)


class LearnedSend(FedUCB):
    """FedUCB whose agents ask to send where a small network says so, each by what it knows itself.

    What is pulled and what is made of messages is :class:`FedUCB`'s; only its trigger (Algorithm 1, line 12) is
    replaced. Needs a schedule that asks agents. Times follow from unnoised data: no privacy is claimed of them.
    """

    def __init__(self, weights: str | Path | SendingRule, **constants: Any) -> None:
        """Takes a rule.

        Args:
            weights: A rule, the ``.npz`` file of one, or the name of a packaged one, ``"ES-send"``.
            **constants: Those of :class:`FedUCB`.

        Raises:
            TypeError: A constant is unknown or has the wrong type.
            FileNotFoundError: There is no such file.
            ValueError: The file holds no rule, or a constant is out of its range.
        """
        super().__init__(**constants)
        if not isinstance(weights, SendingRule):
            inside = packaged(str(weights))
            weights = SendingRule.load(inside if inside.exists() else weights)
        self._rule = weights

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Forgets own data, what was heard and what was sent; see :meth:`Policy.reset`.

        Raises:
            UnfitError: Agents of this environment do not choose when to send, or several estimators are used in turn.
        """
        super().reset(spaces, seeds)
        if not self._asks or self._estimators > 1:
            raise UnfitError(
                "a learned rule says when to send; a Channel whose schedule asks agents, such as 'on_request', and "
                "messages of one statistic are required"
            )
        rows = seeds.shape
        self._horizon = int(spaces.horizon)
        self._unsent = np.zeros(rows)
        self._last_sent, self._times_sent = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        self._shown = np.zeros((*rows, len(FEATURES)))

    def _wants(self, observation: Arrays, arm: Array) -> None:
        _decide(
            observation.get("active", self._everyone), observation["round"], observation["contexts"], arm,
            self._ridges.inverse, self._waited, self._horizon,
            self._unsent, self._last_sent, self._times_sent, *self._rule.layers, self._shown, self._send,
        )  # fmt: skip
