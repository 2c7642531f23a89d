"""Contexts from files: documents that answer queries, and rows of a table of which an agent plays one in each round.

Documents are those of your own copy of a learning-to-rank data set, such as MSLR-WEB10K. The file has a line for each
document: its relevance to a query, ``qid:`` and the query's number, and features ``1:2.0 2:0 ...`` in order (one that
is left out is 0); what follows a ``#`` is a comment. The documents of a query stand together.
"""

from collections.abc import Sequence
from numbers import Integral
from os import PathLike
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_array, require_choice, require_flag, require_integer
from fedbandit_envs.basics.compiled import allocating_kernel
from fedbandit_envs.basics.tables import FINITE, Table, optional_library, require_file
from fedbandit_envs.linear.ridge import expect
from fedbandit_envs.linear.rounds import Contexts, fraction
from fedbandit_envs.randomness.draws import fill_bits, padded

FeatureSet = Literal["anchor_and_url", "body_title_and_document", "all"]

_STREAMS = 25
_COLUMNS = {
    "anchor_and_url": [5 * i + j for i in range(_STREAMS) for j in (2, 4)] + [*range(126, 132)],
    "body_title_and_document": [5 * i + j for i in range(_STREAMS) for j in (1, 3, 5)] + [132, 133],
}


class Queries(NamedTuple):
    """Documents as arms, and a parameter by which their expected rewards are linear in their contexts.

    Attributes:
        contexts: Contexts of all documents, of norm 1, float64 ``(documents, dim)``.
        first: The number of each query's first document, and last the number of documents, int64 ``(queries + 1,)``.
        parameter: theta*, of norm 1, float64 ``(dim,)``.
    """

    contexts: Array
    first: Array
    parameter: Array


def read_queries(path: str | PathLike[str], features: FeatureSet = "all") -> Queries:
    """Reads a file of documents, such as ``Fold1/train.txt`` of MSLR-WEB10K.

    A context is (1, f_1 / s_1, f_2 / s_2, ...) divided by its norm, where s_i is the largest absolute value of feature
    f_i in the file (a feature that is always 0 stays 0). theta* is the least-squares fit of the documents' relevances
    to their contexts, divided by its norm. The expected reward of a document is the product of its context and theta*,
    so that it is exactly linear in what agents see. In Figure 2.c of Zhou and Chowdhury (ICLR 2024) it is not: the
    authors' program fits a lasso to the features as they are in the file and takes its predictions for expected
    rewards, but shows agents the features divided by their norm. In that figure rewards have no noise, either.

    Args:
        path: The file.
        features: ``"all"``, or, of the 136 features of MSLR-WEB10K, one of the two sets in the authors' program, which
            leave out three: ``"anchor_and_url"`` (56 features) or ``"body_title_and_document"`` (77).

    Returns:
        Contexts of all documents, the first document of each query, and theta*.

    Raises:
        ImportError: scikit-learn, of the ``[data]`` extra, is missing.
        OSError: The file cannot be read.
        ValueError: ``features`` is unknown or not in the file, a line is malformed, or the file is empty.
    """
    require_choice("features", features, get_args(FeatureSet))
    path = require_file("path", path)
    load = optional_library("sklearn.datasets").load_svmlight_file
    try:
        found, relevance, query = load(path, zero_based=False, query_id=True)
    except ValueError as error:
        raise ValueError(
            f"{path} cannot be read ({error}); lines such as '2 qid:7 1:0.5 2:3', a relevance, a query and the "
            "features in order, are required"
        ) from None
    columns = np.subtract(_COLUMNS.get(features, [*range(1, found.shape[1] + 1)]), 1)
    if (
        columns[-1] >= found.shape[1]
        or query.size != relevance.size
        or not np.isfinite([*relevance, found.data.sum()]).all()
        or not relevance.any()
    ):
        raise ValueError(
            f"{path} has lines without qid, entries that are not finite, no relevance but 0, or {found.shape[1]} "
            f"features; {columns[-1] + 1} are required with features={features!r}"
        )
    chosen = found.toarray()[:, columns]
    chosen /= np.maximum(np.abs(chosen).max(axis=0), np.finfo(float).tiny)
    contexts = np.concatenate([np.ones((len(chosen), 1)), chosen], axis=1)
    contexts /= np.linalg.norm(contexts, axis=1, keepdims=True)
    parameter = np.linalg.lstsq(contexts, relevance, rcond=None)[0]
    first = np.flatnonzero(np.diff(query, prepend=np.nan, append=np.nan))
    return Queries(contexts, first, parameter / np.linalg.norm(parameter))


