"""What tests of papers share."""

import pytest


@pytest.fixture(autouse=True)
def small_pages(request, monkeypatch):
    """Ordinary tests play in this process, and the panels of their pictures stay where they are first put.

    To arrange them takes longer than to draw them; `tests/leaderboard/runs/test_figures.py` has it done.
    """
    if request.node.get_closest_marker("slow") is None:
        request.getfixturevalue("in_this_process")
        monkeypatch.setattr("matplotlib.figure.Figure.set_layout_engine", lambda self, layout: None)
