"""Means of arms from any table of ratings: by hand, the same from every kind of table, and all that can be wrong."""

import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from fedbandit_envs.arms.ratings import arm_means, keep_largest, table_means
from fedbandit_envs.arms_v0 import parallel_env
from fedbandit_envs.basics import tables
from fedbandit_envs.cli import app

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


def test_means_by_hand(path):
    received = table_means(path, **SCALE, **COLUMNS)
    assert received.items.tolist() == [9, 10, 300]
    assert received.agents == ()
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
    with pytest.raises(
        ValueError, match=r"ratings.csv has no rating of what 300 by region 'north'; one .*min_rat"
    ):
        table_means(path, **SCALE, **COLUMNS, agent="region")


def frame_of(path):
    return pandas.read_csv(path, keep_default_na=False)


def as_parquet(path):
    pytest.importorskip("pyarrow")
    frame_of(path).to_parquet(path.with_suffix(".parquet"))
    return str(path.with_suffix(".parquet"))


def as_categories(path):
    frame = frame_of(path).astype({"who": "category", "what": "category", "stars": "float32"})
    return frame[frame["what"].astype(int) > 0].set_index("said")


def nullable(path):
    return frame_of(path).convert_dtypes()


@pytest.mark.parametrize("kind", [str, frame_of, as_parquet, as_categories, nullable])
def test_every_kind_of_table_gives_the_same(path, kind):
    expected = table_means(path, **SCALE, **COLUMNS, agent="region", min_ratings=1)
    found = table_means(kind(path), **SCALE, **COLUMNS, agent="region", min_ratings=1)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_many_ratings_against_a_plain_loop(tmp_path):
    rng = np.random.default_rng(5)
    drawn = rng.choice(90 * 40, 2000, replace=False)
    rows = [(f"u{pair // 40}", pair % 40 - 3, rng.integers(-20, 21) / 2, pair // 40 % 4) for pair in drawn]
    path = tmp_path / "ratings.csv"
    pandas.DataFrame(rows, columns=["user", "item", "rating", "group"]).to_csv(path)
    found = table_means(path, (-10, 10), 2.5, agent="group")
    for g, means in enumerate(found.means):
        for k, item in enumerate(found.items):
            given = [rating for _, what, rating, group in rows if (what, group) == (item, g)]
            assert means[k] == pytest.approx(sum(rating >= 2.5 for rating in given) / len(given))
    assert (found.items.tolist(), found.agents) == ([*range(-3, 37)], [0, 1, 2, 3])


def test_a_federation_of_a_table(path):
    spec = {"name": "ratings", "table": str(path), **SCALE, **COLUMNS}
    env = parallel_env(means=spec, num_arms=2, num_agents=3)
    env.reset_batch([0])
    np.testing.assert_allclose(env.hidden()["mean"], np.broadcast_to([2 / 3, 1], (1, 3, 2)))
    env = parallel_env(means={**spec, "agent": "region", "min_ratings": 1, "table": frame_of(path)})
    env.reset_batch([0])
    np.testing.assert_allclose(env.hidden()["mean"][0], [[1 / 2, 1 / 2], [0, 1]])
    with pytest.raises(ValueError, match="num_agents is 3; None or 2, as means has, is required"):
        parallel_env(means={**spec, "agent": "region", "min_ratings": 1}, num_agents=3)
    with pytest.raises(ValueError, match=r"spread is 0.1; 0 is required"):
        parallel_env(means={**spec, "agent": "region", "min_ratings": 1}, spread=0.1)


def test_the_largest_on_average_are_kept():
    means = np.array([[0.9, 0.1, 0.5, 0.2], [0.0, 0.7, 0.5, 0.2]])
    np.testing.assert_array_equal(keep_largest(means, 2), means[:, [0, 2]])


def test_samba_takes_a_table(path):
    spec = {"name": "ratings", "table": str(path), **SCALE, **COLUMNS}
    np.testing.assert_allclose(arm_means(spec, 2), [2 / 3, 1])
    with pytest.raises(ValueError, match="agent is 'region'; None"):
        arm_means({**spec, "agent": "region"}, 2)


def shell(*words):
    return CliRunner().invoke(app, [*map(str, words)])


def test_tables_on_the_command_line(path):
    table = f'{{"name": "ratings", "table": "{path}", "scale": [1, 5], "threshold": 4, "user": "who", "item": "what", '
    right, wrong = (table + f'"{column}": "stars"}}' for column in ("rating", "ratin"))
    samba = ("samba", "--plain", "--arms", 2, "--budget", 20, "--seed", 0, "--ratings")
    run = ("run", "UCB1", "FedArms-v0", "--rounds", 20, "--seeds", 1, "--set")
    for words in ((*samba, right), (*run, f"means={right}")):
        assert shell(*words).exit_code == 0, shell(*words).output
    for words in ((*samba, wrong), (*run, f"means={wrong}")):
        result = shell(*words)
        assert result.exit_code == 2
        assert "unexpected keyword argument 'ratin'" in " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("eve,south,7,,", r"line 11, column 'stars' is missing; finite numbers are required"),
        ("eve,south,7,nan,", r"line 11, column 'stars' is 'nan'; finite"),
        ("eve,south,7,inf,", r"line 11, column 'stars' is inf; finite"),
        ("eve,south,7,five,", r"line 11, column 'stars' is 'five'; finite"),
        ('eve,south,7,"4,5",', r"line 11, column 'stars' is '4,5'; finite"),
        ("eve,south,7", r"line 11, column 'stars' is missing"),
        ("eve,south,,4,", r"line 11, column 'what' is missing; labels are required"),
        (",south,7,4,", r"line 11, column 'who' is missing"),
        (
            "bob,north,9,4,",
            r"line 11, column 'what' is '?9'?; items that the user \('bob'\) has not rated in an earlier row "
            r"\(.*ratings.csv, line 7\) are required",
        ),
        ('"eve,south,7,4,', "cannot be read: .*EOF inside string"),
    ],
)
def test_malformed_lines_are_named(path, line, message):
    path.write_text(f"{RATINGS}{line}\nfay,south,7,4,\n")
    with pytest.raises(ValueError, match=f"ratings.csv(,)? {message}"):
        table_means(path, **SCALE, **COLUMNS)


