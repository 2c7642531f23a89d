"""Means of arms from ratings: by hand, the same from every kind of table, against pandas, and all that can be wrong."""

import os
import re
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from played import begun

from fedbandit_envs import arms_v0
from fedbandit_envs.arms.ratings import arm_means, mean_ratings, table_means
from fedbandit_envs.arms_v0 import parallel_env
from fedbandit_envs.baselines.learned import read_layers
from fedbandit_envs.gaussian_v0 import parallel_env as gaussian
from fedbandit_envs.linear.labelled import read_labelled
from fedbandit_envs.linear.tables import read_queries

pandas = pytest.importorskip("pandas")

# Item 10 comes after 9, as a number; a text in a column that is not read has a line of its own.
RATINGS = """who,region,what,stars,said
ann,north,10,5,"good,
very"
ann,north,9,1,
bob,north,10,3,

bob,north,9,4,NA
NA,south,10,4.5,
eve,south,9,2,
eve,south,300,5,
"""
COLUMNS = {"user": "who", "item": "what", "rating": "stars"}
SCALE = {"scale": (1, 5), "threshold": 4}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text(RATINGS)
    return path


def frame_of(path):
    return pandas.read_csv(path, keep_default_na=False)


def test_means_by_hand(path):
    received = table_means(path, **SCALE, **COLUMNS)
    assert (received.items.tolist(), received.agents) == ([9, 10, 300], ())
    np.testing.assert_allclose(received.means, [1 / 3, 2 / 3, 1])
    everyone = table_means(path, **SCALE, **COLUMNS, definition="all_users")
    np.testing.assert_allclose(everyone.means, [1 / 4, 2 / 4, 1 / 4])
    many = table_means(path, scale=[0, 5], threshold=3, **COLUMNS, min_ratings=2)
    assert many.items.tolist() == [9, 10]
    np.testing.assert_allclose(many.means, [1 / 3, 1])


def test_agents_by_hand(path):
    common = table_means(path, **SCALE, **COLUMNS, agent="region", min_ratings=1)
    assert (common.items.tolist(), common.agents) == ([9, 10], ["north", "south"])
    np.testing.assert_allclose(common.means, [[1 / 2, 1 / 2], [0, 1]])
    everyone = table_means(path, **SCALE, **COLUMNS, agent="region", definition="all_users")
    np.testing.assert_allclose(everyone.means, [[1 / 2, 1 / 2, 0], [0, 1 / 2, 1 / 2]])
    with pytest.raises(ValueError, match=r"has some region without a rating of some what; one .*min_rat"):
        table_means(path, **SCALE, **COLUMNS, agent="region")


def as_parquet(path):
    frame_of(path).to_parquet(path.with_suffix(".parquet"))
    return str(path.with_suffix(".parquet"))


def as_categories(path):
    frame = frame_of(path).astype({"who": "category", "what": "category", "stars": "float32"})
    return frame[frame["what"].astype(int) > 0].set_index("said")


@pytest.mark.parametrize(
    "kind", [str, frame_of, as_parquet, as_categories, lambda path: frame_of(path).convert_dtypes()]
)
def test_every_kind_of_table_gives_the_same(path, kind):
    expected = table_means(path, **SCALE, **COLUMNS, agent="region", min_ratings=1)
    found = table_means(kind(path), **SCALE, **COLUMNS, agent="region", min_ratings=1)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (["007", "7", "1.5"], ["007", "1.5", "7"]),
        (["1e3", "1000", "2"], ["1000", "1e3", "2"]),
        (["9007199254740993", "9007199254740992"], [9007199254740992, 9007199254740993]),
        ([True, False], ["False", "True"]),
        ([10.0, 9.0, 0.5], [0.5, 9.0, 10.0]),
        (list(pandas.to_datetime(["2024-02-01", "2024-01-01"])), ["2024-01-01", "2024-02-01"]),
        ([*range(300), "x"], sorted(map(str, [*range(300), "x"]))),
    ],
)
def test_labels_are_the_texts_of_a_file(tmp_path, labels, found):
    frame = pandas.DataFrame({"user": range(len(labels)), "item": labels, "rating": 5})
    frame.to_csv(tmp_path / "ratings.csv", index=False)
    for table in (frame, tmp_path / "ratings.csv"):
        assert table_means(table, **SCALE).items.tolist() == found


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "Float32"])
def test_numbers_are_those_that_a_file_has(tmp_path, kind):
    """One in low precision is the decimal that it is printed as."""
    stars = pandas.array([4.2, 4.1, 4.3], kind if kind != "f2" else np.float16)
    frame = pandas.DataFrame({"user": [1, 2, 3], "item": 1, "rating": stars})
    frame.to_csv(tmp_path / "ratings.csv", index=False)
    for table in (frame, tmp_path / "ratings.csv"):
        np.testing.assert_allclose(table_means(table, (1, 5), 4.2).means, 2 / 3)