@allocating_kernel
def _fill_queries(active, key, round_, parameter, bound, documents, ranges, contexts, means):
    agents, dim, arms = contexts.shape[1:]
    words = np.empty(padded(2), np.uint32)
    for r in range(contexts.shape[0]):
        for j in range(agents):
            if not active[r, j]:
                continue
            fill_bits(key[r, j, 0], key[r, j, 1], round_[r, j], words)
            low, high = j * ranges.shape[0] // agents, (j + 1) * ranges.shape[0] // agents
            first, size = ranges[low + int(fraction(words[0]) * (high - low))]
            start = int(fraction(words[1]) * size)
            for k in range(arms):
                document = documents[first + (start + k) % size]
                for i in range(dim):
                    contexts[r, j, i, k] = bound * document[i]
            expect(contexts[r, j], parameter[r], means[r, j])


class QueryContexts(Contexts):
    """Contexts of documents: in every round each agent is given one of its own queries, and K of its documents as arms.

    Queries with fewer than K documents are left out. Of the Q others, in the order of the file, agent j of M has those
    from floor(j Q / M) to floor((j + 1) Q / M) - 1. A round's query is drawn uniformly, and its arms are K consecutive
    documents, from one drawn uniformly on; the first document follows the last one. Contexts have norm 1 and are
    multiplied by L.
    """

    fill = staticmethod(_fill_queries)

    def __init__(self, bound: float, path: str, features: FeatureSet = "all") -> None:
        """Reads a file.

        Args:
            bound: L.
            path: Path of the file.
            features: See :func:`~fedbandit_envs.linear.tables.read_queries`.

        Raises:
            OSError: The file cannot be read.
            ValueError: ``features`` is unknown, or the file is malformed.
        """
        self._queries = read_queries(path, features)
        self.parameter = self._queries.parameter
        self.shape = self.parameter.shape
        self._bound = self.longest = bound
        self._path = path

    def deal(self, agents: int, arms: int, rounds: int) -> None:
        """Deals queries or rows to the agents; see :meth:`.Contexts.deal`."""
        sizes = np.diff(self._queries.first)
        ranges = np.stack([self._queries.first[:-1], sizes], axis=1)[sizes >= arms]
        if len(ranges) < agents:
            raise ValueError(
                f"num_arms is {arms} and num_agents {agents}; {self._path} has {len(ranges)} queries with as many "
                "documents as arms, and at least one for each agent is required"
            )
        self.data = self._bound, self._queries.contexts, ranges


Order = Literal["once", "random"]

_OFF_POLICY = (
    "a table that has the rewards of the logged arms alone is off-policy: what another arm would have paid is unknown, "
    "so that it cannot be played. Give the rewards of all arms, or a parameter"
)


@allocating_kernel
def _fill_rows(active, key, round_, parameter, once, rows, first, values, arms, rewards, contexts, means):
    words = np.empty(padded(1), np.uint32)
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            if not active[r, j]:
                continue
            count = first[j + 1] - first[j]
            place = np.int64(round_[r, j]) % count
            if not once:
                fill_bits(key[r, j, 0], key[r, j, 1], round_[r, j], words)
                place = np.int64(fraction(words[0]) * count)
            row = rows[first[j] + place]
            for k in range(arms.shape[0]):
                z = values[row, k % values.shape[1]]
                for i in range(z.shape[0]):
                    for h in range(arms.shape[1]):
                        contexts[r, j, i * arms.shape[1] + h, k] = z[i] * arms[k, h]
            expect(contexts[r, j], parameter[r], means[r, j])
            if rewards.shape[0] > 0:
                for k in range(arms.shape[0]):
                    means[r, j, k] = rewards[row, k]


