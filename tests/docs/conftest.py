"""What tests of the site share."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def generator(monkeypatch):
    """The folder of the site's own modules, as `docs/conf.py` has it."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "generator"]:
        del sys.modules[name]