def test_a_federation_of_a_table(path):
    spec = {"name": "ratings", "table": str(path), **SCALE, **COLUMNS}
    env = begun(parallel_env(means=spec, num_arms=2, num_agents=3))
    np.testing.assert_allclose(env.hidden()["mean"], np.broadcast_to([2 / 3, 1], (1, 3, 2)))
    apart = {**spec, "agent": "region", "min_ratings": 1}
    env = begun(parallel_env(means={**apart, "table": frame_of(path)}))
    np.testing.assert_allclose(env.hidden()["mean"][0], [[1 / 2, 1 / 2], [0, 1]])
    with pytest.raises(ValueError, match="num_agents is 3; None or 2, as means has, is required"):
        parallel_env(means=apart, num_agents=3)
    with pytest.raises(ValueError, match=r"spread is 0.1; 0 is required"):
        parallel_env(means=apart, spread=0.1)
    np.testing.assert_allclose(arm_means(spec, 2), [2 / 3, 1])
    np.testing.assert_allclose(arm_means(apart, 2), [[1 / 2, 1 / 2], [0, 1]])
    # Those that are largest on average over agents, of equal ones the first.
    everyone = {**spec, "agent": "region", "definition": "all_users"}
    np.testing.assert_allclose(arm_means(everyone, 1), [[1 / 2], [1 / 2]])
    np.testing.assert_allclose(arm_means(everyone, 2), [[1 / 2, 1 / 2], [0, 1 / 2]])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("eve,south,7,,", r", row 9, column 'stars' is missing; finite numbers below 1e\+150 are required"),
        ("eve,south,7,1e150,", r", row 9, column 'stars' is 1e\+150; finite numbers below"),
        ("eve,south,7,five,", " cannot be read: .*Row #9: .* to double: invalid value 'five'"),
        ("eve,south,7,2024-01-01,", " cannot be read: .*Row #9: .* invalid value '2024-01-01'"),
        ("eve,south,7", " cannot be read: .*Row #9: Expected 5 columns, got 3"),
        ("eve,south,7,4,5,", " cannot be read: .*Row #9: Expected 5 columns, got 6"),
        ("eve,south,,4,", ", row 9, column 'what' is missing; labels are required"),
        ("bob,north,9,4,", ", row 9: the user 'bob' rates 9 a second time; one rating"),
        ('"eve,south,7,4,', " cannot be read: .*Expected 5 columns"),
        (f"fay,south,7,5.001,{'z' * 2_000_000}", r", row 9, column 'stars' is 5.001; numbers in \[1, 5\]"),
    ],
    ids=range(10),
)
def test_malformed_lines_are_named(path, line, message):
    path.write_text(f"{RATINGS}{line}\nfay,south,7,4,\n")
    with pytest.raises(ValueError, match=f"ratings.csv{message}"):
        table_means(path, **SCALE, **COLUMNS)


@pytest.mark.parametrize("stars", [pandas.to_datetime(["2024-01-01"] * 7), ["5"] * 7, [True] * 7, [1j] * 7])
def test_only_columns_of_numbers_are_numbers(path, stars):
    with pytest.raises(ValueError, match=r"table, column 'stars' is of .*; finite numbers"):
        table_means(frame_of(path).assign(stars=stars), **SCALE, **COLUMNS)


def test_an_empty_text_is_missing_in_a_frame_as_in_a_file(path):
    frame = frame_of(path).assign(what=["a", "b", "a", "", "a", "b", "c"])
    frame.to_csv(path, index=False)
    for table, row in ((frame, 3), (path, 5)):
        with pytest.raises(ValueError, match=f"row {row}, column 'what' is missing; labels are required"):
            table_means(table, **SCALE, **COLUMNS)


