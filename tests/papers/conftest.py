"""What tests of papers share."""

import pytest


@pytest.fixture(autouse=True)
def small_pages(request, monkeypatch):
    """Ordinary tests play in this process; the panels of their pictures have no small ticks and are not arranged.

    Both take longer than the curves; `tests/experiments/test_figures.py` has them done.
    """
    if request.node.get_closest_marker("slow") is None:
        request.getfixturevalue("in_this_process")
        monkeypatch.setattr("matplotlib.figure.Figure.set_layout_engine", lambda self, layout: None)
        monkeypatch.setattr("matplotlib.axis.Axis.get_minorticklocs", lambda self: [])