@pytest.mark.parametrize("number", [0.5, 5.001, -1.0])
def test_ratings_outside_of_the_scale(path, number):
    path.write_text(f"{RATINGS}fay,south,7,{number},\n")
    with pytest.raises(
        ValueError, match=rf"line 11, column 'stars' is {number}; numbers in \[1, 5\] are required"
    ):
        table_means(path, **SCALE, **COLUMNS)


def test_rows_of_a_data_frame_are_counted(path):
    frame = frame_of(path)
    frame.loc[3, "stars"] = np.nan
    with pytest.raises(ValueError, match=r"^table, row 3, column 'stars' is missing"):
        table_means(frame, **SCALE, **COLUMNS)
    frame = pandas.concat([frame_of(path)] * 2, axis=1)
    with pytest.raises(ValueError, match="table has no column 'who', or several"):
        table_means(frame, **SCALE, **COLUMNS)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            {"user": "whom"},
            ValueError,
            "ratings.csv has no column 'whom', .* columns, 'who', 'region', 'what'",
        ),
        ({"agent": ["region"]}, TypeError, "unhashable"),
        ({"scale": 5}, TypeError, "scale is 5; the smallest and the largest"),
        ({"scale": "15"}, TypeError, "scale is '15'"),
        ({"scale": (1, 3, 5)}, TypeError, "scale is "),
        ({"scale": (5, 1)}, ValueError, r"scale\[1\] is 1; a finite number > 5"),
        ({"scale": ("1", 5)}, TypeError, r"scale\[0\] is '1'"),
        ({"threshold": 6}, ValueError, r"threshold is 6; a number in \[1, 5\]"),
        ({"threshold": None}, TypeError, "threshold is None"),
        ({"definition": "mine"}, ValueError, "definition is 'mine'"),
        ({"min_ratings": -1}, ValueError, "min_ratings is -1"),
        ({"min_ratings": 4}, ValueError, "min_ratings is 4; .*ratings.csv has no item with as many"),
        ({"table": 7}, TypeError, "table is 7; the path of a file or a pandas.DataFrame"),
        ({"table": "https://host/ratings.csv"}, OSError, "ratings.csv"),
    ],
)
def test_parameters_are_named(path, given, error, message):
    with pytest.raises(error, match=message):
        table_means(**{"table": path, **SCALE, **COLUMNS, **given})