@pytest.mark.skipif(sys.platform == "win32", reason="has no pipes among files")
def test_only_regular_files_of_a_sensible_size_are_read(tmp_path):
    """A device has no end, and a pipe waits for ever."""
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "link.csv").symlink_to("/dev/zero")
    refused = "/dev/zero", *(str(tmp_path / f"{name}.csv") for name in ("pipe", "folder", "link"))
    for path in refused:
        for read in (
            partial(table_means, **SCALE),
            partial(read_labelled, labels="kind"),
            read_queries,
            read_layers,
        ):
            with pytest.raises(
                ValueError, match=f"is '{path}'; a regular file of at most 4,294,967,296 bytes"
            ):
                read(path)
    with open(tmp_path / "large.csv", "wb") as file:
        file.truncate(2**32 + 1)
    with pytest.raises(ValueError, match=r"large\.csv'; a regular file"):
        table_means(tmp_path / "large.csv", **SCALE)
    with pytest.raises(FileNotFoundError):
        table_means(tmp_path / "missing.csv", **SCALE)


def test_rows_of_a_data_frame_are_counted(path):
    for stars in ([5, 1, 3, None, 4, 1, 2], pandas.array([5, 1, 3, None, 4, 1, 2], "Int64")):
        with pytest.raises(ValueError, match=r"^table, row 3, column 'stars' is missing"):
            table_means(frame_of(path).assign(stars=stars), **SCALE, **COLUMNS)
    frame = pandas.concat([frame_of(path)] * 2, axis=1)
    frame.to_csv(path, index=False)
    for table in (frame, path):
        with pytest.raises(ValueError, match="has no column 'who', or several"):
            table_means(table, **SCALE, **COLUMNS)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            {"user": "whom"},
            ValueError,
            r"ratings.csv has no column 'whom', .* columns, \['who', 'region', 'what'",
        ),
        ({"agent": ["region"]}, TypeError, "unhashable"),
        ({"scale": (1, 3, 5)}, ValueError, "too many values"),
        ({"scale": ("1", 5)}, TypeError, r"scale\[0\] is '1'"),
        (
            {"scale": (-1e308, 1e308)},
            ValueError,
            r"scale\[0\] is -1e\+308; a number in \[-1e\+150, 1e\+150\]",
        ),
        ({"threshold": 6}, ValueError, r"threshold is 6; a number in \[1, 5\]"),
        ({"min_ratings": 4}, ValueError, "min_ratings is 4; .*ratings.csv has no item with as many"),
        ({"table": 7}, TypeError, "table is 7; the path of a file or a pandas.DataFrame"),
        ({"table": "https://host/ratings.csv"}, OSError, "ratings.csv"),
    ],
)
def test_parameters_are_named(path, given, error, message):
    with pytest.raises(error, match=message):
        table_means(**{"table": path, **SCALE, **COLUMNS, **given})


def test_files_without_ratings_are_named(path):
    for data, message in (
        (b"", "cannot be read: Empty"),
        (b"user,item,rating\n", "has no rows; at least one"),
        (b"user,item,rating\n\xff\xfe,2,3\n", "cannot be read: .*(utf|UTF)"),
        (
            b"user;item;rating\n1;2;3\n",
            r"has no column 'user', .*its columns, \['user;item;rating'\], is required",
        ),
    ):
        path.write_bytes(data)
        with pytest.raises(ValueError, match=f"ratings.csv {message}"):
            table_means(path, **SCALE)
    with pytest.raises(ValueError, match="table has no rows"):
        table_means(pandas.DataFrame({"user": [], "item": [], "rating": []}), **SCALE)
    with pytest.raises(ValueError, match=r"ratings.parquet cannot be read: "):
        table_means(path.rename(path.with_suffix(".parquet")), **SCALE)


