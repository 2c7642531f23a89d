"""Benchmarks are imported from the checkout."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True, scope="module")
def checkout():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2]))
        yield
