"""Documents that answer queries as arms, from a made-up table in the format and with the columns of MSLR-WEB10K.

The distributions of queries and of places in them are tested at 1e-4 each, under fixed seeds: a false alarm in one of
5,000 sets of seeds.
"""

import json

import numpy as np
import pytest
from linear_offers import LEVEL, of_arms, offers, random_rounds
from scipy import stats

from fedbandit_envs.linear.tables import read_queries
from fedbandit_envs.linear_v0 import parallel_env

SIZES = (8, 5, 9, 3, 6, 12, 7, 5, 8, 10)


def write(path, table, relevance, queries):
    lines = (
        f"{relevance[i]} qid:{queries[i]} "
        + " ".join(f"{k}:{value}" for k, value in enumerate(table[i], 1))
        + (" # made up" if i % 3 == 0 else "")
        for i in range(len(table))
    )
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A file with the sizes above, its features and relevances: 136 of very different magnitude, some of them 0."""
    generator = np.random.default_rng(1)
    many = sum(SIZES)
    table = np.round(generator.gamma(0.7, size=(many, 136)) * 10 ** generator.integers(0, 5, 136), 3)
    table[:, 40] = 0.0
    weights = generator.normal(size=136) / np.maximum(table.max(axis=0), 1)
    score = table @ weights
    relevance = np.searchsorted(np.quantile(score, [0.5, 0.75, 0.9, 0.97]), score)
    queries = np.repeat(np.arange(10, 10 + 3 * len(SIZES), 3), SIZES)
    path = write(tmp_path_factory.mktemp("queries") / "train.txt", table, relevance, queries)
    return path, table, relevance


@pytest.mark.parametrize(("features", "columns"), [
    ("all", range(1, 137)),
    ("anchor_and_url", [k for k in range(1, 126) if k % 5 in (2, 4)] + [126, 127, 128, 129, 130, 131]),
    ("body_title_and_document", [k for k in range(1, 126) if k % 5 in (1, 3, 0)] + [132, 133]),
])  # fmt: skip
def test_what_is_read(made, features, columns):
    path, table, relevance = made
    found = read_queries(path, features)
    used = table[:, np.array(sorted(columns)) - 1]
    largest = np.abs(used).max(axis=0)
    scaled = np.column_stack([np.ones(len(used)), used / np.where(largest > 0, largest, 1.0)])
    scaled /= np.sqrt((scaled**2).sum(axis=1))[:, None]
    # Columns may have another order.
    assert found.contexts.shape == scaled.shape == (len(table), 1 + len(columns))
    np.testing.assert_allclose(
        np.sort(found.contexts, axis=1), np.sort(scaled, axis=1), rtol=1e-9, atol=1e-15
    )
    assert found.first.tolist() == np.cumsum([0, *SIZES]).tolist()
    assert np.linalg.norm(found.parameter) == pytest.approx(1.0)
    # Residuals of a least-squares fit are orthogonal to contexts, up to the factor by which the fit was divided.
    fitted = found.contexts @ found.parameter
    factor = fitted @ relevance / (fitted @ fitted)
    np.testing.assert_allclose(found.contexts.T @ (relevance - factor * fitted), 0.0, atol=1e-8)


def test_each_agent_has_queries_of_its_own_and_arms_that_stand_together(made):
    path = made[0]
    rounds, agents, arms = 1000, 3, 5
    table = read_queries(path)
    contexts, theta = offers(
        rounds, 2, contexts={"name": "queries", "path": path}, reward="normal", num_arms=arms, num_agents=agents,
    )  # fmt: skip
    np.testing.assert_array_equal(theta, np.broadcast_to(table.parameter, theta.shape))
    enough = [q for q, size in enumerate(SIZES) if size >= arms]
    place = {document.tobytes(): i for i, document in enumerate(table.contexts)}
    shares = [enough[: 9 // 3], enough[3:6], enough[6:]]
    assert sum(map(len, shares)) == len(enough) == 9
    for j in range(agents):
        numbers = np.array(
            [
                [place[document.tobytes()] for document in np.ascontiguousarray(offer)]
                for offer in contexts[:, :, j].reshape(-1, *contexts.shape[3:])
            ]
        )
        query = np.searchsorted(table.first, numbers, side="right") - 1
        assert (query == query[:, :1]).all()
        counts = np.array([(query[:, 0] == q).sum() for q in shares[j]])
        assert counts.sum() == len(numbers)
        assert stats.chisquare(counts).pvalue > LEVEL / 6
        for q in shares[j]:
            some, size = numbers[query[:, 0] == q] - table.first[q], SIZES[q]
            assert ((some[:, 1:] - some[:, :-1]) % size == 1).all()
            assert stats.chisquare(np.bincount(some[:, 0], minlength=size)).pvalue > LEVEL / 18


def test_rewards_are_linear_in_what_is_seen(made):
    settings = {"contexts": {"name": "queries", "path": made[0], "features": "anchor_and_url"}}
    sizes = {"num_agents": 2, "num_arms": 4, "max_cycles": 40}
    env = parallel_env(**settings, **sizes, context_bound=2.0, reward="normal", reward_bound=9.0)
    assert json.loads(json.dumps(settings)) == settings
    theta, errors = read_queries(made[0], "anchor_and_url").parameter, []
    for before, arm, reward, info, _ in random_rounds(env, 40, [0]):
        means = before["contexts"] @ theta
        np.testing.assert_allclose(np.linalg.norm(before["contexts"], axis=-1), 2.0)
        np.testing.assert_allclose(info["regret"], means.max(axis=-1) - of_arms(means, arm), atol=1e-12)
        errors += [reward - of_arms(means, arm)]
    # Six standard errors of the standard deviation 0.1.
    assert np.std(errors) == pytest.approx(0.1, rel=6 / np.sqrt(2 * 80))


@pytest.mark.parametrize(("given", "match"), [
    ({"contexts": {"name": "querys", "path": "x"}}, "name is 'querys'; one of .*'pool', 'queries', 'separated'"),
    ({"features": "url"}, "features is 'url'; one of 'anchor_and_url', 'body_title_and_document', 'all' is required"),
    ({"num_arms": 13}, "num_arms is 13 and num_agents 2; .* has 0 queries with as many documents as arms"),
    ({"num_agents": 10, "num_arms": 5}, "num_arms is 5 and num_agents 10; .* has 9 queries"),
    ({"parameter": [1.0, 0.0]}, "parameter has shape \\(2,\\), contexts have shape \\(137,\\)"),
    ({"reward": "beta"}, "reward is 'beta', which needs means in"),
])  # fmt: skip
def test_wrong_arguments_are_refused(made, given, match):
    contexts = {"name": "queries", "path": made[0]}
    if "features" in given:
        contexts["features"] = given.pop("features")
    with pytest.raises(ValueError, match=match):
        parallel_env(**{"contexts": contexts, "num_agents": 2, "num_arms": 3, "reward": "normal", **given})


def test_wrong_argument_names_and_missing_files(made, tmp_path):
    with pytest.raises(TypeError, match=r"contexts 'queries' with .*'paht': .*arguments are path, features"):
        parallel_env(contexts={"name": "queries", "paht": made[0]}, reward="normal")
    with pytest.raises(OSError, match="missing"):
        parallel_env(contexts={"name": "queries", "path": str(tmp_path / "missing.txt")}, reward="normal")


@pytest.mark.parametrize(("text", "match"), [
    ("0 qid:1 1:3 2:0\n2 qid:1 2:0.5 1:1\n", "cannot be read .*; lines such as"),
    ("2 qid:1 1:0.5 2:1 7\n", "cannot be read"),
    ("0 qid:1 1:3 2:0\n2 qid:1 1:0.5 2:nan\n", "entries that are not finite"),
    ("0 qid:1 1:3 2:1\n0 qid:2 1:1 2:2\n", "no relevance but 0"),
    ("0 1:3 2:1\n2 1:1 2:2\n", "lines without qid"),
    ("", "no relevance but 0"),
])  # fmt: skip
def test_malformed_files_are_named(tmp_path, text, match):
    path = tmp_path / "train.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"{path} .*{match}"):
        read_queries(str(path))
    path.write_text("1 qid:1 1:3 2:1\n0 qid:2 1:1 2:2\n")
    with pytest.raises(ValueError, match="or 2 features; 131 are required with features='anchor_and_url'"):
        read_queries(str(path), "anchor_and_url")
