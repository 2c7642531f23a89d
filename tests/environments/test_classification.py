"""A labelled table as a bandit: rows, labels, who is shown what, and every way in which a table can be wrong.

Statistical tests fix seeds; with others each would raise a false alarm in less than one of a million runs.
"""

import numpy as np
import pytest
from linear_offers import random_rounds
from refusals import refusals
from scipy.stats import chisquare
from undrawn import undrawn

from fedbandit_envs.exposure_v0 import parallel_env as exposure_env
from fedbandit_envs.linear.labelled import read_labelled
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.testing import check_federation

RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(40, 3)) * [1, 5, 20] + 7
LABELS = ["frog"] * 20 + ["newt"] * 12 + ["toad"] * 8
OF_CLASS = np.repeat([0, 1, 2], [20, 12, 8])


def classify(**given):
    settings = {
        "num_agents": 2,
        "max_cycles": 5,
        "context_bound": 1.0,
        "reward": "bernoulli",
        "instance_seed": None,
    }
    table = {"name": "classification", "data": NUMBERS, "labels": LABELS}
    table |= {name: value for name, value in given.items() if name not in settings}
    return parallel_env(contexts=table, **{name: given.get(name, value) for name, value in settings.items()})


def normalised(numbers):
    standard = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    rows = np.hstack([np.ones((len(numbers), 1)), standard / np.sqrt((standard**2).sum(axis=1).mean())])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


X = normalised(NUMBERS)


def rows_shown(contexts):
    """The numbers of the rows that agents are shown, from disjoint contexts ``(replicas, agents, arms, dim)``."""
    x = contexts.reshape(*contexts.shape[:3], 3, 4)[:, :, 0, 0]
    distance = np.abs(x[:, :, np.newaxis] - X).max(axis=-1)
    assert distance.min(axis=-1).max() < 1e-12
    return distance.argmin(axis=-1)


def played(env, seeds=range(3)):
    """Returns the rows shown in all rounds, ``(rounds, replicas, agents)``."""
    return np.array(
        [rows_shown(before["contexts"]) for before, *_ in random_rounds(env, env.max_cycles, seeds)]
    )


@pytest.mark.parametrize("law", ["bernoulli", "beta"])
def test_the_label_pays_one_and_regret_is_exact(law):
    for before, arm, reward, info, _ in random_rounds(classify(max_cycles=30, reward=law), 30):
        right = OF_CLASS[rows_shown(before["contexts"])] == arm
        np.testing.assert_array_equal(reward, right)
        np.testing.assert_array_equal(info["regret"], 1.0 - right)


def test_contexts_are_the_row_in_a_block_of_each_arm_or_for_all_arms():
    disjoint, shared = classify(context_bound=2.0), classify(context_bound=2.0, features="shared")
    blocks, rows = (env.reset_batch([4]).observation["contexts"] for env in (disjoint, shared))
    np.testing.assert_array_equal(rows, np.broadcast_to(rows[:, :, :1], (1, 2, 3, 4)))
    np.testing.assert_allclose(np.linalg.norm(rows, axis=-1), 2.0)
    for arm in range(3):
        np.testing.assert_array_equal(
            blocks[:, :, arm].reshape(1, 2, 3, 4), rows[:, :, :1] * np.eye(3)[arm][:, np.newaxis]
        )
    np.testing.assert_array_equal(rows_shown(blocks / 2), rows_shown(blocks / 2))


def test_components_are_those_of_the_singular_value_decomposition():
    contexts = classify(components=2, features="shared").reset_batch(range(200)).observation["contexts"]
    found = np.unique(contexts[:, :, 0].reshape(-1, 3).round(9), axis=0)
    standard = (NUMBERS - NUMBERS.mean(axis=0)) / NUMBERS.std(axis=0)
    left, singular, _ = np.linalg.svd(standard, full_matrices=False)
    scores = left[:, :2] * singular[:2]
    rows = np.hstack([np.ones((40, 1)), scores / np.sqrt((scores**2).sum(axis=1).mean())])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    # The signs of components are arbitrary.
    for wanted in rows:
        assert np.abs(np.abs(found) - np.abs(wanted)).max(axis=1).min() < 1e-8


def test_rows_are_drawn_uniformly_with_replacement():
    rows = played(classify(num_agents=4, max_cycles=20), range(50))
    assert chisquare(np.bincount(rows.ravel(), minlength=40)).pvalue > 1e-6
    # The same episode alone, and beside fewer agents.
    np.testing.assert_array_equal(played(classify(max_cycles=20), [7])[:, 0], rows[:, 7, :2])


def test_in_one_pass_each_row_is_shown_once():
    rows = played(classify(num_agents=4, max_cycles=10, rows="one_pass"))
    for replica in range(3):
        assert sorted(rows[:, replica].ravel()) == [*range(40)]
    assert (np.diff(rows[:, 0], axis=0) < 0).any()


