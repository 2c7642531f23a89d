"""Pictures: every curve is drawn, and no two look alike."""

import numpy as np
import pytest

from fedbandit_envs.experiments.plots import _styles, figure_of

ROUNDS = np.array([1, 10, 100])
AXES = {"x": "round", "y": "regret", "xscale": "log", "yscale": "log"}


def names(count):
    return [f"curve {i:02d}" for i in range(count)]


def curves(labels):
    return {name: (ROUNDS, ROUNDS**0.5 + i, ROUNDS * 0.01) for i, name in enumerate(labels)}


def texts(legend):
    return [text.get_text() for text in legend.get_texts()]


def test_looks_differ_and_run_out():
    assert len(set(_styles(names(21)).values())) == 21
    with pytest.raises(ValueError, match="names has 22 curves; at most 21"):
        _styles(names(22))
    # Panels share their looks.
    with pytest.raises(ValueError, match="22 curves"):
        figure_of({"a": curves(names(21)), "b": curves(["another"])}, AXES, "a title")


@pytest.mark.parametrize("count", [4, 5])
def test_every_curve_of_every_panel_is_in_the_legend(count):
    figure = figure_of({"Five": curves(names(count)), "Ten": curves(names(count))}, AXES, "a title")
    # One legend a panel while it fits, else one for all.
    inside = [axes.get_legend() for axes in figure.axes if axes.get_legend()]
    assert [texts(legend) for legend in inside] == [names(count)] * (2 if count == 4 else 0)
    assert [texts(legend) for legend in figure.legends] == [names(count)] * (count == 5)
    assert [len(axes.containers) for axes in figure.axes] == [count] * 2
    assert figure.get_suptitle() == "a title"
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_a_curve_beside_another_has_its_colour_dotted():
    beside = {f"{name}, in the open": name for name in names(7)}
    looks = _styles([*names(7), *beside], beside)
    assert len(set(looks.values())) == 14
    for name, other in beside.items():
        assert looks[name] == (looks[other][0], "dotted")
    with pytest.raises(ValueError, match="8 curves; at most 7"):
        _styles([*names(8), "beside"], {"beside": names(1)[0]})


def test_panels_have_axes_and_ticks_of_their_own():
    panels = {"first": {"a": ([2, 5, 30], [1, 2, 3], [0] * 3)}, "second": {"a": ([0.1, 10], [1, 2], [0] * 2)}}
    figure = figure_of(panels, {**AXES, "x": "epsilon"}, "", apart={"first": {"x": "agents"}})
    ticks = [[tick.get_text() for tick in axes.get_xticklabels()] for axes in figure.axes]
    assert [axes.get_xlabel() for axes in figure.axes] == ["agents", "epsilon"]
    assert ticks == [["2", "5", "30"], ["0.1", "10"]]
    # Numbers are written out, but for the smallest and the largest.
    axes = figure.axes[0].yaxis
    figure.axes[0].set_ylim(1, 1e5)
    assert axes.get_major_formatter()(4e4) == "40,000"


@pytest.mark.parametrize("scale", ["log", "linear"])
def test_intervals_that_reach_zero_are_cut_on_a_logarithmic_axis(scale):
    curve = {"a": ([1, 10], [5.0, 5.0], ([1.0, 6.0], [1.0, 20.0]))}
    (axes,) = figure_of({"": curve}, {**AXES, "yscale": scale}, "").axes
    ((_, _, (bars,)),) = (drawn.lines for drawn in axes.containers)
    np.testing.assert_allclose(
        [low for (_, low), _ in bars.get_segments()], [4, 0.5 if scale == "log" else -1]
    )
    assert ("are cut" in axes.get_ylabel()) is (scale == "log")


@pytest.mark.parametrize(("count", "rows"), [(1, 1), (3, 1), (4, 2), (7, 3)])
def test_more_than_three_panels_stand_in_rows(count, rows):
    panels = {name: {"a": (ROUNDS, ROUNDS, ROUNDS * 0.1)} for name in names(count)}
    figure = figure_of(panels, AXES, "a title")
    assert [axes.get_title() for axes in figure.axes if axes.get_visible()] == names(count)
    np.testing.assert_allclose(figure.get_size_inches(), (5.6 * -(-count // rows), 4.6 * rows))