def test_without_pandas_the_extra_is_named(path, monkeypatch):
    for module in ("pandas", "pyarrow.csv"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            with pytest.raises(ImportError, match=rf"{module} is .*envs\[data\]'"):
                table_means(path, **SCALE)
    # It is imported when it is used, which takes half a second.
    for file in Path(arms_v0.__file__).parent.rglob("*.py"):
        assert not re.search(r"^(import|from) (pandas|pyarrow)", file.read_text(), re.MULTILINE), file


# Of the three items, 10 and 9 have most ratings; ann and eve have rated both of these, bob and cem one.
SMALL = [
    ("eve", 9, 5), ("eve", 10, 3), ("ann", 9, 1), ("ann", 10, 1), ("bob", 9, 5), ("cem", 10, 4), ("dan", 2, 4),
]  # fmt: skip


def ratings_of(rows):
    return pandas.DataFrame(rows, columns=["who", "what", "stars"])


@pytest.fixture
def many():
    """Ratings from 0.5 to 4.5 of 30 items by 60 users, some of whom rate few; rows in no order."""
    rng = np.random.default_rng(5)
    who, what = np.nonzero(rng.random((60, 30)) < rng.uniform(0.05, 0.9, (60, 1)) * rng.uniform(0.2, 1, 30))
    stars = np.clip(np.round(2 * rng.normal(1 + what / 10 + who % 3 / 2, 1)) / 2, 0.5, 4.5)
    return ratings_of({"who": who + 5, "what": 3 * what, "stars": stars}).sample(frac=1, random_state=1)


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


@pytest.mark.parametrize(
    ("arms", "users", "scale"), [(1, 20, (0.5, 4.5)), (8, 30, (-2, 5)), (30, 1, (0.5, 4.5))]
)
def test_means_are_those_of_pandas(many, tmp_path, arms, users, scale):
    many.to_csv(tmp_path / "ratings.csv", index=False)
    spec = {"name": "ratings", "table": str(tmp_path / "ratings.csv"), "scale": scale, **COLUMNS}
    items, average, people, own, filled = by_pandas(many, scale, arms, users)
    found = mean_ratings(many, scale, **COLUMNS, num_arms=arms, num_agents=users)
    assert (found.items.tolist(), list(found.agents), found.filled) == (items, people, filled)
    np.testing.assert_allclose(found.means, own, rtol=1e-12)
    np.testing.assert_allclose(mean_ratings(many, scale, **COLUMNS, num_arms=arms).means, average, rtol=1e-12)
    sizes = {"means": spec, "num_arms": arms, "num_agents": users, "regret": "federation"}
    real = begun(gaussian(**sizes), [0, 1])
    np.testing.assert_array_equal(real.hidden()["mean"], np.tile(found.means, (2, 1, 1)))
    np.testing.assert_allclose(real.hidden()["worth"][1], np.tile(own.mean(), (users, 1)))
    drawn = begun(gaussian(**sizes, law="approximate", spread=0.1), [0, 1])
    np.testing.assert_allclose(drawn.hidden()["worth"][1], np.tile(average, (users, 1)))


def test_what_is_filled_in_by_hand():
    found = mean_ratings(ratings_of(SMALL), (1, 5), **COLUMNS, num_arms=2, num_agents=4)
    # 9: (4 + 0 + 4) / 3, and 10: (2 + 0 + 3) / 3 quarters. Bob is a third above 9, cem 1/3 above 10.
    assert found.items.tolist() == [9, 10]
    assert (found.agents, found.filled) == (["ann", "bob", "cem", "eve"], 2)
    np.testing.assert_allclose(found.means, [[0, 0], [1, 5 / 12 + 1 / 3], [1, 0.75], [1, 0.5]])
    # Clipped: cem's 9 would be 2/3 + 1/3 = 1, and of one whose 10 is a 5 more than 1.
    rows = [*SMALL[:5], ("cem", 10, 5)]
    assert mean_ratings(ratings_of(rows), (1, 5), **COLUMNS, num_agents=4).means[2].tolist() == [1, 1]


def test_without_numbers_all_items_are_arms_and_ten_users_agents(many):
    spec = {"name": "ratings", "table": many, "scale": [0.5, 4.5], **COLUMNS}
    env = gaussian(means=spec)
    assert (env.max_num_agents, env.single_observation_space["total_pulls"].shape) == (10, (30,))
    concentrated = begun(gaussian(means=spec, law="concentrated", num_agents=7, num_arms=5))
    average = mean_ratings(many, (0.5, 4.5), **COLUMNS, num_arms=5).means
    np.testing.assert_allclose(concentrated.hidden()["mean"][0].mean(axis=0), average)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"num_arms": 4}, ValueError, r"num_arms is 4; an integer in \[1, 3\]"),
        ({"num_arms": 2}, ValueError, r"num_agents is 10; an integer in \[1, 4\]"),
        ({"scale": [2, 5]}, ValueError, r"ratings.csv, row 4, column 'stars' is 1; numbers in \[2, 5\]"),
        ({"threshold": 4}, TypeError, "unexpected keyword argument 'threshold'"),
        ({"name": "films"}, ValueError, "means name is 'films'; one of \\['ratings'\\]"),
    ],
)
def test_wrong_settings_are_named(tmp_path, changes, error, message):
    ratings_of(SMALL).to_csv(tmp_path / "ratings.csv", index=False)
    spec = {"name": "ratings", "table": str(tmp_path / "ratings.csv"), "scale": [1, 5], **COLUMNS}
    sizes = {name: value for name, value in changes.items() if name.startswith("num_")}
    with pytest.raises(error, match=message):
        gaussian(means={**spec, **changes} if not sizes else spec, **sizes)
    with pytest.raises(ValueError, match="means name is 'movielens'"):
        gaussian(means="movielens")
