"""Contexts from a labelled table: classification as a bandit, in which an arm is a class and the right one pays 1."""

import hashlib
from functools import lru_cache
from os import PathLike
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import (
    require_array,
    require_choice,
    require_flag,
    require_integer,
    require_number,
)
from fedbandit_envs.basics.compiled import allocating_kernel
from fedbandit_envs.basics.tables import FINITE, Table, optional_library
from fedbandit_envs.linear.ridge import dot
from fedbandit_envs.linear.rounds import Contexts, Instances, fraction
from fedbandit_envs.randomness.draws import fill_bits, padded
from fedbandit_envs.randomness.streams import Purpose, stream

_PACKAGED = {"digits": "f6d9e39f37dc45d3", "wine": "3a28849ef2366c4b", "breast_cancer": "25e2eb7b7a8745b1"}
"""The first digits of the SHA-256 of the tables that scikit-learn has."""


class LabelledTable(NamedTuple):
    """A labelled table.

    Attributes:
        features: Finite numbers, float64 ``(rows, columns)``.
        labels: The class of each row, integers ``(rows,)``, from 0.
        classes: The name of each class, in the order of their numbers: sorted.
    """

    features: Array
    labels: Array
    classes: list[Any]


def read_labelled(data: Any, labels: Any = None) -> LabelledTable:
    """Returns a labelled table from arrays, a frame, a file, or scikit-learn.

    Args:
        data: The name of a table of scikit-learn, which comes with the extra ``data``: ``"digits"``, ``"wine"`` or
            ``"breast_cancer"``. Or the path of a CSV or Parquet file, or a pandas ``DataFrame``, all of whose columns
            but ``labels`` are features (see :class:`~fedbandit_envs.basics.tables.Table`); or an array or nested lists
            ``(rows, columns)``.
        labels: The name of the column of classes in a file or a frame, or one class for each row of an array; None for
            a named table, which has its own. Classes are all text, all whole numbers or all truth values.

    Raises:
        ImportError: scikit-learn, or pandas for a file, is missing.
        OSError: The file cannot be read.
        ValueError: The table is empty or has one class; a cell is no finite number, or a label is missing or no class.
            The error names file, row and column.

    Example:
        >>> table = read_labelled([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], ["no", "yes", "no"])
        >>> table.labels.tolist(), table.classes
        ([0, 1, 0], ['no', 'yes'])
    """
    if isinstance(data, str) and labels is None:
        require_choice("data", data, _PACKAGED)
        return _packaged(data)
    if hasattr(data, "columns") or isinstance(data, str | PathLike):
        table = Table(data, [labels])
        if not table.of_numbers:
            raise ValueError(f"{table.name} has the only column {labels!r}; features beside it are required")
        numbers, classes = table.labels(labels)
        features = table.numbers(table.of_numbers, f"{FINITE} (categories as numbers)")
    else:
        shapes = {2: "the name of a table, a file, a pandas.DataFrame or (rows, columns)"}
        features = require_array("data", data, shapes)
        kinds = {np.asarray(label).dtype.kind for label in np.atleast_1d(np.array(labels, object))}
        if np.shape(labels) != features.shape[:1] or len(kinds) != 1 or not kinds <= set("biufU"):
            raise ValueError(
                f"labels is {labels!r}; a class for each of {len(features)} rows, all text, all whole numbers or all "
                "truth values, is required"
            )
        names, numbers = np.unique(labels, return_inverse=True)
        classes = names.tolist()
    if len(classes) < 2 or any(isinstance(one, float) and one % 1 for one in classes):
        raise ValueError(
            f"labels are {classes[:9]}; two or more classes, text, whole numbers or truth values, are required"
        )
    return LabelledTable(features, numbers.astype(np.int64), classes)


@lru_cache(maxsize=len(_PACKAGED))
def _packaged(name: str) -> LabelledTable:
    """Returns a table of scikit-learn."""
    table = read_labelled(*getattr(optional_library("sklearn.datasets"), f"load_{name}")(return_X_y=True))
    found = hashlib.sha256(table.features.tobytes() + table.labels.tobytes()).hexdigest()[:16]
    if found != _PACKAGED[name]:
        raise ValueError(f"data is {name!r}, whose digest is {found}; {_PACKAGED[name]} is required")
    return table