class TableContexts(Contexts):
    """In every round each agent is given a row of a table, from which follow the contexts of its arms.

    The context of arm k is the outer product of the row's features z and the arm's features a_k, flattened: its entry
    i q + h is z_i a_kh, where q is the number of an arm's features (Li et al. 2010). If the features of arm k are all 0
    but for one 1 (``arms`` is a number), its context has z in coordinates of its own, and 0 elsewhere. If ``arms`` is
    None, each row of the table has the contexts of all arms.

    The expected reward of an arm is <x, theta*>. Where the table has the rewards of all arms, theta* is fitted to them
    by ridge regression (of weight 1), and divided by its norm if that is above 1; or, with ``exact``, the rewards
    themselves are the expected rewards, and theta* is then only the linear function nearest to them. The fitted model
    serves as a simulator: no policy is evaluated off-policy here. Expected rewards must lie in [-B, B], where B is the
    environment's bound on rewards; with noise, rewards outside of it are clipped as in all linear problems, and counted
    in ``info["clipped"]``.

    **Privacy.** With ``order="once"`` an agent plays each of its rows at most once in an episode, so that a row is one
    observation of one agent: the adjacency ``"one-observation"`` means that one row is replaced by another of the same
    agent. With ``"random"`` an agent may play a row several times, and that adjacency covers one of these rounds, not
    the row; the adjacency ``"agent"`` covers all rows of an agent, in both orders. A claim is about one episode: every
    further episode, or replica, plays the same rows again. No adjacency covers what follows from the whole table
    without noise: theta* where it is fitted, though no agent is told it, and the number of rows.

    Claims rely on norms of at most L. Nothing is scaled: a longer context is an error.

    Example:
        >>> import pandas
        >>> from fedbandit_envs.linear_v0 import parallel_env
        >>> visits = pandas.DataFrame({"age": [0.3, 0.6, 0.2], "clinic": ["b", "a", "b"]})
        >>> table = {"name": "table", "table": visits, "features": ["age"], "arms": 2, "agent": "clinic"}
        >>> env = parallel_env(contexts=table, reward="normal", max_cycles=1)
        >>> env.reset_batch([0]).observation["contexts"][0].tolist()
        [[[0.6, 0.0], [0.0, 0.6]], [[0.3, 0.0], [0.0, 0.3]]]
    """

    fill = staticmethod(_fill_rows)

    def __init__(
        self,
        bound: float,
        table: Any,
        features: Sequence[Any],
        arms: Any = None,
        agent: Any = None,
        rewards: Sequence[Any] | None = None,
        exact: bool = False,
        order: Order = "once",
    ) -> None:
        """Reads the table.

        Args:
            bound: L, the largest allowed norm of a context.
            table: The path of a CSV file with a header row, or of a Parquet file (``.parquet``), or a
                ``pandas.DataFrame``; see :class:`~fedbandit_envs.basics.tables.Table`.
            features: Names of the columns of a row's features; or, where each row has the contexts of all arms, one
                list of names for each arm.
            arms: The arms' features, ``(arms, features)``, an array or nested lists; or K, the number of arms, where
                each arm has coordinates of its own; None where each row has the contexts of all arms.
            agent: Name of the column that says which agent a row belongs to; its values are the agents, in ascending
                order. None deals the rows: of M agents, agent j has rows j, j + M, j + 2 M ...
            rewards: Names of the columns of rewards, one for each arm; None where the table has none.
            exact: Whether the expected reward of an arm is its reward in the row, instead of <x, theta*>.
            order: ``"once"``: an agent plays its rows in the order of the table, each once, the first one in its first
                round; or ``"random"``: its row is drawn in each round, with replacement.

        Raises:
            ImportError: pandas or pyarrow is missing.
            OSError: The file cannot be read.
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range; a column is not in the table; an entry is missing or not
                finite; a context is longer than L; or the rewards are those of some arms only. The error names file,
                line and column.
        """
        self._once = require_choice("order", order, get_args(Order)) == "once"
        each_arm = features if arms is None else [features]
        sizes = {len(names) if isinstance(names, list | tuple) else 0 for names in each_arm}
        if len(sizes) != 1 or 0 in sizes or any(isinstance(name, list | tuple) for name in each_arm[0]):
            raise TypeError(
                f"features is {features!r} and arms {arms!r}; a list of columns is required with features of the arms, "
                "and without (arms=None) a list of as many columns for each arm"
            )
        if isinstance(arms, Integral):
            self._arms = np.eye(require_integer("arms", arms, 1))
        else:
            given = np.ones((len(each_arm), 1)) if arms is None else arms
            self._arms = require_array("arms", given, {2: "a number of arms, or (arms, features),"})
        self.shape = (len(self._arms), len(each_arm[0]) * self._arms.shape[1])
        self.exact = require_flag("exact", exact)
        wrong = exact if rewards is None else isinstance(rewards, str) or len(rewards) != len(self._arms)
        if wrong:
            raise ValueError(
                f"rewards is {rewards!r}; {len(self._arms)} columns, one for each arm, are required: {_OFF_POLICY}"
            )
        columns = [name for names in each_arm for name in names]
        data = Table(table, [] if agent is None else [agent], [*columns, *(rewards or ())])
        # The features of a row, or of its arms: (rows, 1 or arms, features).
        self._values = data.numbers(columns).reshape(data.rows, len(each_arm), -1)
        self._name = data.name
        self._owner: Array | None = None
        if agent is not None:
            self._owner, agents = data.labels(agent)
            self.shape = (len(agents), *self.shape)
        # Either all arms share a row's features, or their own features are 1.
        lengths = np.sqrt(np.einsum("nki,nki->nk", self._values, self._values).max(axis=1))
        lengths *= np.linalg.norm(self._arms, axis=1).max()
        longest = int(np.argmax(lengths))
        self.longest = float(lengths[longest])
        if self.longest > bound * (1 + 1e-12):
            raise ValueError(
                f"{data.place(longest)} has a context of norm {self.longest:.6g}; at most context_bound = "
                f"{bound:g} is required (divide features by a constant, or set context_bound)"
            )
        self._rewards = np.zeros((0, 0))
        if rewards is not None:
            paid = data.numbers(rewards, f"{FINITE}, the rewards of all arms ({_OFF_POLICY}),")
            self.parameter = self._fitted(paid)
            self._rewards = paid if exact else self._rewards

    def _fitted(self, rewards: Array) -> Array:
        """Returns the ridge estimate of theta*, of norm at most 1, from the rewards of all rows and arms."""
        gram, moments = np.eye(self.shape[-1]), np.zeros(self.shape[-1])
        for k, arm in enumerate(self._arms):
            z = self._of_arm(k)
            gram += np.kron(z.T @ z, np.outer(arm, arm))
            moments += np.kron(z.T @ rewards[:, k], arm)
        theta = np.linalg.solve(gram, moments)
        return theta / max(float(np.linalg.norm(theta)), 1.0)

    def _of_arm(self, k: int) -> Array:
        """Returns the rows' features that belong to arm k, ``(rows, features)``."""
        return self._values[:, k % self._values.shape[1]]

    def means(self, parameter: Array | None) -> Array | None:
        """Returns the expected rewards of all rows, ``(rows, arms)``; see :meth:`.Contexts.means`."""
        if self.exact:
            return self._rewards
        if parameter is None:
            return None
        own = np.broadcast_to(parameter, self.shape[-2:]).reshape(len(self._arms), self._values.shape[2], -1)
        return np.stack([self._of_arm(k) @ own[k] @ arm for k, arm in enumerate(self._arms)], axis=1)

    def deal(self, agents: int, arms: int, rounds: int) -> None:
        """Deals queries or rows to the agents; see :meth:`.Contexts.deal`."""
        owner = np.arange(len(self._values)) % agents if self._owner is None else self._owner
        counts, needed = np.bincount(owner, minlength=agents), rounds if self._once else 1
        if counts.min() < needed:
            raise ValueError(
                f"{self._name} has {counts.min()} rows for agent {np.argmin(counts)} of {agents}; at least {needed} "
                "are required, with order='once' as many as max_cycles"
            )
        rows, first = np.argsort(owner, kind="stable"), np.cumsum([0, *counts])
        # After its last row, which an agent plays in the last round at most, the first one is shown again.
        self.data = self._once, rows, first, self._values, self._arms, self._rewards
