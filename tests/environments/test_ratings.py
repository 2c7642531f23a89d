"""Means of arms from ratings: both definitions by hand, and every way in which a file can be wrong."""

import numpy as np
import pytest

from fedbandit_envs.arms.ratings import jester_means, keep_largest, movielens_means
from fedbandit_envs.arms_v0 import parallel_env

U_DATA = "1\t10\t5\t881250949\n2\t10\t3\t881250950\n3\t10\t4\t881250951\n1\t7\t2\t881250952\n2\t300\t4\t881250953\n"

JESTER = "3,-9.5,4.5,99,10\n2,5.0,99,99,-10\n0,99,99,99,99\n4,4.49,4.51,99,0\n".replace("4,4.49", "3,4.49")


def test_movielens_by_hand(tmp_path):
    path = tmp_path / "u.data"
    path.write_text(U_DATA)
    received, everyone = (movielens_means(path, definition) for definition in ("received", "all_users"))
    assert received.items.tolist() == everyone.items.tolist() == [7, 10, 300]
    np.testing.assert_allclose(received.means, [0, 2 / 3, 1])
    np.testing.assert_allclose(everyone.means, [0, 2 / 3, 1 / 3])
    np.testing.assert_allclose(movielens_means(path, threshold=5).means, [0, 1 / 3, 0])
    # Windows' ends of lines are none of the rating.
    path.write_bytes(U_DATA.replace("\n", "\r\n").encode())
    np.testing.assert_allclose(movielens_means(path).means, received.means)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_jester_by_hand(tmp_path, separator):
    path = tmp_path / "jester.csv"
    path.write_text(JESTER.replace(",", separator))
    received, everyone = (jester_means(path, definition) for definition in ("received", "all_users"))
    # Nobody rated the third.
    assert received.items.tolist() == everyone.items.tolist() == [1, 2, 4]
    np.testing.assert_allclose(received.means, [1 / 3, 1, 1 / 3])
    np.testing.assert_allclose(everyone.means, [1 / 4, 1 / 2, 1 / 4])
    np.testing.assert_allclose(jester_means(path, threshold=4.51).means, [1 / 3, 1 / 2, 1 / 3])


def test_ratings_become_arms(tmp_path):
    path = tmp_path / "u.data"
    path.write_text(U_DATA)
    means = keep_largest(movielens_means(path).means, 2)
    env = parallel_env(means=means)
    env.reset_batch([0])
    np.testing.assert_allclose(env.hidden()["mean"][0, 0], [2 / 3, 1])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1\t2\t3", "3 fields"),
        ("1,2,3,4", "1 fields"),
        ("1\t2\t3\t4\t5", "5 fields"),
        ("", "1 fields"),
        ("1\t2\t6\t881250949", "out of range"),
        ("1\t2\t0\t881250949", "out of range"),
        ("0\t2\t3\t881250949", "out of range"),
        ("1\t-2\t3\t881250949", "out of range"),
        ("1\t2\t3.5\t881250949", "invalid literal"),
        ("eins\t2\t3\t881250949", "'eins"),
        ("1\t10\t4\t881250960", "film 10 a second time for user 1"),
        ("1\t2\t\ufffd\t4", "invalid literal"),
    ],
)
def test_malformed_lines_of_movielens_are_named(tmp_path, line, message):
    path = tmp_path / "u.data"
    path.write_text(f"{U_DATA}{line}\n4\t10\t5\t881250999\n", encoding="utf-8")
    with pytest.raises(ValueError, match=f"u.data, line 6 .*{message}.* required"):
        movielens_means(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2,1,2,99", "3 ratings, after lines with 4"),
        ("2,1,2,99,99,99", "5 ratings, after lines with 4"),
        ("2,1,2,99,10.01", "out of range"),
        ("2,1,nan,99,99", "out of range"),
        ("2,1,-inf,99,99", "out of range"),
        ("3,1,2,99,99", "2 ratings where it says 3"),
        ("2,1,x,99,99", "could not convert"),
        ("", "could not convert"),
        ("2 1 2 99 99", "could not convert"),
    ],
)
def test_malformed_lines_of_jester_are_named(tmp_path, line, message):
    path = tmp_path / "jester.csv"
    path.write_text(f"{JESTER}{line}\n{JESTER}")
    with pytest.raises(ValueError, match=f"jester.csv, line 5 .*{message}.* required"):
        jester_means(path)


@pytest.mark.parametrize("read", [movielens_means, jester_means])
def test_files_and_parameters_are_named(tmp_path, read):
    path = tmp_path / "ratings"
    with pytest.raises(OSError, match="ratings"):
        read(path)
    path.touch()
    with pytest.raises(ValueError, match="ratings is empty"):
        read(path)
    with pytest.raises(ValueError, match="definition is 'mine'"):
        read(path, "mine")
    with pytest.raises(ValueError, match="threshold is 11"):
        read(path, threshold=11)
    path.write_bytes(b"\xff\xfe1\t2\t3\t4\n")
    with pytest.raises(ValueError, match="line 1 is"):
        read(path)


def test_a_matrix_without_ratings_is_no_bandit(tmp_path):
    path = tmp_path / "jester.csv"
    path.write_text("0,99,99\n0,99,99\n")
    with pytest.raises(ValueError, match="has no ratings"):
        jester_means(path)


def test_the_largest_of_equals_are_the_first():
    assert keep_largest(np.array([0.5, 0.1, 0.5, 0.9, 0.5]), 3).tolist() == [0.5, 0.5, 0.9]
    with pytest.raises(ValueError, match="num_arms is 3; at most 2"):
        keep_largest(np.array([0.5, 0.1]), 3)
