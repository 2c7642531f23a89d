"""Unlike agents from any table of ratings: the means that pandas finds, what is filled in, and what can be wrong."""

import numpy as np
import pytest

from fedbandit_envs.arms.ratings import mean_ratings
from fedbandit_envs.gaussian_v0 import parallel_env

pandas = pytest.importorskip("pandas")

COLUMNS = {"user": "who", "item": "what", "rating": "stars"}
# Of the three items, 10 and 9 have most ratings; ann and eve have rated both of these, bob and cem one.
SMALL = [
    ("eve", 9, 5), ("eve", 10, 3), ("ann", 9, 1), ("ann", 10, 1), ("bob", 9, 5), ("cem", 10, 4), ("dan", 2, 4),
]  # fmt: skip


def frame_of(rows):
    return pandas.DataFrame(rows, columns=["who", "what", "stars"])


@pytest.fixture
def many():
    """Ratings from 0.5 to 4.5 of 30 items by 60 users, some of whom rate few; rows in no order."""
    rng = np.random.default_rng(5)
    who, what = np.nonzero(rng.random((60, 30)) < rng.uniform(0.05, 0.9, (60, 1)) * rng.uniform(0.2, 1, 30))
    stars = np.clip(np.round(2 * rng.normal(1 + what / 10 + who % 3 / 2, 1)) / 2, 0.5, 4.5)
    return frame_of({"who": who + 5, "what": 3 * what, "stars": stars}).sample(frac=1, random_state=1)


def by_pandas(frame, scale, arms, users):
    """Returns names and average ratings of items, names and ratings of users, and how many are filled in."""
    table = frame.assign(stars=(frame["stars"] - scale[0]) / (scale[1] - scale[0]))
    table = table.pivot(index="who", columns="what", values="stars")
    items = sorted(table.count().sort_values(ascending=False, kind="stable").index[:arms])
    average, own = table[items].mean(), table[items]
    people = sorted(own.count(axis=1).sort_values(ascending=False, kind="stable").index[:users])
    own = own.loc[people]
    apart = own.sub(average).mean(axis=1)
    filled = {item: (average[item] + apart).clip(0, 1) for item in items}
    return items, average, people, own.fillna(pandas.DataFrame(filled)), int(own.isna().sum().sum())


@pytest.mark.parametrize("arms", [1, 8, 30])
@pytest.mark.parametrize("users", [1, 20, 30])
@pytest.mark.parametrize("scale", [(0.5, 4.5), (-2, 5)])
def test_means_are_those_of_pandas(many, tmp_path, arms, users, scale):
    many.to_csv(tmp_path / "ratings.csv", index=False)
    spec = {"name": "ratings", "table": str(tmp_path / "ratings.csv"), "scale": scale, **COLUMNS}
    items, average, people, own, filled = by_pandas(many, scale, arms, users)
    found = mean_ratings(many, scale, **COLUMNS, num_arms=arms, num_agents=users)
    assert (found.items.tolist(), list(found.agents), found.filled) == (items, people, filled)
    np.testing.assert_allclose(found.means, own, rtol=1e-12)
    np.testing.assert_allclose(mean_ratings(many, scale, **COLUMNS, num_arms=arms).means, average, rtol=1e-12)
    sizes = {"means": spec, "num_arms": arms, "num_agents": users, "regret": "federation"}
    real = parallel_env(**sizes)
    real.reset_batch([0, 1])
    np.testing.assert_array_equal(real.hidden()["mean"], np.tile(found.means, (2, 1, 1)))
    np.testing.assert_allclose(real.hidden()["worth"][1], np.tile(own.mean(), (users, 1)))
    drawn = parallel_env(**sizes, law="approximate", spread=0.1)
    drawn.reset_batch([0, 1])
    np.testing.assert_allclose(drawn.hidden()["worth"][1], np.tile(average, (users, 1)))
    given = parallel_env(**{**sizes, "means": average.tolist()}, law="approximate", spread=0.1)
    given.reset_batch([0, 1])
    np.testing.assert_allclose(drawn.hidden()["mean"], given.hidden()["mean"])


