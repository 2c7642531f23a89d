"""Every formula of the pages and of the environments' docstrings can be written as MathML."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"^ *(```+).*?^ *\1|`[^`]*`", re.MULTILINE | re.DOTALL)


def test_formulas_can_be_drawn():
    pytest.importorskip("docutils", "0.22", reason="the extra 'docs' is not installed")
    from docutils.utils.math.latex2mathml import tex2mathml

    pages = [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/tutorials/*.md")]
    drawn = 0
    for path in (*pages, *ROOT.glob("fedbandit_envs/*/env.py")):
        for formula in re.findall(r"\$+([^$]+)\$+", CODE.sub("", path.read_text())):
            assert tex2mathml(formula).startswith("<math"), (path, formula)
            drawn += 1
    assert drawn > 100