def test_files_without_ratings_are_named(path):
    path.write_text("")
    with pytest.raises(ValueError, match=r"ratings.csv cannot be read: No columns"):
        table_means(path, **SCALE)
    path.write_text("user,item,rating\n")
    with pytest.raises(ValueError, match=r"ratings.csv has no rows; at least one"):
        table_means(path, **SCALE)
    path.write_bytes(b"user,item,rating\n\xff\xfe,2,3\n")
    with pytest.raises(ValueError, match=r"ratings.csv cannot be read: .*utf-8"):
        table_means(path, **SCALE)
    path.write_text("user;item;rating\n1;2;3\n")
    with pytest.raises(ValueError, match=r"no column 'user', .*its columns, 'user;item;rating', is required"):
        table_means(path, **SCALE)
    with pytest.raises(ValueError, match="table has no rows"):
        table_means(pandas.DataFrame({"user": [], "item": [], "rating": []}), **SCALE)
    with pytest.raises(IsADirectoryError):
        table_means(path.parent, **SCALE)


def test_a_file_that_is_no_parquet_is_named(path):
    pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match=r"ratings.parquet cannot be read: "):
        table_means(path.rename(path.with_suffix(".parquet")), **SCALE)


def test_a_column_of_numbers_that_ends_in_texts_keeps_its_labels(tmp_path):
    """Pandas reads long files in parts, in which the same label must not be a number here and a text there."""
    path = tmp_path / "ratings.csv"
    lines = [f"{k},{k % 7},5" for k in range(60_000)]
    path.write_text("\n".join(["user,item,rating", *lines, "last,x,5", "last,3,1\n"]))
    found = table_means(path, **SCALE)
    assert found.items.tolist() == ["0", "1", "2", "3", "4", "5", "6", "x"]
    assert found.means[3] == pytest.approx(1 - 1 / (1 + len(range(3, 60_000, 7))))


def test_memory_is_said_beforehand(path, monkeypatch):
    monkeypatch.setattr(tables, "MUCH_MEMORY", 500)
    with pytest.warns(UserWarning, match=r"reading .*ratings.csv will take about .* GiB of memory"):
        table_means(path, **SCALE, **COLUMNS)
    said = []
    monkeypatch.setattr(tables.warnings, "warn", lambda text, stacklevel: said.append(text))
    monkeypatch.setattr(
        pandas, "read_csv", lambda *_, nrows=None, **__: frame_of_heads() if nrows == 0 else 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        table_means(path, **SCALE, **COLUMNS)
    assert len(said) == 1


def frame_of_heads():
    return pandas.DataFrame(columns=["who", "region", "what", "stars", "said"])


def test_a_table_of_agents_that_is_too_large_is_said_beforehand(monkeypatch):
    monkeypatch.setattr(tables, "MUCH_MEMORY", 48 * 9 - 1)
    ratings = pandas.DataFrame({"user": [1, 2, 3], "item": [1, 2, 3], "rating": [1, 1, 5]})
    with pytest.warns(UserWarning, match="the ratings of 3 items by 3 agents will take"):
        table_means(ratings, **SCALE, agent="user", definition="all_users")


def test_without_pandas_the_extra_is_named(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pandas is missing, .* 'fedbandit-envs\[data\]'"):
        table_means(path, **SCALE)
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r"pyarrow.parquet is missing"):
        table_means(path.with_suffix(".parquet"), **SCALE)


def test_the_environments_do_not_import_pandas():
    code = "import sys; from fedbandit_envs import arms_v0, linear_v0; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
