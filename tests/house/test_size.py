"""The package does not grow unnoticed; `python benchmarks/count_lines.py` prints where its lines are.

The bounds are what it had when they were last changed. Before plug-ins and the checks that catch liars came in, there
were 20,340 code lines (7,655 of them in leaderboard and papers), 793 public definitions and 273 classes; before stages,
clips, messages and servers that compute there were 21,406, 7,714, 824 and 279; before pooling, forgery and full disks
were found out there were 23,159 (7,797), 862 and 297; before Zhou and Chowdhury's federations 24,080 (8,525), 888 and
303; before those of unlike agents 25,065 (8,820), 911 and 311; before servers that ask for gradients and plan designs
26,194 (9,086), 943 and 323; before own data, sweeps and notebooks 27,606 (9,270), 977 and 336; before tuned
radii of servers, episodes in shards and what submissions and verifiers are told 29,530 (10,066), 1,010 and 340.
"""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def size():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        from count_lines import measure
    finally:
        sys.path.pop(0)
    return measure(ROOT)


def test_code_lines(size):
    assert size.total <= 29_621, size.lines
    assert size.top <= 10_143, "leaderboard and papers"


def test_definitions(size):
    assert size.public <= 1_010
    assert size.num_classes <= 340
    assert size.private <= 479, "they are not to hide what would be public"


def test_no_public_class_name_is_defined_twice(size):
    assert size.twice == {}


def test_inheritance_is_at_most_three_deep(size):
    assert {name: depth for name, depth in size.depths.items() if depth > 3} == {}


def test_what_counts_as_a_line(size):
    from count_lines import code_lines, template_lines

    source = '"""Doc."""\n\n# why\ndef f(a,\n      b):\n    """Says."""\n    return """x\ny"""  # because\n'
    assert code_lines(source) == 4
    assert template_lines("text\n{% if a %}\n{{ b }} {{ c }}\n{{ f(\n  1,\n) }} end\n") == 5