def test_what_is_filled_in_by_hand():
    found = mean_ratings(frame_of(SMALL), (1, 5), **COLUMNS, num_arms=2, num_agents=4)
    # 9: (4 + 0 + 4) / 3, and 10: (2 + 0 + 3) / 3 quarters. Bob is a third above 9, cem 1/3 above 10.
    assert found.items.tolist() == [9, 10]
    assert (found.agents, found.filled) == (["ann", "bob", "cem", "eve"], 2)
    np.testing.assert_allclose(found.means, [[0, 0], [1, 5 / 12 + 1 / 3], [1, 0.75], [1, 0.5]])
    # Clipped: cem's 9 would be 2/3 + 1/3 = 1, and of one whose 10 is a 5 more than 1.
    rows = [*SMALL[:5], ("cem", 10, 5)]
    average = (0.5 + 0 + 1) / 3
    assert 2 / 3 + 1 - average > 1
    assert mean_ratings(frame_of(rows), (1, 5), **COLUMNS, num_agents=4).means[2].tolist() == [1, 1]


def test_without_numbers_all_items_are_arms_and_ten_users_agents(many):
    spec = {"name": "ratings", "table": many, "scale": [0.5, 4.5], **COLUMNS}
    env = parallel_env(means=spec)
    assert (env.max_num_agents, env.single_observation_space["total_pulls"].shape) == (10, (30,))
    concentrated = parallel_env(means=spec, law="concentrated", num_agents=7, num_arms=5)
    concentrated.reset_batch([0])
    average = mean_ratings(many, (0.5, 4.5), **COLUMNS, num_arms=5).means
    np.testing.assert_allclose(concentrated.hidden()["mean"][0].mean(axis=0), average)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"num_arms": 4}, ValueError, "num_arms is 4; at most 3, as many as .*ratings.csv has items"),
        ({"num_arms": 0}, ValueError, "num_arms is 0"),
        ({"num_arms": 2.0}, TypeError, "num_arms is 2.0"),
        ({"num_arms": 2}, ValueError, "num_agents is 10; at most 4, as many as .*ratings.csv has users who"),
        ({"num_agents": 0}, ValueError, "num_agents is 0"),
        ({"num_agents": True}, TypeError, "num_agents is True"),
        ({"user": "whom"}, ValueError, "ratings.csv has no column 'whom'"),
        ({"scale": [2, 5]}, ValueError, "ratings.csv, line 4, column 'stars' is 1; numbers in \\[2, 5\\]"),
        ({"scale": 5}, TypeError, "scale is 5"),
        ({"scale": [5, 1]}, ValueError, r"scale\[1\] is 1"),
        ({"threshold": 4}, TypeError, "unexpected keyword argument 'threshold'"),
        ({"name": "films"}, ValueError, "means name is 'films'; one of \\['ratings'\\]"),
        ({"table": "nowhere.csv"}, OSError, "nowhere.csv"),
        ({"table": 3}, TypeError, "table is 3"),
    ],
)
def test_wrong_settings_are_named(tmp_path, changes, error, message):
    frame_of(SMALL).to_csv(tmp_path / "ratings.csv", index=False)
    spec = {"name": "ratings", "table": str(tmp_path / "ratings.csv"), "scale": [1, 5], **COLUMNS}
    sizes = {name: value for name, value in changes.items() if name.startswith("num_")}
    with pytest.raises(error, match=message):
        parallel_env(means={**spec, **changes} if not sizes else spec, **sizes)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        # Before version 3, pandas reads labels that are numbers as texts.
        ("eve,9,4", "line 9, column 'what' is '?9'?; items that the user .'eve'. has not rated .*line 2"),
        ("eve,,4", "line 9, column 'what' is missing"),
        (",9,4", "line 9, column 'who' is missing"),
        ("eve,3,", "line 9, column 'stars' is missing"),
        ("eve,3,nan", "line 9, column 'stars' is 'nan'; finite numbers"),
        ("eve,3,good", "line 9, column 'stars' is 'good'; finite numbers"),
    ],
)
@pytest.mark.parametrize("law", ["exact", "approximate"])
def test_wrong_rows_are_named(tmp_path, row, message, law):
    frame_of(SMALL).to_csv(tmp_path / "ratings.csv", index=False)
    with (tmp_path / "ratings.csv").open("a") as file:
        file.write(f"{row}\n")
    spec = {"name": "ratings", "table": str(tmp_path / "ratings.csv"), "scale": [1, 5], **COLUMNS}
    with pytest.raises(ValueError, match=f"ratings.csv, {message}"):
        parallel_env(means=spec, law=law, num_agents=2)


def test_other_texts_are_no_means():
    for law in ("exact", "approximate"):
        with pytest.raises(ValueError, match="means name is 'movielens'"):
            parallel_env(means="movielens", law=law)