@pytest.mark.parametrize("alpha", [1e-9, 1e-300])
def test_an_instance_fixes_the_classes_and_an_episode_the_rows(alpha):
    rows = played(classify(alpha=alpha, instance_seed=3), range(8))
    kinds = OF_CLASS[rows]
    assert (kinds == kinds[0, 0]).all() or alpha == 1e-300
    assert len(np.unique(rows[:, :, 0], axis=1).T) > 1


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_agents_classes_have_the_moments_of_dirichlets_distribution(alpha):
    """Two rows of an agent have the same class with the probability sum_k E[q_k^2]; 1,000 pairs, 5 standard errors."""
    kinds = OF_CLASS[played(classify(num_agents=1, max_cycles=2, alpha=alpha), range(1000))][:, :, 0]
    share = np.array([0.5, 0.3, 0.2])
    same = (share**2 + share * (1 - share) / (3 * alpha + 1)).sum()
    assert abs((kinds[0] == kinds[1]).mean() - same) < 5 * np.sqrt(same * (1 - same) / 1000)
    np.testing.assert_allclose(np.bincount(kinds[0]) / 1000, share, atol=5 * 0.5 / np.sqrt(1000))


@pytest.mark.parametrize("features", ["disjoint", "shared"])
def test_a_scrambled_table_is_the_same_problem(features):
    plain, scrambled = (classify(features=features, scrambled=on) for on in (False, True))
    seen = [env.reset_batch(range(6)).observation["contexts"].copy() for env in (plain, scrambled)]
    scores = [(x * env.hidden()["parameter"].reshape(6, 2, -1, x.shape[-1])).sum(-1) for env, x in
              zip((plain, scrambled), seen, strict=True)]  # fmt: skip
    # Arms are numbered anew, and predictions of the label stay.
    np.testing.assert_allclose(*(np.sort(score, axis=-1) for score in scores), atol=1e-12)
    assert not np.allclose(*scores)
    np.testing.assert_allclose(*(np.linalg.norm(x, axis=-1) for x in seen))
    assert not np.allclose(seen[1][0], seen[1][1])
    best = [env.clairvoyant({}) for env in (plain, scrambled)]
    for arms, env in zip(best, (plain, scrambled), strict=True):
        assert not env.step_batch(arms).info["regret"].any()
    assert (best[0] != best[1]).any()


def test_it_is_a_federation():
    data, labels = np.tile(NUMBERS, (10, 1)).tolist(), LABELS * 10
    table = {"name": "classification", "data": data, "labels": labels, "rows": "one_pass", "scrambled": True}
    settings = {"contexts": table, "num_agents": 4, "max_cycles": 40}
    with undrawn():
        check_federation(lambda **kwargs: make_federation("FedClassification-v0", **{**settings, **kwargs}))


test_wrong_arguments_are_named = refusals(
    lambda settings: classify(**settings),
    ({"features": "both"}, "contexts features is 'both'; one of 'disjoint', 'shared'"),
    ({"components": 4}, r"contexts components is 4; an integer in \[1, 3\]"),
    ({"rows": "one_pass", "num_agents": 9}, "num_agents is 9 and max_cycles 5; a product of at most 40"),
    ({"rows": "one_pass", "alpha": 1.0}, "contexts rows with alpha is 'one_pass'; one of 'with_replacement'"),
    ({"reward": "logistic"}, "reward 'logistic'"),
    ({"labels": LABELS[:-1]}, r"labels is \['frog'.*; a class for each of 40 rows"),
    ({"labels": None}, "labels is None; a class"),
    ({"labels": ["frog"] * 40}, r"labels are \['frog'\]; two or more"),
    *(({"labels": [*LABELS[:-1], odd]}, "all text, all whole numbers") for odd in (None, np.nan, 3)),
    (
        {"labels": [np.datetime64("2024-01-01"), np.datetime64("2024-01-02")] * 20},
        "all text, all whole numbers",
    ),
    ({"labels": np.linspace(0, 1, 40)}, r"labels are \[0.0, 0.0256"),
    ({"data": np.where(np.eye(40, 3) > 0, np.inf, NUMBERS)}, r"data\[0, 0\] is inf; finite numbers"),
    ({"data": NUMBERS.ravel()}, r"data has shape \(120,\)"),
    ({"data": "wines", "labels": None}, "data is 'wines'; one of .*'wine'"),
    ({"data": [["a", "b"], ["c", "d"]]}, r"data is \[\['a', .*; the name of a table, a file"),
    ({"data": [[1.0], [2.0, 3.0]]}, r"data is \[\[1.0\], "),
    ({"data": None}, "data is None; the name of a table"),
    ({"data": np.where(np.eye(40, 3) > 0, 1e200, NUMBERS)}, r"data\[0, 0\] is 1e\+200; finite numbers in"),
    error=ValueError,
)