@allocating_kernel
def _show(
    active, key, round_, parameter, up_to, order, counts, dealt, rows, labels, turns, arms, contexts, means
):
    size, rounds = rows.shape[1], dealt.shape[2]
    # Shared features have as many dimensions as x; disjoint ones have a block for each arm.
    step = size if contexts.shape[2] > size else 0
    words = np.empty(padded(2), np.uint32)
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            if not active[r, j]:
                continue
            if rounds > 0:
                # What is shown after the last round is never acted on.
                row = dealt[r, j, min(np.int64(round_[r, j]), rounds - 1)]
            else:
                fill_bits(key[r, j, 0], key[r, j, 1], round_[r, j], words)
                which, first = fraction(words[0]), 0
                label = 0
                while which > up_to[r, j, label]:
                    first += counts[label]
                    label += 1
                row = order[first + int(fraction(words[1]) * counts[label])]
            for i in range(size):
                value = dot(turns[r, i], rows[row])
                for k in range(contexts.shape[3]):
                    contexts[r, j, k * step + i, k] = value
            means[r, j] = 0.0
            means[r, j, arms[r, labels[row]]] = 1.0


FormName = Literal["disjoint", "shared"]
RowsName = Literal["with_replacement", "one_pass"]


class LabelledContexts(Contexts):
    """In every round each agent is shown a row of a labelled table; arms are the classes, and the right one pays 1.

    A row's features are standardised, divided by the root mean square of their norms, and preceded by a 1; this vector
    is scaled to norm L and called x. Means, standard deviations and components are those of the whole table, and no
    privacy guarantee covers them.

    With ``features="disjoint"`` the context of arm k has x in the k-th of K blocks and 0 elsewhere, so that one
    parameter theta* has a part for each class (Zhou, Li and Gu, ICML 2020, section 7); any linear policy learns it.
    With ``"shared"`` all arms have the context x (Riquelme, Tucker and Snoek, ICLR 2018), for policies with a
    regression for each arm; other policies cannot tell the arms apart.

    Agent j draws classes from q_j. It is the table's own distribution, or with ``alpha`` drawn from Dirichlet(alpha K
    p), where p is the table's distribution: alpha near 0 gives each agent a class of its own (Hsu, Qi and Brown 2019,
    whose Dirichlet(a p) is this one with a = alpha K). Rows of one class are drawn uniformly.

    A round shows one row, so that ``one-observation`` protects one row in one pass of one episode. With ``alpha``,
    which deals rows by their classes, neighbours replace a row by one of the same class. Rows that are drawn with
    replacement can be shown again; then each showing is an observation of its own.

    The parameter is the least-squares regression of class indicators on x, scaled to norm 1: ``(dim,)``, or ``(arms,
    dim)`` with shared features. It is the best linear prediction; rewards and regret follow from the labels alone.

    Example:
        >>> from fedbandit_envs import linear_v0
        >>> table = {"data": [[0.0], [1.0], [2.0], [3.0]], "labels": ["low", "low", "high", "high"]}
        >>> env = linear_v0.parallel_env(num_agents=2, contexts={"name": "classification", **table})
        >>> observations, _ = env.reset(seed=0)
        >>> observations["agent_0"]["contexts"].shape
        (2, 4)
    """

    exact = True
    fill = staticmethod(_show)

    def __init__(
        self,
        bound: float,
        data: Any,
        labels: Any = None,
        features: FormName = "disjoint",
        components: int | None = None,
        rows: RowsName = "with_replacement",
        alpha: float | None = None,
        scrambled: bool = False,
    ) -> None:
        """Reads the table.

        Args:
            bound: L, the norm of x.
            data: The table, see :func:`~fedbandit_envs.linear.labelled.read_labelled`.
            labels: Its classes, see there.
            features: ``"disjoint"`` or ``"shared"``, see above.
            components: Number of principal components that replace the standardised features; None for all features.
            rows: ``"with_replacement"``; or ``"one_pass"``, where each row is shown to one agent and once, in random
                order.
            alpha: How alike the agents' classes are, > 0; None for equal distributions, as one pass requires.
            scrambled: Whether features are rotated and arms numbered at random, anew in each instance, so that what is
                known of the table from elsewhere does not help. Rotations do not change what ridge regression predicts.

        Raises:
            ImportError: A package is missing.
            OSError: A file cannot be read.
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range, or the table is malformed.
        """
        shared = require_choice("contexts features", features, get_args(FormName)) == "shared"
        self._once = require_choice("contexts rows", rows, get_args(RowsName)) == "one_pass"
        if alpha is not None:
            require_number("contexts alpha", alpha, 0, np.inf, open_below=True)
            require_choice("contexts rows with alpha", rows, ("with_replacement",))
        self._alpha = alpha
        self._scrambled = require_flag("contexts scrambled", scrambled)
        table = read_labelled(data, labels)
        if components is not None:
            require_integer("contexts components", components, 1, table.features.shape[1])
        self.longest, self._labels = bound, table.labels
        self._contexts = bound * _normalised(table.features, components)
        self._order = np.argsort(self._labels, kind="stable")
        self._counts = np.bincount(self._labels)
        self._classes, size = len(self._counts), self._contexts.shape[1]
        sums = [self._contexts[self._labels == k].sum(axis=0) for k in range(self._classes)]
        fit = np.linalg.lstsq(self._contexts.T @ self._contexts, np.transpose(sums), rcond=None)[0].T
        fit /= np.linalg.norm(fit)
        self.parameter = fit if shared else fit.ravel()
        self.shape = (self._classes, size if shared else self._classes * size)

    def means(self, parameter: Array | None) -> Array:
        """Returns the expected rewards that there are, whatever the parameter: 0 and 1."""
        return np.array([0.0, 1.0])

    def deal(self, agents: int, arms: int, rounds: int) -> None:
        """Checks that there are enough rows where each is shown once; see :meth:`.Contexts.deal`."""
        self._rounds = rounds
        if self._once and agents * rounds > len(self._labels):
            raise ValueError(
                f"num_agents is {agents} and max_cycles {rounds}; a product of at most {len(self._labels)}, the rows "
                "of the table, is required where each is shown once"
            )

    def parameter_of(self, seed: int, parameter: Array) -> Array:
        """Returns the parameter in the rotated features and with the renumbered arms of a seed's instance."""
        rotation, arms = self._scrambling(seed)
        by_class = parameter.reshape(self._classes, -1)
        fit = np.empty_like(by_class)
        fit[arms] = by_class @ rotation.T
        return fit.reshape(parameter.shape)

    def _scrambling(self, seed: int) -> tuple[Array, Array]:
        """Returns an instance's rotation of x, ``(size, size)``, and the arm of each class, ``(classes,)``."""
        size = self._contexts.shape[1]
        if not self._scrambled:
            return np.eye(size), np.arange(self._classes)
        draws = stream(seed, Purpose.POOL)
        arms = draws.permutation(self._classes)
        rotation, triangle = np.linalg.qr(draws.standard_normal((size, size)))
        # With these signs the rotation is uniform (Mezzadri 2007).
        return rotation * np.sign(np.diagonal(triangle)), arms

    def _distribution_of(self, seed: int, agent: int) -> Array:
        """Returns q_j, an agent's distribution over the classes; it does not depend on the number of agents."""
        share = self._counts / self._counts.sum()
        if self._alpha is None:
            return share
        drawn = stream(seed, Purpose.POOL, agent).dirichlet(self._alpha * self._classes * share)
        # With a tiny alpha all of the gamma variables behind the draw may be 0.
        return drawn if np.isfinite(drawn).all() else share

    def begin(self, instances: Instances) -> None:
        """Starts an episode: distributions of classes, and in one pass who is shown which rows."""
        super().begin(instances)
        agents = instances.means.shape[1]
        scrambled = [self._scrambling(seed) for seed in instances.seeds]
        rotations, arms = (np.stack(parts) for parts in zip(*scrambled, strict=True))
        shares = np.array(
            [[self._distribution_of(seed, agent) for agent in range(agents)] for seed in instances.seeds]
        )
        up_to = shares.cumsum(axis=-1)
        # Without rounding errors, so that no number lies above the last of them.
        up_to[..., -1] = 1.0
        # The rows that agents are shown in one pass, (replicas, agents, rounds).
        dealt = np.empty((len(shares), agents, 0), np.int64)
        if self._once:
            streams = [stream(seed, Purpose.CONTEXT, 1) for seed in instances.randomness.seeds]
            mixed = np.stack([draws.permutation(len(self._labels)) for draws in streams])
            dealt = mixed[:, : agents * self._rounds].reshape(len(shares), agents, -1)
        table = self._contexts, self._labels, rotations, arms
        self.data = up_to, self._order, self._counts, dealt, *table


def _normalised(features: Array, components: int | None) -> Array:
    """Returns the vectors x of norm 1, ``(rows, 1 + columns)`` or ``(rows, 1 + components)``."""
    deviation, size = features.std(axis=0), np.abs(features).max(axis=0)
    # Of a constant column, rounding may leave a tiny deviation.
    varies = deviation > 1e-12 * size
    if (unclear := varies & (deviation < 1e-6 * size)).any():
        raise ValueError(
            f"data has a column of features, {int(unclear.argmax())} (from 0), that varies by less than a millionth of "
            "its size, as rounding errors do; none is required (subtract a constant from it, or leave it out)"
        )
    standard = np.where(varies, features - features.mean(axis=0), 0.0) / np.where(varies, deviation, 1.0)
    if components is not None:
        axes = np.linalg.eigh(standard.T @ standard)[1][:, ::-1][:, :components]
        # The sign of an axis is a matter of convention: its largest entry is positive.
        standard = standard @ (axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(components)]))
    length = np.sqrt((standard**2).sum(axis=1).mean())
    rows = np.concatenate([np.ones((len(standard), 1)), standard / (length or 1.0)], axis=1)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
