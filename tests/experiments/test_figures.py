"""Pictures: every curve is drawn, and no two look alike."""

import re
from io import BytesIO

import matplotlib
import numpy as np
import pytest

from fedbandit_envs.experiments.plots import _styles, figure_of

ROUNDS = np.array([1, 10, 100])
AXES = {"x": "round", "y": "regret", "xscale": "log", "yscale": "log"}


def names(count):
    return [f"curve {i:02d}" for i in range(count)]


def curves(labels):
    return {name: (ROUNDS, ROUNDS**0.5 + i, ROUNDS * 0.01) for i, name in enumerate(labels)}


def svg(*arguments, **named):
    out = BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        figure_of(*arguments, **named).savefig(out, format="svg")
    return out.getvalue().decode()


def test_looks_differ_and_run_out():
    assert len(set(_styles(names(21)).values())) == 21
    with pytest.raises(ValueError, match="names has 22 curves; at most 21"):
        _styles(names(22))


@pytest.mark.parametrize("count", [4, 5])
def test_every_curve_of_every_panel_is_in_the_legend(count):
    panels = {"Five agents": curves(names(count)), "Ten agents": curves(names(count))}
    text = svg(panels, AXES, "a title")
    # One legend a panel while it fits, else one for all.
    for name in names(count):
        assert text.count(f">{name}<") == (2 if count <= 4 else 1)
    for title in ("Five agents", "Ten agents", "a title"):
        assert f">{title}<" in text


def test_panels_share_their_looks():
    with pytest.raises(ValueError, match="22 curves"):
        figure_of({"a": curves(names(21)), "b": curves(["another"])}, AXES, "a title")


def test_a_curve_beside_another_has_its_colour_dotted():
    beside = {f"{name}, in the open": name for name in names(7)}
    looks = _styles([*names(7), *beside], beside)
    assert len(set(looks.values())) == 14
    for name, other in beside.items():
        assert looks[name] == (looks[other][0], "dotted")
    with pytest.raises(ValueError, match="8 curves; at most 7"):
        _styles([*names(8), "beside"], {"beside": names(1)[0]})


def test_panels_have_axes_and_ticks_of_their_own():
    panels = {
        "first": {"a": ([2, 5, 30], [1, 2, 3], [0, 0, 0])},
        "second": {"a": ([0.1, 10], [1, 2], [0, 0])},
    }
    text = svg(
        panels, {**AXES, "x": "epsilon"}, "a title",
        apart={"first": {"x": "agents"}},
    )  # fmt: skip
    assert text.count(">agents<") == text.count(">epsilon<") == 1
    for tick in ("2", "5", "30", "0.1", "10"):
        assert f">{tick}<" in text


@pytest.mark.parametrize(
    ("count", "rows"), [(1, 1), (3, 1), (4, 2), pytest.param(7, 3, marks=pytest.mark.ci)]
)
def test_more_than_three_panels_stand_in_rows(count, rows):
    panels = {name: {"a": (ROUNDS, ROUNDS, ROUNDS * 0.1)} for name in names(count)}
    text = svg(panels, AXES, "a title")
    for name in panels:
        assert text.count(f">{name}<") == 1
    width, height = (float(re.search(f'{side}="([0-9.]+)pt"', text)[1]) for side in ("width", "height"))
    assert width == pytest.approx(72 * 5.6 * -(-count // rows))
    assert height == pytest.approx(72 * 4.6 * rows)