def test_a_wrong_type_is_named():
    with pytest.raises(TypeError, match="contexts scrambled is 1"):
        classify(scrambled=1)


def test_numpys_whole_numbers_are_whole_numbers():
    assert read_labelled(NUMBERS[:3], [np.int64(1), 2, np.int32(1)]).classes == [1, 2]


def test_more_rounds_than_rows_are_refused_whenever_they_are_set():
    env = classify(rows="one_pass", max_cycles=20)
    env.reset_batch([0])
    env.max_cycles = 21
    with pytest.raises(ValueError, match="num_agents is 2 and max_cycles 21"):
        env.reset_batch([0])


def test_labels_are_the_expected_rewards():
    contexts = {"name": "classification", "data": NUMBERS, "labels": LABELS}
    with pytest.raises(ValueError, match="parameter is 'sphere' and reward 'beta'; None"):
        parallel_env(contexts=contexts, parameter="sphere")
    with pytest.raises(ValueError, match="contexts are a labelled table"):
        exposure_env(contexts=contexts)
    with pytest.raises(ValueError, match="num_arms is 4; None or 3"):
        parallel_env(contexts=contexts, num_arms=4)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_rounding_errors_are_no_features(kind):
    """A constant column with errors in its last digit: in double precision it is 0, in single precision refused."""
    last = np.array([0.3, np.nextafter(kind(0.3), kind(1))] * 20, kind)
    data = np.column_stack([NUMBERS, last])
    if kind == np.float32:
        with pytest.raises(
            ValueError, match=r"a column of features, 3 \(from 0\), that varies by less than a"
        ):
            classify(data=data)
    else:
        seen = classify(data=data, features="shared").reset_batch([0]).observation["contexts"]
        assert not seen[..., -1].any()
    # What varies by more than a millionth is a feature.
    data[:, 3] = 300 + 0.01 * (np.arange(40) % 2)
    seen = classify(data=data, features="shared").reset_batch([0]).observation["contexts"]
    assert seen[..., -1].all()


# Files and frames

CSV = "width,kind,height\n1,frog,2.5\n3,toad,4\n\n-2e1,frog,0\n"


def test_files_frames_and_arrays_are_the_same_table(tmp_path):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "mine.csv"
    path.write_text(CSV)
    frame = pandas.DataFrame({"width": [1, 3, -20], "kind": ["frog", "toad", "frog"], "height": [2.5, 4, 0]})
    for table in (
        read_labelled(path, "kind"),
        read_labelled(str(path), "kind"),
        read_labelled(frame, "kind"),
        read_labelled([[1, 2.5], [3, 4], [-20, 0]], ["frog", "toad", "frog"]),
    ):
        assert table.features.tolist() == [[1, 2.5], [3, 4], [-20, 0]]
        assert (table.labels.tolist(), table.classes) == ([0, 1, 0], ["frog", "toad"])
    # The file is read again when it has changed.
    path.write_text(CSV + "5,newt,5\n")
    assert read_labelled(path, "kind").classes == ["frog", "newt", "toad"]
    numbered = read_labelled(frame.assign(kind=[10, 9, 10]), "kind")
    assert (numbered.labels.tolist(), numbered.classes) == ([1, 0, 1], [9, 10])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            CSV + "red,frog,1\n",
            "mine.csv cannot be read: .*Row #5: .*'red'; of column 'width' numbers are required",
        ),
        (CSV + "1,frog\n", "Row #5: Expected 3 columns, got 2"),
        (CSV + "1,frog,inf\n", "mine.csv, row 5, column 'height' is inf; finite numbers"),
        (CSV + "1,,4\n", "row 5, column 'kind' is missing; labels"),
        (CSV.replace("kind", "sort"), "has no column 'kind', .*'sort'"),
        (CSV.replace("width", "height"), "has no column 'height', or several"),
        ("width,kind,height\n1,frog,2\n", r"labels are \['frog'\]; two"),
        ("width,kind,height\n1,0.5,2\n1,0.7,2\n", r"labels are \[0.5, 0.7\]; two"),
    ],
)
def test_a_malformed_file_is_named_with_line_and_column(tmp_path, text, message):
    pytest.importorskip("pandas")
    path = tmp_path / "mine.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        classify(data=str(path), labels="kind")


@pytest.mark.parametrize(("name", "classes"), [("digits", 10), ("wine", 3), ("breast_cancer", 2)])
def test_tables_of_packages(name, classes):
    """Their content is compared with its digest when they are read."""
    pytest.importorskip("sklearn")
    assert len(read_labelled(name).classes) == classes
